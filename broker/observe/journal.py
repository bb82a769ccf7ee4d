"""The journal: a bounded list of requests, throttles and state changes. Tests read it, so that they need not sleep until something happens.

An entry contains neither frames nor records. When the journal is full, its oldest entries are dropped, so that a long test needs no more memory
than a short one. This module does not depend on asyncio.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkaproto.api import APIS
from kafkaproto.broker.observe.details import (
    Details,
    RequestDetails,
    TopicName,
    printable,
    request_details,
    response_details,
)
from kafkaproto.broker.quota.forced import ForcedThrottle, api_key
from kafkaproto.broker.runtime.events import Observer

if TYPE_CHECKING:
    from kafkaproto.broker.quota.sensors import ThrottleReason
    from kafkaproto.broker.requests.exchange import Exchange

    Reason = ThrottleReason | ForcedThrottle

DEFAULT_CAPACITY = 20_000


class RequestSeen(NamedTuple):
    """One completed request.

    at_ms: when the response was ready, in milliseconds of the cluster's clock. elapsed_ms: `at_ms` counted from the cluster's start or last reset.
    request_bytes, response_bytes: the sizes of the two frames without their length prefixes; response_bytes is 0 without a response
    (acks=0). details: group, topics, partitions, errors and offsets; None unless the journal records them, as the journal of a test cluster
    does.
    """

    at_ms: int
    broker_id: int
    """The id of the broker that handled the request."""
    connection_id: int
    """The number of the connection, counted from 1 in each cluster."""
    client_address: str
    """The address of the client, without its port."""
    client_id: str | None
    """The client id in the request's header; None if the header has none."""
    api_key: int
    """The number of the API; `api` is its name."""
    api_version: int
    """The version of the API in which the request was sent."""
    correlation_id: int
    """The correlation id in the request's header, a number chosen by the client."""
    request_bytes: int
    response_bytes: int
    throttle_time_ms: int
    """The throttle time of the request in ms; 0 if the client was not throttled."""
    details: Details | None = None
    elapsed_ms: int = 0

    @property
    def api(self) -> str:
        """Return the name of the API in Kafka's messages, such as Produce, Fetch or ListOffsets."""
        return api_name(self.api_key)

    @property
    def errors(self) -> tuple[str, ...]:
        """Return the names of the errors in the response, each once, such as ("MESSAGE_TOO_LARGE",). Empty without errors or without details."""
        return () if self.details is None else self.details.errors

    def __str__(self) -> str:
        client = "client without id" if self.client_id is None else printable(self.client_id)
        about = f" {self.details}" if self.details is not None and str(self.details) else ""
        throttled = f", throttled {self.throttle_time_ms} ms" if self.throttle_time_ms else ""
        return (
            f"{_seconds(self.elapsed_ms)} broker {self.broker_id} connection {self.connection_id} {client}: "
            f"{self.api} v{self.api_version}{about} (#{self.correlation_id}, {self.request_bytes} bytes in, "
            f"{self.response_bytes} out{throttled})"
        )

    def __repr__(self) -> str:
        return f"<RequestSeen {self}>"


def _seconds(elapsed_ms: int) -> str:
    return f"+{elapsed_ms / 1000:.3f} s"


