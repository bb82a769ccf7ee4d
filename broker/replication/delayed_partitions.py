"""A request that waits until each of its partitions has come as far as it asked for, or its time is up.

A produce with acks=-1 waits for the high watermark (`DelayedProduce`), a deletion for the log start of every replica
(`DelayedDeleteRecords`). Must never know wire messages or quotas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.runtime.timers import Timer, Timers
from kafkaproto.error_codes import ErrorCode


class Awaited(ABC):
    """One partition that is waited for, led here in `leader_epoch`. `error_code` is set when the wait ends badly (P-13)."""

    __slots__ = ("error_code", "leader_epoch", "partition", "settled")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.error_code = 0
        self.settled = False

    def look(self) -> None:
        """A. gone, or led by another now: error 3 or 6; B. as far as was asked: whatever that kind of waiting ends with."""
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
        """Whether the partition has come as far as was asked; may set `error_code`."""


class AwaitedAppend(Awaited):
    """Records below `required_offset` are to be replicated; 20 if the ISR has fallen below the minimum by then."""

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
    """No live replica is to have records below `offset` any more."""

    __slots__ = ("offset",)

    def __init__(self, partition: Partition, offset: int) -> None:
        super().__init__(partition)
        self.offset = offset

    def has_come(self) -> bool:
        return self.partition.low_watermark() >= self.offset


class DelayedPartitions:
    """Calls `answer(now_ms)` once, when every awaited partition is settled or at the deadline; what was done stays done."""

    __slots__ = ("_answer", "_awaited", "_timer", "done")

    def __init__(self, awaited: Sequence[Awaited], answer: Callable[[int], None]) -> None:
        self._awaited = awaited
        self._answer = answer
        self._timer: Timer | None = None
        self.done = False

    def park(self, timers: Timers, deadline_ms: int) -> None:
        for one in self._awaited:
            one.partition.watchers[self] = None
        self._timer = timers.at(deadline_ms, self.end)

    def is_settled(self) -> bool:
        for one in self._awaited:
            one.look()
        return all(one.settled for one in self._awaited)

    def check(self, now_ms: int) -> None:
        if not self.done and self.is_settled():
            self._finish(now_ms)

    def end(self, now_ms: int) -> None:
        """Wait no longer: what is not settled has timed out."""
        for one in self._awaited:
            if not one.settled:
                one.error_code = int(ErrorCode.REQUEST_TIMED_OUT)
        self._finish(now_ms)

    def _finish(self, now_ms: int) -> None:
        self.abandon()
        self._answer(now_ms)

    def abandon(self) -> None:
        self.done = True
        if self._timer is not None:
            self._timer.cancel()
        for one in self._awaited:
            one.partition.watchers.pop(self, None)
