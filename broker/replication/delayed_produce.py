"""A produce with acks=-1 that waits until its records are replicated, or its time is up (`DelayedProduce`).

Must never know wire messages or quotas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broker.replication.partition import Partition
from broker.timers import Timer, Timers
from kafkaproto.error_codes import ErrorCode


@dataclass(slots=True)
class Awaited:
    """One appended partition and the high watermark it waits for. `error_code` is set when the wait ends badly (P-13)."""

    partition: Partition
    leader_epoch: int
    required_offset: int
    error_code: int = 0
    settled: bool = False


class DelayedProduce:
    """Calls `answer(now_ms)` once, when every awaited partition is settled or at the deadline; the data stays in the log whatever comes."""

    __slots__ = ("_answer", "_awaited", "_timer", "done")

    def __init__(self, awaited: Sequence[Awaited], answer: Callable[[int], None]) -> None:
        self._awaited = awaited
        self._answer = answer
        self._timer: Timer | None = None
        self.done = False

    def park(self, timers: Timers, deadline_ms: int) -> None:
        for one in self._awaited:
            one.partition.watchers[self] = None
        self._timer = timers.at(deadline_ms, self._time_is_up)

    def is_settled(self) -> bool:
        """Look at each partition: A. gone, or led by another now: error 3 or 6; B. replicated: 0, or 20 if the ISR fell below the minimum."""
        for one in self._awaited:
            if not one.settled:
                self._settle(one)
        return all(one.settled for one in self._awaited)

    @staticmethod
    def _settle(one: Awaited) -> None:
        partition = one.partition
        if partition.gone:
            one.settled, one.error_code = True, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif not partition.is_leader or partition.leader_epoch != one.leader_epoch:
            one.settled, one.error_code = True, int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif partition.log.high_watermark >= one.required_offset:
            one.settled = True
            if len(partition.isr) < partition.effective_min_isr:
                one.error_code = int(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def check(self, now_ms: int) -> None:
        if not self.done and self.is_settled():
            self._finish(now_ms)

    def _time_is_up(self, now_ms: int) -> None:
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
