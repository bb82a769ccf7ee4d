"""A request whose response is delayed until partitions change, other members of a group act, or a deadline passes (`DelayedOperation` in Kafka)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafkaproto.broker.requests.outcomes import Outcome
from kafkaproto.broker.runtime.timers import Timer, Timers

Build = Callable[[], Outcome]
"""A function that builds the outcome (the handler's result, such as a reply) when a delayed request completes."""


class Delayed:
    """A request that waits for its outcome, which is the result of its handler, such as a reply. It completes at most once.

    A handler returns a `Delayed` instead of an outcome. If the request waits for partitions, the handler calls `wait`. If it waits for members of a
    group, the group calls `complete`, with a function that builds the outcome, so that the time to build it is charged to this request.
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
        """The outcome of a request that completed while its handler still ran; the handler returns it. None for other requests."""

    def wait(
        self,
        keys: Iterable[dict[Any, None]],
        is_due: Callable[[int], bool],
        timers: Timers,
        deadline_ms: int,
        build_at: Callable[[int], Outcome],
        expire: Callable[[], None] | None = None,
    ) -> Delayed:
        """Wait for a change of partitions that makes `is_due` true, at most until `deadline_ms`. Returns this object.

        - keys: for each partition, the dict whose keys are the objects to check when the partition changes. This object adds itself to each dict, so
          that every change of the partition calls `check`.
        - is_due: a function that is called at each check with the current time (ms); if it returns true, the request completes.
        - timers: schedules the deadline.
        - build_at: a function that is called with the current time (ms) when the request completes, and returns the outcome.
        - expire: a function that is called before `build_at` if the deadline has passed; None to call nothing.
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
        """Complete the request if its condition (`is_due`) is met. A partition that the request waits for calls this when it changes."""
        if not self.done and self._is_due is not None and self._is_due(now_ms):
            self._finish(now_ms)

    def _finish(self, now_ms: int) -> None:
        build_at = self._build_at
        assert build_at is not None
        self.complete(lambda: build_at(now_ms), now_ms)

    def complete(self, build: Build, now_ms: int) -> None:
        """Complete the request with the outcome (such as a reply) that `build` returns. Does nothing if the request is complete or abandoned."""
        if self.done:
            return
        self._forget()
        if self._sink is None:
            self.outcome = build()
        else:
            self._sink(build, now_ms)

    def attach(self, sink: Callable[[Build, int], None]) -> None:
        """Set the function to call when the request completes. The request must not be complete yet.

        sink: called with (function that builds the outcome, current time in ms).
        """
        self._sink = sink

    def abandon(self) -> None:
        """End the wait without an outcome, because the connection closed. Calling `complete` later has no effect."""
        if not self.done:
            self._forget()

    def _forget(self) -> None:
        self.done = True
        if self._timer is not None:
            self._timer.cancel()
        for key in self._keys:
            key.pop(self, None)
