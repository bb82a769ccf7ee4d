"""What a broker records of its traffic: every exchange without its records, every event of the journal, every connection, and where each
high watermark moves to.

A recorder is there only while somebody wants a trace; without one a request pays for one look at an attribute. It hands entries to a
sink, which must not wait. Must never know threads or files, nor what a message means beyond where its records are.
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
from kafkaproto.trace.frames import cut_produce, cut_unhandled

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
"""The broker of events that no broker has for itself."""


_ANSWERED_AND_HELD = ANSWERED | HELD
_NO_ANSWER = bytes(LENGTH_BYTES)


class Recorder(Observer):
    """sink: takes entries as the file has them, in one piece, and how many they are. They are packed on the loop: a thread that did it would
    take the interpreter from the loop for longer, and hold more.

    together: how many entries wait until all are packed, one after the other, which takes half the time that it would between two requests.
    `flush` is for who cannot wait for more of them.
    """

    wants_records_apart = True
    is_guarded = False

    def __init__(self, sink: Callable[[bytes, int], None], together: int = 1) -> None:
        self._entries = Entries(sink, together)
        self._moves = MovesByLog()
        self._seq = itertools.count(1)

    def flush(self) -> None:
        """Hand over what waits."""
        self._entries.flush()

    def end(self) -> None:
        """Nothing more is recorded, ever: what is in progress belongs to nobody's trace, as its answer would be made by other rules."""
        self._entries.end()

    @property
    def ended(self) -> bool:
        """Whether `end` was called."""
        return self._entries.ended

    def bytes_received(self, connection: Connection) -> None:
        connection.received_ns = monotonic_ns()

    def request_begun(
        self, exchange: Exchange, api: Codec | None, frame: memoryview, body_at: int, body_end: int, request: Any
    ) -> None:
        handled_ns = monotonic_ns()
        exchange.recording = traced = Traced()
        if api is None:
            traced.kept = cut_unhandled(frame)
        elif api.key == _PRODUCE:
            traced.kept = cut_produce(api, frame, body_at, body_end, request)
        else:
            traced.kept = bytes(frame), ()
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
            traced.out = _NO_ANSWER
            traced.splices = ()

    def request_refused(self, broker_id: int, peer: Peer, frame: memoryview, why: str, now_ms: int) -> None:
        seq, now_ns = next(self._seq), monotonic_ns()
        kept, records = cut_unhandled(frame)
        self._trouble(now_ms, broker_id, peer, seq, why)
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
                    request=kept,
                    response=b"",
                    request_records=records,
                    response_records=(),
                    handled_ms=now_ms,
                    wait_ns=0,
                )
            )
        )

    def response_sent(self, exchange: Exchange) -> None:
        # While the client reads the response there is time to record it.
        if exchange.recording is not None:
            self._done(exchange.recording, monotonic_ns())

    def response_lost(self, exchange: Exchange, now_ms: int) -> None:
        traced = exchange.recording
        if traced is None or traced.recorder is not self:
            return
        if not traced.ready_ns:
            self.request_completed(exchange)
            self.request_unanswered(exchange, 0, False, False)
            exchange.now_ms = now_ms
            if not traced.is_silent:
                self._trouble(now_ms, exchange.node.broker_id, exchange.peer, traced.seq, UNANSWERED)
        self._done(traced, 0)

    def _done(self, traced: Traced, sent_ns: int) -> None:
        """Keep a finished exchange. sent_ns: 0 if the response was not sent."""
        if traced.recorder is not self:
            return  # it began under another recorder, which has ended
        traced.sent_ns = sent_ns
        if traced.splices:  # of records in files, which may go
            self._entries.keep_packed(packed_with_records(traced))
        else:
            self._entries.keep(traced, len(traced.kept[0]) + len(traced.out))

    def _trouble(self, at_ms: int, broker_id: int, peer: Peer, seq: int, why: str) -> None:
        """What is wrong with an exchange is told in front of it."""
        self.noted(at_ms, broker_id, "trouble", {"connection": peer.connection_id, "of": seq, "why": why})

    def begin(self, replicas: Iterable[Sequence[Partition]], now_ms: int) -> None:
        """Record where the replicas of each broker stand, if they have anything: a trace begins in the middle of their history."""
        self._moves.clear()
        for partitions in replicas:
            standing = [partition for partition in partitions if partition.log.log_end_offset]
            if standing:
                at = next(self._seq), standing[0].broker_id, now_ms, monotonic_ns()
                self._entries.keep_packed(encoded(State(*at, tuple(map(_positions, standing)))))
            for partition in standing:
                self._moves.add(partition.log, partition.topic, partition.index, 0)

    def offsets_moved(self, broker_id: int, topic: str, index: int, log: ReplicaLog, now_ms: int) -> None:
        # A move is recorded before the responses that it lets go.
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
        """Record an event; the journal describes kinds and facts."""
        told = {"seq": next(self._seq), "clock_ms": now_ms, "at_ns": monotonic_ns(), "broker": broker_id, **facts}
        self._entries.keep_packed(encoded(Event(kind, told)))

    def topic(self, at_ms: int, state: str, topic: Topic) -> None:
        """state: there (when the trace begins), created, changed, deleted."""
        partitions = [
            {"leader": p.leader, "leader_epoch": p.leader_epoch, "isr": list(p.isr)} for p in topic.partitions
        ]
        told = {"topic": topic.name, "topic_id": topic.topic_id.hex(), "configs": dict(topic.configs)}
        self.noted(at_ms, IN_THE_CLUSTER, "topic", {"state": state, **told, "partitions": partitions})

    def connection_opened(self, broker_id: int, connection: Peer, now_ms: int) -> None:
        facts = {"connection": connection.connection_id, "listener": connection.listener_name}
        facts |= {"peer": connection.client_address, "principal": connection.principal}
        self.noted(now_ms, broker_id, "opened", facts)

    def connection_closed(self, broker_id: int, connection: Peer, why: str, now_ms: int) -> None:
        self.noted(now_ms, broker_id, "closed", {"connection": connection.connection_id, "why": why})

    def topic_changed(self, before: Topic | None, after: Topic | None, now_ms: int) -> None:
        # Changes of leaders and in-sync replicas are events of their own.
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
        of = traced.seq if traced is not None and traced.recorder is self else None
        facts: dict[str, Any] = {"of": of, "connection": exchange.peer.connection_id}
        facts |= {name: getattr(reason, name) for name in _REASON if hasattr(reason, name)}
        facts["throttle_ms"] = throttle_ms
        facts["entity"] = str(getattr(reason, "entity", ""))
        self.noted(exchange.now_ms, exchange.node.broker_id, "throttle", facts)


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
