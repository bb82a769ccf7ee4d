"""The events that a cluster reports to observers. Observers return nothing.

The packages of the broker raise events and do not depend on observers. Observers (`broker/observe/`) override the methods they need. This
module imports no other module of the broker, so that every package may raise events.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

logger = logging.getLogger("kafkaproto.events")

CLIENT_ENDED, SOCKET_GONE = "client closed its side", "connection lost"
"""The two texts with which the argument `why` of the event `connection_closed` begins if the client, not the broker, closed the connection."""
UNDELIVERABLE = "undeliverable"
"""The `kind` that `Observer.noted` gets for a throttled fetch whose batch is so large that the client's quota never allows it (Q-14)."""


class Observer:
    """Receives the events of a cluster; the methods of this class do nothing. Subclass it, override methods, attach it with `Events.attach`.

    Connections: `connection_opened`, `bytes_received`, `connection_closed`.
    Requests: `request_refused`, `request_begun`, `feature_requested`, `request_parked`, `request_completed`, `response_built`, `response_ready`,
    `request_unanswered`, `response_sent`, `response_lost`; throttles of requests: `throttled` and `throttle_ended`.
    Records: `records_appended`, `records_read`, `offsets_moved`, `log_truncated`.
    The cluster: `topic_changed`, `group_changed`, `transaction_changed`, `quota_changed`, `broker_changed`, `telemetry_pushed`, `noted`,
    `cleared`.

    Times are in milliseconds of the cluster's clock. An `exchange` is a request in progress (`requests.exchange.Exchange`), a `peer` its connection.
    Methods run inside the broker's loop: they must not wait, change the cluster or use a `frame` after the call. An exception in a method is logged
    and has no other effect.
    """

    wants_records_apart = False
    """Whether the method `response_ready` of this observer must get all fetched records in its argument `splices`.

    If False, small records may be in its argument `out` instead.
    """
    is_guarded = True
    """Whether exceptions of this observer are caught and logged, which costs one more function call per event.

    It is False only for observers that are part of the broker, handle events of every request, and never raise an exception.
    """

    def connection_opened(self, broker_id: int, connection: Any, now_ms: int) -> None:
        """Handle the event that a listener accepted a client. connection: the client's new connection (`requests.exchange.Peer`)."""

    def connection_closed(self, broker_id: int, connection: Any, why: str, now_ms: int) -> None:
        """Handle the event that the client or the broker closed a connection. why: the reason as text."""

    def bytes_received(self, connection: Any) -> None:
        """Handle the event that bytes from a client are in the buffer of its connection. The bytes have not been split into frames yet."""

    def request_refused(self, broker_id: int, peer: Any, frame: memoryview, why: str, now_ms: int) -> None:
        """Handle the event that a request gets no response and its connection is about to be closed.

        peer: the client's connection. frame: header and body of the request, valid during the call only. why: the reason as text.
        """

    def request_begun(
        self, exchange: Any, api: Any, frame: memoryview, body_at: int, body_end: int, request: Any
    ) -> None:
        """Handle the event that a request was decoded and its handler is about to run.

        frame: valid during the call only; the request body is `frame[body_at:body_end]`. api: the codec of the API and version
        (`kafkaproto.api.Codec`). request: the decoded message. `api` and `request` are None if the version is unsupported but the broker responds
        (KIP-511).
        """

    def feature_requested(self, exchange: Any, feature: str, names: Sequence[str]) -> None:
        """Handle the event that a request shows which feature of Kafka a client uses.

        feature: "consumer protocol" if the request needs KIP-848 and the broker does not support it, "group" for a search for a group's
        coordinator, or "SASL" for a SaslHandshake request. names: the group ids in the request, or the SASL mechanism.
        """

    def request_parked(self, exchange: Any) -> None:
        """Handle the event that a request was parked in purgatory: its response waits, for example for records, replicas or group members."""

    def request_completed(self, exchange: Any) -> None:
        """Handle the event that a parked request has finished waiting, and its response is about to be built.

        Requests that never waited do not cause this event.
        """

    def throttled(self, exchange: Any, throttle_ms: int, reason: Any, held: bool) -> None:
        """Handle the event that a client is throttled for `throttle_ms`.

        reason: the exceeded quota (`quota.sensors.ThrottleReason`), or the rule that forced the throttle (`quota.forced.ForcedThrottle`). held: True
        if the broker holds the response back for that time (releases before 2.0), False if it mutes the connection.
        """

    def throttle_ended(self, connection_id: int, now_ms: int) -> None:
        """Handle the event that a throttle is over, because the throttle time has passed or the connection closed.

        After the throttle time, the broker reads from the connection again, or sends the response that it held back (releases before 2.0).
        """

    def response_built(self, exchange: Any, message: Any) -> None:
        """Handle the event that a response message is complete and has been, or is about to be, encoded. `response_ready` follows.

        message: the response, with its records. The event for a Fetch may come before the message is encoded, because encoding can remove the
        records from the message. From release 2.0 on, the topics of the response to a throttled fetch are removed after this event.
        """

    def response_ready(
        self,
        exchange: Any,
        out: bytearray,
        splices: Sequence[tuple[int, Any]],
        size_bytes: int,
        throttle_ms: int,
        held: bool,
    ) -> None:
        """Handle the event that a response is encoded and about to be sent.

        out: the frame, including its length prefix, without the bytes in `splices`. splices: (position in `out`, records to insert there).
        size_bytes: the size of the whole frame without its length prefix. held: whether the broker kept the response back for `throttle_ms` (releases
        before 2.0), instead of sending it at once and muting the connection (later releases). exchange: the request and its state.
        """

    def request_unanswered(self, exchange: Any, throttle_ms: int, closes: bool, held: bool) -> None:
        """Handle the event that a produce request with acks=0 is complete and gets no response.

        closes: whether the request failed, so that the broker closes its connection (P-14). held: True if the broker has delayed this event by
        `throttle_ms` (releases before 2.0), False if it reads no further request of the connection for `throttle_ms` after this event.
        """

    def response_sent(self, exchange: Any) -> None:
        """Handle the event that the whole response was passed to the kernel, or that the request has no response."""

    def response_lost(self, exchange: Any, now_ms: int) -> None:
        """Handle the event that a connection closed before the whole response to its request was sent, or even before the response was built."""

    def records_appended(self, exchange: Any, topic: str, index: int, end_offset: int) -> None:
        """Handle the event that a client's records were appended to a partition.

        exchange: the produce request. index: the partition's number in `topic`. end_offset: the offset after the last of these records.
        """

    def records_read(self, exchange: Any, fetches: Sequence[Any], results: Sequence[Any], delivered: bool) -> None:
        """Handle the event that the broker responds to a consumer's fetch.

        fetches, results: one `PartitionFetch` and one `PartitionRead` for each partition. delivered: True if the response has the records,
        False if it is throttled and therefore empty.
        """

    def log_truncated(
        self, broker_id: int, topic: str, index: int, what: str, before: int, after: int, now_ms: int
    ) -> None:
        """Handle the event that a replica lost records other than by compaction, or that its high watermark moved down.

        index: the partition's number in `topic`. what: "start" (the log start offset moved up), "end" (the log end offset moved down),
        "watermark" (the high watermark moved down) or "restart" (the log is empty and begins at `after`). before, after: the offset
        before and after the change.
        """

    def offsets_moved(self, broker_id: int, topic: str, index: int, log: Any, now_ms: int) -> None:
        """Handle the event that the high watermark or the log start offset of a replica changed. log: the `ReplicaLog`, with the new offsets."""

    def topic_changed(self, before: Any, after: Any, now_ms: int) -> None:
        """Handle the event that a topic was created, changed or deleted in the cluster's metadata.

        before, after: the topic before and after the change (`metadata.image.Topic`); `before` is None for a new topic, `after` for a deleted one.
        """

    def broker_changed(self, broker_id: int, running: bool, now_ms: int) -> None:
        """Handle the event that a broker stopped (`running` is False) or started again. The first start of a cluster is not reported."""

    def group_changed(self, broker_id: int, change: Any, now_ms: int) -> None:
        """Handle the event that a group of either protocol has another state, generation, epoch or member, or was loaded or deleted.

        broker_id: the coordinator of the group. change: the group before and after, and what caused the change (`group.causes.GroupChange`).
        """

    def transaction_changed(self, broker_id: int, change: Any, now_ms: int) -> None:
        """Handle the event that the stored state of a transactional id, such as its epoch or partitions, changed, or that the id was loaded.

        broker_id: the transaction coordinator. change: the change (`transaction.changes.TransactionChange`).
        """

    def telemetry_pushed(self, broker_id: int, push: Any, now_ms: int) -> None:
        """Handle the event that a broker accepted the metrics of a client. push: the metrics (`telemetry.instances.TelemetryPush`)."""

    def quota_changed(self, entity: Any, key: str, value: float | None, now_ms: int) -> None:
        """Handle the event that a client quota was set or removed.

        entity: the clients that the quota is for (`quota.entities.QuotaEntity`). key: the quota, such as producer_byte_rate. value: its new limit;
        None if it was removed.
        """

    def noted(self, now_ms: int, broker_id: int, kind: str, facts: Mapping[str, Any]) -> None:
        """Handle an event that has no method of its own in this class. Tests can read such events in the cluster's journal.

        kind: a short name of the event, such as parked, isr, leader, broker or recovery. facts: the details of the event by name.
        """

    def cleared(self, now_ms: int) -> None:
        """Handle the event that the cluster was reset (`Cluster.reset`): drop everything collected so far."""


