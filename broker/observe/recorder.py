"""Recorder of a cluster's traffic: requests and responses without their records, connections, offset changes and events such as elections.

A recorder exists only while traffic is recorded. Without a recorder, each request costs only one attribute check. The recorder passes entries to a
function (the sink), which must not block. This module does not depend on threads or files, nor on the meaning of messages except for their records.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kafkaproto.api import ApiKey, Codec
from kafkaproto.broker.observe.packing import Entries, MovesByLog, Traced, packed_with_records
from kafkaproto.broker.runtime.clock import monotonic_ns
from kafkaproto.broker.runtime.events import Observer
from kafkaproto.frame import LENGTH_BYTES
from kafkaproto.trace.format import ANSWERED, BEGINS, CLOSES, HELD, UNANSWERED, Event, Positions, State, encoded
from kafkaproto.trace.format import Exchange as Recorded
from kafkaproto.trace.frames import SECRET, cut_produce, cut_request, cut_unhandled

if TYPE_CHECKING:
    from kafkaproto.broker.log.replica_log import ReplicaLog
    from kafkaproto.broker.metadata.image import Topic
    from kafkaproto.broker.network.connection import Connection
    from kafkaproto.broker.quota.entities import QuotaEntity
    from kafkaproto.broker.replication.partition import Partition
    from kafkaproto.broker.requests.exchange import Exchange, Peer

logger = logging.getLogger("kafkaproto.trace")

_PRODUCE = int(ApiKey.PRODUCE)
IN_THE_CLUSTER = -1
"""The broker id of events that concern the whole cluster."""


_ANSWERED_AND_HELD = ANSWERED | HELD
_NO_RESPONSE = bytes(LENGTH_BYTES)


class Recorder(Observer):
    """Records traffic as trace entries.

    sink: a function called with encoded entries, joined into one byte string, and their number. Entries are encoded on the event loop: a separate
    thread would hold Python's interpreter lock, block the event loop for longer, and use more memory.

    together: the number of entries that are collected and then encoded in one go. This takes half the time of encoding each entry separately. `flush`
    encodes the collected entries at once.
    """

    wants_records_apart = True
    is_guarded = False

    def __init__(self, sink: Callable[[bytes, int], None], together: int = 1) -> None:
        self._entries = Entries(sink, together)
        self._moves = MovesByLog()
        self._seq = itertools.count(1)

    def flush(self) -> None:
        """Encode the collected trace entries, and call the function `sink` with them."""
        self._entries.flush()

    def end(self) -> None:
        """Encode the collected trace entries, call the function `sink` with them, and stop for good.

        Requests in progress are not recorded, because their responses will be encoded after this recorder has ended.
        """
        self._entries.end()

    @property
    def ended(self) -> bool:
        """Return whether this recorder has ended, so that it records nothing more."""
        return self._entries.ended

    def bytes_received(self, connection: Connection) -> None:
        connection.received_ns = monotonic_ns()

    def request_begun(
        self, exchange: Exchange, api: Codec | None, frame: memoryview, body_at: int, body_end: int, request: Any
    ) -> None:
        handled_ns = monotonic_ns()
        exchange.recording = traced = Traced()
        if api is None:
            traced.kept_frame = cut_unhandled(frame)
        elif api.key in SECRET:
            traced.kept_frame = cut_request(frame)[1].frame, ()
        elif api.key == _PRODUCE:
            traced.kept_frame = cut_produce(api, frame, body_at, body_end, request)
        else:
            traced.kept_frame = bytes(frame), ()
        traced.exchange = exchange
        traced.recorder = self
        traced.seq = next(self._seq)
        traced.received_ns = exchange.peer.received_ns or handled_ns
        traced.handled_ns = handled_ns
        traced.handled_ms = exchange.now_ms
        traced.wait_ns = traced.ready_ns = 0

    def request_parked(self, exchange: Exchange) -> None:
        if exchange.recording is not None:
            exchange.recording.wait_ns = -monotonic_ns()

    def request_completed(self, exchange: Exchange) -> None:
        traced = exchange.recording
        if traced is not None and traced.wait_ns < 0:
            traced.wait_ns += monotonic_ns()

    def response_ready(
        self,
        exchange: Exchange,
        out: bytearray,
        splices: Sequence[tuple[int, Any]],
        size_bytes: int,
        throttle_ms: int,
        held: bool,
    ) -> None:
        traced = exchange.recording
        if traced is not None:
            traced.ready_ns = monotonic_ns()
            traced.throttle_ms = throttle_ms
            traced.flags = _ANSWERED_AND_HELD if held else ANSWERED
            traced.out = out
            traced.splices = splices

    def request_unanswered(self, exchange: Exchange, throttle_ms: int, closes: bool, held: bool) -> None:
        traced = exchange.recording
        if traced is not None:
            traced.ready_ns = monotonic_ns()
            traced.throttle_ms = throttle_ms
            traced.flags = (CLOSES if closes else 0) | (HELD if held else 0)
            traced.out = _NO_RESPONSE
            traced.splices = ()

    def request_refused(self, broker_id: int, peer: Peer, frame: memoryview, why: str, now_ms: int) -> None:
        seq, now_ns = next(self._seq), monotonic_ns()
        stored_frame, records = cut_unhandled(frame)
        _note_problem(self, now_ms, broker_id, peer, seq, why)
        self._entries.keep_packed(
            encoded(
                Recorded(
                    seq=seq,
                    broker=broker_id,
                    connection=peer.connection_id,
                    clock_ms=now_ms,
                    received_ns=peer.received_ns or now_ns,
                    handled_ns=now_ns,
                    ready_ns=now_ns,
                    sent_ns=0,
                    throttle_ms=0,
                    answered=False,
                    held=False,
                    closes=True,
                    request_bytes=len(frame),
                    response_bytes=0,
                    request=stored_frame,
                    response=b"",
                    request_records=records,
                    response_records=(),
                    handled_ms=now_ms,
                    wait_ns=0,
                )
            )
        )

    def response_sent(self, exchange: Exchange) -> None:
        # Record after sending, while the client reads the response.
        if exchange.recording is not None:
            self._add_finished(exchange.recording, monotonic_ns())

    def response_lost(self, exchange: Exchange, now_ms: int) -> None:
        traced = exchange.recording
        if traced is None or traced.recorder is not self:
            return
        if not traced.ready_ns:
            self.request_completed(exchange)
            self.request_unanswered(exchange, 0, False, False)
            exchange.now_ms = now_ms
            if not traced.is_silent:
                _note_problem(self, now_ms, exchange.node.broker_id, exchange.peer, traced.seq, UNANSWERED)
        self._add_finished(traced, 0)

    def _add_finished(self, traced: Traced, sent_ns: int) -> None:
        """Add a finished request and its response to the trace.

        sent_ns: the time in ns of the monotonic clock at which the response was sent; 0 if it was not sent.
        """
        if traced.recorder is not self:
            return  # the request began under another recorder, which has ended
        traced.sent_ns = sent_ns
        if traced.splices:  # read the headers now, because the files may be deleted
            self._entries.keep_packed(packed_with_records(traced))
        else:
            self._entries.keep(traced, len(traced.kept_frame[0]) + len(traced.out))

    def begin(self, replicas: Iterable[Sequence[Partition]], now_ms: int) -> None:
        """Record the current offsets of all non-empty replicas, because a trace may start in the middle of their history.

        replicas: for each broker, the replicas on it.
        """
        self._moves.clear()
        for partitions in replicas:
            with_records = [partition for partition in partitions if partition.log.log_end_offset]
            if with_records:
                at = next(self._seq), with_records[0].broker_id, now_ms, monotonic_ns()
                self._entries.keep_packed(encoded(State(*at, tuple(map(_positions, with_records)))))
            for partition in with_records:
                self._moves.add(partition.log, partition.topic, partition.index, 0)

    def offsets_moved(self, broker_id: int, topic: str, index: int, log: ReplicaLog, now_ms: int) -> None:
        # An offset change is recorded before the responses that it completes.
        moves = self._moves.of(log) or self._moves.add(log, topic, index, BEGINS)
        pack, head, place, name = moves.packing
        self._entries.keep_move(
            (
                pack,
                (
                    head,
                    next(self._seq),
                    broker_id,
                    now_ms,
                    monotonic_ns(),
                    place,
                    moves.flags,
                    log.high_watermark,
                    log.last_stable_offset,
                    log.log_start_offset,
                    log.log_end_offset,
                    name,
                ),
            )
        )
        moves.flags = 0

    def noted(self, now_ms: int, broker_id: int, kind: str, facts: Mapping[str, Any]) -> None:
        """Record an event of the cluster. kind: the name of the event, such as "leader" for a new leader. facts: its details by name."""
        all_facts = {"seq": next(self._seq), "clock_ms": now_ms, "at_ns": monotonic_ns(), "broker": broker_id, **facts}
        self._entries.keep_packed(encoded(Event(kind, all_facts)))

    def topic(self, at_ms: int, state: str, topic: Topic) -> None:
        """Record the state of a topic. state: "existing" (at the start of the trace), "created", "changed" or "deleted".

        at_ms: the time in ms of the cluster's clock.
        """
        partitions = [
            {"leader": p.leader, "leader_epoch": p.leader_epoch, "isr": list(p.isr)} for p in topic.partitions
        ]
        about = {"topic": topic.name, "topic_id": topic.topic_id.hex(), "configs": dict(topic.configs)}
        self.noted(at_ms, IN_THE_CLUSTER, "topic", {"state": state, **about, "partitions": partitions})

    def connection_opened(self, broker_id: int, connection: Peer, now_ms: int) -> None:
        facts = {"connection": connection.connection_id, "listener": connection.listener_name}
        facts |= {"peer": connection.client_address, "principal": connection.principal}
        self.noted(now_ms, broker_id, "opened", facts)

    def connection_closed(self, broker_id: int, connection: Peer, why: str, now_ms: int) -> None:
        self.noted(now_ms, broker_id, "closed", {"connection": connection.connection_id, "why": why})

    def topic_changed(self, before: Topic | None, after: Topic | None, now_ms: int) -> None:
        # Changes of leaders and in-sync replicas are separate events.
        same = before is not None and after is not None and before.topic_id == after.topic_id
        if before is not None and not same:
            self.topic(now_ms, "deleted", before)
        if after is not None and not (same and _looks_same(before, after)):
            self.topic(now_ms, "changed" if same else "created", after)

    def log_truncated(
        self, broker_id: int, topic: str, index: int, what: str, before: int, after: int, now_ms: int
    ) -> None:
        facts = {"topic": topic, "partition": index, "what": what, "before": before, "after": after}
        self.noted(now_ms, broker_id, "log", facts)

    def quota_changed(self, entity: QuotaEntity, key: str, value: float | None, now_ms: int) -> None:
        self.noted(now_ms, IN_THE_CLUSTER, "quota", {"entity": str(entity), "quota": key, "value": value})

    def throttled(self, exchange: Exchange, throttle_ms: int, reason: Any, held: bool) -> None:
        traced = exchange.recording
        request_seq = traced.seq if traced is not None and traced.recorder is self else None
        facts: dict[str, Any] = {"of": request_seq, "connection": exchange.peer.connection_id}
        facts |= {name: getattr(reason, name) for name in _REASON if hasattr(reason, name)}
        facts["throttle_ms"] = throttle_ms
        facts["entity"] = str(getattr(reason, "entity", ""))
        self.noted(exchange.now_ms, exchange.node.broker_id, "throttle", facts)


def _note_problem(recorder: Recorder, at_ms: int, broker_id: int, peer: Peer, seq: int, why: str) -> None:
    """Record an event of kind "problem" about a request, before the trace entry of the request itself.

    at_ms: the time in ms of the cluster's clock. peer: the connection of the request. seq: the sequence number of the request's entry. why: the
    problem as text.
    """
    recorder.noted(at_ms, broker_id, "problem", {"connection": peer.connection_id, "of": seq, "why": why})


def _positions(partition: Partition) -> Positions:
    log = partition.log
    return Positions(
        partition.topic,
        partition.index,
        True,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        log.log_end_offset,
    )


def _looks_same(before: Topic | None, after: Topic) -> bool:
    return before is not None and before.configs == after.configs and len(before.partitions) == len(after.partitions)


_REASON = ("quota", "user", "client_id", "bound", "value", "rate", "window_ms", "samples", "rule_id")
