"""The no-op records that Kafka's controller writes to the metadata log at regular intervals (KIP-835).

A client sees them in the epoch of the features and in DescribeQuorum. This broker only counts them.
"""

from __future__ import annotations

from collections.abc import Callable

BLOCK = 1000
"""How many records are persisted ahead, so that a count is written to the disk only once for this number of records."""


class NoOpRecords:
    """Counts the no-op records since the start of the process.

    interval_ms: `metadata.max.idle.interval.ms`; 0 for no such records. now_ms: a function that returns the current time. reserve: a function that
    persists a number before the count exceeds it, so that the next process can begin above it; None without a data directory.
    """

    def __init__(
        self, interval_ms: int, now_ms: Callable[[], int], reserve: Callable[[int], None] | None = None
    ) -> None:
        self._interval_ms = interval_ms
        self._now_ms = now_ms
        self._reserve = reserve
        self._since_ms = self._last_ms = now_ms()
        self.reserved = 0
        """The number of records that was persisted last."""

    @property
    def count(self) -> int:
        """The number of records until now. It never falls: if the clock is set back, counting continues from the present number."""
        if self._interval_ms <= 0:
            return 0
        now_ms = self._now_ms()
        self._since_ms -= max(0, self._last_ms - now_ms)
        self._last_ms = now_ms
        count = (now_ms - self._since_ms) // self._interval_ms
        if self._reserve is not None and count > self.reserved:
            self.reserved = count + BLOCK
            self._reserve(self.reserved)
        return count

    def last_offset(self, image_offset: int) -> int:
        """Return the offset of the last record in Kafka's metadata log. image_offset: the number of the present image; each counts as one record."""
        return image_offset + self.count
