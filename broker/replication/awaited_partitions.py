"""The partitions for which a delayed request waits. The wait for a partition ends when the partition reaches a given offset.

A produce with acks=-1 waits for the high watermark (`DelayedProduce`), DeleteRecords for the log start offset of every live replica
(`DelayedDeleteRecords`). This module does not depend on wire messages or quotas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from kafkaproto.broker.replication.partition import Partition, Watcher
from kafkaproto.error_codes import ErrorCode


class Awaited(ABC):
    """A wait of a delayed request until the high watermark or the low watermark of one partition reaches an offset.

    It fails if this broker no longer leads the partition in `leader_epoch`.

    settled: whether the wait has ended. error_code: 0, or Kafka's error code if the wait failed (P-13).
    """

    __slots__ = ("error_code", "leader_epoch", "partition", "settled")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.error_code = 0
        self.settled = False

    def check(self) -> None:
        """Check the partition, and end the wait if the offset is reached or can no longer be reached.

        If the partition is deleted, the error is UNKNOWN_TOPIC_OR_PARTITION (3). If it has another leader or leader epoch, the error is
        NOT_LEADER_OR_FOLLOWER (6).
        """
        if self.settled:
            return
        partition = self.partition
        if partition.gone:
            self.error_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif not partition.is_leader or partition.leader_epoch != self.leader_epoch:
            self.error_code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif not self.has_come():
            return
        self.settled = True

    @abstractmethod
    def has_come(self) -> bool:
        """Return whether the partition has reached the required offset. If it returns True, the wait ends.

        A wait can end with an error although the offset is reached, for example because too few replicas are in sync. The method then sets
        `error_code`.
        """


class AwaitedReplication(Awaited):
    """A wait of a delayed request until the high watermark of a partition reaches `required_offset`."""

    __slots__ = ("required_offset",)

    def __init__(self, partition: Partition, required_offset: int) -> None:
        super().__init__(partition)
        self.required_offset = required_offset

    def has_come(self) -> bool:
        return self.partition.log.high_watermark >= self.required_offset


class AwaitedAppend(AwaitedReplication):
    """A wait of an append with acks=-1 until the high watermark reaches `required_offset`.

    If fewer than min.insync.replicas replicas are in sync when the high watermark reaches the offset, the error is NOT_ENOUGH_REPLICAS_AFTER_APPEND
    (20).
    """

    __slots__ = ()

    def has_come(self) -> bool:
        if not super().has_come():
            return False
        if len(self.partition.isr) < self.partition.effective_min_isr:
            self.error_code = int(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return True


class AwaitedDeletion(Awaited):
    """A wait of DeleteRecords until every live replica of a partition has deleted all records below `offset`."""

    __slots__ = ("offset",)

    def __init__(self, partition: Partition, offset: int) -> None:
        super().__init__(partition)
        self.offset = offset

    def has_come(self) -> bool:
        return self.partition.low_watermark() >= self.offset


class AwaitedPartitions:
    """All partitions that a delayed request waits for."""

    __slots__ = ("_awaited",)

    def __init__(self, awaited: Sequence[Awaited]) -> None:
        self._awaited = awaited

    @property
    def watchers(self) -> list[dict[Watcher, None]]:
        """Return a dict for each partition: its keys are the delayed operations to check when this partition changes.

        The delayed request adds itself to each of these dicts.
        """
        return [awaited.partition.watchers for awaited in self._awaited]

    def is_settled(self, now_ms: int) -> bool:
        """Check all partitions and return whether the wait for each of them has ended."""
        for awaited in self._awaited:
            awaited.check()
        return all(awaited.settled for awaited in self._awaited)

    def time_out(self) -> None:
        """Set the error REQUEST_TIMED_OUT (7) for each partition whose wait has not ended, because the time limit has passed."""
        for awaited in self._awaited:
            if not awaited.settled:
                awaited.error_code = int(ErrorCode.REQUEST_TIMED_OUT)
