"""The event port: what a cluster reports of itself to observers, which report nothing back.

Rooms raise events and know no observer; observers (`broker/observe/`) override the methods they need. Imports nothing of the broker, so
that every room may raise events.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

logger = logging.getLogger("kafkaproto.events")


class Observer:
    """The methods that a cluster calls; here they do nothing. Subclass it, override what you need, attach it with `Events.attach`.

    Connections: `connection_opened`, `bytes_received`, `connection_closed`.
    Requests: `request_refused`, `request_begun`, `request_parked`, `request_completed`, `response_ready`, `request_unanswered`,
    `response_sent`, `response_lost`; of them, `throttled` and `throttle_ended`.
    Records: `records_appended`, `records_read`, `offsets_moved`, `log_truncated`.
    The cluster: `topic_changed`, `group_changed`, `quota_changed`, `broker_changed`, `noted`, `cleared`.

    Times are in milliseconds of the cluster's clock. An `exchange` is a request on its way (`requests.exchange.Exchange`), a `peer` its
    connection. Methods run inside the broker's loop: they must not wait, change the cluster or keep a frame. One that raises is logged, and
    nothing else comes of it.
    """

    wants_records_apart = False
    """True: records of fetch responses come as splices of `response_ready`, small ones too."""
    is_guarded = True
    """False: for observers of the broker's own that are called with every request and never raise. The guard costs them one call more."""

    def connection_opened(self, broker_id: int, connection: Any, now_ms: int) -> None:
        """A client was accepted at a listener."""

    def connection_closed(self, broker_id: int, connection: Any, why: str, now_ms: int) -> None:
        """A connection is closed from either side."""

    def bytes_received(self, connection: Any) -> None:
        """Bytes of a client lie in the buffer of its connection; no frame has been taken out of them."""

    def request_refused(self, broker_id: int, peer: Any, frame: memoryview, why: str, now_ms: int) -> None:
        """A request gets no response: its connection is about to be closed."""

    def request_begun(
        self, exchange: Any, api: Any, frame: memoryview, body_at: int, body_end: int, request: Any
    ) -> None:
        """A request was decoded and its handler is about to run.

        frame: valid during the call only; the body lies in `body_at` to `body_end`. api, request: None if the version is not offered and the
        request is answered all the same (KIP-511).
        """

    def request_parked(self, exchange: Any) -> None:
        """The handler waits for others."""

    def request_completed(self, exchange: Any) -> None:
        """The wait of a parked request is over: its response is about to be built."""

    def throttled(self, exchange: Any, throttle_ms: int, reason: Any, held: bool) -> None:
        """A client must wait. held: the response itself is held back, and the connection not muted (releases before 2.0)."""

    def throttle_ended(self, connection_id: int, now_ms: int) -> None:
        """The connection is read again, its held response goes out, or it is closed."""

    def response_ready(
        self,
        exchange: Any,
        out: bytearray,
        splices: Sequence[tuple[int, Any]],
        size_bytes: int,
        throttle_ms: int,
        held: bool,
    ) -> None:
        """A response is encoded and about to be sent. out: the frame with its length, without the records that `splices` put into it."""

    def request_unanswered(self, exchange: Any, throttle_ms: int, closes: bool, held: bool) -> None:
        """A produce with acks=0 is done; no bytes go back. closes: it failed, and its connection is closed (P-14)."""

    def response_sent(self, exchange: Any) -> None:
        """The whole response is with the kernel, or there was none to send."""

    def response_lost(self, exchange: Any, now_ms: int) -> None:
        """The connection closed before the response was sent, or built."""

    def records_appended(self, exchange: Any, topic: str, index: int, end_offset: int) -> None:
        """A client's records were appended; the last has offset `end_offset` - 1."""

    def records_read(self, exchange: Any, fetches: Sequence[Any], results: Sequence[Any], delivered: bool) -> None:
        """A consumer's fetch is answered. delivered: with its records; else it is throttled and comes back for them."""

    def log_truncated(
        self, broker_id: int, topic: str, index: int, what: str, before: int, after: int, now_ms: int
    ) -> None:
        """Records of a replica are gone otherwise than by compaction, or can no longer be counted on.

        what: "start" (the log start moved up), "end" (the log end moved down), "watermark" (the high watermark moved down) or "restart"
        (the log is empty and begins at `after`). before, after: the offset that moved.
        """

    def offsets_moved(self, broker_id: int, topic: str, index: int, log: Any, now_ms: int) -> None:
        """The high watermark or the log start of a replica is another one. log: its `ReplicaLog`, which has the new offsets."""

    def topic_changed(self, before: Any, after: Any, now_ms: int) -> None:
        """The cluster's image of a topic changed; `before` or `after` is None if it did not exist or does not any more."""

    def broker_changed(self, broker_id: int, running: bool, now_ms: int) -> None:
        """A broker stopped, or started again. The first start of all brokers is not reported."""

    def group_changed(self, group_id: str, state: str, members: Sequence[str], generation_id: int, now_ms: int) -> None:
        """A group moved to another state: one of Kafka's names, such as "Stable". members: the ids of those who are members now."""

    def quota_changed(self, entity: Any, key: str, value: float | None, now_ms: int) -> None:
        """A client quota changed; None: it was removed."""

    def noted(self, now_ms: int, broker_id: int, kind: str, facts: Mapping[str, Any]) -> None:
        """Anything else worth an entry in the journal: `kind` is a short name (parked, isr, leader, broker, recovery)."""

    def cleared(self, now_ms: int) -> None:
        """The cluster was reset (`Cluster.reset`): forget what was before."""


