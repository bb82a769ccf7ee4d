"""A request that waits: for partitions to change, for the other members of a group, or for a deadline (`DelayedOperation` in Kafka)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafkaproto.broker.requests.outcomes import Outcome
from kafkaproto.broker.runtime.timers import Timer, Timers

Build = Callable[[], Outcome]
"""Makes an outcome when its time has come."""


class Delayed:
    """The outcome of a request that is completed later, exactly once; whoever comes first wins.

    The handler returns it. Building the outcome is handling time of its own request, whoever's event completes it, so `complete` takes a
    function. A wait for partitions is registered by `wait`; one for a group's members is completed by the group.
    """

    __slots__ = ("_build_at", "_is_due", "_keys", "_sink", "_timer", "done", "outcome")

    def __init__(self) -> None:
        self._build_at: Callable[[int], Outcome] | None = None
        self._is_due: Callable[[int], bool] | None = None
        self._keys: tuple[dict[Any, None], ...] = ()
        self._sink: Callable[[Build, int], None] | None = None
        self._timer: Timer | None = None
        self.done = False
        self.outcome: Outcome | None = None
        """Set if the request completed before its handler returned; it is settled at once then."""

    def wait(
        self,
        keys: Iterable[dict[Any, None]],
        is_due: Callable[[int], bool],
        timers: Timers,
        deadline_ms: int,
        build_at: Callable[[int], Outcome],
        expire: Callable[[], None] | None = None,
    ) -> Delayed:
        """Register under `keys`, and complete with `build_at(now_ms)` when `is_due(now_ms)` holds at a `check`, or at the deadline.

        keys: the watchers of what may change. expire: called first at the deadline. Returns itself.
        """
        self._is_due = is_due
        self._build_at = build_at
        self._keys = tuple(keys)
        for key in self._keys:
            key[self] = None

        def expired(now_ms: int) -> None:
            if expire is not None:
                expire()
            self._finish(now_ms)

        self._timer = timers.at(deadline_ms, expired)
        return self

    def check(self, now_ms: int) -> None:
        """Complete if what is waited for has come. Called when one of the keys changed."""
        if not self.done and self._is_due is not None and self._is_due(now_ms):
            self._finish(now_ms)

    def _finish(self, now_ms: int) -> None:
        build_at = self._build_at
        assert build_at is not None
        self.complete(lambda: build_at(now_ms), now_ms)

    def complete(self, build: Build, now_ms: int) -> None:
        """End the wait with the outcome that `build` makes, if it has not ended."""
        if self.done:
            return
        self._forget()
        if self._sink is None:
            self.outcome = build()
        else:
            self._sink(build, now_ms)

    def attach(self, sink: Callable[[Build, int], None]) -> None:
        """Say who takes the outcome, as a function that makes it and the time. Only for one that is not done."""
        self._sink = sink

    def abandon(self) -> None:
        """End the wait without an outcome, because the connection is closed. Completing later does nothing."""
        if not self.done:
            self._forget()

    def _forget(self) -> None:
        self.done = True
        if self._timer is not None:
            self._timer.cancel()
        for key in self._keys:
            key.pop(self, None)
