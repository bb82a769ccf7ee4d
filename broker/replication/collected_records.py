"""Records of an internal topic that a coordinator collects for a short time, so that the records of several requests are appended as one batch.

Corresponds to `CoordinatorRuntime.CoordinatorBatch` in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kafkaproto.broker.replication.append_wait import Done, await_append
from kafkaproto.broker.replication.awaited_partitions import AwaitedReplication
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.runtime.timers import Timer, Timers
from kafkaproto.error_codes import ErrorCode
from kafkaproto.records.batch import HEADER_BYTES, NewRecord
from kafkaproto.records.writer import write_records


class Appended(NamedTuple):
    """The result of an append to an internal topic.

    end_offset: the offset after the batch, -1 after an error. awaited: the wait until the in-sync replicas have the batch; None if they have it
    already, or if the caller does not wait for them.
    """

    error_code: int
    end_offset: int = -1
    awaited: AwaitedReplication | None = None


class CollectedRecords:
    """The records that a coordinator has collected for a partition and not appended yet. `Partition.collected` refers to them.

    append: a function that appends records to the partition as one batch. linger_ms: the time in ms from the first record until the records are
    appended.
    """

    def __init__(
        self,
        partition: Partition,
        append: Callable[[Partition, Sequence[NewRecord], int], Appended],
        timers: Timers,
        now_ms: int,
        linger_ms: int,
    ) -> None:
        self._partition = partition
        self._leader_epoch = partition.leader_epoch
        self._append = append
        self._timers = timers
        self._first_ms = now_ms
        self._size_bytes = HEADER_BYTES
        self._base_offset = partition.log.log_end_offset
        self._waits: list[tuple[Done, int]] = []
        self._flush_ms = now_ms + linger_ms
        self._timer: Timer | None = None
        self.records: list[NewRecord] = []

    @property
    def end_offset(self) -> int:
        """The log end offset that the partition will have when the records are appended."""
        return self._base_offset + len(self.records)

    @property
    def is_current(self) -> bool:
        """Whether the records can still be appended: the broker has led the partition without a break since it collected the first of them."""
        partition = self._partition
        return partition.is_leader and not partition.gone and partition.leader_epoch == self._leader_epoch

    def begin(self) -> None:
        """Make the partition refer to these records, and start the timer that appends them."""
        assert self._partition.collected is None
        self._partition.collected = self
        self._timer = self._timers.at(self._flush_ms, self.flush)

    def add(self, new_records: Sequence[NewRecord]) -> bool:
        """Add records, unless the batch would exceed `max.message.bytes` before it is compressed. Returns whether they were added."""
        first = len(self.records)
        packed = write_records(new_records, range(first, first + len(new_records)), self._first_ms)
        if self._size_bytes + len(packed) > self._partition.limits.max_message_bytes:
            return False
        self._size_bytes += len(packed)
        self.records += new_records
        return True

    def wait(self, done: Done, deadline_ms: int) -> None:
        """Call `done` when the records are replicated, or with an error if that fails.

        The error is REQUEST_TIMED_OUT (7) if they are not replicated by `deadline_ms`.
        """
        self._waits.append((done, deadline_ms))

    def flush(self, now_ms: int) -> None:
        """Append the records. If that fails, the functions that `wait` got are called with the error.

        The error is UNKNOWN_TOPIC_OR_PARTITION (3) if the partition was deleted, and NOT_LEADER_OR_FOLLOWER (6) if the broker has lost the leadership
        since it collected the first record.
        """
        if self._timer is not None:
            self._timer.cancel()
        if self._partition.collected is self:
            self._partition.collected = None
        if self.is_current:
            appended = self._append(self._partition, self.records, now_ms)
        else:
            is_deleted = self._partition.gone
            appended = Appended(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_deleted else ErrorCode.NOT_LEADER_OR_FOLLOWER
            )
        for done, deadline_ms in self._waits:
            if appended.error_code:
                done(appended.error_code, now_ms)
            else:
                await_append(appended.awaited, self._timers, now_ms, deadline_ms - now_ms, done)
