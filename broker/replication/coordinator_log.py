"""Access to the internal topic of a coordinator: appends records, waits for their replication, and reads records.

Keys and values are bytes: this module does not depend on groups or transactions. Corresponds to `PartitionWriter` and `CoordinatorLoader` in Kafka,
and to `GroupMetadataManager.appendForGroup`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.errors import InvalidBatch, StorageError
from kafkaproto.broker.replication.append_wait import Done, await_append
from kafkaproto.broker.replication.awaited_partitions import AwaitedReplication
from kafkaproto.broker.replication.collected_records import Appended, CollectedRecords
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.replication.replica_manager import ALL_IN_SYNC, KNOWN_ACKS, ReplicaManager
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.error_codes import ErrorCode
from kafkaproto.records.batch import NO_PRODUCER, TRANSACTIONAL, NewRecord, build_batch
from kafkaproto.records.batch import records as read_records
from kafkaproto.records.compression import Compression
from kafkaproto.records.control import end_of_transaction


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
    - linger_ms: for how long, in ms, records are collected before they are appended as one batch, as `group.coordinator.append.linger.ms` defines it.
      With 0 each write is appended at once. The records of a transaction are never collected.
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
        linger_ms: int = 0,
    ) -> None:
        self.topic = topic
        self._replicas = replicas
        self._timers = timers
        self._timeout_ms = timeout_ms
        self._compression = compression
        self._acks = acks
        self._checks_isr = checks_isr
        self._linger_ms = linger_ms
        self.lost: Callable[[int, int], None] = lambda index, now_ms: None
        """A function of (partition index, current time in ms) that is called after collected records of a led partition could not be appended.

        The coordinator already counts these records as written. It must load the partition again.
        """

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
        end offset of the batch when the batch is in this broker's log, or collected, before `done`. It is not called for a batch that is rejected at
        once.

        `done` is called with 0 when the records are replicated, or with an error code if the append or the replication fails, possibly before this
        method returns. With the constructor's acks 0 or 1, `done` is called directly after the append, without waiting for the replicas. With acks
        other than -1, 0 and 1, the error is INVALID_REQUIRED_ACKS (21). If this broker does not lead the partition, it is NOT_LEADER_OR_FOLLOWER (6).
        """
        if self._acks not in KNOWN_ACKS:
            done(ErrorCode.INVALID_REQUIRED_ACKS, now_ms)
            return
        partition = self._led(index)
        if partition is None:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER, now_ms)
            return
        records = [NewRecord(value, key, now_ms) for key, value in entries]
        if self._linger_ms and (collected := self._collect(partition, records, now_ms, producer)) is not None:
            if appended is not None:
                appended(collected.end_offset)
            collected.wait(done, now_ms + self._timeout_ms)
            return
        acks_all = self._acks == ALL_IN_SYNC
        result = self._append(partition, records, now_ms, acks_all=acks_all, producer=producer)
        if result.error_code:
            done(result.error_code, now_ms)
        else:
            if appended is not None:
                appended(result.end_offset)
            await_append(result.awaited, self._timers, now_ms, self._timeout_ms, done)

    def append_only(self, index: int, entries: Sequence[tuple[bytes, bytes | None]], now_ms: int) -> int:
        """Append (key, value) pairs to partition `index` of the internal topic as one batch, without waiting. Returns an error code, or 0."""
        partition = self._led(index)
        if self._linger_ms and partition is not None:
            records = [NewRecord(value, key, now_ms) for key, value in entries]
            if self._collect(partition, records, now_ms) is not None:
                return ErrorCode.NONE
        return self.append_now(index, entries, now_ms)

    def append_now(self, index: int, entries: Sequence[tuple[bytes, bytes | None]], now_ms: int) -> int:
        """Append (key, value) pairs as one batch, without waiting for replicas and without collecting them first. Returns an error code, or 0."""
        partition = self._led(index)
        if partition is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        records = [NewRecord(value, key, now_ms) for key, value in entries]
        return self._append(partition, records, now_ms, acks_all=False).error_code

    def await_replicated(self, index: int, now_ms: int, done: Done) -> None:
        """Call `done` when all present records of partition `index` of the internal topic, and those collected for it, are replicated.

        `done` is called once, possibly before this method returns. It gets an error code if the records cannot be replicated.
        """
        partition = self._led(index)
        if partition is None:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER, now_ms)
        elif (collected := _collected(partition)) is not None:
            collected.wait(done, now_ms + self._timeout_ms)
        elif partition.log.high_watermark >= partition.log.log_end_offset:
            done(ErrorCode.NONE, now_ms)
        else:
            awaited = AwaitedReplication(partition, partition.log.log_end_offset)
            await_append(awaited, self._timers, now_ms, self._timeout_ms, done)

    def _collect(
        self, partition: Partition, records: list[NewRecord], now_ms: int, producer: tuple[int, int] | None = None
    ) -> CollectedRecords | None:
        """Add records to those that are collected for `partition`, and return these; None if the records must be appended at once.

        Records are appended at once if they are in a transaction, or too large for a batch with others. Collected records that leave no room for the
        new ones are appended first. producer: the (producer id, epoch) in whose transaction the records are; None for no transaction.
        """
        if producer is not None:
            return None
        while partition.collected is not None:
            collected = _collected(partition)
            if collected is not None and collected.add(records):
                return collected
            partition.collected.flush(now_ms)  # a `done` function may collect more records
        collected = CollectedRecords(partition, self._append_collected, self._timers, now_ms, self._linger_ms)
        if not collected.add(records):
            return None
        collected.begin()
        return collected

    def _append_collected(self, partition: Partition, records: Sequence[NewRecord], now_ms: int) -> Appended:
        """Append collected records as one batch, and return the result with the wait for all in-sync replicas.

        If the compressed batch is too large, the records are appended without compression. If the append fails, a timer calls `lost`.
        """
        appended = self._append(partition, records, now_ms, acks_all=True)
        if appended.error_code == ErrorCode.MESSAGE_TOO_LARGE and self._compression:
            appended = self._append(partition, records, now_ms, acks_all=True, compression=Compression.NONE)
        if appended.error_code:
            # Not at once: the append may be a part of a request that still changes a group.
            self._timers.at(now_ms, lambda at_ms: self.lost(partition.index, at_ms))
        return appended

    def _append(
        self,
        partition: Partition,
        records: Sequence[NewRecord],
        now_ms: int,
        *,
        acks_all: bool,
        producer: tuple[int, int] | None = None,
        compression: Compression | None = None,
    ) -> Appended:
        """Append records to a partition of the internal topic as one batch, and return the result.

        acks_all: whether the caller waits for all in-sync replicas. producer: the (producer id, epoch) in whose transaction the records are; None for
        no transaction. compression: None for that of the constructor.
        """
        compression = self._compression if compression is None else compression
        if producer is None:
            batch = build_batch(records, compression=compression)
        else:
            batch = build_batch(
                records,
                compression=compression,
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
            return Appended(error.error_code)
        except StorageError:
            return Appended(ErrorCode.KAFKA_STORAGE_ERROR)
        awaited: AwaitedReplication | None = append_result.awaited
        if acks_all and not checks_isr and partition.log.high_watermark < append_result.end_offset:
            awaited = AwaitedReplication(partition, append_result.end_offset)
        return Appended(ErrorCode.NONE, append_result.end_offset, awaited)

    def read(self, index: int) -> Iterator[LoggedRecord]:
        """Yield all records of partition `index` of the internal topic, including markers, records that are not replicated yet, and collected ones.

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
        if (collected := _collected(partition)) is not None:
            first = collected.end_offset - len(collected.records)
            for offset, collected_record in enumerate(collected.records, first):
                yield LoggedRecord(offset, collected_record.key, collected_record.value)

    def end_offset(self, index: int) -> int:
        """Return the log end offset of partition `index` of the internal topic, 0 if this broker does not lead it.

        If there are collected records, it is the offset that they will end at.
        """
        partition = self._led(index)
        if partition is None:
            return 0
        collected = _collected(partition)
        return partition.log.log_end_offset if collected is None else collected.end_offset

    def high_watermark(self, index: int) -> int:
        """Return the high watermark of partition `index` of the internal topic, 0 if this broker does not lead it."""
        partition = self._led(index)
        return 0 if partition is None else partition.log.high_watermark

    def _led(self, index: int) -> Partition | None:
        partition = self._replicas.find(self.topic, index)
        return partition if partition is not None and partition.is_leader else None


def _collected(partition: Partition) -> CollectedRecords | None:
    """Return the records that are collected for a partition; None if there are none that can still be appended."""
    collected = partition.collected
    return collected if isinstance(collected, CollectedRecords) and collected.is_current else None