@dataclass(slots=True, repr=False)
class ThrottleSeen:
    """One throttle of a client: when and why it began, and when it ended.

    at_ms: when the client was throttled, which is when the mute begins (T-6), in milliseconds of the cluster's clock. reason: the
    exceeded quota with its measured values (`ThrottleReason`), or the rule that forced the throttle (`ForcedThrottle`). held: whether the
    response itself was delayed instead of muting the connection (releases before 2.0). ended_ms: when the throttle ended: the broker unmuted the
    connection or sent the delayed response, or the connection closed; None while the throttle lasts.
    """

    at_ms: int
    broker_id: int
    """The id of the broker that handled the request."""
    connection_id: int
    """The number of the connection, counted from 1 in each cluster."""
    client_id: str | None
    """The client id in the request's header; None if the header has none."""
    api_key: int
    """The number of the API; `api` is its name."""
    api_version: int
    """The version of the API in which the request was sent."""
    correlation_id: int
    """The correlation id in the request's header, a number chosen by the client."""
    throttle_time_ms: int
    """The throttle time of the request in ms."""
    reason: Reason
    held: bool = False
    ended_ms: int | None = None
    elapsed_ms: int = 0
    """The time `at_ms`, at which the client was throttled, counted in milliseconds from the cluster's start or last reset."""

    @property
    def api(self) -> str:
        """Return the name of the API in Kafka's messages, such as Produce, Fetch or ListOffsets."""
        return api_name(self.api_key)

    def __str__(self) -> str:
        client = "client without id" if self.client_id is None else printable(self.client_id)
        action = "response held back" if self.held else "throttled"
        end_text = "" if self.ended_ms is None else f", over after {self.ended_ms - self.at_ms} ms"
        return (
            f"{_seconds(self.elapsed_ms)} broker {self.broker_id} connection {self.connection_id} {client}: "
            f"{self.api} v{self.api_version} {action} for {self.throttle_time_ms} ms{end_text}: {self.reason}"
        )

    def __repr__(self) -> str:
        return f"<ThrottleSeen {self}>"


@dataclass(slots=True, repr=False)
class EventSeen:
    """An event other than a request or a throttle. `kind` is a short name such as parked, isr, leader or broker; `facts` are its details.

    at_ms: when the event happened, in milliseconds of the cluster's clock. elapsed_ms: `at_ms` counted from the cluster's start or last reset.
    """

    at_ms: int
    broker_id: int
    """The id of the broker that the event is about; -1 for the whole cluster."""
    kind: str
    facts: dict[str, Any]
    elapsed_ms: int = 0

    def __str__(self) -> str:
        facts = " ".join(f"{name}={value}" for name, value in self.facts.items())
        return f"{_seconds(self.elapsed_ms)} broker {self.broker_id} {self.kind} {facts}".rstrip()

    def __repr__(self) -> str:
        return f"<EventSeen {self}>"


def api_name(api_key: int) -> str:
    return APIS[api_key].name


def throttle_of(exchange: Exchange, throttle_ms: int, reason: Reason, held: bool) -> ThrottleSeen:
    """Return the journal entry for a throttle of a request in progress.

    reason: the exceeded quota, or the rule that forced the throttle. throttle_ms: the throttle time. held: whether the response is delayed instead of
    muting the connection (releases before 2.0).
    """
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
    """The latest requests, throttles and other events of a cluster. `requests()`, `throttles()` and `events()` return them, oldest first.

    capacity: the maximum number of entries of each kind (requests, throttles, events); if there are more, the oldest are dropped. `total` grows by
    one with every new entry and with every end of a throttle, so that it shows whether the journal has changed.
    """

    is_guarded = False

    def __init__(self, started_ms: int = 0, capacity: int = DEFAULT_CAPACITY) -> None:
        self._requests: deque[tuple[Any, ...]] = deque(maxlen=capacity)
        self._throttles: deque[ThrottleSeen] = deque(maxlen=capacity)
        self._events: deque[EventSeen] = deque(maxlen=capacity)
        self._going_on: dict[int, ThrottleSeen] = {}
        self.total = 0
        self.started_ms = started_ms
        """The time in milliseconds of the cluster's clock at which the journal was created or last cleared."""

    def counts(self) -> dict[str, int]:
        """Return the number of entries that the journal holds, by kind: "request", "throttle" and "event"."""
        return {"request": len(self._requests), "throttle": len(self._throttles), "event": len(self._events)}

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
        throttle = throttle_of(exchange, throttle_ms, reason, held)
        throttle.elapsed_ms = throttle.at_ms - self.started_ms
        self._throttles.append(throttle)
        self._going_on[throttle.connection_id] = throttle
        self.total += 1

    def throttle_ended(self, connection_id: int, now_ms: int) -> None:
        throttle = self._going_on.pop(connection_id, None)
        if throttle is not None:
            throttle.ended_ms = now_ms
            self.total += 1

    def noted(self, now_ms: int, broker_id: int, kind: str, facts: Mapping[str, Any]) -> None:
        self._events.append(EventSeen(now_ms, broker_id, kind, dict(facts), now_ms - self.started_ms))
        self.total += 1

    def cleared(self, now_ms: int) -> None:
        self.started_ms = now_ms
        self._requests.clear()
        self._throttles.clear()
        self._going_on.clear()
        self._events.clear()

    def requests(
        self, api: str | None = None, client_id: str | None = None, broker: int | None = None
    ) -> list[RequestSeen]:
        """Return the requests in the journal, oldest first; None for an argument matches every request.

        api: the API's name, such as "Produce". broker: the broker's id. Raises ValueError for an unknown API.
        """
        if api is not None:
            api_key(api)
        return [
            r
            for r in map(self._as_request_seen, self._requests)
            if (api is None or r.api == api)
            and (client_id is None or r.client_id == client_id)
            and (broker is None or r.broker_id == broker)
        ]

    def throttles(self, api: str | None = None, client_id: str | None = None) -> list[ThrottleSeen]:
        """Return copies of the throttles in the journal, oldest first.

        api: only those of this API, such as "Produce". client_id: only those of this client id. None matches every throttle. For a throttle that
        still lasts, `ended_ms` is None and stays None in this copy. Raises ValueError for an unknown API.
        """
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
        """Return the newest `count` requests, the newest first."""
        return map(self._as_request_seen, islice(reversed(self._requests), count))

    def elapsed(self, now_ms: int) -> str:
        """Return the time from the cluster's start or last reset to `now_ms` (ms of the cluster's clock) as text, such as "+1.250 s"."""
        return _seconds(now_ms - self.started_ms)

    def _as_request_seen(self, row: tuple[Any, ...]) -> RequestSeen:
        request = RequestSeen(*row)
        return request._replace(elapsed_ms=request.at_ms - self.started_ms)


