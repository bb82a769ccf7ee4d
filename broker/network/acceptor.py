"""The acceptor of a listener: admits new connections one after another, as Kafka's acceptor thread does (W-12, W-13).

A new connection is a socket that the kernel has accepted and the broker does not read yet. While a connection waits, all later connections wait, too.
A rejected connection is closed, at once or after a throttle time. Methods get the present time as an argument, and timers end the waits.
This module does not depend on asyncio. It corresponds to Kafka's `Acceptor` and `ConnectionQuotas.inc`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from kafkaproto.broker.quota.connection_quotas import ConnectionQuotas
from kafkaproto.broker.runtime.timers import Timer, Timers


class Caller(Protocol):
    """Interface of a new connection of a client, which the acceptor admits or closes."""

    @property
    def address(self) -> str: ...

    def serve(self, now_ms: int) -> None:
        """Start to read the connection, because it was admitted."""
        ...

    def close(self) -> None: ...


class Acceptor:
    """Admits the connections of one listener.

    report: a function called with (kind, now_ms, facts) for each connection that must wait or is rejected.

    - kind: "connection delayed" (it waits because of a rate limit), "connection waits for a slot" (it waits because of max.connections), "connection
      throttled" (it is closed after a delay) or "connection refused" (it is closed at once).
    - facts: a dict with "listener" (the name of the listener) and "address" (the client's address). If the kind is "connection delayed" or
      "connection throttled", it also has "throttle_ms" (the wait or the delay in ms).
    """

    def __init__(
        self,
        listener: str,
        quotas: ConnectionQuotas,
        timers: Timers,
        report: Callable[[str, int, dict[str, Any]], None],
    ) -> None:
        quotas.add_listener(listener)
        self.listener = listener
        self._quotas = quotas
        self._timers = timers
        self._report = report
        self._waiting: deque[Caller] = deque()
        self._until_ms: int | None = None
        """The time in ms at which the rate limit admits the first waiting connection.

        None if no connection waits, or if the first waiting connection is not yet counted in the connection rate.
        """
        self._timer: Timer | None = None
        self._held: dict[Caller, Timer] = {}
        self._working = False

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def accept(self, caller: Caller, now_ms: int) -> None:
        """Admit or reject the new connection `caller`: at once, or after the connections that already wait for admission."""
        self._waiting.append(caller)
        if len(self._waiting) == 1:
            self.proceed(now_ms)

    def proceed(self, now_ms: int) -> None:
        """Admit the waiting connections that the limits allow now.

        Call it after a connection closes and after limits change; the acceptor's timer calls it, too.
        """
        if self._working:
            return
        self._working = True
        try:
            while self._waiting and self._may_pass(now_ms):
                self._until_ms = None
                self._let_in(self._waiting.popleft(), now_ms)
        finally:
            self._working = False

    def _may_pass(self, now_ms: int) -> bool:
        """Return whether the rate limit and max.connections admit the first waiting connection now.

        The first call for a connection counts the connection in the connection rate and, if the connection must wait, reports this to observers.
        """
        if self._until_ms is None:
            wait_ms = self._quotas.arrived(self.listener, now_ms)
            self._until_ms = now_ms + wait_ms
            if wait_ms:
                self._timer = self._timers.at(self._until_ms, self.proceed)
                self._note("connection delayed", self._waiting[0], now_ms, throttle_ms=wait_ms)
            elif not self._quotas.slot_available(self.listener):
                self._note("connection waits for a slot", self._waiting[0], now_ms)
        return now_ms >= self._until_ms and self._quotas.slot_available(self.listener)

    def _let_in(self, caller: Caller, now_ms: int) -> None:
        throttle_ms = self._quotas.address_throttle_ms(self.listener, caller.address, now_ms)
        if throttle_ms:
            self._note("connection throttled", caller, now_ms, throttle_ms=throttle_ms)
            self._held[caller] = self._timers.at(now_ms + throttle_ms, lambda _: self._close_held(caller))
        elif self._quotas.address_has_room(caller.address):
            caller.serve(now_ms)
        else:
            self._note("connection refused", caller, now_ms)
            caller.close()

    def _close_held(self, caller: Caller) -> None:
        if self._held.pop(caller, None) is not None:
            caller.close()

    def _note(self, kind: str, caller: Caller, now_ms: int, **facts: Any) -> None:
        self._report(kind, now_ms, {"listener": self.listener, "address": caller.address, **facts})

    def close(self) -> None:
        """Close all connections that wait for admission or for their delayed closing, because the broker stops."""
        self._until_ms = None
        if self._timer is not None:
            self._timer.cancel()
        callers = [*self._waiting, *self._held]
        for timer in self._held.values():
            timer.cancel()
        self._waiting.clear()
        self._held.clear()
        for caller in callers:
            caller.close()
