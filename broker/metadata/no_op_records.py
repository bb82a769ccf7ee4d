"""The no-op records that Kafka's controller writes to the metadata log at regular intervals (KIP-835).

A client sees them in the epoch of the features and in DescribeQuorum. This broker only counts them.
"""

from __future__ import annotations

from collections.abc import Callable


class NoOpRecords:
    """Counts the no-op records since the start of the process.

    interval_ms: `metadata.max.idle.interval.ms`; 0 for no such records. now_ms: a function that returns the current time.
    """

    def __init__(self, interval_ms: int, now_ms: Callable[[], int]) -> None:
        self.interval_ms = interval_ms
        self.since_ms = now_ms()
        self._now_ms = now_ms
        self._count = 0

    @property
    def count(self) -> int:
        """The number of records until now. It never falls, even if a test sets the clock back."""
        if self.interval_ms > 0:
            self._count = max(self._count, (self._now_ms() - self.since_ms) // self.interval_ms)
        return self._count

    def last_offset(self, image_offset: int) -> int:
        """Return the offset of the last record in Kafka's metadata log. image_offset: the number of the present image; each counts as one record."""
        return image_offset + self.count


def most_until(since_ms: int, interval_ms: int, now_ms: int) -> int:
    """Return how many records a process can have counted that started at `since_ms` and ended before `now_ms`, at an unknown time.

    interval_ms: the setting of that process, 0 for no records.
    """
    return 0 if interval_ms <= 0 else max(0, -((since_ms - now_ms) // interval_ms))
