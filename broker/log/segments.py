"""The segments of a partition's store, in four kinds. Each segment has the bytes of the store from one byte position up to another.

`MemorySegment` keeps small segments in plain memory, `FileSegment` has a memory file or a temporary file of its own,
`PieceSegment` uses a piece of the spill file that all partitions share, and `NamedSegment` is a file in a data
directory, which outlives the process. All of them implement `Segment`: the store treats all kinds alike, except
that a `MemorySegment` can move to a file.
This module does not depend on batches, offsets, readers or the order of segments.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.log.files import FileRange, MemoryBudget, Piece, SegmentFile
from kafkaproto.broker.log.named_files import SegmentFolder, SegmentOnDisk

Data = bytes | bytearray | memoryview
Region = bytes | FileRange

SMALL_SEGMENT_BYTES = 64 << 10
LARGEST_GRANT_BYTES = 1 << 20
NO_LIMIT_BYTES = (1 << 63) - 1


class Segment(Protocol):
    """Interface of a segment of a partition's store: the bytes at positions from `base` up to `end`, exclusive.

    A position counts bytes from the first byte of the store, an index (`start`) counts bytes from the first byte of the segment. `end` is valid once
    the segment is sealed; until then only the store knows the end.

    One segment of the log, as Kafka defines it, can be stored as several store segments. `carried_bytes`: how many bytes of that log segment are in
    earlier store segments, 0 if the log segment begins with this store segment. `untimed_ms`: the time (ms of the broker's clock) of the last append
    of a batch without a timestamp, -1 if there was none. `has_leftover`: whether the file still has bytes of a failed append after the end.
    """

    base: int
    end: int
    carried_bytes: int
    untimed_ms: int
    has_leftover: bool

    def make_room(self, size: int, length: int) -> int:
        """Reserve space for `length` more bytes at the end of the segment, which now has `size` bytes.

        Returns the size to which the segment may grow before `make_room` must be called again, or 0 if the bytes do not fit. Raises OSError if a file
        cannot be opened, StorageError if the bytes of a failed append cannot be removed.
        """

    def write(self, data: Data, start: int) -> None:
        """Append `data` to the segment, after `make_room` reserved the space. Raises OSError if the write fails.

        start: the present size of the segment in bytes.
        """

    def flush(self) -> None:
        """Force the bytes to the disk (fsync), if the segment must survive the process. Raises OSError if that fails."""

    def flush_append(self, start: int) -> None:
        """Flush the bytes of the last append to the disk (fsync), if needed. If the flush fails, undo the append and raise OSError.

        start: where the appended bytes begin, in bytes from the start of the segment.
        """

    def seal(self, end: int) -> None:
        """Mark the segment as complete: its last byte is the one before byte position `end` of the partition's store.

        Raises StorageError if bytes of a failed append cannot be removed.
        """

    def region(self, start: int, length: int) -> Region:
        """Return `length` bytes of the segment: a copy if they are in plain memory, otherwise a range of the segment's file.

        start: the index of the first byte, counted from the start of the segment.
        """

    def read(self, start: int, length: int) -> bytes:
        """Return a copy of `length` bytes of the segment. start: the index of the first byte to return, counted from the start of the segment."""

    def drop(self) -> bool:
        """Delete the bytes, and return whether they are gone. A `Region` that was returned before remains readable, for a response in progress."""

    def close(self) -> None:
        """Release memory and descriptors of the segment. A named file stays on the disk."""


class _Extent:
    """Base class of all kinds of segments: the attributes of `Segment`, and the methods that most kinds share."""

    __slots__ = ("base", "carried_bytes", "end", "has_leftover", "untimed_ms")

    def __init__(self, base: int, carried_bytes: int) -> None:
        self.base = base
        self.end = base
        self.carried_bytes = carried_bytes
        self.untimed_ms = -1
        self.has_leftover = False

    def flush(self) -> None:
        """Do nothing: the bytes of the segment need not survive the process."""

    def flush_append(self, start: int) -> None:
        """Do nothing: the bytes of the segment need not survive the process, so no append needs fsync. start: not used."""

    def seal(self, end: int) -> None:
        """Mark the segment as complete: its last byte is the one before byte position `end` of the partition's store."""
        self.end = end

    def drop(self) -> bool:
        """Return True, and do nothing: the segment's file is closed and freed once no object refers to it."""
        return True

    def close(self) -> None:
        """Drop the segment (`drop`), because its bytes do not outlive the process. `NamedSegment` overrides this method to keep its file."""
        self.drop()


class MemorySegment(_Extent):
    """A segment of a partition's store in plain memory, so that thousands of small partitions need no file descriptor."""

    __slots__ = ("_budget", "_bytes")

    def __init__(self, base: int, carried_bytes: int, budget: MemoryBudget) -> None:
        super().__init__(base, carried_bytes)
        self._budget = budget
        self._bytes: bytearray | None = None

    def make_room(self, size: int, length: int) -> int:
        """Reserve memory for `length` more bytes of a segment that has `size` bytes, and return `size + length`.

        Returns 0 if the new bytes must go to a file: because the memory budget is used up, or because the segment would exceed 64 KiB and the
        number of open files is below its limit.
        """
        budget = self._budget
        if size + length > SMALL_SEGMENT_BYTES and budget.open_files < budget.file_limit:
            return 0
        return size + length if budget.reserve(length) else 0

    def write(self, data: Data, start: int) -> None:
        """Append `data` to the bytes in memory. start: the present size of the segment, which is not used."""
        if self._bytes is None:
            self._bytes = bytearray()
        self._bytes += data

    def region(self, start: int, length: int) -> bytes:
        """Return a copy of `length` bytes of the segment. start: the index of the first byte to return, counted from the start of the segment."""
        return self.read(start, length)

    def read(self, start: int, length: int) -> bytes:
        """Return a copy of `length` bytes from byte `start` of the segment on. A view would keep the bytearray of the segment from growing."""
        return b"" if self._bytes is None else bytes(memoryview(self._bytes)[start : start + length])

    def moved_to(self, file: SegmentFile) -> FileSegment:
        """Move the bytes of this segment from memory to `file`, and return a segment for the file. Raises OSError if the write fails."""
        new_segment = FileSegment(self.base, self.carried_bytes, file)
        new_segment.untimed_ms = self.untimed_ms
        if self._bytes is not None:
            new_segment.write(self._bytes, 0)
        self.drop()
        return new_segment

    def drop(self) -> bool:
        """Release the memory, give its bytes back to the memory budget, and return True."""
        if self._bytes is not None:
            self._budget.release(len(self._bytes))
            self._bytes = None
        return True


class FileSegment(_Extent):
    """A segment in an unnamed file that only this segment uses: a memory file within the memory budget, or a temporary file."""

    __slots__ = ("_file",)

    def __init__(self, base: int, carried_bytes: int, file: SegmentFile) -> None:
        super().__init__(base, carried_bytes)
        self._file = file

    def make_room(self, size: int, length: int) -> int:
        """Reserve memory for `length` more bytes, and for later appends if the memory budget allows it.

        size: how many bytes the segment has now. Returns the size up to which it may grow, or 0 if the budget has no room for `length` bytes.
        A temporary file on disk needs no reservation and may always grow (`NO_LIMIT_BYTES`).
        """
        file = self._file
        if not file.reserved_bytes:
            return NO_LIMIT_BYTES  # on disk
        missing = size + length - file.reserved_bytes
        if missing > 0 and not (file.reserve(max(missing, grant_bytes(size))) or file.reserve(missing)):
            return 0
        return file.reserved_bytes

    def write(self, data: Data, start: int) -> None:
        """Write `data` to the file from byte `start` on. Raises OSError if the write fails."""
        fd = self._file.fileno()
        written_bytes = os.pwrite(fd, data, start)
        if written_bytes != len(data):
            _write_rest(fd, data, start, written_bytes)

    def seal(self, end: int) -> None:
        """Mark the segment as complete, and return the unused part of its reservation to the memory budget.

        end: the byte position in the partition's store after the last byte of the segment.
        """
        self.end = end
        self._file.trim(end - self.base)

    def region(self, start: int, length: int) -> FileRange:
        """Return the range of `length` bytes of the file from byte `start` on. The file stays open as long as the range is referenced."""
        return FileRange(self._file, start, length)

    def read(self, start: int, length: int) -> bytes:
        """Return a copy of `length` bytes of the segment. start: the index of the first byte to return, counted from the start of the segment."""
        return os.pread(self._file.fileno(), length, start)


class PieceSegment(_Extent):
    """A segment in a part of the spill file, which many small segments share when memory or file descriptors are used up."""

    __slots__ = ("_piece",)

    def __init__(self, base: int, carried_bytes: int, piece: Piece) -> None:
        super().__init__(base, carried_bytes)
        self._piece = piece

    def make_room(self, size: int, length: int) -> int:
        """Return the fixed size in bytes of this segment's part of the spill file, which small segments share; 0 if `length` more bytes do not fit.

        size: how many bytes the segment has now.
        """
        return self._piece.size if size + length <= self._piece.size else 0

    def write(self, data: Data, start: int) -> None:
        """Write `data` from byte `start` on into this segment's part of the spill file, which small segments share. Raises OSError if that fails."""
        piece = self._piece
        fd = piece.file.fileno()
        written_bytes = os.pwrite(fd, data, piece.offset + start)
        if written_bytes != len(data):
            _write_rest(fd, data, piece.offset + start, written_bytes)

    def region(self, start: int, length: int) -> FileRange:
        """Return the range of `length` bytes from byte `start` on in this segment's part of the spill file.

        The spill file is shared by small segments. The part is not reused as long as the range is referenced.
        """
        piece = self._piece
        return FileRange(piece.file, piece.offset + start, length, piece)

    def read(self, start: int, length: int) -> bytes:
        """Return a copy of `length` bytes of the segment. start: the index of the first byte to return, counted from the start of the segment."""
        return os.pread(self._piece.file.fileno(), length, self._piece.offset + start)


class NamedSegment(_Extent):
    """A segment in a file of a data directory. The first append creates the file; until then `path` is None.

    The pool of open files may close the file at any time; the segment opens it again by its path. `is_cleaned` is True if compaction writes the
    segment. A failed append must leave no bytes in the file, because recovery would read them as records after a restart.
    """

    __slots__ = ("_fd", "_folder", "is_cleaned", "path")

    def __init__(self, base: int, carried_bytes: int, folder: SegmentFolder, is_cleaned: bool) -> None:
        super().__init__(base, carried_bytes)
        self.is_cleaned = is_cleaned
        self.path: Path | None = None
        self._folder = folder
        self._fd = -1  # the file to append to, -1 if it has to be opened first

    @classmethod
    def from_disk(cls, folder: SegmentFolder, on_disk: SegmentOnDisk, now_ms: int) -> NamedSegment:
        """Return a segment for the file `on_disk`, which an earlier process left in `folder`. now_ms: stored as the time of the last append."""
        segment = cls(on_disk.base, 0, folder, on_disk.is_cleaned)
        segment.path, segment.end, segment.untimed_ms = on_disk.path, on_disk.base + on_disk.size_bytes, now_ms
        return segment

    def make_room(self, size: int, length: int) -> int:
        """Open the file, so that bytes can be appended after the first `size` bytes. Any number of bytes fits, so `length` is not used.

        Returns a size that no file reaches, because the file may grow without limit. Raises OSError if the file cannot be opened,
        StorageError if bytes of a failed append cannot be removed.
        """
        self._open_to_append(size)
        return NO_LIMIT_BYTES

    def write(self, data: Data, start: int) -> None:
        """Write `data` to the file from byte `start` on, either completely or not at all. Raises OSError if the write fails."""
        if self._fd < 0:
            self._open_to_append(start)
        try:
            written_bytes = os.pwrite(self._fd, data, start)
            if written_bytes != len(data):
                _write_rest(self._fd, data, start, written_bytes)
        except OSError:
            self._undo(start)
            raise

    def flush(self) -> None:
        """Force the segment's bytes to the disk (fsync), if its file has been created. Raises OSError if that fails."""
        if self.path is not None:
            os.fsync(self._open(self.path).fileno())

    def flush_append(self, start: int) -> None:
        """Force the bytes appended at index `start` of the file to the disk (fsync). If that fails, remove these bytes and raise OSError."""
        try:
            self.flush()
        except OSError:
            self._undo(start)
            raise

    def seal(self, end: int) -> None:
        """Mark the segment as complete: its last byte is the one before byte position `end` of the partition's store.

        Raises StorageError if bytes of a failed append cannot be removed.
        """
        if self.has_leftover:
            self._open_to_append(end - self.base)
        self.end = end

    def truncate(self, end: int) -> None:
        """Shorten the segment's file, so that the segment ends before byte position `end` of the partition's store. Raises OSError if that fails."""
        if self.path is not None:
            os.ftruncate(self._open(self.path).fileno(), end - self.base)
        self.end = end

    def region(self, start: int, length: int) -> Region:
        """Return the range of `length` bytes of the file from byte `start` on. The file stays open as long as the range is referenced.

        Raises OSError if the file cannot be opened.
        """
        return b"" if self.path is None else FileRange(self._open(self.path), start, length)

    def read(self, start: int, length: int) -> bytes:
        """Return a copy of `length` bytes of the file from byte `start` on. Raises OSError if the file cannot be opened or read."""
        return b"" if self.path is None else os.pread(self._open(self.path).fileno(), length, start)

    def drop(self) -> bool:
        """Delete the segment's file, after the delay of its folder. Returns False if this fails: the segment then still has its file."""
        if self.path is not None and self._folder.delete(self.path):
            self.path = None
        return self.path is None

    def close(self) -> None:
        """Close the segment's file, and keep it on the disk for the next process."""
        if self.path is not None:
            self._folder.pool.release(self.path)
            self.path = None

    def _undo(self, start: int) -> None:
        """Remove all bytes of the file from byte `start` on, after a failed append. If that fails, `has_leftover` stays set for a later call."""
        self._fd = -1
        self.has_leftover = True
        with suppress(OSError, StorageError):
            self._open_to_append(start)

    def _open_to_append(self, size: int) -> None:
        """Open the segment's file. If bytes of a failed append are left in it, remove all bytes after the first `size` bytes."""
        if self.path is None:
            self.path = self._folder.path_of(self.base, self.is_cleaned)
        if self.has_leftover:
            try:
                self.truncate(self.base + size)
            except OSError as error:
                raise StorageError(
                    f"cannot remove the bytes that a failed append left in segment file {self.path}: {error}; "
                    "check that the file is writable and that its disk has no errors"
                ) from error
            self.has_leftover = False
        self._fd = self._open(self.path).fileno()

    def _open(self, path: Path) -> SegmentFile:
        return self._folder.pool.open(path, self._evicted)

    def _evicted(self, _: Path) -> None:
        """Drop the reference to the segment's file, which the pool of open files has closed. The next access opens the file again."""
        self._fd = -1


def grant_bytes(size: int) -> int:
    """Return how many bytes to reserve for the growth of a memory file that has `size` bytes: `size`, but at least 128 KiB and at most 1 MiB."""
    return min(max(2 * SMALL_SEGMENT_BYTES, size), LARGEST_GRANT_BYTES)


def _write_rest(fd: int, data: Data, start: int, written: int) -> None:
    """Write the rest of `data` after `pwrite` wrote only the first `written` bytes, because of a signal or a full disk.

    fd: the descriptor of the file. start: the offset in the file where `data` begins. Raises OSError if the disk is full or a write fails.
    """
    unwritten = memoryview(data)[written:]
    while unwritten:
        if not written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        start += written
        written = os.pwrite(fd, unwritten, start)
        unwritten = unwritten[written:]
