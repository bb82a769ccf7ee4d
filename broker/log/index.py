"""A sparse index over a store: one entry for the first batch that begins at least 4 KiB after the last entry's.

Three packed columns, 24 bytes an entry: position, base offset, and the largest max_timestamp of the batches from this
entry up to the next. Offsets ascend within a run, not over the store, so every look-up names a range of positions; a
range may begin or end between two entries. Where an answer depends on batches between entries, the index names the
positions to scan: never more than the batches of one entry. (Kafka's `OffsetIndex` and `TimeIndex` in one.)
Must never know: segments, replicas, records.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

INTERVAL_BYTES = 4096  # log.index.interval.bytes
_STRIDE = 1024  # entries whose largest timestamp is taken at once, at C speed


class SparseIndex:
    """Entries are added in the order of positions and given back from the front."""

    __slots__ = ("_base_offsets", "_max_timestamps", "_next_entry_position", "_positions")

    def __init__(self) -> None:
        self._positions = array("q")
        self._base_offsets = array("q")
        self._max_timestamps = array("q")
        self._next_entry_position = 0

    def __len__(self) -> int:
        return len(self._positions)

    def add(self, position: int, base_offset: int, max_timestamp: int) -> None:
        """Note the batch that was appended at `position`."""
        if position >= self._next_entry_position:
            self._positions.append(position)
            self._base_offsets.append(base_offset)
            self._max_timestamps.append(max_timestamp)
            self._next_entry_position = position + INTERVAL_BYTES
        elif max_timestamp > self._max_timestamps[-1]:
            self._max_timestamps[-1] = max_timestamp

    def floor(self, start: int, end: int, offset: int) -> int:
        """Where to begin scanning in positions `start`..`end` for the batch that holds `offset`.

        The position of the last entry there whose base offset is not above `offset`, or `start`.
        """
        low = bisect_left(self._positions, start)
        high = bisect_left(self._positions, end, low)
        entry = bisect_right(self._base_offsets, offset, low, high) - 1
        return self._positions[entry] if entry >= low else start

    def floor_position(self, start: int, position: int) -> int:
        """Where to begin scanning from `start` on for the batch that reaches over `position`: the last entry not behind it, or `start`."""
        entry = bisect_right(self._positions, position) - 1
        return max(start, self._positions[entry]) if entry >= 0 else start

    def spans_reaching(self, start: int, end: int, timestamp: int) -> Iterator[tuple[int, int]]:
        """The position ranges in `start`..`end` in which alone a batch may have max_timestamp >= `timestamp`.

        In order of positions. The batches before the first entry, and those of the last one, are named whenever their
        entry cannot tell them from batches outside of the range.
        """
        low = bisect_left(self._positions, start)
        high = bisect_left(self._positions, end, low)
        first = self._positions[low] if low < high else end
        if start < first:
            yield start, first
        for entry in self._entries_reaching(low, high, timestamp):
            yield self._positions[entry], self._positions[entry + 1] if entry + 1 < high else end

    def spans_of_latest(self, start: int, end: int) -> list[tuple[int, int]]:
        """The position ranges in `start`..`end` in which alone the batch with the largest timestamp may lie, in order.

        The batches before the first entry, the earliest whole entry with the largest timestamp, and the last entry.
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
        """Forget the entries before `position`."""
        gone = bisect_left(self._positions, position)
        del self._positions[:gone]
        del self._base_offsets[:gone]
        del self._max_timestamps[:gone]
        if not self._positions:
            self._next_entry_position = 0

    def _entries_reaching(self, low: int, high: int, timestamp: int) -> Iterator[int]:
        for stride in range(low, high, _STRIDE):
            stride_end = min(stride + _STRIDE, high)
            if max(self._max_timestamps[stride:stride_end]) >= timestamp:
                for entry in range(stride, stride_end):
                    if self._max_timestamps[entry] >= timestamp:
                        yield entry
