"""Retention: deletes the oldest segments of a log that are too old, or that make the log too large (`UnifiedLog.deleteOldSegments`, rule N-15).

Only whole segments that end at or below the high watermark are deleted, oldest first. This includes the active segment. This module does not depend
on other replicas, topics or the schedule of retention checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.log.runs import LogSegment
from kafkaproto.broker.log.store import Store
from kafkaproto.broker.log.time_lookup import largest_timestamp

NO_LIMIT = -1


class RetentionLimits(NamedTuple):
    """The settings retention.ms and retention.bytes, -1 for no limit. A topic that is only compacted has neither limit."""

    age_ms: int = NO_LIMIT
    size_bytes: int = NO_LIMIT


def expire(log: ReplicaLog, limits: RetentionLimits, now_ms: int) -> bool:
    """Raise the log start offset to delete the expired segments. Returns whether it was raised.

    limits: retention.ms and retention.bytes of the topic. Raises StorageError if the new log start offset cannot be persisted.
    """
    segments = list(log.runs.segments())
    count = _expired(log, segments, limits, now_ms)
    if not count:
        return False
    if count == len(segments):
        log.store.roll()
        log.raise_log_start(log.log_end_offset)
    else:
        log.raise_log_start(segments[count].first_offset)
    return True


class Expiry(NamedTuple):
    """The time `at_ms` at which the oldest segment of a log expires by age; None if never. Appends to this segment may make the time later.

    log_start_offset, log_end_offset, limits: the log's offsets and retention limits when `at_ms` was computed. `holds` compares these values with
    the present values. log_end_offset is -1 if the log had no segment that could expire.
    """

    at_ms: int | None
    log_start_offset: int
    log_end_offset: int
    limits: RetentionLimits

    def holds(self, log: ReplicaLog, limits: RetentionLimits) -> bool:
        """Return whether `at_ms` is still the time at which the oldest segment of the log expires, so that it need not be computed again.

        True if the limits and the log start offset are unchanged, and the log end offset is not lower than before. Always False if the log had no
        segment that could expire, because the log may have such a segment now.
        """
        unchanged = self.log_start_offset == log.log_start_offset and self.limits == limits
        return unchanged and 0 < self.log_end_offset <= log.log_end_offset


def next_expiry(log: ReplicaLog, limits: RetentionLimits) -> Expiry:
    oldest = None if limits.age_ms < 0 else next(log.runs.segments(), None)
    at_ms = None if oldest is None else newest_ms(log.store, oldest) + limits.age_ms + 1
    end_offset = -1 if oldest is None else log.log_end_offset
    return Expiry(at_ms, log.log_start_offset, end_offset, limits)


def newest_ms(store: Store, segment: LogSegment) -> int:
    """Return the largest timestamp of a segment in ms (`LogSegment.largestTimestamp`).

    If no batch of the segment has a timestamp, the result is the time of the last append to the segment.
    """
    largest = max(largest_timestamp(store, start, end) for start, end in segment.parts)
    return largest if largest >= 0 else max(store.segment_at(start).untimed_ms for start, _ in segment.parts)


def _expired(log: ReplicaLog, segments: Sequence[LogSegment], limits: RetentionLimits, now_ms: int) -> int:
    """Return how many of the oldest segments to delete: first those that exceed retention.bytes, then those that are older than retention.ms.

    limits: retention.ms and retention.bytes of the topic. segments: all segments of the log, oldest first.
    """
    ends = [*(segment.first_offset for segment in segments[1:]), log.log_end_offset]
    count = 0
    if limits.size_bytes >= 0:
        sizes = [segment.size_bytes for segment in segments]
        if sizes:
            sizes[0] += log.runs.deleted_bytes
        surplus = sum(sizes) - limits.size_bytes
        while count < len(segments) and surplus >= sizes[count] and ends[count] <= log.high_watermark:
            surplus -= sizes[count]
            count += 1
    if limits.age_ms >= 0:
        oldest_kept_ms = now_ms - limits.age_ms
        while (
            count < len(segments)
            and ends[count] <= log.high_watermark
            and newest_ms(log.store, segments[count]) < oldest_kept_ms
        ):
            count += 1
    return count
