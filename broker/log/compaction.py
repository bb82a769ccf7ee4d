"""Log compaction of one replica: keeps only the last record of each key (`LogCleaner`, `Cleaner` in Kafka; KIP-534).

Only segments before the active one, and below the last stable offset, are compacted. Their remaining records are appended to the partition's store as
new segments. The replica's runs (its ranges of positions in the store) then point to the new segments. The old segments are not overwritten, so that
responses in progress can still read them. Offsets do not change, and a batch keeps its first and last offset. Each replica is cleaned independently,
as in Kafka; replicas whose batches are the same bytes share the result. This module does not depend on topics, other replicas or the schedule of
cleaning rounds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kafkaproto.broker.log.cleaned_transactions import CleanedTransactions
from kafkaproto.broker.log.replica_log import Origin, ReplicaLog
from kafkaproto.broker.log.retention import newest_ms
from kafkaproto.broker.log.rolling import NO_LIMIT_MS
from kafkaproto.broker.log.runs import LogSegment, OffsetRange
from kafkaproto.broker.log.scan import headers
from kafkaproto.broker.log.store import Store
from kafkaproto.broker.log.transaction_index import AbortedTransaction
from kafkaproto.errors import DecodeError
from kafkaproto.records.batch import (
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    Compression,
    NewRecord,
    Record,
    build_batch,
    build_empty_batch,
    records,
)
from kafkaproto.records.control import end_of_transaction

logger = logging.getLogger("kafkaproto.log")


class Cleaned(NamedTuple):
    """The result of compacting segments.

    written: the range of the remaining batches in the partition's store, None if no batch remains. aborted: the aborted transactions in this range.
    """

    written: OffsetRange | None
    aborted: list[AbortedTransaction]


Shared = dict[object, Cleaned]
"""Maps the batches that a cleaning reads to the result of the cleaning, so that replicas with the same batches are cleaned only once.

