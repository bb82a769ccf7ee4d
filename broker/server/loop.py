"""Runs a cluster in an asyncio loop: reads the clock once for each input, and sets the timer for the next deadline.

An input is, for example, the bytes that a socket received, a due timer or a call of a test. The input and everything that follows from it, such as
responses, are handled at the same time of the cluster's clock. This is called a turn. This module does not depend on sockets.
"""

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
"""The number of event loop iterations after which asyncio has certainly accepted a connection that was in a listener's queue."""
QUIET_ROUNDS = 3
"""The number of event loop iterations without input after which the kernel's receive buffers are assumed to be empty."""
MOST_ROUNDS = 300
"""The maximum number of event loop iterations that one call of `BrokerLoop.settle` waits if clients keep sending.

That is enough to empty the receive buffer of every connection more than once.
"""


async def accepted() -> None:
    """Wait until the connections that are being accepted are established.

    The event loop must run several times before it has accepted a connection that is in the listener's queue.
    """
    for _ in range(ACCEPTING_ROUNDS):
        await asyncio.sleep(0)


class Socket(Protocol):
    """Interface of a network connection (`Channel`): the attributes and methods that `BrokerLoop` uses."""

    @property
    def is_sending(self) -> bool:
        """Return whether a task is sending a response."""
        ...


class BrokerLoop:
    """The driver of one cluster in one event loop. Each input, such as received bytes, is handled between `enter` and `leave`.

    `leave` sets the timer for the next deadline. sendfile: whether to send large file ranges through sendfile; None uses sendfile only on Linux.
    """

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
        """Begin to handle one input, such as received bytes, at the time `now_ms`. The caller must call `leave` when it has handled the input."""
        self._actions.now_ms = now_ms
        self.activity += 1

    def leave(self, now_ms: int) -> None:
        """Finish the handling of an input that began with `enter`: run the actions that it queued, and set the timer for the next deadline."""
        self._actions.run(now_ms)
        # The entry may be that of a cancelled timer. Most timers are cancelled, and a turn without work costs less than a search for the next one.
        earliest = self._timers.earliest_entry_ms()
        if earliest is not None and (self._armed_for is None or earliest < self._armed_for):
            self._arm()

    def call(self, action: Callable[[], T]) -> T:
        """Run `action`, and then everything that the cluster has to do because of it, such as sending responses. Returns the result of `action`.

        The time of the cluster's clock does not change meanwhile.
        """
        now_ms = self.now_ms()
        self.enter(now_ms)
        try:
            return action()
        finally:
            self.leave(now_ms)

    def opened(self, channel: Socket) -> None:
        """Record that a channel was opened. The method `closed` then waits until this channel has released its socket."""
        self._channels.add(channel)
        self._all_closed.clear()

    def channel_closed(self, channel: Socket) -> None:
        self._channels.discard(channel)
        if not self._channels:
            self._all_closed.set()

    @property
    def is_sending(self) -> bool:
        """Return whether a connection is sending a large response in a separate task. Sending takes real time, even if the clock stands still."""
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
        """Run the callbacks of due timers. If a callback raises, the exception is logged and the other callbacks still run (W-8)."""
        while True:
            try:
                self.cluster.run_due(now_ms)
                return
            except Exception:
                logger.exception(
                    "a timer of the broker failed because of a bug (please report this traceback); the broker and its other timers continue"
                )
                self._actions.run(now_ms)

    def stop(self) -> None:
        """Cancel the event loop's timer for the next deadline, so that no timer of the cluster fires any more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    async def closed(self) -> None:
        """Wait until all closed connections have released their sockets, and until connections that are being accepted are established."""
        await accepted()
        await self._all_closed.wait()

    # ---- a clock that jumps --------------------------------------------------------------------------------------------------

    async def advance(self, delta_ms: int) -> None:
        """Let `delta_ms` pass at once: handle the bytes in the kernel's buffers, then fire each timer at its exact time.

        Concurrent calls run one after the other, so that their times add up. Raises TypeError with the system clock, which cannot be advanced,
        and ValueError for a negative time.
        """
        clock = self.cluster.clock
        if not isinstance(clock, JumpClock | ManualClock):
            raise TypeError(
                "this cluster runs on the system clock; make it with clock='jump' or clock='manual' to advance it"
            )
        if delta_ms < 0:
            raise ValueError(f"advance({delta_ms}): the time to advance by must be at least 0 ms")
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
        """Wait until no input was handled for 3 iterations of the event loop (QUIET_ROUNDS), or until 300 iterations have passed (MOST_ROUNDS)."""
        quiet = 0
        for _ in range(MOST_ROUNDS):
            activity_before = self.activity
            await asyncio.sleep(0)
            quiet = quiet + 1 if self.activity == activity_before else 0
            if quiet == QUIET_ROUNDS:
                return
