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

    A session expires one timeout after the last heartbeat. A broker sends the first heartbeat when it starts, and then one per interval
    (`BrokerLifecycleManager`). `last_fetches` maps the ids of stopped brokers to their last fetch of the metadata log.

    is_controlled: a function that takes a broker id, and returns whether this broker reports its stop to the controller
    (`controlled.shutdown.enable`). heartbeat_ms: a function that takes a broker id, and returns its `broker.heartbeat.interval.ms`. timeout_ms: a
    function that returns `broker.session.timeout.ms`.
    """

    def __init__(
        self,
        controller: Controller,
        timers: Timers,
        now_ms: Callable[[], int],
        is_controlled: Callable[[int], bool],
        heartbeat_ms: Callable[[int], int],
        timeout_ms: Callable[[], int],
    ) -> None:
        self._controller = controller
        self._timers = timers
        self._now_ms = now_ms
        self._is_controlled = is_controlled
        self._heartbeat_ms = heartbeat_ms
        self._timeout_ms = timeout_ms
        self._created_ms = now_ms()
        self._restarted_ms: dict[int, int] = {}
        """Maps the ids of brokers that were restarted to the time of their last start. The other brokers started at `_created_ms`."""
        self.last_fetches: dict[int, LastFetch] = {}
        self._open: dict[int, Timer] = {}
        """Maps the id of a stopped broker that is not fenced yet to the timer that fences it when its session expires."""

    def stopped(self, broker_id: int) -> bool:
        """Fence a broker that has stopped, or schedule the fencing for the end of the broker's session. Returns whether the broker is fenced."""
        now_ms, is_controlled = self._now_ms(), self._is_controlled(broker_id)
        if is_controlled:
            self._controller.broker_stopped(broker_id)
        else:
            expiry_ms = max(now_ms, self._last_heartbeat_ms(broker_id) + self._timeout_ms())
            self._open[broker_id] = self._timers.at(expiry_ms, partial(self._expire, broker_id))
        end_offset = self._controller.no_op_records.last_offset(self._controller.image.offset) + 1
        self.last_fetches[broker_id] = LastFetch(now_ms, end_offset)
        return is_controlled

    def end(self, broker_id: int) -> None:
        """End the session of a stopped broker that is about to start again: fence the broker now if it is not fenced yet.

        The broker's new session begins at this time, with its first heartbeat.
        """
        self._restarted_ms[broker_id] = self._now_ms()
        self.last_fetches.pop(broker_id, None)
        timer = self._open.get(broker_id)
        if timer is not None:
            timer.cancel()
            self._expire(broker_id)

    def _last_heartbeat_ms(self, broker_id: int) -> int:
        now_ms, interval_ms = self._now_ms(), max(1, self._heartbeat_ms(broker_id))
        return now_ms - (now_ms - self._restarted_ms.get(broker_id, self._created_ms)) % interval_ms

    def _expire(self, broker_id: int, _: int = 0) -> None:
        del self._open[broker_id]
        self._controller.broker_stopped(broker_id)
