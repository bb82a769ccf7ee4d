"""Rolling of a log: when a new segment starts because the active one is too old or its indexes are full (`LogSegment.shouldRoll` in Kafka).

The age of a segment is the largest timestamp of the batch to append minus the largest timestamp of the segment's first batch. If the first
batch has no timestamp, the age is the time since the broker appended that batch. The store itself rolls segments by size. This module does not
depend on offsets or replicas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

NO_LIMIT_MS = (1 << 63) - 1
OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12
LARGEST_SEGMENT_BYTES = (1 << 31) - 1


class IndexLimits(NamedTuple):
    """The settings segment.index.bytes (`size_bytes`) and index.interval.bytes (`interval_bytes`) of a topic."""

    size_bytes: int = 10 << 20
    interval_bytes: int = 4096


DEFAULT_INDEX_LIMITS = IndexLimits()


class SegmentIndexes:
    """Counts the entries that Kafka would have in the offset index and the time index of the active segment.

    A batch gets an entry in the offset index if it begins more than `interval_bytes` after the batch with the previous entry. For the first entry,
    the distance counts from the start of the segment. Such a batch also gets an entry in the time index if the largest timestamp of the segment has
    grown since the last entry there.

    is_full: True if the offset index has no free entry left, or if the time index has only one free entry left. Kafka reserves this entry for the end
    of the segment. Source: `LogSegment.append`, `OffsetIndex.isFull`, `TimeIndex.isFull`.
    """

    __slots__ = (
        "_free_offset_entries",
        "_free_time_entries",
        "_indexed_position",
        "_indexed_timestamp",
        "_interval_bytes",
        "_max_timestamp",
        "is_full",
    )

    def __init__(self, limits: IndexLimits) -> None:
        self._interval_bytes = limits.interval_bytes
        self._free_offset_entries = limits.size_bytes // OFFSET_ENTRY_BYTES
        self._free_time_entries = limits.size_bytes // TIME_ENTRY_BYTES - 1
        self._indexed_position = 0
        self._indexed_timestamp = -1
        self._max_timestamp = -1
        self.is_full = self._free_time_entries <= 0

    def appended(self, position: int, max_timestamp: int) -> None:
        """Record that a batch was appended to the active segment.

        position: where the batch begins, in bytes from the start of the segment. max_timestamp: the batch's largest timestamp in ms, -1 for none.
        """
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
        if position - self._indexed_position > self._interval_bytes:
            self._indexed_position = position
            self._free_offset_entries -= 1
            if self._max_timestamp > self._indexed_timestamp:
                self._indexed_timestamp = self._max_timestamp
                self._free_time_entries -= 1
            self.is_full = self._free_offset_entries <= 0 or self._free_time_entries <= 0


def _entry_counter(limits: IndexLimits) -> SegmentIndexes | None:
    """Return a counter of index entries for a new segment; None if even the largest segment cannot fill its indexes, as with the default settings."""
    entries = limits.size_bytes // TIME_ENTRY_BYTES - 1
    return SegmentIndexes(limits) if entries * (limits.interval_bytes + 1) < LARGEST_SEGMENT_BYTES else None


class RollConditions:
    """Decides when the active segment of one partition's store is too old or has a full index. The store numbers its segments in increasing order.

    The maximum age of a segment is the current `segment_ms` (segment.ms) minus the jitter of the segment. The jitter is computed once, when the
    segment starts: a random number from 0 to 1, which `draw` returns, times the smaller of `jitter_ms` (segment.jitter.ms) and `segment_ms`. Both
    settings may change at any time. A change of `index_limits` applies to later segments, as in Kafka. `indexes` is None if the indexes of the
    active segment cannot become full; then appends need not count their entries.
    """

    __slots__ = (
        "_began_ms",
        "_first_timestamp",
        "_number",
        "_shorter_by_ms",
        "draw",
        "index_limits",
        "indexes",
        "jitter_ms",
        "segment_ms",
    )

    def __init__(self) -> None:
        self.segment_ms = NO_LIMIT_MS
        self.jitter_ms = 0
        self.draw: Callable[[], float] = float
        self.index_limits = DEFAULT_INDEX_LIMITS
        self.indexes: SegmentIndexes | None = None
        self._number = -1
        self._first_timestamp = 0
        self._began_ms = 0
        self._shorter_by_ms = 0

    def start_segment(self) -> None:
        """Start counting the index entries of a new active segment, with the present limits."""
        self.indexes = _entry_counter(self.index_limits)

    def must_roll(self, number: int, max_timestamp: int, now_ms: int) -> bool:
        """Return whether the active segment is too old or has a full index, so that the next batch must start a new segment.

        number: the number of the active segment. max_timestamp: the largest timestamp of the next batch in ms, -1 for none.
        """
        if number != self._number:
            return False  # the segment is empty
        if self.indexes is not None and self.indexes.is_full:
            return True
        if self._first_timestamp >= 0:
            waited_ms = max_timestamp - self._first_timestamp
        else:
            waited_ms = now_ms - self._began_ms
        return waited_ms > self.segment_ms - self._shorter_by_ms

    def appended(self, number: int, max_timestamp: int, now_ms: int) -> None:
        """Record that a batch was appended to segment `number` at time `now_ms`. max_timestamp: the batch's largest timestamp in ms, -1 for none."""
        if number != self._number:
            self._number = number
            self._first_timestamp = max_timestamp
            self._began_ms = now_ms
            self._shorter_by_ms = int(self.draw() * min(self.jitter_ms, self.segment_ms)) if self.jitter_ms else 0
