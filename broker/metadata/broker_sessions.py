"""The sessions of brokers with the controller. They determine when the controller fences a stopped broker (`BrokerHeartbeatManager` in Kafka).

This module does not depend on how an election works: the controller performs it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.runtime.timers import Timer, Timers


class LastFetch(NamedTuple):
    """The last fetch of the metadata log by a broker that has stopped (AD-25).

    at_ms: the time of the stop. log_end_offset: the end of the metadata log at that time, up to which the broker has fetched.
    """

    at_ms: int
    log_end_offset: int


class BrokerSessions:
    """Fences brokers that have stopped: at once after a controlled shutdown, otherwise when the session with the controller has expired (M-14).

    `last_fetches` maps the ids of stopped brokers to their last fetch of the metadata log.

    is_controlled: a function that takes a broker id, and returns whether this broker reports its stop to the controller
    (`controlled.shutdown.enable`). timeout_ms: a function that returns `broker.session.timeout.ms`.
    """

    def __init__(
        self,
        controller: Controller,
        timers: Timers,
        now_ms: Callable[[], int],
        is_controlled: Callable[[int], bool],
        timeout_ms: Callable[[], int],
    ) -> None:
        self._controller = controller
        self._timers = timers
        self._now_ms = now_ms
        self._is_controlled = is_controlled
        self._timeout_ms = timeout_ms
        self.last_fetches: dict[int, LastFetch] = {}
        self._open: dict[int, Timer] = {}
        """Maps the id of a stopped broker that is not fenced yet to the timer that fences it when its session expires."""

    def stopped(self, broker_id: int) -> bool:
        """Fence a broker that has stopped, or schedule the fencing for the end of the broker's session. Returns whether the broker is fenced."""
        now_ms, is_controlled = self._now_ms(), self._is_controlled(broker_id)
        if is_controlled:
            self._controller.broker_stopped(broker_id)
        else:
            self._open[broker_id] = self._timers.at(now_ms + self._timeout_ms(), partial(self._expire, broker_id))
        self.last_fetches[broker_id] = LastFetch(now_ms, self._controller.image.offset + 1)
        return is_controlled

    def end(self, broker_id: int) -> None:
        """End the session of a stopped broker that is about to start again: fence the broker now if it is not fenced yet, else do nothing."""
        self.last_fetches.pop(broker_id, None)
        timer = self._open.get(broker_id)
        if timer is not None:
            timer.cancel()
            self._expire(broker_id)

    def _expire(self, broker_id: int, _: int = 0) -> None:
        del self._open[broker_id]
        self._controller.broker_stopped(broker_id)
