"""When time makes a log begin a new segment: `LogSegment.shouldRoll` in Kafka. For its size the store does it by itself.

The time is that of the batches: how far one's largest timestamp is from that of the segment's first batch. Where that one
has no timestamp, it is the broker's. Must never know positions, offsets, replicas.
"""

from __future__ import annotations

from collections.abc import Callable

NO_LIMIT_MS = (1 << 63) - 1


class SegmentTime:
    """What counts for the open segment of one store; segments are told apart by a number that only grows.

    `segment_ms` (segment.ms) and `jitter_ms` (segment.jitter.ms) may change at any time. `draw` gives a number in 0..1:
    each segment is shorter by that part of the jitter.
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
        """Whether a batch with `max_timestamp` that comes now belongs to the segment after `number`."""
        if number != self._number:
            return False  # nothing is in it
        if self._first_timestamp >= 0:
            waited_ms = max_timestamp - self._first_timestamp
        else:
            waited_ms = now_ms - self._began_ms
        return waited_ms > self.segment_ms - self._shorter_by_ms

    def appended(self, number: int, max_timestamp: int, now_ms: int) -> None:
        """A batch with `max_timestamp` now lies in segment `number`."""
        if number != self._number:
            self._number = number
            self._first_timestamp = max_timestamp
            self._began_ms = now_ms
            self._shorter_by_ms = int(self.draw() * min(self.jitter_ms, self.segment_ms)) if self.jitter_ms else 0
