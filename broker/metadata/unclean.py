"""Unclean elections that become possible while a partition has no leader (`maybeElectUncleanLeaders`).

This module does not depend on how an election works: the controller performs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.metadata.image import NO_LEADER, Image, Topic
from kafkaproto.broker.runtime.timers import Timer, Timers


class UncleanElection:
    """Elects leaders for partitions without a leader, once their topics allow unclean elections (`unclean.leader.election.enable`).

    The election takes place at most one interval after the change that made it possible. While there is nothing to elect, no timer is set. enabled: a
    function that returns whether unclean elections are allowed for a topic. interval_ms: a function that returns
    `unclean.leader.election.interval.ms`.
    """

    def __init__(
        self,
        controller: Controller,
        timers: Timers,
        now_ms: Callable[[], int],
        enabled: Callable[[Topic], bool],
        interval_ms: Callable[[], int],
    ) -> None:
        self._controller = controller
        self._timers = timers
        self._now_ms = now_ms
        self._enabled = enabled
        self._interval_ms = interval_ms
        self._timer: Timer | None = None

    def image_changed(self, new: Image, changed: Iterable[str]) -> None:
        """Schedule an election, if a topic in `changed` has a partition that needs one. new: the metadata after the change."""
        if self._timer is None and any(self._needs_election(new, new.topics[t]) for t in changed if t in new.topics):
            self._timer = self._timers.at(self._now_ms() + self._interval_ms(), self._elect)

    def _needs_election(self, image: Image, topic: Topic) -> bool:
        has_candidate = any(p.leader == NO_LEADER and any(map(image.is_alive, p.replicas)) for p in topic.partitions)
        return has_candidate and self._enabled(topic)

    def _elect(self, _: int) -> None:
        self._timer = None
        self._controller.give_leaders()
