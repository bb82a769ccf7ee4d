"""Access to the internal topic of a coordinator: appends records, waits for their replication, and reads records.

Keys and values are bytes: this module does not depend on groups or transactions. Corresponds to `PartitionWriter` and `CoordinatorLoader` in Kafka,
and to `GroupMetadataManager.appendForGroup`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.errors import InvalidBatch, StorageError
from kafkaproto.broker.replication.awaited_partitions import AwaitedReplication
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.replication.replica_manager import ALL_IN_SYNC, KNOWN_ACKS, ReplicaManager
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.error_codes import ErrorCode
from kafkaproto.records.batch import NO_PRODUCER, TRANSACTIONAL, NewRecord, build_batch
from kafkaproto.records.batch import records as read_records
from kafkaproto.records.compression import Compression
from kafkaproto.records.control import end_of_transaction

Done = Callable[[int, int], None]
"""A function that is called once, when records are replicated or have failed, with an error code (0 if replicated) and the current time (ms)."""


class LoggedRecord(NamedTuple):
    """One record in an internal topic, with its transaction. A transaction marker is such a record, too.

    key, value: the bytes of the record. Both are None for a marker; the value is also None for a tombstone.
    producer_id: the producer of the transaction, -1 if the record is in no transaction. commits_transaction: True for a marker that commits the
    transaction, False for a marker that aborts it, None for any other record.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    producer_id: int = NO_PRODUCER
    commits_transaction: bool | None = None


class CoordinatorLog:
    """Writes and reads the internal topic `topic`, such as `__consumer_offsets`, in the partitions that one broker leads.

    - timeout_ms: how long a write may wait for replicas, in ms, such as `offsets.commit.timeout.ms`.
    - compression: how written batches are compressed, as `offsets.topic.compression.codec` defines it.
    - acks: what `append` waits for, as `offsets.commit.required.acks` defines it: all in-sync replicas with -1, nothing with 0 or 1. With any other
      value it appends nothing and fails.
    - checks_isr: what `append` does with acks -1 if fewer than `min.insync.replicas` replicas are in sync. True: it fails at once. False: it waits
      until enough replicas are in sync, or times out, as in Kafka's group coordinator in Java (default from 4.0 on).
    """

    def __init__(
        self,
        topic: str,
        replicas: ReplicaManager,
        timers: Timers,
        timeout_ms: int,
        compression: Compression = Compression.NONE,
        *,
        acks: int = ALL_IN_SYNC,
        checks_isr: bool = True,
    ) -> None:
        self.topic = topic
        self._replicas = replicas
        self._timers = timers
        self._timeout_ms = timeout_ms
        self._compression = compression
        self._acks = acks
        self._checks_isr = checks_isr

    def append(
        self,
        index: int,
        entries: Sequence[tuple[bytes, bytes | None]],
        now_ms: int,
        done: Done,
        *,
        producer: tuple[int, int] | None = None,
        appended: Callable[[int], None] | None = None,
    ) -> None:
        """Append (key, value) pairs to partition `index` of the internal topic as one batch; a value of None is a tombstone.

        producer: the (producer id, epoch) in whose transaction the records are; None for no transaction. appended: a function that is called with the
        end offset of the batch when the batch is in this broker's log, before `done`; it is not called if the append fails.

        `done` is called with 0 when the records are replicated, or with an error code if the append or the replication fails, possibly before this
        method returns. If the constructor got acks 0 or 1, `done` is called directly after the append, without waiting for the replicas. The error is
        INVALID_REQUIRED_ACKS (21) if it got other acks, and otherwise NOT_LEADER_OR_FOLLOWER (6) if this broker does not lead the partition.
        """
        if self._acks not in KNOWN_ACKS:
            done(ErrorCode.INVALID_REQUIRED_ACKS, now_ms)
            return
        acks_all = self._acks == ALL_IN_SYNC
        error, end_offset, awaited = self._append(index, entries, now_ms, acks_all=acks_all, producer=producer)
        if error:
            done(error, now_ms)
        else:
            if appended is not None:
                appended(end_offset)
            await_append(awaited, self._timers, now_ms, self._timeout_ms, done)

    def append_only(self, index: int, entries: Sequence[tuple[bytes, bytes | None]], now_ms: int) -> int:
        """Append (key, value) pairs to partition `index` of the internal topic as one batch, without waiting. Returns an error code, or 0."""
        return self._append(index, entries, now_ms, acks_all=False)[0]

    def await_replicated(self, index: int, now_ms: int, done: Done) -> None:
        """Call `done` when all records that partition `index` of the internal topic contains now are replicated.

        `done` is called once, possibly before this method returns. It gets an error code if the records cannot be replicated.
        """
        partition = self._led(index)
        if partition is None:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER, now_ms)
        elif partition.log.high_watermark >= partition.log.log_end_offset:
            done(ErrorCode.NONE, now_ms)
        else:
            awaited = AwaitedReplication(partition, partition.log.log_end_offset)
            _Wait(awaited, done).begin(self._timers, now_ms + self._timeout_ms)

    def _append(
        self,
        index: int,
        entries: Sequence[tuple[bytes, bytes | None]],
        now_ms: int,
        *,
        acks_all: bool,
        producer: tuple[int, int] | None = None,
    ) -> tuple[int, int, AwaitedReplication | None]:
        """Append (key, value) pairs to partition `index` of the internal topic as one batch. Returns (error code, end offset, replication).

        end offset: the offset after the batch, -1 after an error. replication: the wait until the in-sync replicas have the batch; None if they have
        it already, or if `acks_all` is false. acks_all: whether the caller waits for all in-sync replicas. producer: the (producer id, epoch) in
        whose transaction the records are; None for no transaction.
        """
        partition = self._led(index)
        if partition is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, None
        records = [NewRecord(value, key, now_ms) for key, value in entries]
        if producer is None:
            batch = build_batch(records, compression=self._compression)
        else:
            batch = build_batch(
                records,
                compression=self._compression,
                producer_id=producer[0],
                producer_epoch=producer[1],
                base_sequence=0,
                attributes=TRANSACTIONAL,
            )
        checks_isr = acks_all and self._checks_isr
        try:
            append_result = self._replicas.append(
                partition, memoryview(batch), now_ms, acks_all=checks_isr, from_client=False
            )
        except (KafkaError, InvalidBatch) as error:
            return error.error_code, -1, None
        except StorageError:
            return ErrorCode.KAFKA_STORAGE_ERROR, -1, None
        awaited: AwaitedReplication | None = append_result.awaited
        if acks_all and not checks_isr and partition.log.high_watermark < append_result.end_offset:
            awaited = AwaitedReplication(partition, append_result.end_offset)
        return ErrorCode.NONE, append_result.end_offset, awaited

    def read(self, index: int) -> Iterator[LoggedRecord]:
        """Yield all records of partition `index` of the internal topic, including markers and records that are not replicated yet.

        Yields nothing if this broker does not lead the partition.
        """
        partition = self._led(index)
        if partition is None:
            return
        log, start_offset = partition.log, partition.log.log_start_offset
        for position, header in log.batches(start_offset):
            producer_id = header.producer_id if header.is_transactional else NO_PRODUCER
            for record in read_records(log.store.read(position, header.size)):
                if record.offset < start_offset:
                    continue
                if header.is_control:
                    end = end_of_transaction(record)
                    if end is not None:
                        yield LoggedRecord(record.offset, None, None, producer_id, end.committed)
                else:
                    yield LoggedRecord(record.offset, record.key, record.value, producer_id)

    def end_offset(self, index: int) -> int:
        """Return the log end offset of partition `index` of the internal topic, 0 if this broker does not lead it."""
        partition = self._led(index)
        return 0 if partition is None else partition.log.log_end_offset

    def high_watermark(self, index: int) -> int:
        """Return the high watermark of partition `index` of the internal topic, 0 if this broker does not lead it."""
        partition = self._led(index)
        return 0 if partition is None else partition.log.high_watermark

    def _led(self, index: int) -> Partition | None:
        partition = self._replicas.find(self.topic, index)
        return partition if partition is not None and partition.is_leader else None


