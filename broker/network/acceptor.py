"""The door of a listener: callers come in one after the other, as Kafka's acceptor thread lets them in (W-12, W-13).

A caller is a socket that the kernel has accepted and nobody reads yet. Who has to wait holds up those behind it; who may
not come in is closed, at once or after its throttle. Plain state with time as an argument; its timers are the waits.
Knows no asyncio. Kafka's `Acceptor` and `ConnectionQuotas.inc`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from kafkaproto.broker.quota.connection_quotas import ConnectionQuotas
from kafkaproto.broker.runtime.timers import Timer, Timers


class Caller(Protocol):
    """A socket at the door."""

    @property
    def address(self) -> str: ...

    def serve(self, now_ms: int) -> None:
        """It is in: read it."""
        ...

    def close(self) -> None: ...


class Acceptor:
    """One listener's. tell: what happened to a caller that was not just let in, as (kind, now_ms, facts)."""

    def __init__(
        self,
        listener: str,
        quotas: ConnectionQuotas,
        timers: Timers,
        tell: Callable[[str, int, dict[str, Any]], None],
    ) -> None:
        quotas.add_listener(listener)
        self.listener = listener
        self._quotas = quotas
        self._timers = timers
        self._tell = tell
        self._waiting: deque[Caller] = deque()
        self._until_ms: int | None = None
        """Until when the first of them has to wait for its rate; None before it was counted."""
        self._timer: Timer | None = None
        self._held: dict[Caller, Timer] = {}
        self._working = False

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def accept(self, caller: Caller, now_ms: int) -> None:
        """Serve it, now or when its turn comes, or close it."""
        self._waiting.append(caller)
        if len(self._waiting) == 1:
            self.proceed(now_ms)

    def proceed(self, now_ms: int) -> None:
        """Let in who may: called when a connection has gone, when limits have changed, and by its own timer."""
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
        """Whether the first of those who wait has waited for its rate, and there is a slot for it."""
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
        self._tell(kind, now_ms, {"listener": self.listener, "address": caller.address, **facts})

    def close(self) -> None:
        """Close all who wait: the broker stops."""
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
