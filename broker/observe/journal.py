"""What happened: a bounded ring of requests, throttles and state changes that tests read instead of sleeping.

Holds facts, never frames or records, so that a long run costs no more than a short one. Must never know asyncio.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkaproto.api import APIS
from kafkaproto.broker.quota.forced import ForcedThrottle, api_key
from kafkaproto.broker.runtime.events import Observer

if TYPE_CHECKING:
    from kafkaproto.broker.quota.sensors import ThrottleReason
    from kafkaproto.broker.requests.exchange import Exchange

    Reason = ThrottleReason | ForcedThrottle

DEFAULT_CAPACITY = 20_000


class RequestSeen(NamedTuple):
    """One answered request. request_bytes: header and body; response_bytes: the frame without its length, 0 for acks=0."""

    at_ms: int
    broker_id: int
    connection_id: int
    client_address: str
    client_id: str | None
    api_key: int
    api_version: int
    correlation_id: int
    request_bytes: int
    response_bytes: int
    throttle_time_ms: int

    @property
    def api(self) -> str:
        """The API's name as Kafka's messages have it: Produce, Fetch, ListOffsets."""
        return api_name(self.api_key)


@dataclass(slots=True)
class ThrottleSeen:
    """One decision to throttle: whom, why, and for how long the connection was left alone.

    at_ms: the decision, with which the mute begins (T-6). reason: the quota entity with value, bound, window and samples, or the
    rule that forced it. held: the answer itself was kept back and nothing muted (releases before 2.0). ended_ms: when the
    connection was read again, the held answer went out, or the connection was closed; None while it lasts.
    """

    at_ms: int
    broker_id: int
    connection_id: int
    client_id: str | None
    api_key: int
    api_version: int
    correlation_id: int
    throttle_time_ms: int
    reason: Reason
    held: bool = False
    ended_ms: int | None = None

    @property
    def api(self) -> str:
        return api_name(self.api_key)


@dataclass(slots=True)
class EventSeen:
    """Anything else: `kind` is a short name (parked, isr, leader, broker), `facts` what it is about."""

    at_ms: int
    broker_id: int
    kind: str
    facts: dict[str, Any]


def api_name(api_key: int) -> str:
    return APIS[api_key].name


def throttle_of(exchange: Exchange, throttle_ms: int, reason: Reason, held: bool) -> ThrottleSeen:
    """Return the decision to throttle a request that is on its way."""
    return ThrottleSeen(
        exchange.now_ms,
        exchange.node.broker_id,
        exchange.peer.connection_id,
        exchange.client_id,
        exchange.api_key,
        exchange.api_version,
        exchange.correlation_id,
        throttle_ms,
        reason,
        held,
    )


class Journal(Observer):
    """`requests()`, `throttles()`, `events()` read it, oldest first; `total` counts everything ever noted."""

    is_guarded = False

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        self._requests: deque[tuple[Any, ...]] = deque(maxlen=capacity)
        self._throttles: deque[ThrottleSeen] = deque(maxlen=capacity)
        self._events: deque[EventSeen] = deque(maxlen=capacity)
        self._going_on: dict[int, ThrottleSeen] = {}
        self.total = 0

    def response_ready(
        self,
        exchange: Exchange,
        out: bytearray,
        splices: Sequence[tuple[int, Any]],
        size_bytes: int,
        throttle_ms: int,
        held: bool,
    ) -> None:
        peer = exchange.peer
        # A plain tuple in the order of RequestSeen: every request pays for this line, readers make the rest.
        self._requests.append(
            (
                exchange.now_ms,
                exchange.node.broker_id,
                peer.connection_id,
                peer.client_address,
                exchange.client_id,
                exchange.api_key,
                exchange.api_version,
                exchange.correlation_id,
                exchange.size_bytes,
                size_bytes,
                throttle_ms,
            )
        )
        self.total += 1

    def request_unanswered(self, exchange: Exchange, throttle_ms: int, closes: bool, held: bool) -> None:
        self.response_ready(exchange, bytearray(), (), 0, throttle_ms, held)

    def throttled(self, exchange: Exchange, throttle_ms: int, reason: Reason, held: bool) -> None:
        seen = throttle_of(exchange, throttle_ms, reason, held)
        self._throttles.append(seen)
        self._going_on[seen.connection_id] = seen
        self.total += 1

    def throttle_ended(self, connection_id: int, now_ms: int) -> None:
        seen = self._going_on.pop(connection_id, None)
        if seen is not None:
            seen.ended_ms = now_ms
            self.total += 1

    def noted(self, now_ms: int, broker_id: int, kind: str, facts: Mapping[str, Any]) -> None:
        self._events.append(EventSeen(now_ms, broker_id, kind, dict(facts)))
        self.total += 1

    def cleared(self, now_ms: int) -> None:
        self._requests.clear()
        self._throttles.clear()
        self._going_on.clear()
        self._events.clear()

    def requests(
        self, api: str | None = None, client_id: str | None = None, broker: int | None = None
    ) -> list[RequestSeen]:
        """The requests answered so far, oldest first. api: its name, such as "Produce". Raises ValueError for a name that is none."""
        if api is not None:
            api_key(api)
        return [
            r
            for r in map(RequestSeen._make, self._requests)
            if (api is None or r.api == api)
            and (client_id is None or r.client_id == client_id)
            and (broker is None or r.broker_id == broker)
        ]

    def throttles(self, api: str | None = None, client_id: str | None = None) -> list[ThrottleSeen]:
        """The decisions so far, oldest first, as they are now: `ended_ms` of one that goes on is set in what is read later."""
        if api is not None:
            api_key(api)
        return [
            replace(t)
            for t in self._throttles
            if (api is None or t.api == api) and (client_id is None or t.client_id == client_id)
        ]

    def events(self, kind: str | None = None) -> list[EventSeen]:
        return [e for e in self._events if kind is None or e.kind == kind]

    def latest(self, count: int) -> Iterator[RequestSeen]:
        """The newest `count` requests, newest first: what a failing test prints."""
        return map(RequestSeen._make, islice(reversed(self._requests), count))
