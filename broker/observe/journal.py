"""What happened: a bounded ring of requests, throttles and state changes that tests read instead of sleeping.

Holds facts, never frames or records, so that a long run costs no more than a short one. Must never know asyncio.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkaproto.api import APIS
from kafkaproto.broker.observe.throttle_log import ThrottleLog
from kafkaproto.broker.quota.forced import ForcedThrottle, api_key

if TYPE_CHECKING:
    from kafkaproto.broker.observe.journal_topic import JournalTopic
    from kafkaproto.broker.observe.recorder import Recorder
    from kafkaproto.broker.quota.sensors import ThrottleReason
    from kafkaproto.broker.requests.registry import RequestContext

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


class Journal:
    """`requests()`, `throttles()`, `events()` read it, oldest first; `total` counts everything ever noted."""

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        self._requests: deque[tuple[Any, ...]] = deque(maxlen=capacity)
        self._throttles: deque[ThrottleSeen] = deque(maxlen=capacity)
        self._events: deque[EventSeen] = deque(maxlen=capacity)
        self._going_on: dict[int, ThrottleSeen] = {}
        self._throttle_log = ThrottleLog()
        self.total = 0
        self.recorder: Recorder | None = None
        """Is told of everything that is not a request."""
        self.publisher: JournalTopic | None = None
        """Who makes a topic of it, if anybody does."""
        self.watchers: list[Callable[[], None]] = []
        """Called after each entry, while somebody waits for one."""

    def request(self, context: RequestContext, throttle_time_ms: int, response_bytes: int) -> None:
        peer = context.peer
        # A plain tuple in the order of RequestSeen: every request pays for this line, readers make the rest.
        self._requests.append(
            (
                context.now_ms,
                context.node.broker_id,
                peer.connection_id,
                peer.client_address,
                context.client_id,
                context.api_key,
                context.api_version,
                context.correlation_id,
                context.size_bytes,
                response_bytes,
                throttle_time_ms,
            )
        )
        self.total += 1
        if self.watchers:
            self._tell()

    def throttle(self, context: RequestContext, throttle_ms: int, reason: Reason, held: bool = False) -> None:
        seen = ThrottleSeen(
            context.now_ms,
            context.node.broker_id,
            context.peer.connection_id,
            context.client_id,
            context.api_key,
            context.api_version,
            context.correlation_id,
            throttle_ms,
            reason,
            held,
        )
        self._throttles.append(seen)
        self._going_on[seen.connection_id] = seen
        self._throttle_log.note(seen)
        if self.recorder is not None:
            self.recorder.throttle(context, seen)
        if self.publisher is not None:
            self.publisher.throttled(seen)
        self._noted()

    def throttle_ended(self, connection_id: int, now_ms: int) -> None:
        """The connection is read again, its held answer goes out, or it is closed."""
        seen = self._going_on.pop(connection_id, None)
        if seen is not None:
            seen.ended_ms = now_ms
            self._noted()

    def event(self, at_ms: int, broker_id: int, kind: str, **facts: Any) -> None:
        self._events.append(EventSeen(at_ms, broker_id, kind, facts))
        if self.recorder is not None:
            self.recorder.event(at_ms, broker_id, kind, facts)
        if self.publisher is not None:
            self.publisher.event(at_ms, broker_id, kind, facts)
        self._noted()

    def _noted(self) -> None:
        self.total += 1
        self._tell()

    def _tell(self) -> None:
        for watcher in tuple(self.watchers):
            watcher()

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

    def waiting(self, now_ms: int) -> Iterator[ThrottleSeen]:
        """Whose throttle time is not over, be the connection there or gone. To be read at once, not kept."""
        return (seen for seen in self._throttles if seen.at_ms + seen.throttle_time_ms > now_ms)

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

    def clear(self) -> None:
        self._requests.clear()
        self._throttles.clear()
        self._going_on.clear()
        self._events.clear()
