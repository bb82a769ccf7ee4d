"""Replay of recorded requests under another byte quota. Each connection is delayed by the throttle times that it would have had.

When its connection is unmuted, a client waits before the next request as long as it did in the recording. With the quota of the recording, the replay
therefore produces the recorded times and throttle times. This module uses plain Python: it does not depend on Spark or on where requests come from.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafkaproto.broker.quota.windows import SampledRate

LOOKAHEAD = 10_000
"""The maximum number of requests of a client that the replay holds back.

Under another quota, the connections of a client may send in another order. The replay takes the request that is due first among those held back.
"""
MAX_RETRIES = 1000


class Request(NamedTuple):
    """One request of a client in a trace, in the order of the trace.

    conn: the connection of the request. at_ms: when the bytes of the request were charged, on the broker's clock. value: the number of these bytes.
    For a fetch whose response was emptied by a throttle, value is the size of the response that would have been sent otherwise. waited_ms: the
    throttle time that the broker applied, whichever quota caused it. empty: True for a fetch whose response had no records because of a throttle; the
    client then repeated the fetch.
    """

    seq: int
    conn: int
    at_ms: int
    value: float
    waited_ms: int
    empty: bool = False


class Wait(NamedTuple):
    """How long the replay of a client under another quota (`Replay`) throttles one attempt of a request.

    seq, conn: sequence number and connection of the request. at_ms: when the bytes of the attempt are charged, on the clock of the replay, which may
    differ from the recorded times. throttle_ms: the throttle time, 0 if the attempt is not throttled.
    """

    seq: int
    conn: int
    at_ms: int
    throttle_ms: int


class _Connection:
    __slots__ = ("closed_ms", "free_ms", "pending", "served", "was_free_ms")

    def __init__(self) -> None:
        self.pending: deque[Request] = deque()
        self.free_ms = 0
        """The time in ms, in the replay, at which the connection is unmuted and may send again.

        `was_free_ms` is the time at which it was unmuted in the recording.
        """
        self.was_free_ms: int | None = None
        self.served = False
        """True if the replay must skip the next recorded request: a repetition of a fetch whose records the replay has already sent.

        This happens after a fetch that was throttled in the recording, and therefore repeated by the client, but is not throttled in the replay.
        """
        self.closed_ms = 0

    def due_ms(self) -> int:
        """Return when the first pending request of this connection counts against the client's quota, in ms on the clock of the replay.

        In the recording, the client sent the request some time after the broker had unmuted the connection. In the replay, it waits equally long.
        """
        at_ms = self.pending[0].at_ms
        return at_ms if self.was_free_ms is None else self.free_ms + at_ms - self.was_free_ms


class Replay:
    """The replay of one client under another quota.

    bound: the quota in bytes per second. samples, window_ms: `quota.window.num`, and `quota.window.size.seconds` in ms. fetches: True for
    fetches from 2.0 on: a throttled fetch is not charged, its response has no records, and the client repeats the fetch (KIP-219). False for produce
    requests and for older fetches, which are charged even if they are throttled.
    """

    def __init__(self, bound: float, samples: int, window_ms: int, fetches: bool) -> None:
        self._bound = bound
        self._rate = SampledRate(samples, window_ms)
        self._fetches = fetches
        self._largest = bound * (samples - 1) * (window_ms // 1000) if fetches and samples > 1 else float("inf")
        """The maximum number of bytes charged for a fetch; a larger response is charged as this number of bytes.

        A larger response alone would exceed the quota in every attempt, so that the fetch would be throttled and repeated forever (Q-14).
        """
        self._connections: dict[int, _Connection] = {}
        self._due: list[tuple[int, int, int]] = []
        """A heap with the first pending request of each connection, as (due time in ms, sequence number of the request, connection)."""
        self._pending_count = 0
        self._now_ms = 0

    def of(self, requests: Iterable[Request]) -> Iterator[Wait]:
        """Replay requests, and yield their throttle decisions. requests: in the order of the trace.

        Up to 10,000 requests (`LOOKAHEAD`) stay pending after a call. Call `rest` after the last call of this method to replay them.
        """
        for request in requests:
            connection = self._connections.setdefault(request.conn, _Connection())
            connection.pending.append(request)
            self._pending_count += 1
            if len(connection.pending) == 1:
                heapq.heappush(self._due, (connection.due_ms(), request.seq, request.conn))
            if self._pending_count > LOOKAHEAD:
                yield from self._next()

    def rest(self) -> Iterator[Wait]:
        while self._due:
            yield from self._next()

    def _next(self) -> Iterator[Wait]:
        due_ms, _, number = heapq.heappop(self._due)
        connection = self._connections[number]
        request = connection.pending.popleft()
        self._pending_count -= 1
        if connection.served:
            connection.served = request.empty
        else:
            yield from self._charge(connection, request, due_ms)
        connection.was_free_ms = request.at_ms + request.waited_ms
        if connection.pending:
            heapq.heappush(self._due, (connection.due_ms(), connection.pending[0].seq, number))

    def _charge(self, connection: _Connection, request: Request, due_ms: int) -> Iterator[Wait]:
        """Charge the bytes of a request to the quota of the replay, and yield the throttle time of each attempt, 0 ms if it is not throttled.

        A produce request has one attempt. A throttled fetch is attempted again when its connection is unmuted. But a fetch that was also throttled in
        the recording has only one attempt in the replay: the client repeated it, so its repetition is the next recorded request of the connection.

        due_ms: when the bytes of the first attempt are charged, on the clock of the replay.
        """
        value = min(request.value, self._largest)
        for _ in range(MAX_RETRIES):
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