EVENTS = tuple(name for name, value in vars(Observer).items() if callable(value) and not name.startswith("_"))


class Events:
    """The attached observers, event by event.

    Each attribute named like a method of `Observer` is None if no observer overrides that method, else a callable that calls those that do,
    in the order in which they were attached. Raise an event with

        if events.throttled is not None:
            events.throttled(exchange, throttle_ms, reason, False)

    so that an event without a subscriber costs one attribute test.
    """

    __slots__ = (*EVENTS, "observers", "wants_records_apart")

    broker_changed: Callable[[int, bool, int], None] | None
    bytes_received: Callable[[Any], None] | None
    cleared: Callable[[int], None] | None
    connection_closed: Callable[[int, Any, str, int], None] | None
    connection_opened: Callable[[int, Any, int], None] | None
    group_changed: Callable[[str, str, Sequence[str], int, int], None] | None
    log_truncated: Callable[[int, str, int, str, int, int, int], None] | None
    noted: Callable[[int, int, str, Mapping[str, Any]], None] | None
    offsets_moved: Callable[[int, str, int, Any, int], None] | None
    quota_changed: Callable[[Any, str, float | None, int], None] | None
    records_appended: Callable[[Any, str, int, int], None] | None
    records_read: Callable[[Any, Sequence[Any], Sequence[Any], bool], None] | None
    request_begun: Callable[[Any, Any, memoryview, int, int, Any], None] | None
    request_completed: Callable[[Any], None] | None
    request_parked: Callable[[Any], None] | None
    request_refused: Callable[[int, Any, memoryview, str, int], None] | None
    request_unanswered: Callable[[Any, int, bool, bool], None] | None
    response_lost: Callable[[Any, int], None] | None
    response_ready: Callable[[Any, bytearray, Sequence[tuple[int, Any]], int, int, bool], None] | None
    response_sent: Callable[[Any], None] | None
    throttle_ended: Callable[[int, int], None] | None
    throttled: Callable[[Any, int, Any, bool], None] | None
    topic_changed: Callable[[Any, Any, int], None] | None

    def __init__(self) -> None:
        self.observers: tuple[Observer, ...] = ()
        """In the order in which they were attached."""
        self.wants_records_apart = False
        self._subscribe()

    def attach(self, observer: Observer) -> None:
        """Call `observer` from now on, after those attached before. Raises ValueError if it is attached already."""
        if any(attached is observer for attached in self.observers):
            raise ValueError(f"{observer!r} is attached already; detach it first")
        self.observers = (*self.observers, observer)
        self._subscribe()

    def detach(self, observer: Observer) -> None:
        """Stop calling `observer`. Does nothing if it is not attached."""
        self.observers = tuple(attached for attached in self.observers if attached is not observer)
        self._subscribe()

    def _subscribe(self) -> None:
        for name in EVENTS:
            methods = [_method(observer, name) for observer in self.observers if _overrides(observer, name)]
            setattr(self, name, _all(methods))
        self.wants_records_apart = any(observer.wants_records_apart for observer in self.observers)


def _overrides(observer: Observer, name: str) -> bool:
    """Return whether the observer has its own form of the method, by its class or as an attribute."""
    return getattr(getattr(observer, name), "__func__", None) is not getattr(Observer, name)


def _method(observer: Observer, name: str) -> Callable[..., None]:
    """Return the method that an event calls. What it raises is logged, unless the observer is not guarded."""
    method: Callable[..., None] = getattr(observer, name)
    if not observer.is_guarded:
        return method

    def guarded(*arguments: Any) -> None:
        try:
            method(*arguments)
        except Exception:
            logger.exception("observer %s failed in %s; the broker goes on", type(observer).__qualname__, name)

    return guarded


def _all(methods: Sequence[Callable[..., None]]) -> Callable[..., None] | None:
    """Return what calls all of them: None for none, the method itself for one."""
    if len(methods) < 2:
        return methods[0] if methods else None
    several = tuple(methods)

    def call(*arguments: Any) -> None:
        for method in several:
            method(*arguments)

    return call
