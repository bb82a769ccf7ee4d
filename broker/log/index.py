"""A sparse index over the store, the bytes of a partition. It has an entry for the first batch that begins at least 4 KiB after the previous entry.

An entry takes 24 bytes in three packed columns: position, base offset, and the largest max_timestamp of the batches from this entry up to the next.
Offsets increase within the batches of one replica, but not over the whole store, so every lookup takes a range of positions: `start` inclusive, `end`
exclusive. The index does not know the batches between two entries. It therefore returns positions, or ranges of positions, from which the batches are
then scanned. It replaces both Kafka's `OffsetIndex` and `TimeIndex`. This module does not depend on segments, replicas or records.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

INTERVAL_BYTES = 4096  # whatever `index.interval.bytes` is, which only decides when a segment rolls (CF-28)
_STRIDE = 1024  # entries whose largest timestamp is computed by one call, at C speed


class SparseIndex:
    """The index of a partition's store: finds where in the store, in bytes, the batch with a given offset or timestamp begins.

    Entries are added in the order of positions. The store removes the oldest entries together with the bytes to which these entries point.
    """

    __slots__ = ("_base_offsets", "_max_timestamps", "_next_entry_position", "_positions")

    def __init__(self) -> None:
        self._positions = array("q")
        self._base_offsets = array("q")
        self._max_timestamps = array("q")
        self._next_entry_position = 0

    def __len__(self) -> int:
        return len(self._positions)

    def add(self, position: int, base_offset: int, max_timestamp: int) -> None:
        """Add a batch to the index.

        position: where the batch begins in the partition's store, in bytes; it must be after all batches added before. base_offset: the offset of its
        first record. max_timestamp: the largest timestamp of its records in ms.
        """
        if position >= self._next_entry_position:
            self._positions.append(position)
            self._base_offsets.append(base_offset)
            self._max_timestamps.append(max_timestamp)
            self._next_entry_position = position + INTERVAL_BYTES
        elif max_timestamp > self._max_timestamps[-1]:
            self._max_timestamps[-1] = max_timestamp

    def floor(self, start: int, end: int, offset: int) -> int:
        """Return the byte position in the partition's store at which to start scanning for the batch that contains the offset `offset`.

        start, end: the range of byte positions to scan, `end` exclusive. The result is the position of the last index entry in this range whose base
        offset is not above `offset`; `start` if no entry qualifies.
        """
        low = bisect_left(self._positions, start)
        high = bisect_left(self._positions, end, low)
        entry = bisect_right(self._base_offsets, offset, low, high) - 1
        return self._positions[entry] if entry >= low else start

    def floor_position(self, start: int, position: int) -> int:
        """Return the byte position in the partition's store at which to start scanning for the batch that contains byte `position`.

        start: a byte position at which a batch begins. The result is the position of the last index entry at or before `position`. If there is
        no such entry, or it lies before `start`, the result is `start`.
        """
        entry = bisect_right(self._positions, position) - 1
        return max(start, self._positions[entry]) if entry >= 0 else start

    def next_position(self, position: int) -> int | None:
        """Return the byte position of the first batch at or after `position` that has an index entry, None if there is none."""
        entry = bisect_left(self._positions, position)
        return self._positions[entry] if entry < len(self._positions) else None

    def spans_reaching(self, start: int, end: int, timestamp: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges of the partition's store, between `start` and `end`, that may contain a batch with max_timestamp >= `timestamp` (ms).

        A range is (start, end) in byte positions, end exclusive; ranges are in order of positions. The batches from `start` to the first index entry
        are always included, because the index entry with their largest timestamp lies before `start`.
        """
        low = bisect_left(self._positions, start)
        high = bisect_left(self._positions, end, low)
        first = self._positions[low] if low < high else end
        if start < first:
            yield start, first
        for entry in self._entries_reaching(low, high, timestamp):
            yield self._positions[entry], self._positions[entry + 1] if entry + 1 < high else end

    def spans_of_latest(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return at most three ranges of the partition's store that may contain the batch with the largest timestamp, in order.

        A range is (start, end) in byte positions, end exclusive.

        The ranges lie between `start` and `end`. An index entry stands for the batches from its position up to the next entry. The three ranges
        contain the batches before the first entry, the batches of the entry with the largest timestamp (the first of several), and the batches of
        the last entry. The last entry is always included, because its timestamp may belong to a batch after `end`.
        """
        low = bisect_left(self._positions, start)
        last = bisect_left(self._positions, end, low) - 1
        if last < low:
            return [(start, end)]
        spans = [(start, self._positions[low])]
        if low < last:
            latest = self._max_timestamps.index(max(self._max_timestamps[low:last]), low, last)
            spans.append((self._positions[latest], self._positions[latest + 1]))
        spans.append((self._positions[last], end))
        return spans

    def drop_before(self, position: int) -> None:
        """Remove the index entries before byte `position` of the partition's store, because the store drops the batches that they point to."""
        count = bisect_left(self._positions, position)
        del self._positions[:count]
        del self._base_offsets[:count]
        del self._max_timestamps[:count]
        if not self._positions:
            self._next_entry_position = 0

    def _entries_reaching(self, low: int, high: int, timestamp: int) -> Iterator[int]:
        for stride in range(low, high, _STRIDE):
            stride_end = min(stride + _STRIDE, high)
            if max(self._max_timestamps[stride:stride_end]) >= timestamp:
                for entry in range(stride, stride_end):
                    if self._max_timestamps[entry] >= timestamp:
                        yield entry
