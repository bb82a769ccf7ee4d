"""A limit for log lines about repeated events: at most one line per key and period.

A key identifies events that repeat each other, such as refusals of one client for one reason. The events without a line are counted, and the next
line can report their number. The number of keys in memory is bounded.
"""

from __future__ import annotations

from collections.abc import Hashable


class OncePerPeriod:
    """Decides which events are logged: for each key, at most one event in `period_ms`. A key identifies events that repeat each other.

    The period of a key starts with a logged event. most_keys: the maximum number of remembered keys. If there are more, keys whose period is over
    are dropped first, then the oldest keys.
    """

    def __init__(self, period_ms: int, most_keys: int) -> None:
        self.period_ms = period_ms
        self.most_keys = most_keys
        self._last: dict[Hashable, tuple[int, int]] = {}

    def count(self, key: Hashable, now_ms: int) -> int | None:
        """Count an event, and decide whether to log it at `now_ms` (milliseconds of the cluster's clock).

        Returns None if the event must not be logged, otherwise the number of events with this key that were not logged since the last logged event.
        """
        said_ms, quiet = self._last.get(key, (now_ms - self.period_ms, 0))
        if 0 <= now_ms - said_ms < self.period_ms:
            self._last[key] = (said_ms, quiet + 1)
            return None
        self._last.pop(key, None)  # keeps the keys in the order of their last log lines
        if len(self._last) >= self.most_keys:
            self._forget(now_ms)
        self._last[key] = (now_ms, 0)
        return quiet

    def _forget(self, now_ms: int) -> None:
        self._last = {key: last for key, last in self._last.items() if 0 <= now_ms - last[0] < self.period_ms}
        while len(self._last) >= self.most_keys:
            del self._last[next(iter(self._last))]
