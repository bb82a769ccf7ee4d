"""The bytes of one partition, appended once and shared by all its replicas.

A position is a logical byte address: it never changes its meaning and is never used again. Bytes lie in segments that
follow each other without a gap: the first 64 KiB of a segment in plain memory (ten thousand small partitions cost no
descriptor), then in a memory file, and when the budget for memory is used up the next segment is an unlinked
temporary file, or while it is small a piece of one that all partitions share. With a folder every segment is a file with a name
in it, which outlives the process. A batch lies in one segment, and a read never leaves one (F-14).
The store carries the sparse index of its batches, which lives and shrinks with the bytes.
Must never know: epochs, replicas (they are numbered readers that still need a position), what is in a batch.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.log.files import (
    FileRange,
    MemoryBudget,
    Piece,
    SegmentFile,
    open_memory_file,
    open_temporary_file,
)
from kafkaproto.broker.log.index import SparseIndex
from kafkaproto.broker.log.named_files import SegmentFolder, SegmentOnDisk
from kafkaproto.broker.log.rolling import SegmentTime

__all__ = ["DEFAULT_SEGMENT_BYTES", "FileRange", "MemoryBudget", "Region", "SMALL_SEGMENT_BYTES", "Store"]

SMALL_SEGMENT_BYTES = 64 << 10
DEFAULT_SEGMENT_BYTES = 1 << 30  # log.segment.bytes
NOTHING_NEEDED = (1 << 63) - 1
NO_FLUSH = (1 << 63) - 1
_LARGEST_GRANT_BYTES = 1 << 20

Region = bytes | FileRange


class _Segment:
    """Bytes from `base` to `end`: in `memory`, in `file`, in a `piece` of the spill file or under a name, in one of them.

    A segment may go on with another, which the bytes of a log's segment share: `carried_bytes` are in those before.
    `untimed_ms` is when a batch without a timestamp was last appended, -1 if none was.
    """

    __slots__ = ("base", "carried_bytes", "end", "file", "memory", "path", "piece", "untimed_ms")

    def __init__(self, base: int, carried_bytes: int = 0) -> None:
        self.base = base
        self.carried_bytes = carried_bytes
        self.end = base
        self.untimed_ms = -1
        self.memory: bytearray | None = None
        self.file: SegmentFile | None = None
        self.piece: Piece | None = None
        self.path: Path | None = None


class Store:
    """Append-only bytes with lasting positions. `end_position` is where the next append goes.

    `segment_bytes` may change at any time; it counts for the appends that follow.
    """

    __slots__ = (
        "_base",
        "_bases",
        "_cleaning",
        "_fd",
        "_has_leftover",
        "_needs",
        "_room_end",
        "_segments",
        "_unflushed",
        "_zero",
        "budget",
        "end_position",
        "flush_messages",
        "folder",
        "index",
        "segment_bytes",
        "segment_number",
        "segment_time",
    )

    def __init__(
        self,
        budget: MemoryBudget,
        segment_bytes: int = DEFAULT_SEGMENT_BYTES,
        folder: SegmentFolder | None = None,
    ) -> None:
        self.budget = budget
        self.folder = folder
        self.flush_messages = NO_FLUSH
        """After so many records what lies in named files is forced to the disk (flush.messages)."""
        self.segment_bytes = segment_bytes
        self.end_position = 0
        self.segment_number = 0
        """Counts the segments that were begun; one that goes on in another file is still the same."""
        self.segment_time = SegmentTime()
        self.index = SparseIndex()
        self._segments = [_Segment(0)]
        self._bases = [0]
        self._needs: list[int] = []
        # The last segment, flat for the hot path. _room_end is up to where it takes bytes by a bare pwrite.
        # _zero is the position that would lie at the beginning of its file.
        self._fd = -1
        self._base = 0
        self._zero = 0
        self._room_end = 0
        self._cleaning = False
        self._has_leftover = False
        self._unflushed = 0

    # Writing

    def append(self, data: bytes | bytearray | memoryview) -> int:
        """Write `data` (bytes of one batch) at the end; its position. Raises StorageError with nothing appended."""
        position = self.end_position
        length = len(data)
        if position + length > self._room_end:
            return self._append_making_room(data, length)
        try:
            if os.pwrite(self._fd, data, position - self._zero) != length:
                self._write_all(data, position - self._zero)
        except OSError as error:
            self._cut_what_was_written()
            raise StorageError(f"cannot append {length} bytes: {error}") from error
        self.end_position = position + length
        return position

    def _append_making_room(self, data: bytes | bytearray | memoryview, length: int) -> int:
        position = self.end_position
        if self._has_leftover:
            self._cut_leftover()
        try:
            if not self._fits_last_segment(length):
                self.roll()
            segment = self._segments[-1]
            if self.folder is not None:
                self._use_named_file(segment, self.folder)
            elif self._take_into_memory(segment, data, length):
                self.end_position = position + length
                return position
            else:
                self._make_room_in_file(length)
            self._update_room(length)
            self._write_all(data, position - self._zero)
        except OSError as error:
            self._cut_what_was_written()
            raise StorageError(f"cannot append {length} bytes: {error}") from error
        self.end_position = position + length
        return position

    def _cut_what_was_written(self) -> None:
        """An append failed half way. Under a name nothing may stay behind the end: it would be read after a restart."""
        if self.folder is not None and self._fd >= 0:
            self._room_end = self._base
            self._has_leftover = True
            with suppress(StorageError):
                self._cut_leftover()

    def _cut_leftover(self) -> None:
        """Before anything follows it, if it could not be done at once. Raises StorageError."""
        if not self._has_leftover or self.folder is None:
            return
        try:
            self._use_named_file(self._segments[-1], self.folder)
            os.ftruncate(self._fd, self.end_position - self._zero)
        except OSError as error:
            raise StorageError(f"cannot cut what a failed append has left: {error}") from error
        self._has_leftover = False

    def appended(self, messages: int) -> None:
        """So many records came into the segment files: force them to the disk if it is time (flush.messages)."""
        self._unflushed += messages
        if self._unflushed >= self.flush_messages:
            self.flush()

    def flush(self) -> None:
        """Force the open segment to the disk: the ones before were when they were closed. Only named files need it."""
        self._unflushed = 0
        if self.folder is not None and self._fd >= 0:
            os.fsync(self._fd)

    def _fits_last_segment(self, length: int) -> bool:
        """A segment takes one batch of any size; after that it ends at `segment_bytes`."""
        size = self.open_bytes
        return size == 0 or size + length <= self.segment_bytes

    @property
    def open_bytes(self) -> int:
        """The size of the segment that the next append goes to."""
        return self.end_position - self._base + self._segments[-1].carried_bytes

    def roll(self) -> None:
        """The next append begins a segment."""
        if self.open_bytes:
            self.segment_number += 1
            self._start_segment(0)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is appended in here makes segments of its own; the one that was open goes on afterwards."""
        open_bytes, number = self.open_bytes, self.segment_number
        # Also where the last is empty: an append that failed has left a file, which is none of these.
        self._start_segment(0)
        self._cleaning = True
        try:
            yield
        finally:
            self._cleaning = False
            self._has_leftover = False  # in a file that is not needed, then
            self._start_segment(open_bytes)
            self.segment_number = number

    def note_untimed(self, now_ms: int) -> None:
        """A batch without a timestamp was appended at `now_ms`."""
        self._segments[-1].untimed_ms = now_ms

    def _start_segment(self, carried_bytes: int) -> None:
        last = self._segments[-1]
        if last.base == self.end_position:
            last.carried_bytes = carried_bytes
            if self.folder is not None and last.path is not None:
                self.folder.unlink(last.path)
                last.path = None
            self._has_leftover = False
        else:
            self._cut_leftover()
            last.end = self.end_position
            if self._unflushed and self.flush_messages < NO_FLUSH:
                self.flush()
            if last.file is not None:
                last.file.trim(last.end - last.base)
            self._segments.append(_Segment(self.end_position, carried_bytes))
            self._bases.append(self.end_position)
        self._use_last_segment()

    def _use_last_segment(self) -> None:
        segment = self._segments[-1]
        self._base = segment.base
        self._room_end = self._zero = segment.base
        self._fd = -1
        if segment.piece is not None:
            self._fd = segment.piece.file.fileno()
            self._zero -= segment.piece.offset
        elif segment.file is not None:
            self._fd = segment.file.fileno()

    def _use_named_file(self, segment: _Segment, folder: SegmentFolder) -> None:
        if segment.path is None:
            segment.path = folder.path_of(segment.base, self._cleaning)
        self._fd = folder.pool.open(segment.path, self._evicted).fileno()

    def _evicted(self, path: Path) -> None:
        """The pool closed a file: the next append has to open it again."""
        if self._segments[-1].path == path:
            self._fd = -1
            self._room_end = self._base

    def _take_into_memory(self, segment: _Segment, data: bytes | bytearray | memoryview, length: int) -> bool:
        """Keep small segments in plain memory, and larger ones too where no more files may be opened."""
        if segment.file is not None or segment.piece is not None:
            return False
        size = self.end_position - segment.base
        if size + length > SMALL_SEGMENT_BYTES and self.budget.open_files < self.budget.file_limit:
            return False
        if not self.budget.reserve(length):
            return False
        if segment.memory is None:
            segment.memory = bytearray()
        segment.memory += data
        return True

    def _make_room_in_file(self, length: int) -> None:
        """Leave the last segment as a file that has room for `length` bytes, a new segment if need be."""
        segment = self._segments[-1]
        size = self.end_position - segment.base
        if segment.piece is not None:
            if size + length > segment.piece.size:
                self._start_segment(self.open_bytes)
                self._move_to_file(self._segments[-1], 0, length)
        elif segment.file is None:
            self._move_to_file(segment, size, length)
        elif segment.file.reserved_bytes and not self._grant(segment.file, size, length):
            self._start_segment(self.open_bytes)
            self._move_to_file(self._segments[-1], 0, length)

    def _move_to_file(self, segment: _Segment, size: int, length: int) -> None:
        """Give a segment that lies in memory (or is empty) a memory file; without budget, start one on disk.

        What is small there, or would take a descriptor that connections need, lies in the file that all partitions share.
        """
        file = open_memory_file(self.budget, _grant_bytes(size + length)) or open_memory_file(
            self.budget, size + length
        )
        if file is None and size:
            self._start_segment(self.open_bytes)
            segment, size = self._segments[-1], 0
        if file is None and (
            self.open_bytes + length <= SMALL_SEGMENT_BYTES or self.budget.open_files >= self.budget.file_limit
        ):
            segment.piece = self.budget.spill.lend(
                min(max(length, 2 * segment.carried_bytes), _LARGEST_GRANT_BYTES + length)
            )
            self._use_last_segment()
            return
        segment.file = file or open_temporary_file(self.budget)
        if segment.memory is not None:
            os.pwrite(segment.file.fileno(), segment.memory, 0)
            self.budget.release(len(segment.memory))
            segment.memory = None
        self._use_last_segment()

    def _grant(self, file: SegmentFile, size: int, length: int) -> bool:
        """Have the budget cover `length` more bytes: in large steps, or exactly when it runs low."""
        missing = size + length - file.reserved_bytes
        return missing <= 0 or file.reserve(max(missing, _grant_bytes(size))) or file.reserve(missing)

    def _update_room(self, length: int) -> None:
        segment = self._segments[-1]
        granted = self.segment_bytes
        if segment.piece is not None:
            granted = segment.piece.size
        elif segment.file is not None and segment.file.reserved_bytes:
            granted = segment.file.reserved_bytes
        room = min(granted, self.segment_bytes - segment.carried_bytes)
        room = max(room, self.end_position - self._base + length)
        self._room_end = self._base + room

    def _write_all(self, data: bytes | bytearray | memoryview, offset: int) -> None:
        """`pwrite` until everything is written: a signal or a filling disk may cut one short."""
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._fd, rest, offset)
            if written == 0:
                raise StorageError("the segment file takes no more bytes")
            rest = rest[written:]
            offset += written

    # Reading

    def region(self, position: int, length: int) -> Region:
        """`length` bytes from `position` on, within one segment: `bytes` from memory, else a range of its file."""
        segment = self._segment_at(position)
        start = position - segment.base
        if segment.piece is not None:
            return FileRange(segment.piece.file, segment.piece.offset + start, length, segment.piece)
        file = self._file(segment)
        if file is not None:
            return FileRange(file, start, length)
        return _copy(segment.memory, start, length)

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position` on, fewer at the end of the segment, none if it was given back."""
        if position < self._bases[0]:
            return b""
        segment = self._segment_at(position)
        start = position - segment.base
        file = self._file(segment)
        if segment.piece is not None:
            file, start = segment.piece.file, start + segment.piece.offset
        if file is not None:
            return os.pread(file.fileno(), min(length, self.segment_end(position) - position), start)
        return _copy(segment.memory, start, length)

    def _file(self, segment: _Segment) -> SegmentFile | None:
        if self.folder is not None and segment.path is not None:
            return self.folder.pool.open(segment.path, self._evicted)
        return segment.file

    def segment_end(self, position: int) -> int:
        """Where the segment that holds `position` ends (so far)."""
        if position >= self._base:
            return self.end_position
        return self._segment_at(position).end

    def untimed_ms(self, position: int) -> int:
        """When a batch without a timestamp was last appended to the segment that holds `position`, -1 if none was."""
        return self._segment_at(position).untimed_ms

    def boundaries(self, start: int, end: int) -> Iterator[tuple[int, bool]]:
        """Cuts the positions `start`..`end` where segments begin: (position, whether a log's segment begins there)."""
        for segment in self._segments[bisect_right(self._bases, start) - 1 :]:
            if segment.base >= end:
                return
            yield max(start, segment.base), segment.base >= start and not segment.carried_bytes

    def _segment_at(self, position: int) -> _Segment:
        if position >= self._base:
            return self._segments[-1]
        return self._segments[bisect_right(self._bases, position) - 1]

    # Giving space back

    def add_reader(self) -> int:
        """The number of a new reader (a replica), which needs nothing yet."""
        self._needs.append(NOTHING_NEEDED)
        return len(self._needs) - 1

    def reader_needs(self, reader: int, position: int) -> None:
        """Reader `reader` needs nothing before `position`: what no reader needs is given back."""
        self._needs[reader] = position
        self.drop_before(min(self._needs))

    def drop_before(self, position: int) -> None:
        """Give back the whole segments before `position`; a range of them that is being sent lives on."""
        if self.folder is not None and self.folder.pool.delays_responses:
            return
        if self.end_position <= position and not self._has_leftover:
            self.roll()
        dropped = 0
        while dropped < len(self._segments) - 1 and self._segments[dropped].end <= position:
            self._forget(self._segments[dropped])
            dropped += 1
        del self._segments[:dropped]
        del self._bases[:dropped]
        if dropped:
            self.index.drop_before(self._bases[0])

    @property
    def start_position(self) -> int:
        """The first position that can still be read."""
        return self._bases[0]

    def adopt(self, found: list[SegmentOnDisk], end_position: int, now_ms: int) -> None:
        """Take over what a process before left in the folder: its files, in the order of positions. The next append is at `end_position`.

        What is known of each is only that it was there at `now_ms`.
        """
        for at in found:
            segment = _Segment(at.base)
            segment.path, segment.end, segment.untimed_ms = at.path, at.base + at.size_bytes, now_ms
            self._segments.insert(-1, segment)
        last = self._segments[-1]
        self.end_position = last.base = last.end = end_position
        if found and not found[-1].is_cleaned and found[-1].base + found[-1].size_bytes == end_position:
            self._segments.pop()
        self._bases = [segment.base for segment in self._segments]
        self.segment_number = len(self._segments)
        self._use_last_segment()

    def cut(self, position: int, needed: list[tuple[int, int]]) -> int:
        """The bytes from `position` on are damaged: take them away, and what was appended behind them. How many bytes that was.

        Ranges of positions that are `needed` stay, and so does what compaction wrote. Positions are not used again.
        """
        assert self.folder is not None
        gone = 0
        for segment in list(self._segments):
            path = segment.path
            is_needed = any(start < segment.end and segment.base < end for start, end in needed)
            if path is None or segment.end <= position or path == self.folder.path_of(segment.base, True):
                continue
            if segment.base < position:
                gone += segment.end - position
                os.ftruncate(self.folder.pool.open(path, self._evicted).fileno(), position - segment.base)
                segment.end = position
            elif not is_needed:
                gone += segment.end - segment.base
                self._forget(segment)
                self._segments.remove(segment)
        self._segments.append(_Segment(self.end_position))
        self._bases = [segment.base for segment in self._segments]
        self.segment_number += 1
        self._use_last_segment()
        return gone

    @contextmanager
    def examined(self) -> Iterator[None]:
        """Readers that are added in here are there only to look: they give nothing back, and are gone afterwards."""
        readers = len(self._needs)
        self.reader_needs(self.add_reader(), 0)
        try:
            yield
        finally:
            del self._needs[readers:]

    def leave(self) -> None:
        """The process ends: give back what it held. Files with names stay."""
        if self.folder is None:
            self.close()
            return
        for segment in self._segments:
            if segment.path is not None:
                self.folder.pool.release(segment.path)
                segment.path = None
        self.close()

    def close(self) -> None:
        """Give everything back. Positions go on from where they were."""
        for segment in self._segments:
            self._forget(segment)
        self._segments = [_Segment(self.end_position)]
        self._bases = [self.end_position]
        self.index.drop_before(self.end_position)
        self._use_last_segment()

    def _forget(self, segment: _Segment) -> None:
        if segment.memory is not None:
            self.budget.release(len(segment.memory))
            segment.memory = None
        segment.piece = None
        if self.folder is not None and segment.path is not None:
            self.folder.unlink(segment.path)
            segment.path = None
        segment.file = None  # closes with its last FileRange, and only then returns its memory


def _grant_bytes(size: int) -> int:
    """How much budget a file of `size` bytes takes at a time: it doubles, up to 1 MiB."""
    return min(max(2 * SMALL_SEGMENT_BYTES, size), _LARGEST_GRANT_BYTES)


def _copy(memory: bytearray | None, start: int, length: int) -> bytes:
    """A copy: a view that outlives the call would keep the bytearray from growing."""
    return bytes(memoryview(memory)[start : start + length]) if memory is not None else b""