A new dict is used in each cleaning round. A key has all inputs of a cleaning, such as the bytes of the batches, the known producers and the topic's
settings. Replicas that hold the same batches share one store, so their keys are equal.
"""


class CleaningLimits(NamedTuple):
    """The settings min.compaction.lag.ms, max.compaction.lag.ms, min.cleanable.dirty.ratio (0 to 1) and delete.retention.ms, in this order."""

    min_lag_ms: int
    max_lag_ms: int
    min_dirty_ratio: float
    delete_retention_ms: int


class Cleanable(NamedTuple):
    """The segments that compaction may process now, oldest first.

    clean: the number of segments at the start of the list that were compacted before; the other segments are dirty. next_ms: the time in ms at which
    one more segment becomes old enough to be compacted; None if the passing of time alone makes no other segment cleanable.
    """

    segments: Sequence[LogSegment]
    clean: int
    next_ms: int | None

    @property
    def dirty(self) -> Sequence[LogSegment]:
        return self.segments[self.clean :]

    @property
    def dirty_ratio(self) -> float:
        """Return the share of the bytes that is dirty, from 0 to 1; 0 if there are no segments."""
        total_bytes = sum(segment.size_bytes for segment in self.segments)
        return sum(segment.size_bytes for segment in self.dirty) / total_bytes if total_bytes else 0.0


def cleanable(log: ReplicaLog, limits: CleaningLimits, now_ms: int) -> Cleanable:
    """Return the segments that may be cleaned: the oldest ones, up to the first segment that must wait.

    limits: the topic's compaction settings. A segment must wait in each of these cases:

    - It is the active segment.
    - It ends above the last stable offset.
    - It is dirty (not compacted yet), and its newest record is younger than min.compaction.lag.ms.
    """
    closed_segments = list(log.runs.segments())[:-1]
    clean = sum(segment.end_offset <= log.first_dirty_offset for segment in closed_segments)
    for count_before, segment in enumerate(closed_segments):
        if segment.end_offset > log.last_stable_offset:
            return Cleanable(closed_segments[:count_before], min(clean, count_before), None)
        if limits.min_lag_ms > 0 and count_before >= clean:
            old_enough_ms = newest_ms(log.store, segment) + limits.min_lag_ms
            if now_ms < old_enough_ms:
                return Cleanable(closed_segments[:count_before], clean, old_enough_ms)
    return Cleanable(closed_segments, clean, None)


def is_due(log: ReplicaLog, limits: CleaningLimits, now_ms: int) -> bool:
    """Return whether the log should be cleaned now.

    The log should be cleaned if the dirty share of its cleanable bytes exceeds min.cleanable.dirty.ratio, or if one of its dirty segments is older
    than max.compaction.lag.ms. A segment is dirty if it was not compacted yet. limits: the topic's compaction settings.
    """
    candidates = cleanable(log, limits, now_ms)
    if not candidates.dirty:
        return False
    latest_ms = _latest_start_ms(log, limits, candidates.dirty)
    return candidates.dirty_ratio > limits.min_dirty_ratio or (latest_ms is not None and now_ms >= latest_ms)


def next_due_ms(log: ReplicaLog, limits: CleaningLimits, now_ms: int) -> int | None:
    """Return the time in ms at which `is_due` may become true without an append; None if there is no such time.

    It is the earlier of two times: when one more segment may be cleaned, and when max.compaction.lag.ms ends for a dirty segment (not compacted yet).
    limits: the topic's compaction settings.
    """
    candidates = cleanable(log, limits, now_ms)
    due_times = (candidates.next_ms, _latest_start_ms(log, limits, candidates.dirty))
    return min((at_ms for at_ms in due_times if at_ms is not None), default=None)


def _latest_start_ms(log: ReplicaLog, limits: CleaningLimits, dirty: Sequence[LogSegment]) -> int | None:
    """Return the time in ms by which the segments in `dirty` must be cleaned, None if there is no such time.

    It is max.compaction.lag.ms after the earliest timestamp among the first batches of these segments. It is None if max.compaction.lag.ms is not
    set, or if the first batches have no timestamps. Follows `LogCleanerManager.maxCompactionDelay` in Kafka. limits: the topic's compaction settings.
    """
    first_timestamps = [next(headers(log.store, *segment.parts[0]))[1].max_timestamp for segment in dirty]
    timed = [timestamp for timestamp in first_timestamps if timestamp > 0]
    return min(timed) + limits.max_lag_ms + 1 if timed and limits.max_lag_ms < NO_LIMIT_MS else None


def clean(log: ReplicaLog, limits: CleaningLimits, now_ms: int, shared: Shared) -> int:
    """Clean all cleanable segments, even if the share of dirty bytes is too low for a cleaning to be due. Returns 0 if none is cleanable.

    Otherwise the result is the number of bytes that Kafka's cleaner would read and write: those of the dirty segments, whose keys it collects first,
    those of all cleanable segments, and those of the remaining batches.

    limits: the topic's compaction settings. shared: the results of the current cleaning round, which cleans each replica of the partition. If
    `shared` has a result for the same batches, from another replica, this result is used. Otherwise the result for this log is added to `shared`.
    Raises StorageError if the cleaned batches cannot be written; then nothing has changed.
    """
    candidates = cleanable(log, limits, now_ms)
    segments = candidates.segments
    if not segments:
        return 0
    read_bytes = sum(segment.size_bytes for segment in (*candidates.dirty, *segments))
    producers = {
        producer_id: (entry.epoch, entry.batches[-1].last_offset if entry.batches else None)
        for producer_id, entry in log.producers.producers.items()
    }
    aborted = log.producers.transactions.aborted
    parts = tuple(part for segment in segments for part in segment.parts)
    key = (log.store, parts, log.first_dirty_offset, limits, frozenset(producers.items()), aborted)
    if key not in shared:
        cleaner = _Cleaner(log.store, parts, producers, aborted, limits.delete_retention_ms, now_ms, log.origin)
        cleaner.learn_keys(log.first_dirty_offset)
        shared[key] = cleaner.write()
    written, remaining = shared[key]
    log.replace_below(segments[-1].end_offset, [] if written is None else [written], remaining)
    return read_bytes + (0 if written is None else written.end - written.start)


class _Cleaner:
    """Compacts some batches of a partition's store. Call `learn_keys` first and then `write`.

    parts: the (start, end) byte positions of the batches, end exclusive. producers: maps each producer id to its epoch and the last offset
    of its last batch (None if the producer has written only a marker). aborted: the aborted transactions of the log.
    """

    def __init__(
        self,
        store: Store,
        parts: Sequence[tuple[int, int]],
        producers: Mapping[int, tuple[int, int | None]],
        aborted: Sequence[AbortedTransaction],
        delete_retention_ms: int,
        now_ms: int,
        origin: Origin,
    ) -> None:
        self._store = store
        self._parts = parts
        self._producers = producers
        self._aborted = aborted
        self._delete_retention_ms = delete_retention_ms
        self._now_ms = now_ms
        self._origin = origin
        self._latest: dict[bytes, int] = {}

    def _batches(self) -> Iterator[tuple[bytes, BatchHeader]]:
        for start, end in self._parts:
            for position, header in headers(self._store, start, end):
                yield self._store.read(position, header.size), header

    def learn_keys(self, first_dirty_offset: int) -> None:
        """Find the offset of the last record of each key in the batches that are not compacted yet: those from `first_dirty_offset` on.

        Earlier batches are not read: they were compacted before, so each key occurs in them at most once. Records of aborted transactions are
        ignored.
        """
        transactions = CleanedTransactions(self._aborted)
        for batch, header in self._batches():
            if header.is_control:
                transactions.is_empty(header, commits=_commits(self._readable(batch)))
            elif not transactions.is_aborted(header) and header.last_offset >= first_dirty_offset:
                for record in self._readable(batch) or ():
                    if record.key is not None:
                        self._latest[record.key] = record.offset

    def write(self) -> Cleaned:
        """Append the compacted batches to the partition's store. Returns their range in the store, with the aborted transactions in this range."""
        start = end = first_offset = end_offset = -1
        transactions = CleanedTransactions(self._aborted)
        with self._store.compaction_output():
            for batch, header in self._batches():
                kept_batch = self._compacted(batch, header, transactions)
                if kept_batch is None:
                    continue
                position = self._store.append(kept_batch)
                self._store.index.add(position, header.base_offset, header.max_timestamp)
                if start < 0:
                    start, first_offset = position, header.base_offset
                end, end_offset = position + len(kept_batch), header.next_offset
        written = None if start < 0 else OffsetRange(start, end, first_offset, end_offset)
        return Cleaned(written, transactions.remaining)

    def _compacted(self, batch: bytes, header: BatchHeader, transactions: CleanedTransactions) -> bytes | None:
        """Return the batch with the records that compaction keeps, or None if the whole batch is removed.

        A. A transaction marker is kept while its transaction has records, and after that until its delete horizon. Other control batches are kept.
        B. Records of aborted transactions are removed.
        C. Of each key only the last record is kept, and records without a key are removed.
        D. Tombstones are kept until their delete horizon, which is set when they are first compacted.
        E. A batch that loses all records stays as an empty batch if it is the last batch of its producer. Otherwise it is removed.
        """
        if header.is_control:
            return self._batch_of_marker(batch, header, transactions)
        is_aborted = transactions.is_aborted(header)
        batch_records = self._readable(batch)
        if batch_records is None:
            return batch
        horizon_ms = header.delete_horizon_ms
        expired = horizon_ms is not None and self._now_ms >= horizon_ms
        kept_records = [
            record for record in batch_records if self._is_last(record) and not (expired and record.value is None)
        ]
        if is_aborted or not kept_records:
            return self._emptied(header)
        if horizon_ms is None and any(record.value is None for record in kept_records):
            horizon_ms = self._now_ms + self._delete_retention_ms
        elif len(kept_records) == len(batch_records):
            return batch
        return _thinned(header, kept_records, horizon_ms)

    def _batch_of_marker(self, batch: bytes, header: BatchHeader, transactions: CleanedTransactions) -> bytes | None:
        """Return the control batch that replaces `batch`, or None if it is removed (KIP-534).

        A transaction marker is kept while records of its transaction remain. Once none remain, its delete horizon is set. When the horizon has
        passed, the marker is removed; the batch stays as an empty batch if it is its producer's last batch. transactions: determines whether records
        of the transaction remain. Other control batches are returned unchanged.
        """
        marker_records = self._readable(batch)
        commits = _commits(marker_records)
        is_other = commits is None and marker_records != []
        if is_other or not transactions.is_empty(header, commits=commits):
            return batch
        horizon_ms = header.delete_horizon_ms
        if horizon_ms is not None:
            return self._emptied(header) if self._now_ms >= horizon_ms else batch
        if not marker_records:
            return self._emptied(header)
        return _thinned(header, marker_records, self._now_ms + self._delete_retention_ms)

    def _emptied(self, header: BatchHeader) -> bytes | None:
        """Return the empty batch that replaces a batch without remaining records; None if the replaced batch is not its producer's last.

        The empty batch keeps the producer's epoch and sequence number in the log. header: the header of the batch that is replaced.
        """
        epoch, last_offset = self._producers.get(header.producer_id, (-1, -1))
        if last_offset is None:
            is_last = header.is_control and header.producer_epoch == epoch
        else:
            is_last = header.has_producer_id and last_offset == header.last_offset
        return build_empty_batch(header) if is_last else None

    def _readable(self, batch: bytes) -> list[Record] | None:
        """Return the records of a batch, or None if they cannot be decoded; compaction then keeps the batch unchanged."""
        try:
            return list(records(batch))
        except DecodeError as error:
            logger.error(
                "compaction of partition %s-%d keeps a damaged batch at base offset %d unchanged, because its records cannot be decoded: %s",
                self._origin.topic,
                self._origin.partition,
                int.from_bytes(batch[:8]),
                error,
            )
            return None

    def _is_last(self, record: Record) -> bool:
        return record.key is not None and record.offset >= self._latest.get(record.key, -1)


def _commits(listed: Sequence[Record] | None) -> bool | None:
    """Return True for a commit marker and False for an abort marker.

    listed: the records of a control batch. Returns None if they are missing, cannot be decoded, or are not a transaction marker.
    """
    end = end_of_transaction(listed[0]) if listed else None
    return None if end is None else end.committed


def _thinned(header: BatchHeader, kept_records: Sequence[Record], horizon_ms: int | None) -> bytes:
    return build_batch(
        [NewRecord(record.value, record.key, record.timestamp, record.headers) for record in kept_records],
        base_offset=header.base_offset,
        leader_epoch=header.partition_leader_epoch,
        compression=Compression(header.compression),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        attributes=header.attributes & (TRANSACTIONAL | CONTROL | LOG_APPEND_TIME),
        max_timestamp=header.max_timestamp if header.is_log_append_time else None,
        delete_horizon_ms=horizon_ms,
        offset_deltas=[record.offset - header.base_offset for record in kept_records],
        last_offset_delta=header.last_offset_delta,
    )
