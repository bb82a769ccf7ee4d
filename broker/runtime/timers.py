"""Timers: a heap of deadlines and callbacks. This module has no clock: the time is an argument.

Timers with equal deadlines fire in the order in which they were set, so that two simulations with the same seed behave exactly the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

Callback = Callable[[int], None]


class Timer:
    """A callback with a deadline. `callback` is None once the timer has fired or was cancelled.

    `cancel()` is cheap: the heap entry stays and is skipped later, or removed when many are cancelled.
    """

    __slots__ = ("_owner", "at_ms", "callback")

    def __init__(self, at_ms: int, callback: Callback, owner: Timers) -> None:
        self.at_ms = at_ms
        self.callback: Callback | None = callback
        self._owner = owner

    def cancel(self) -> None:
        """Cancel the timer. A timer that was cancelled before or that has fired may be cancelled again."""
        if self.callback is not None:
            self.callback = None
            self._owner.note_dead()


class Timers:
    """All timers of a cluster. `at()` sets a timer, `next_deadline_ms()` returns the next deadline, `run_due()` fires the timers that are due."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._sequence = 0
        self._dead = 0

    def __len__(self) -> int:
        return len(self._heap) - self._dead

    def at(self, at_ms: int, callback: Callback) -> Timer:
        """Set a timer that calls `callback(now_ms)` once, at the first `run_due` at or after `at_ms`."""
        timer = Timer(at_ms, callback, self)
        self._sequence += 1
        heapq.heappush(self._heap, (at_ms, self._sequence, timer))
        return timer

    def earliest_entry_ms(self) -> int | None:
        """Return the time in ms of the earliest entry in the heap of timers; None if the heap is empty.

        The next deadline is not earlier than the result, but may be later, because the entry may belong to a cancelled timer. `next_deadline_ms` is
        exact, but takes more time.
        """
        return self._heap[0][0] if self._heap else None

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline of a timer that is set, in ms; None if no timer is set."""
        heap = self._heap
        while heap and heap[0][2].callback is None:
            heapq.heappop(heap)
            self._dead -= 1
        return heap[0][0] if heap else None

    def run_due(self, now_ms: int) -> int:
        """Fire every timer with a deadline up to `now_ms`, including timers set by the callbacks. Returns how many fired."""
        fired_count = 0
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            timer = heapq.heappop(heap)[2]
            callback = timer.callback
            if callback is None:
                self._dead -= 1
                continue
            timer.callback = None
            fired_count += 1
            callback(now_ms)
        return fired_count

    def note_dead(self) -> None:
        self._dead += 1
        if self._dead > 64 and self._dead * 2 > len(self._heap):
            # In place: `run_due` may be walking this very list.
            self._heap[:] = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._dead = 0