class DetailedJournal(Journal):
    """A journal that also stores the group, topics, partitions, errors and offsets of each request, at a cost of some microseconds."""

    is_guarded = True

    def __init__(self, started_ms: int = 0, capacity: int = DEFAULT_CAPACITY) -> None:
        super().__init__(started_ms, capacity)
        self._begun: dict[int, RequestDetails] = {}
        """Maps connection ids to the details of their request in progress."""
        self._details: dict[int, Details] = {}
        """Maps connection ids to the details of the response that is about to be sent."""

    def request_begun(
        self, exchange: Exchange, api: Any, frame: memoryview, body_at: int, body_end: int, request: Any
    ) -> None:
        if request is not None:
            self._begun[exchange.peer.connection_id] = request_details(request, _topic_names(exchange))

    def response_built(self, exchange: Exchange, message: Any) -> None:
        connection_id = exchange.peer.connection_id
        details_of_request = self._begun.get(connection_id, RequestDetails())
        self._details[connection_id] = response_details(message, details_of_request, _topic_names(exchange))

    def response_ready(
        self,
        exchange: Exchange,
        out: bytearray,
        splices: Sequence[tuple[int, Any]],
        size_bytes: int,
        throttle_ms: int,
        held: bool,
    ) -> None:
        super().response_ready(exchange, out, splices, size_bytes, throttle_ms, held)
        details_of_request = self._begun.pop(exchange.peer.connection_id, RequestDetails())
        details = self._details.pop(exchange.peer.connection_id, None)
        self._requests[-1] = (*self._requests[-1], details or details_of_request.unanswered())

    def connection_closed(self, broker_id: int, connection: Any, why: str, now_ms: int) -> None:
        self._begun.pop(connection.connection_id, None)
        self._details.pop(connection.connection_id, None)

    def cleared(self, now_ms: int) -> None:
        super().cleared(now_ms)
        self._begun.clear()
        self._details.clear()


def _topic_names(exchange: Exchange) -> TopicName:
    names = exchange.node.image.topic_names

    def name(topic_id: bytes) -> str:
        return names.get(topic_id) or f"topic id {topic_id.hex()}"

    return name
