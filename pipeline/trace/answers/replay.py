"""Quotas that were not: the arithmetic of byte quotas over recorded requests, each connection shifted by what it would have waited.

A client sends its next request as long after it may as it did when it was recorded. At the quota that was in force nothing shifts, and
the throttle times are the broker's. Plain Python: must never know Spark, nor where requests come from.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafkaproto.broker.quota.windows import SampledRate

LOOKAHEAD = 10_000
"""Requests of one client that may lie between two that change places, because one connection waits longer than the other."""
MOST_RETRIES = 1000


class Request(NamedTuple):
    """One request of the client whose quota it is, in the order of the trace.

    at_ms: when its bytes were charged. value: bytes, of a fetch those of the answer that it would have got. waited_ms: what the broker
    decided, for whatever reason. empty: a fetch that was throttled and got nothing, so that it came again.
    """

    seq: int
    conn: int
    at_ms: int
    value: float
    waited_ms: int
    empty: bool = False


class Wait(NamedTuple):
    """at_ms: on the clock of the replay. seq: of the request. throttle_ms: what it would have waited, 0: nothing."""

    seq: int
    conn: int
    at_ms: int
    throttle_ms: int


class _Connection:
    __slots__ = ("coming", "ended_ms", "free_ms", "served", "was_free_ms")

    def __init__(self) -> None:
        self.coming: deque[Request] = deque()
        self.free_ms = 0
        """When it may send again, in the replay; `was_free_ms`: in the recording."""
        self.was_free_ms: int | None = None
        self.served = False
        """What it fetched in vain when it was recorded it has got already: what came again is left out."""
        self.ended_ms = 0

    def due_ms(self) -> int:
        """When its next request is charged."""
        at_ms = self.coming[0].at_ms
        return at_ms if self.was_free_ms is None else self.free_ms + at_ms - self.was_free_ms


class Replay:
    """One client at another quota. fetches: throttled ones get nothing, are not charged, and come again (KIP-219).

    bound: bytes a second. samples, window_ms: quota.window.num and quota.window.size.seconds.
    """

    def __init__(self, bound: float, samples: int, window_ms: int, fetches: bool) -> None:
        self._bound = bound
        self._rate = SampledRate(samples, window_ms)
        self._fetches = fetches
        self._largest = bound * (samples - 1) * (window_ms // 1000) if fetches and samples > 1 else float("inf")
        """No fetch gets more than that at once: it would be throttled for ever (Q-14)."""
        self._connections: dict[int, _Connection] = {}
        self._due: list[tuple[int, int, int]] = []
        """(when, seq, connection) of the first request of each connection that has one."""
        self._waiting = 0
        self._now_ms = 0

    def of(self, requests: Iterable[Request]) -> Iterator[Wait]:
        """What each request would have waited. requests: in the order of the trace; may be called again with what follows, then `rest`."""
        for request in requests:
            connection = self._connections.setdefault(request.conn, _Connection())
            connection.coming.append(request)
            self._waiting += 1
            if len(connection.coming) == 1:
                heapq.heappush(self._due, (connection.due_ms(), request.seq, request.conn))
            if self._waiting > LOOKAHEAD:
                yield from self._next()

    def rest(self) -> Iterator[Wait]:
        while self._due:
            yield from self._next()

    def _next(self) -> Iterator[Wait]:
        due_ms, _, number = heapq.heappop(self._due)
        connection = self._connections[number]
        request = connection.coming.popleft()
        self._waiting -= 1
        if connection.served:
            connection.served = request.empty
        else:
            yield from self._charge(connection, request, due_ms)
        connection.was_free_ms = request.at_ms + request.waited_ms
        if connection.coming:
            heapq.heappush(self._due, (connection.due_ms(), connection.coming[0].seq, number))

    def _charge(self, connection: _Connection, request: Request, due_ms: int) -> Iterator[Wait]:
        """A fetch that was recorded with its data and would have got none comes again at once when it may."""
        value = min(request.value, self._largest)
        for _ in range(MOST_RETRIES):
            self._now_ms = now_ms = max(due_ms, self._now_ms)
            wait_ms = self._rate.record_and_throttle(value, now_ms, self._bound)
            connection.free_ms = due_ms = now_ms + wait_ms
            yield Wait(request.seq, request.conn, now_ms, wait_ms)
            if not self._fetches:
                return
            if not wait_ms:
                connection.served = request.empty
                return
            self._rate.record(-value, now_ms)
            if request.empty:
                return
