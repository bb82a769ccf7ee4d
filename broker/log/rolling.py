"""Rolling of a log by time: when a new segment starts because the active one is too old (`LogSegment.shouldRoll` in Kafka).

The age of a segment is the largest timestamp of the batch to append minus the largest timestamp of the segment's first batch. If the first
batch has no timestamp, the age is the time since the broker appended that batch. The store itself rolls segments by size. This module does not
depend on positions, offsets or replicas.
"""

from __future__ import annotations

from collections.abc import Callable

NO_LIMIT_MS = (1 << 63) - 1


class SegmentTime:
    """Decides when the active segment of one partition's store is too old. The store identifies its segments by increasing numbers.

    The maximum age of a segment is the current `segment_ms` (segment.ms) minus the jitter of the segment. The jitter is computed once, when the
    segment starts: a random number from 0 to 1, which `draw` returns, times the smaller of `jitter_ms` (segment.jitter.ms) and `segment_ms`. Both
    settings may change at any time.
    """

    __slots__ = ("_began_ms", "_first_timestamp", "_number", "_shorter_by_ms", "draw", "jitter_ms", "segment_ms")

    def __init__(self) -> None:
        self.segment_ms = NO_LIMIT_MS
        self.jitter_ms = 0
        self.draw: Callable[[], float] = float
        self._number = -1
        self._first_timestamp = 0
        self._began_ms = 0
        self._shorter_by_ms = 0

    def is_over(self, number: int, max_timestamp: int, now_ms: int) -> bool:
        """Return whether the active segment is too old, so that the next batch must start a new segment.

        number: the number of the active segment. max_timestamp: the largest timestamp of the next batch in ms, -1 for none.
        """
        if number != self._number:
            return False  # the segment is empty
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
