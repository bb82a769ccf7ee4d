"""Drives a cluster from an asyncio loop: turns, and the one timer. Knows no socket."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from typing import Protocol, TypeVar

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.network.frames import BufferPool
from kafkaproto.broker.runtime.clock import JumpClock, ManualClock

T = TypeVar("T")
logger = logging.getLogger("kafkaproto.loop")

ACCEPTING_ROUNDS = 8
"""Passes of the loop from a readable listener to `connection_made`, with room to spare: accept, a task, the protocol, its first call."""
QUIET_ROUNDS = 3
"""Passes of the loop without a byte or a request before what lies in the kernel counts as read."""
MOST_ROUNDS = 300
"""Clients that never pause must not hold up time for ever; in so many passes every kernel buffer was emptied more than once."""


async def accepted() -> None:
    """Wait until connections that were just being accepted are made."""
    for _ in range(ACCEPTING_ROUNDS):
        await asyncio.sleep(0)


class Socket(Protocol):
    """What a loop knows of the connections of its cluster."""

    @property
    def is_sending(self) -> bool:
        """Whether a response is on its way to the kernel in a task of its own."""
        ...


class BrokerLoop:
    """One per cluster and loop. All that reaches the cluster comes between `enter` and `leave`, which arms the timer for new deadlines."""

    def __init__(self, cluster: Cluster, *, sendfile: bool | None = None) -> None:
        self.cluster = cluster
        self.buffers = BufferPool()
        self.sendfile = (hasattr(os, "sendfile") and sys.platform == "linux") if sendfile is None else sendfile
        self.activity = 0
        self._channels: set[Socket] = set()
        self._all_closed = asyncio.Event()
        self._all_closed.set()
        self._advancing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for: int | None = None
        self._stopped = False
        self._actions = cluster.actions
        self._timers = cluster.timers
        self.now_ms: Callable[[], int] = cluster.clock.now_ms
        self._arm()

    def enter(self, now_ms: int) -> None:
        """Something came in at `now_ms`."""
        self._actions.now_ms = now_ms
        self.activity += 1

    def leave(self, now_ms: int) -> None:
        """Do all that follows from it."""
        self._actions.run(now_ms)
        # The entry may be that of a cancelled timer. Most timers are cancelled, and a turn without work costs less than a search for the next one.
        earliest = self._timers.earliest_entry_ms()
        if earliest is not None and (self._armed_for is None or earliest < self._armed_for):
            self._arm()

    def call(self, action: Callable[[], T]) -> T:
        """Run a control call as a turn of its own."""
        now_ms = self.now_ms()
        self.enter(now_ms)
        try:
            return action()
        finally:
            self.leave(now_ms)

    def opened(self, channel: Socket) -> None:
        """Let `closed` wait until this channel is gone."""
        self._channels.add(channel)
        self._all_closed.clear()

    def gone(self, channel: Socket) -> None:
        self._channels.discard(channel)
        if not self._channels:
            self._all_closed.set()

    @property
    def is_sending(self) -> bool:
        """Whether a large response is still on its way to a client. It takes real time, whatever the cluster's clock is."""
        return any(channel.is_sending for channel in self._channels)

    # ---- the timer -----------------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        deadline = self._timers.next_deadline_ms()
        if deadline == self._armed_for and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._armed_for = deadline
        if deadline is None or self._stopped:
            return
        delay_ms = self.cluster.clock.real_delay_ms(deadline)
        if delay_ms is not None:
            self._timer = self._loop.call_later(max(0.0, delay_ms) / 1000.0, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now_ms = self.now_ms()
        self.activity += 1
        self._run_due(now_ms)
        self._arm()

    def _run_due(self, now_ms: int) -> None:
        """A deadline whose callback raises is logged and the others go on: one bad operation never harms another (W-8)."""
        while True:
            try:
                self.cluster.run_due(now_ms)
                return
            except Exception:
                logger.exception("what was due failed; the other deadlines go on")
                self._actions.run(now_ms)

    def stop(self) -> None:
        """No deadline fires any more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    async def closed(self) -> None:
        """Wait until the sockets of connections that were closed are gone, and those that were just being accepted."""
        await accepted()
        await self._all_closed.wait()

    # ---- a clock that jumps --------------------------------------------------------------------------------------------------

    async def advance(self, delta_ms: int) -> None:
        """Let `delta_ms` pass at once: read what lies in the kernel, then fire deadline by deadline, each at its exact time.

        Callers at the same time come one after the other, so that their times add up. Raises TypeError under the system clock, which nobody can move.
        """
        clock = self.cluster.clock
        if not isinstance(clock, JumpClock | ManualClock):
            raise TypeError(
                "this cluster runs on the system clock; make it with clock='jump' or clock='manual' to advance it"
            )
        if delta_ms < 0:
            raise ValueError(f"advance({delta_ms}): time goes forwards only; give a number >= 0")
        async with self._advancing:
            await self._advance(clock, delta_ms)

    async def _advance(self, clock: JumpClock | ManualClock, delta_ms: int) -> None:
        await self.settle()
        target = clock.now_ms() + delta_ms
        while True:
            deadline = self._timers.next_deadline_ms()
            if deadline is None or deadline > target:
                break
            clock.advance(max(0, deadline - clock.now_ms()))
            self._run_due(max(deadline, self._actions.now_ms))
            await self.settle()
        clock.advance(max(0, target - clock.now_ms()))
        self._armed_for = None
        self._fire()
        await self.settle()

    async def settle(self) -> None:
        """Return when nothing has come in for a few passes of the loop, or when clients do not pause at all."""
        quiet = 0
        for _ in range(MOST_ROUNDS):
            before = self.activity
            await asyncio.sleep(0)
            quiet = quiet + 1 if self.activity == before else 0
            if quiet == QUIET_ROUNDS:
                return