def await_append(awaited: AwaitedReplication | None, timers: Timers, now_ms: int, timeout_ms: int, done: Done) -> None:
    """Wait until an append is replicated, and then call `done`. If the append fails, or `timeout_ms` passes, `done` gets an error.

    timers: schedules the timeout. awaited: the wait; None if the append is replicated already, so that `done` is called at once. The error after a
    timeout is REQUEST_TIMED_OUT (7).
    """
    if awaited is None:
        done(ErrorCode.NONE, now_ms)
    else:
        _Wait(awaited, done).begin(timers, now_ms + timeout_ms)


class _Wait:
    """An append to an internal topic that waits until the in-sync replicas have the appended records."""

    __slots__ = ("_awaited", "_done", "_timer")

    def __init__(self, awaited: AwaitedReplication, done: Done) -> None:
        self._awaited = awaited
        self._done: Done | None = done

    def begin(self, timers: Timers, deadline_ms: int) -> None:
        self._awaited.partition.watchers[self] = None
        self._timer = timers.at(deadline_ms, lambda at_ms: self._finish(ErrorCode.REQUEST_TIMED_OUT, at_ms))

    def check(self, now_ms: int) -> None:
        self._awaited.check()
        if self._awaited.settled:
            self._finish(self._awaited.error_code, now_ms)

    def _finish(self, error_code: int, now_ms: int) -> None:
        callback, self._done = self._done, None
        self._timer.cancel()
        self._awaited.partition.watchers.pop(self, None)
        if callback is not None:
            callback(error_code, now_ms)
