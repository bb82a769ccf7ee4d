"""Preferred leader election at regular intervals: moves leadership back to preferred replicas (`maybeBalancePartitionLeaders`).

This module does not depend on how an election works: the controller performs or rejects it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.metadata.image import NO_LEADER, Image, PartitionState
from kafkaproto.broker.runtime.timers import Timer, Timers


def is_imbalanced(state: PartitionState) -> bool:
    """Return whether a partition has a leader other than its preferred replica, although the preferred replica is in sync."""
    return state.leader not in (state.replicas[0], NO_LEADER) and state.replicas[0] in state.isr


class LeaderBalance:
    """Elects preferred replicas at regular intervals, while a partition has another leader although its preferred replica is in sync.

    A check that finds no such partition schedules no further check; `image_changed` schedules the next one. enabled: a function that returns the
    current value of `auto.leader.rebalance.enable`. interval_ms: a function that returns `leader.imbalance.check.interval.seconds` in ms.
    """

    def __init__(
        self,
        controller: Controller,
        timers: Timers,
        now_ms: Callable[[], int],
        enabled: Callable[[], bool],
        interval_ms: Callable[[], int],
    ) -> None:
        self._controller = controller
        self._timers = timers
        self._now_ms = now_ms
        self._enabled = enabled
        self._interval_ms = interval_ms
        self._timer: Timer | None = None

    def image_changed(self, new: Image, changed: Sequence[str]) -> None:
        """Schedule a check of all leaders, if a topic in `changed` has an imbalanced partition. Does nothing if a check is already scheduled.

        new: the metadata after the change. changed: the names of the topics that differ.
        """
        if self._timer is None and any(
            is_imbalanced(p) for t in changed if t in new.topics for p in new.topics[t].partitions
        ):
            self._timer = self._timers.at(self._now_ms() + self._interval_ms(), self._check_balance)

    def _check_balance(self, now_ms: int) -> None:
        self._timer = None
        topics = self._controller.image.topics.values()
        imbalanced = [(topic.name, p.index) for topic in topics for p in topic.partitions if is_imbalanced(p)]
        if not imbalanced:
            return
        if self._enabled():
            for name, index in imbalanced:
                self._elect(name, index)
        if self._timer is None and any(
            is_imbalanced(p) for t in self._controller.image.topics.values() for p in t.partitions
        ):
            self._timer = self._timers.at(now_ms + self._interval_ms(), self._check_balance)

    def _elect(self, name: str, index: int) -> None:
        try:
            self._controller.elect_preferred(name, index)
        except KafkaError:
            return  # The preferred replica cannot lead now; the next check tries again.
