"""The sessions of brokers with the controller. They determine when the controller fences a stopped broker (`BrokerHeartbeatManager` in Kafka).

This module does not depend on how an election works: the controller performs it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.runtime.timers import Timer, Timers


class BrokerSessions:
    """Fences brokers that have stopped: at once after a controlled shutdown, otherwise when the session with the controller has expired (M-14).

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
        self._open: dict[int, Timer] = {}
        """Maps the id of a stopped broker that is not fenced yet to the timer that fences it when its session expires."""

    def stopped(self, broker_id: int) -> bool:
        """Fence a broker that has stopped, or schedule the fencing for the end of the broker's session. Returns whether the broker is fenced."""
        if self._is_controlled(broker_id):
            self._controller.broker_stopped(broker_id)
            return True
        self._open[broker_id] = self._timers.at(self._now_ms() + self._timeout_ms(), partial(self._expire, broker_id))
        return False

    def end(self, broker_id: int) -> None:
        """End the session of a stopped broker that is about to start again: fence the broker now if it is not fenced yet, else do nothing."""
        timer = self._open.get(broker_id)
        if timer is not None:
            timer.cancel()
            self._expire(broker_id)

    def _expire(self, broker_id: int, _: int = 0) -> None:
        del self._open[broker_id]
        self._controller.broker_stopped(broker_id)
