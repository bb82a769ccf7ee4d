"""Flushing of a log to the disk with fsync: how many records and how long a log may stay unflushed (`flush.messages`, `flush.ms`).

`UnifiedLog.append` in Kafka flushes by the number of records, `LogManager.flushDirtyLogs` by time. Only the segment files of a data directory are
flushed. This module does not depend on batches, replicas or timers.
"""

from __future__ import annotations

NO_FLUSH = (1 << 63) - 1


class FlushState:
    """What one store must flush, and when. The limits may change at any time.

    limit_records: after this number of appended records, the files are flushed (flush.messages). limit_ms: after this time since the last flush, the
    next periodic check flushes the files (flush.ms). Both are `NO_FLUSH` for no limit. unflushed_records: the number of records appended since the
    last flush, counted only while `limit_records` is set. flushed_ms: when the log was last flushed, or created. flushed_position: all bytes of the
    store before this position are on the disk.
    """

    __slots__ = ("flushed_ms", "flushed_position", "limit_ms", "limit_records", "unflushed_records")

    def __init__(self) -> None:
        self.limit_records = NO_FLUSH
        self.limit_ms = NO_FLUSH
        self.unflushed_records = 0
        self.flushed_ms = 0
        self.flushed_position = 0

    def flushed(self, start: int, end: int, now_ms: int | None = None) -> None:
        """Record that the bytes from position `start` to `end`, the end of the store, were flushed. now_ms: the time, None if it is unknown."""
        self.unflushed_records = 0
        if now_ms is not None:
            self.flushed_ms = now_ms
        if self.flushed_position >= start:
            self.flushed_position = end

    def due_ms(self, end: int) -> int | None:
        """Return when the time limit requires the next flush; None if it requires none. end: the position of the end of the store."""
        if self.limit_ms >= NO_FLUSH or self.flushed_position >= end:
            return None
        return self.flushed_ms + self.limit_ms
