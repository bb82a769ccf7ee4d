"""What requests wait for until each of their partitions has reached an offset.

A produce with acks=-1 waits for the high watermark (`DelayedProduce`), DeleteRecords for the log start of every replica
(`DelayedDeleteRecords`). Must never know wire messages or quotas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from kafkaproto.broker.replication.partition import Partition, Watcher
from kafkaproto.error_codes import ErrorCode


class Awaited(ABC):
    """One partition that a parked request waits for, led here in `leader_epoch`. `error_code`: 0, or why the wait failed (P-13)."""

    __slots__ = ("error_code", "leader_epoch", "partition", "settled")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.error_code = 0
        self.settled = False

    def look(self) -> None:
        """Settle the wait if the partition is deleted (error 3), has another leader or epoch (6), or has reached the offset."""
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
        """Return whether the partition has reached the offset; may set `error_code`."""


class AwaitedAppend(Awaited):
    """The replication of all records below `required_offset`; error 20 if the ISR is below its minimum when it is reached."""

    __slots__ = ("required_offset",)

    def __init__(self, partition: Partition, required_offset: int) -> None:
        super().__init__(partition)
        self.required_offset = required_offset

    def has_come(self) -> bool:
        if self.partition.log.high_watermark < self.required_offset:
            return False
        if len(self.partition.isr) < self.partition.effective_min_isr:
            self.error_code = int(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return True


class AwaitedDeletion(Awaited):
    """The deletion of all records below `offset` on every live replica."""

    __slots__ = ("offset",)

    def __init__(self, partition: Partition, offset: int) -> None:
        super().__init__(partition)
        self.offset = offset

    def has_come(self) -> bool:
        return self.partition.low_watermark() >= self.offset


class AwaitedPartitions:
    """What a request waits for that needs all of its partitions."""

    __slots__ = ("_awaited",)

    def __init__(self, awaited: Sequence[Awaited]) -> None:
        self._awaited = awaited

    @property
    def watchers(self) -> list[dict[Watcher, None]]:
        """Where to register for a check whenever one of the partitions changes."""
        return [one.partition.watchers for one in self._awaited]

    def is_settled(self, now_ms: int) -> bool:
        """Look at all partitions and return whether each of them is settled."""
        for one in self._awaited:
            one.look()
        return all(one.settled for one in self._awaited)

    def time_out(self) -> None:
        """End the wait with REQUEST_TIMED_OUT for the partitions that are not settled."""
        for one in self._awaited:
            if not one.settled:
                one.error_code = int(ErrorCode.REQUEST_TIMED_OUT)
