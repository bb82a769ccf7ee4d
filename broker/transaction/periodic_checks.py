"""Periodic checks for transactions that have timed out (TX-58) and for transactional ids that have expired (TX-62).

As in Kafka, a check runs at multiples of its interval since the broker started. No timer is set while there is nothing to find.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkaproto.broker.runtime.timers import Timer, Timers


class PeriodicCheck:
    """A check that runs at multiples of `interval_ms` after `start_ms`, while a transaction can time out or an id can expire.

    check: a function that is called with the current time (ms). It returns the time in ms of the next timeout or expiry, None if there is none.
    """

    def __init__(self, timers: Timers, start_ms: int, interval_ms: int, check: Callable[[int], int | None]) -> None:
        self._timers = timers
        self._start_ms = start_ms
        self._interval_ms = interval_ms
        self._check = check
        self._timer: Timer | None = None
        self._at_ms = 0

    def expect(self, due_ms: int, now_ms: int) -> None:
        """Set the timer for the first regular check at or after both `due_ms` and `now_ms`. If an earlier check is already set, keep its timer.

        due_ms: when the next transaction times out or the next id expires. now_ms: the current time.
        """
        intervals = max(1, -((self._start_ms - max(due_ms, now_ms)) // self._interval_ms))
        at_ms = self._start_ms + intervals * self._interval_ms
        if self._timer is not None:
            if self._at_ms <= at_ms:
                return
            self._timer.cancel()
        self._at_ms = at_ms
        self._timer = self._timers.at(at_ms, self._run)

    def _run(self, now_ms: int) -> None:
        self._timer = None
        due_ms = self._check(now_ms)
        if due_ms is not None:
            self.expect(due_ms, now_ms + 1)
