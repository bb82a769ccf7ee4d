"""The bytes of one partition, stored once for all replicas of the partition.

A position is a logical byte address: it never changes its meaning and is never used again. The bytes are in segments of four kinds (see
`segments`) without a gap between them. A segment starts in plain memory, moves to a memory file when it exceeds 64 KiB, and continues on
disk when the memory budget is used up. In a data directory every segment is a named file. A batch is in one segment, and a read never
crosses the end of a segment (F-14). The store also has a sparse index of its batches; index entries are removed together with their batches.
This module does not depend on epochs or the content of a batch, nor on replicas: to the store a replica is a numbered reader that needs the
bytes from some position on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.log.files import FileRange, MemoryBudget, open_memory_file, open_temporary_file
from kafkaproto.broker.log.flushing import NO_FLUSH, FlushState
from kafkaproto.broker.log.index import SparseIndex
from kafkaproto.broker.log.named_files import SegmentFolder, place_of
from kafkaproto.broker.log.rolling import RollConditions
from kafkaproto.broker.log.segments import (
    LARGEST_GRANT_BYTES,
    SMALL_SEGMENT_BYTES,
    Data,
    MemorySegment,
    NamedSegment,
    PieceSegment,
    Region,
    Segment,
    grant_bytes,
)

__all__ = ["DEFAULT_SEGMENT_BYTES", "FileRange", "MemoryBudget", "Region", "SMALL_SEGMENT_BYTES", "Store"]

DEFAULT_SEGMENT_BYTES = 1 << 30  # log.segment.bytes
NOTHING_NEEDED = (1 << 63) - 1


class Store:
    """An append-only sequence of bytes, the batches of one partition. A position is the number of a byte in this sequence; the number never changes.

    `end_position` is the position at which the next append begins. `segment_bytes`, the size at which a segment is full, may change at any time.
    """

    __slots__ = (
        "_base",
        "_bases",
        "_is_cleaning",
        "_needs",
        "_room_end",
        "budget",
        "end_position",
        "flush_state",
        "folder",
        "index",
        "last",
        "roll_conditions",
        "segment_bytes",
        "segment_number",
        "segments",
    )

    def __init__(
        self,
        budget: MemoryBudget,
        segment_bytes: int = DEFAULT_SEGMENT_BYTES,
        folder: SegmentFolder | None = None,
    ) -> None:
        self.budget = budget
        self.folder = folder
        self.flush_state = FlushState()
        self.segment_bytes = segment_bytes
        self.end_position = 0
        self.segment_number = 0
        """The number of the log's active segment. It increases when the log starts a segment, but not when that segment continues in another file."""
        self.roll_conditions = RollConditions()
        self.index = SparseIndex()
        self._needs: list[int] = []
        self._is_cleaning = False
        self.resume([self._empty_segment(0)], 0)

    # Writing

    def append(self, data: Data) -> int:
        """Append `data`, one batch, and return the byte position at which it begins. Raises StorageError, without an append, if the write fails."""
        position = self.end_position
        length = len(data)
        end = position + length
        try:
            if end > self._room_end:
                self._make_room(length, end)
            self.last.write(data, position - self._base)
        except OSError as error:
            text = f"cannot append {length} bytes to the log in {place_of(self.folder)}: {error}; check the disk"
            raise StorageError(text) from error
        self.end_position = end
        return position

    def _make_room(self, length: int, end: int) -> None:
        """Ensure that the last segment has room for a batch of `length` bytes, which will end at byte position `end` of the store.

        If the batch would make the active segment larger than `segment_bytes`, a new segment starts. An empty segment takes a batch of any size.
        """
        open_bytes = self.open_bytes
        if open_bytes and open_bytes + length > self.segment_bytes:
            self.roll()
        room = self.last.make_room(self.end_position - self._base, length)
        if not room:
            self._leave_memory(length)
            room = self.last.make_room(self.end_position - self._base, length)
        room = min(room, self.segment_bytes - self.last.carried_bytes)
        # Mostly `end` itself, which saves an int object for each small partition.
        self._room_end = max(end, self._base + room)

    def _leave_memory(self, length: int) -> None:
        """Continue the log's active segment in a file with room for `length` more bytes, because the bytes have no more room in plain memory.

        The file is the first of these that is possible:

        A. a memory file, if the memory budget allows it; the bytes in plain memory move to the file;
        B. a part of the spill file, which small segments share, if this segment is small or connections need the remaining descriptors;
        C. a temporary file.

        In cases B and C, earlier bytes stay in plain memory. The active segment of the log, as Kafka defines it, then consists of several segments of
        this store.
        """
        if not isinstance(self.last, MemorySegment):
            self._start_segment(self.open_bytes, is_cleaned=False)
        size = self.end_position - self._base
        budget = self.budget
        file = open_memory_file(budget, grant_bytes(size + length)) or open_memory_file(budget, size + length)
        if file is None and size:
            self._start_segment(self.open_bytes, is_cleaned=False)
        last = self.last
        assert isinstance(last, MemorySegment)
        is_small = self.open_bytes + length <= SMALL_SEGMENT_BYTES
        if file is None and (is_small or budget.open_files >= budget.file_limit):
            piece = budget.spill.lend(min(max(length, 2 * last.carried_bytes), LARGEST_GRANT_BYTES + length))
            self.segments[-1] = PieceSegment(last.base, last.carried_bytes, piece)
        else:
            self.segments[-1] = last.moved_to(file or open_temporary_file(budget))
        self._use_last_segment()

    def flush_append(self, position: int, records: int, now_ms: int) -> None:
        """Count `records` records appended at byte `position`. If flush.messages records are unflushed now, flush the last segment with fsync.

        If fsync fails, the append is undone and StorageError is raised.
        """
        unflushed_records = self.flush_state.unflushed_records + records
        if unflushed_records < self.flush_state.limit_records:
            self.flush_state.unflushed_records = unflushed_records
            return
        try:
            self.last.flush_append(position - self._base)
        except OSError as error:
            self.end_position = self._room_end = position
            raise StorageError(f"cannot flush the log in {place_of(self.folder)}: {error}; check the disk") from error
        self.flush_state.flushed(self._base, self.end_position, now_ms)

    def flush(self, start: int, now_ms: int | None = None) -> None:
        """Flush the segment with byte `start` of the store, and all later segments, with fsync, if they are files in a data directory.

        now_ms: the time, from which flush.ms counts again; None if it is unknown. Raises StorageError if fsync fails; the next flush tries it again.
        """
        try:
            for segment in self.segments[max(0, bisect_right(self._bases, start) - 1) :]:
                segment.flush()
        except OSError as error:
            raise StorageError(f"cannot flush the log in {place_of(self.folder)}: {error}; check the disk") from error
        self.flush_state.flushed(start, self.end_position, now_ms)

    @property
    def open_bytes(self) -> int:
        """Return the size in bytes of the log's active segment, including the parts that are in earlier segments (files or buffers) of this store."""
        return self.end_position - self._base + self.last.carried_bytes

    def roll(self) -> None:
        """Make the next append start a new segment. Raises StorageError if the active segment cannot be ended."""
        if self.open_bytes:
            self._start_segment(0, is_cleaned=self._is_cleaning)
            self.segment_number += 1
            if not self._is_cleaning:
                self.roll_conditions.start_segment()

    @contextmanager
    def compaction_output(self) -> Iterator[None]:
        """Return a context in which the output of compaction goes to new segments. Later appends continue the segment that was active before."""
        open_bytes, number = self.open_bytes, self.segment_number
        # Also if the last segment is empty: a failed append may have left a file under the other name.
        self._start_segment(0, is_cleaned=True)
        self._is_cleaning = True
        try:
            yield
        finally:
            self._is_cleaning = False
            self.last.has_leftover = False  # no replica will use the file with the leftover
            self._start_segment(open_bytes, is_cleaned=False)
            self.segment_number = number

    def _start_segment(self, carried_bytes: int, *, is_cleaned: bool) -> None:
        """Start a new store segment, after ending the last store segment. An empty last store segment is dropped.

        carried_bytes: how many bytes of the current log segment are in earlier store segments; 0 to begin a new log segment. is_cleaned: whether
        compaction writes the new store segment. Raises StorageError if the last store segment cannot be ended; then no new one is started.
        """
        last = self.last
        if last.base == self.end_position:
            if not last.drop():
                last.seal(self.end_position)
            self.segments[-1] = self._empty_segment(carried_bytes, is_cleaned)
        else:
            last.seal(self.end_position)
            if self.flush_state.unflushed_records and self.flush_state.limit_records < NO_FLUSH:
                self.flush(self._base)
            self.segments.append(self._empty_segment(carried_bytes, is_cleaned))
            self._bases.append(self.end_position)
        self._use_last_segment()

    def _use_last_segment(self) -> None:
        self.last = self.segments[-1]
        """The last segment of the store. The next batch is appended to this segment or, if it does not fit, to a new one."""
        self._base: int = self.last.base
        self._room_end = self._base

    def _empty_segment(self, carried_bytes: int, is_cleaned: bool = False) -> Segment:
        if self.folder is None:
            return MemorySegment(self.end_position, carried_bytes, self.budget)
        return NamedSegment(self.end_position, carried_bytes, self.folder, is_cleaned)

    # Reading

    def region(self, position: int, length: int) -> Region:
        """Return `length` bytes of one segment from byte `position` on: `bytes` if they are in plain memory, otherwise a range of its file."""
        segment = self.segment_at(position)
        return segment.region(position - segment.base, length)

    def read(self, position: int, length: int) -> bytes:
        """Return `length` bytes from byte `position` on, or fewer if the segment ends before; none if `position` is below `start_position`."""
        if position < self._bases[0]:
            return b""
        segment = self.segment_at(position)
        end = self.end_position if segment is self.last else segment.end
        return segment.read(position - segment.base, min(length, end - position))

    def segment_end(self, position: int) -> int:
        """Return the byte position after the end of the segment that contains byte `position` of the store."""
        if position >= self._base:
            return self.end_position
        return self.segment_at(position).end

    def boundaries(self, start: int, end: int) -> Iterator[tuple[int, bool]]:
        """Yield (position, is_start) for each segment of the store that has bytes from `start` up to `end`, exclusive.

        position: the byte at which the segment begins, or `start` if it begins before. is_start: whether a segment of the log, as Kafka defines it,
        begins at this position; False where the store only continues a segment of the log in another file or buffer.
        """
        for segment in self.segments[bisect_right(self._bases, start) - 1 :]:
            if segment.base >= end:
                return
            yield max(start, segment.base), segment.base >= start and not segment.carried_bytes

    def segment_at(self, position: int) -> Segment:
        """Return the segment that contains byte `position` of the store."""
        if position >= self._base:
            return self.last
        return self.segments[bisect_right(self._bases, position) - 1]

    # Releasing space

    def add_reader(self) -> int:
        """Add a replica as a reader, and return the reader's number. No bytes are kept for the reader until `reader_needs` is called for it."""
        self._needs.append(NOTHING_NEEDED)
        return len(self._needs) - 1

    def reader_needs(self, reader: int, position: int) -> None:
        """Record that reader number `reader`, a replica, needs no bytes before byte `position`, and drop the bytes that no replica needs."""
        self._needs[reader] = position
        self.drop_before(min(self._needs))

    @contextmanager
    def temporary_readers(self) -> Iterator[None]:
        """Return a context in which no bytes are dropped. The end of the context removes all readers that were added inside it."""
        readers = len(self._needs)
        self.reader_needs(self.add_reader(), 0)
        try:
            yield
        finally:
            del self._needs[readers:]

    def drop_before(self, position: int) -> None:
        """Drop the files of segments that lie completely before byte `position` of the store. A response that is being sent can still read them.

        If the file of the active segment is dropped, later appends go to a new file, which continues the segment (`segment_number` stays the same).
        Nothing is dropped while a change is missing in the metadata log because a write failed: this log may still refer to batches in the files.
        If a file cannot be deleted, its segment and all later ones stay, so that the next process finds no gap between the files.
        """
        if self.folder is not None and self.folder.pool.keeps_segments:
            return
        if self._base < self.end_position <= position and not self.last.has_leftover:
            self.flush_state.unflushed_records = 0  # flushing bytes that are deleted next is useless and can fail
            self._start_segment(self.open_bytes, is_cleaned=self._is_cleaning)
        old = enumerate(self.segments[:-1])
        dropped_count = next((n for n, each in old if each.end > position or not each.drop()), len(self.segments) - 1)
        del self.segments[:dropped_count]
        del self._bases[:dropped_count]
        if dropped_count:
            self.index.drop_before(self._bases[0])

    @property
    def start_position(self) -> int:
        """Return the position of the first byte of the store that has not been dropped."""
        return self._bases[0]

    # Recovery and shutdown

    def resume(self, segments: Sequence[Segment], end_position: int) -> None:
        """Replace all segments by `segments`, for example those that recovery found on disk: at least one, in the order of positions.

        The next append goes to the last of them, at `end_position`.
        """
        self.end_position = end_position
        self.segment_number += 1
        self.segments = list(segments)
        self._bases = [segment.base for segment in segments]
        self.index.drop_before(self._bases[0])
        self._use_last_segment()

    def leave(self) -> None:
        """Release memory and file descriptors of the partition's bytes. Named files stay on the disk for the next process."""
        for segment in self.segments:
            segment.close()
        self.resume([self._empty_segment(0)], self.end_position)

    def close(self) -> None:
        """Delete all bytes, because the partition has been deleted. If its folder in a data directory cannot be deleted, this is logged."""
        self.leave()
        if self.folder is not None:
            self.folder.delete_all()
