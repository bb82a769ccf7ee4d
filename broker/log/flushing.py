"""Flushing of a log to the disk with fsync: how many records and how long a log may stay unflushed (`flush.messages`, `flush.ms`).

`UnifiedLog.append` in Kafka flushes by the number of records, `LogManager.flushDirtyLogs` by time. Only the segment files of a data directory are
flushed. This module does not depend on batches, replicas or timers.
"""

from __future__ import annotations

NO_FLUSH = (1 << 63) - 1


class FlushState:
    """How far the store of one partition (the bytes of its log) is flushed, and the limits after which it is flushed again.

    The limits may change at any time. limit_records: the number of appended records after which the store is flushed (flush.messages). limit_ms: the
    time since the last flush after which the next periodic check flushes the store (flush.ms). Both are `NO_FLUSH` for no limit. unflushed_records:
    the number of records appended since the last flush, counted only while `limit_records` is set. flushed_ms: when the store was last flushed, or
    created. flushed_position: all bytes of the store before this byte position are on the disk.
    """

    __slots__ = ("flushed_ms", "flushed_position", "limit_ms", "limit_records", "unflushed_records")

    def __init__(self) -> None:
        self.limit_records = NO_FLUSH
        self.limit_ms = NO_FLUSH
        self.unflushed_records = 0
        self.flushed_ms = 0
        self.flushed_position = 0

    def flushed(self, start: int, end: int, now_ms: int | None = None) -> None:
        """Record that the partition's store was flushed from byte position `start` to its end, position `end`.

        now_ms: the time of the flush, from which flush.ms counts again. If it is None (unknown), flush.ms counts from the previous flush.
        """
        self.unflushed_records = 0
        if now_ms is not None:
            self.flushed_ms = now_ms
        if self.flushed_position >= start:
            self.flushed_position = end

    def due_ms(self, end: int) -> int | None:
        """Return the time in ms at which flush.ms requires the next flush; None if flush.ms is not set or all bytes are flushed.

        end: the byte position at which the partition's store (the bytes of its log) ends.
        """
        if self.limit_ms >= NO_FLUSH or self.flushed_position >= end:
            return None
        return self.flushed_ms + self.limit_ms