EVENTS = tuple(name for name, value in vars(Observer).items() if callable(value) and not name.startswith("_"))


class Events:
    """The attached observers, by event.

    Each attribute is named like a method of `Observer`. It is None if no observer overrides that method, otherwise a callable that calls the
    overriding observers in the order in which they were attached. Raise an event with

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
    feature_requested: Callable[[Any, str, Sequence[str]], None] | None
    group_changed: Callable[[int, Any, int], None] | None
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
    response_built: Callable[[Any, Any], None] | None
    response_lost: Callable[[Any, int], None] | None
    response_ready: Callable[[Any, bytearray, Sequence[tuple[int, Any]], int, int, bool], None] | None
    response_sent: Callable[[Any], None] | None
    telemetry_pushed: Callable[[int, Any, int], None] | None
    throttle_ended: Callable[[int, int], None] | None
    throttled: Callable[[Any, int, Any, bool], None] | None
    transaction_changed: Callable[[int, Any, int], None] | None
    topic_changed: Callable[[Any, Any, int], None] | None

    def __init__(self) -> None:
        self.observers: tuple[Observer, ...] = ()
        """The attached observers, in the order in which they were attached."""
        self.wants_records_apart = False
        self._subscribe()

    def attach(self, observer: Observer) -> None:
        """Report all further events to `observer`, after the observers attached before. Raises ValueError if it is attached already."""
        if any(attached is observer for attached in self.observers):
            raise ValueError(f"{observer!r} is already attached to this cluster; detach it first")
        self.observers = (*self.observers, observer)
        self._subscribe()

    def detach(self, observer: Observer) -> None:
        """Stop reporting events to `observer`. Does nothing if it is not attached."""
        self.observers = tuple(attached for attached in self.observers if attached is not observer)
        self._subscribe()

    def _subscribe(self) -> None:
        for name in EVENTS:
            methods = [_method(observer, name) for observer in self.observers if _overrides(observer, name)]
            setattr(self, name, _all(methods))
        self.wants_records_apart = any(observer.wants_records_apart for observer in self.observers)


def _overrides(observer: Observer, name: str) -> bool:
    """Return whether the observer overrides the method `name`, in its class or as an attribute."""
    return getattr(getattr(observer, name), "__func__", None) is not getattr(Observer, name)


def _method(observer: Observer, name: str) -> Callable[..., None]:
    """Return the observer's method for the event `name`. For a guarded observer, the method is wrapped: exceptions are logged, not raised."""
    method: Callable[..., None] = getattr(observer, name)
    if not observer.is_guarded:
        return method

    def guarded(*arguments: Any) -> None:
        try:
            method(*arguments)
        except Exception:
            logger.exception(
                "observer %s raised an exception in its method %s; fix the observer; the broker continues",
                type(observer).__qualname__,
                name,
            )

    return guarded


def _all(methods: Sequence[Callable[..., None]]) -> Callable[..., None] | None:
    """Return one callable that calls all methods. Returns None for no methods, and the method itself for a single one."""
    if len(methods) < 2:
        return methods[0] if methods else None
    several = tuple(methods)

    def call(*arguments: Any) -> None:
        for method in several:
            method(*arguments)

    return call
