"""The bytes of one partition, appended once and shared by all its replicas.

A position is a logical byte address: it never changes its meaning and is never used again. Bytes lie in segments that
follow each other without a gap: the first 64 KiB of a segment in plain memory (ten thousand small partitions cost no
descriptor), then in a memory file, and when the budget for memory is used up the next segment is an unlinked
temporary file. A batch lies in one segment, and a read never leaves one (F-14).
The store carries the sparse index of its batches, which lives and shrinks with the bytes.
Must never know: epochs, replicas (they are numbered readers that still need a position), what is in a batch.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager

from broker.log.errors import StorageError
from broker.log.files import FileRange, MemoryBudget, SegmentFile, open_memory_file, open_temporary_file
from broker.log.index import SparseIndex
from broker.log.rolling import SegmentTime

__all__ = ["DEFAULT_SEGMENT_BYTES", "FileRange", "MemoryBudget", "Region", "SMALL_SEGMENT_BYTES", "Store"]

SMALL_SEGMENT_BYTES = 64 << 10
DEFAULT_SEGMENT_BYTES = 1 << 30  # log.segment.bytes
NOTHING_NEEDED = (1 << 63) - 1
_LARGEST_GRANT_BYTES = 1 << 20

Region = bytes | FileRange


class _Segment:
    """Bytes from `base` to `end`: in `memory` or in `file`, never in both.

    A segment may go on with another, which the bytes of a log's segment share: `carried_bytes` are in those before.
    `untimed_ms` is when a batch without a timestamp was last appended, -1 if none was.
    """

    __slots__ = ("base", "carried_bytes", "end", "file", "memory", "untimed_ms")

    def __init__(self, base: int, carried_bytes: int = 0) -> None:
        self.base = base
        self.carried_bytes = carried_bytes
        self.end = base
        self.untimed_ms = -1
        self.memory: bytearray | None = None
        self.file: SegmentFile | None = None


class Store:
    """Append-only bytes with lasting positions. `end_position` is where the next append goes.

    `segment_bytes` may change at any time; it counts for the appends that follow.
    """

    __slots__ = (
        "_base",
        "_bases",
        "_fd",
        "_needs",
        "_room_end",
        "_segments",
        "budget",
        "end_position",
        "index",
        "segment_bytes",
        "segment_number",
        "segment_time",
    )

    def __init__(self, budget: MemoryBudget, segment_bytes: int = DEFAULT_SEGMENT_BYTES) -> None:
        self.budget = budget
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
        self._fd = -1
        self._base = 0
        self._room_end = 0

    # Writing

    def append(self, data: bytes | bytearray | memoryview) -> int:
        """Write `data` (bytes of one batch) at the end; its position. Raises StorageError with nothing appended."""
        position = self.end_position
        length = len(data)
        if position + length > self._room_end:
            return self._append_making_room(data, length)
        try:
            if os.pwrite(self._fd, data, position - self._base) != length:
                self._write_all(data, position - self._base)
        except OSError as error:
            raise StorageError(f"cannot append {length} bytes: {error}") from error
        self.end_position = position + length
        return position

    def _append_making_room(self, data: bytes | bytearray | memoryview, length: int) -> int:
        position = self.end_position
        try:
            if not self._fits_last_segment(length):
                self.roll()
            segment = self._segments[-1]
            if segment.file is None and self._take_into_memory(segment, data, length):
                self.end_position = position + length
                return position
            self._make_room_in_file(length)
            self._write_all(data, position - self._base)
        except OSError as error:
            raise StorageError(f"cannot append {length} bytes: {error}") from error
        self.end_position = position + length
        return position

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
        self.roll()
        try:
            yield
        finally:
            self._start_segment(open_bytes)
            self.segment_number = number

    def note_untimed(self, now_ms: int) -> None:
        """A batch without a timestamp was appended at `now_ms`."""
        self._segments[-1].untimed_ms = now_ms

    def _start_segment(self, carried_bytes: int) -> None:
        last = self._segments[-1]
        if last.base == self.end_position:
            last.carried_bytes = carried_bytes
        else:
            last.end = self.end_position
            if last.file is not None:
                last.file.trim(last.end - last.base)
            self._segments.append(_Segment(self.end_position, carried_bytes))
            self._bases.append(self.end_position)
        self._use_last_segment()

    def _use_last_segment(self) -> None:
        segment = self._segments[-1]
        self._base = segment.base
        self._room_end = segment.base
        self._fd = segment.file.fileno() if segment.file is not None else -1

    def _take_into_memory(self, segment: _Segment, data: bytes | bytearray | memoryview, length: int) -> bool:
        """Keep small segments in plain memory, and larger ones too where no more files may be opened."""
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
        if segment.file is None:
            self._move_to_file(segment, size, length)
        elif segment.file.reserved_bytes and not self._grant(segment.file, size, length):
            self._start_segment(self.open_bytes)
            self._move_to_file(self._segments[-1], 0, length)
        self._update_room(length)

    def _move_to_file(self, segment: _Segment, size: int, length: int) -> None:
        """Give a segment that lies in memory (or is empty) a memory file; without budget, start one on disk."""
        file = open_memory_file(self.budget, _grant_bytes(size + length)) or open_memory_file(
            self.budget, size + length
        )
        if file is None and size:
            self._start_segment(self.open_bytes)
            segment, size = self._segments[-1], 0
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
        file = self._segments[-1].file
        granted = file.reserved_bytes if file is not None and file.reserved_bytes else self.segment_bytes
        room = min(granted, self.segment_bytes - self._segments[-1].carried_bytes)
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
        if segment.file is not None:
            return FileRange(segment.file, start, length)
        return _copy(segment.memory, start, length)

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position` on, fewer at the end of the segment, none if it was given back."""
        if position < self._bases[0]:
            return b""
        segment = self._segment_at(position)
        start = position - segment.base
        if segment.file is not None:
            return os.pread(segment.file.fileno(), min(length, self.segment_end(position) - position), start)
        return _copy(segment.memory, start, length)

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
        if self.end_position <= position:
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
        segment.file = None  # closes with its last FileRange, and only then returns its memory


def _grant_bytes(size: int) -> int:
    """How much budget a file of `size` bytes takes at a time: it doubles, up to 1 MiB."""
    return min(max(2 * SMALL_SEGMENT_BYTES, size), _LARGEST_GRANT_BYTES)


def _copy(memory: bytearray | None, start: int, length: int) -> bytes:
    """A copy: a view that outlives the call would keep the bytearray from growing."""
    return bytes(memoryview(memory)[start : start + length]) if memory is not None else b""
