"""What a broker records of its traffic: every exchange without its records, every event of the journal, every connection, and where each
high watermark moves to.

A recorder is there only while somebody wants a trace; without one a request pays for one look at an attribute. It hands entries to a
sink, which must not wait. Must never know threads or files, nor what a message means beyond where its records are.
"""

from __future__ import annotations

import itertools
import logging
import os
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from kafkaproto.api import ApiKey, Codec, codec
from kafkaproto.broker.log.files import FileRange
from kafkaproto.broker.runtime.clock import monotonic_ns
from kafkaproto.broker.runtime.events import Observer
from kafkaproto.frame import LENGTH_BYTES
from kafkaproto.records.batch import HEADER_BYTES, MAGIC, PREFIX_BYTES
from kafkaproto.trace.cutting import LENGTH_AND_MAGIC, batch_heads, cut
from kafkaproto.trace.format import (
    ANSWERED,
    BEGINS,
    CLOSES,
    EXCHANGE,
    HELD,
    UNANSWERED,
    Buffer,
    Positions,
    State,
    StateOfOne,
    event,
    exchange_layout,
    packed_exchange,
    state,
    state_of_one,
)
from kafkaproto.trace.frames import cut_produce, cut_request, cut_unhandled, is_silent

if TYPE_CHECKING:
    from kafkaproto.broker.log.replica_log import ReplicaLog
    from kafkaproto.broker.metadata.image import Topic
    from kafkaproto.broker.network.connection import Connection
    from kafkaproto.broker.quota.entities import QuotaEntity
    from kafkaproto.broker.replication.partition import Partition
    from kafkaproto.broker.requests.exchange import Exchange, Peer

logger = logging.getLogger("kafkaproto.trace")

READ_BYTES = 64 * 1024
LARGE_BYTES = 64 * 1024
"""What is larger does not wait, so that what waits takes little, and goes alone, so that nothing is dropped with it."""
_PRODUCE = int(ApiKey.PRODUCE)
IN_THE_CLUSTER = -1
"""The broker of events that no broker has for itself."""
LARGE_BATCH_BYTES = 8 * 1024
"""Of batches from this size on only the headers are read."""


class Traced:
    """What a recorder keeps of one exchange until its response is out; it lies in the exchange's slot `recording`.

    kept: what is left of the request's frame, and the lengths of its records. wait_ns: time in purgatory, negative while it lasts. ready_ns: 0
    until the response is made; the attributes after it are set then. out: the response with its length, without what `splices` put into it.
    """

    __slots__ = (
        "exchange",
        "flags",
        "handled_ms",
        "handled_ns",
        "kept",
        "out",
        "ready_ns",
        "received_ns",
        "recorder",
        "sent_ns",
        "seq",
        "splices",
        "throttle_ms",
        "wait_ns",
    )
    exchange: Exchange
    recorder: Recorder
    seq: int
    received_ns: int
    handled_ns: int
    handled_ms: int
    kept: tuple[Buffer, tuple[int, ...]]
    wait_ns: int
    ready_ns: int
    sent_ns: int
    throttle_ms: int
    flags: int
    out: Buffer
    splices: Sequence[tuple[int, Any]]

    @property
    def is_silent(self) -> bool:
        """Whether the request awaits no response, as far as the part of it that is kept tells."""
        return is_silent(*cut_request(self.kept[0]))


_ANSWERED_AND_HELD = ANSWERED | HELD
_NO_ANSWER = bytes(LENGTH_BYTES)
Waiting = bytes | Traced | tuple[Callable[..., bytes], tuple[Any, ...]]
"""An entry; or an exchange as its context, which nobody changes any more; or a move: who packs it, and of what, its number second."""


class Moves:
    """What the entries of one replica's moves share. flags: BEGINS for the first entry of a replica that stood nowhere.

    log: a reference that does not keep the log.
    """

    __slots__ = ("flags", "log", "packing")

    def __init__(self, packing: StateOfOne, flags: int, log: ref[ReplicaLog]) -> None:
        self.packing = packing
        self.flags = flags
        self.log = log


class Recorder(Observer):
    """sink: takes entries as the file has them, in one piece, and how many they are. They are packed on the loop: a thread that did it would
    take the interpreter from the loop for longer, and hold more.

    together: how many entries wait until all are packed, one after the other, which takes half the time that it would between two requests.
    `flush` is for who cannot wait for more of them.
    """

    wants_records_apart = True

    def __init__(self, sink: Callable[[bytes, int], None], together: int = 1) -> None:
        self._sink = sink
        self._together = together
        self._waiting: list[Waiting] = []
        """In their order."""
        self._moves: dict[int, Moves] = {}
        """By the id of the log, until the log is gone; looking up a weak reference would take several times as long."""
        # Moves do not count as waiting entries: an exchange or a flush follows them.
        self._keep_move: Callable[[Waiting], None] = (
            partial(self._keep, size_bytes=0) if together == 1 else self._waiting.append
        )
        self._seq = itertools.count(1)
        self.ended = False

    def flush(self) -> None:
        """Hand over what waits."""
        if self._waiting:
            waiting = self._waiting.copy()
            self._waiting.clear()  # in its place: `_keep_move` has this list
            if self.ended:
                return
            try:
                pieces = [
                    _packed(one) if isinstance(one, Traced) else one[0](*one[1]) if isinstance(one, tuple) else one
                    for one in waiting
                ]
            except struct.error:
                pieces = [_packed_if_it_can(one) for one in waiting]
            self._sink(b"".join(pieces), len(waiting))

    def end(self) -> None:
        """Nothing more is recorded, ever: what is in progress belongs to nobody's trace, as its answer would be made by other rules."""
        self.flush()
        self.ended = True

    def _keep(self, one: Waiting, size_bytes: int) -> None:
        large = size_bytes > LARGE_BYTES
        if large:
            self.flush()
        waiting = self._waiting
        waiting.append(one)
        if large or len(waiting) >= self._together:
            self.flush()

    def _keep_packed(self, one: bytes) -> None:
        self._keep(one, len(one))

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
        self._keep_packed(
            packed_exchange(
                seq,
                broker_id,
                peer.connection_id,
                now_ms,
                peer.received_ns or now_ns,
                now_ns,
                now_ns,
                0,
                0,
                CLOSES,
                len(frame),
                0,
                kept,
                b"",
                records,
                (),
                now_ms,
                0,
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
            self._keep_packed(_packed_with_records(traced))
        else:
            self._keep(traced, len(traced.kept[0]) + len(traced.out))

    def _trouble(self, at_ms: int, broker_id: int, peer: Peer, seq: int, why: str) -> None:
        """What is wrong with an exchange is told in front of it."""
        self.event(at_ms, broker_id, "trouble", {"connection": peer.connection_id, "of": seq, "why": why})

    def begin(self, replicas: Iterable[Sequence[Partition]], now_ms: int) -> None:
        """Record where the replicas of each broker stand, if they have anything: a trace begins in the middle of their history."""
        self._moves.clear()
        for partitions in replicas:
            standing = [partition for partition in partitions if partition.log.log_end_offset]
            if standing:
                at = next(self._seq), standing[0].broker_id, now_ms, monotonic_ns()
                self._keep_packed(state(State(*at, tuple(map(_positions, standing)))))
            for partition in standing:
                self._moves_of(partition.log, partition.topic, partition.index, 0)

    def _moves_of(self, log: ReplicaLog, topic: str, index: int, flags: int) -> Moves:
        key, all_moves = id(log), self._moves
        gone = ref(log, lambda _: all_moves.pop(key, None))
        moves = all_moves[key] = Moves(state_of_one(topic, index), flags, gone)
        return moves

    def offsets_moved(self, broker_id: int, topic: str, index: int, log: ReplicaLog, now_ms: int) -> None:
        # A move is recorded before the responses that it lets go.
        moves = self._moves.get(id(log)) or self._moves_of(log, topic, index, BEGINS)
        pack, head, place, name = moves.packing
        self._keep_move(
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

    def event(self, at_ms: int, broker_id: int, kind: str, facts: Mapping[str, Any]) -> None:
        """Record an event; the journal describes kinds and facts."""
        told = {"seq": next(self._seq), "clock_ms": at_ms, "at_ns": monotonic_ns(), "broker": broker_id, **facts}
        self._keep_packed(event(kind, told))

    def topic(self, at_ms: int, state: str, topic: Topic) -> None:
        """state: there (when the trace begins), created, changed, deleted."""
        partitions = [
            {"leader": p.leader, "leader_epoch": p.leader_epoch, "isr": list(p.isr)} for p in topic.partitions
        ]
        told = {"topic": topic.name, "topic_id": topic.topic_id.hex(), "configs": dict(topic.configs)}
        self.event(at_ms, IN_THE_CLUSTER, "topic", {"state": state, **told, "partitions": partitions})

    def noted(self, now_ms: int, broker_id: int, kind: str, facts: Mapping[str, Any]) -> None:
        self.event(now_ms, broker_id, kind, facts)

    def connection_opened(self, broker_id: int, connection: Peer, now_ms: int) -> None:
        facts = {"connection": connection.connection_id, "listener": connection.listener_name}
        facts |= {"peer": connection.client_address, "principal": connection.principal}
        self.event(now_ms, broker_id, "opened", facts)

    def connection_closed(self, broker_id: int, connection: Peer, why: str, now_ms: int) -> None:
        self.event(now_ms, broker_id, "closed", {"connection": connection.connection_id, "why": why})

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
        self.event(now_ms, broker_id, "log", facts)

    def quota_changed(self, entity: QuotaEntity, key: str, value: float | None, now_ms: int) -> None:
        self.event(now_ms, IN_THE_CLUSTER, "quota", {"entity": str(entity), "quota": key, "value": value})

    def throttled(self, exchange: Exchange, throttle_ms: int, reason: Any, held: bool) -> None:
        traced = exchange.recording
        of = traced.seq if traced is not None and traced.recorder is self else None
        facts: dict[str, Any] = {"of": of, "connection": exchange.peer.connection_id}
        facts |= {name: getattr(reason, name) for name in _REASON if hasattr(reason, name)}
        facts["throttle_ms"] = throttle_ms
        facts["entity"] = str(getattr(reason, "entity", ""))
        self.event(exchange.now_ms, exchange.node.broker_id, "throttle", facts)


def _packed_if_it_can(one: Waiting) -> bytes:
    """Where the file has no room for a number: that entry's sequence number is missing, and nothing else."""
    if isinstance(one, bytes):
        return one
    try:
        return _packed(one) if isinstance(one, Traced) else one[0](*one[1])
    except struct.error as error:
        seq = one.seq if isinstance(one, Traced) else one[1][1]
        logger.error("entry %s of the trace cannot be written: %s", seq, error)
        return b""


def _packed(traced: Traced, response: Buffer | None = None, lengths: tuple[int, ...] = ()) -> bytes:
    """`packed_exchange` in line. response: what is left of an answer that had records; lengths: how long they were."""
    exchange = traced.exchange
    request, records = traced.kept
    request_left = len(request)
    response_left = response_bytes = len(traced.out) - LENGTH_BYTES
    if response is None:
        response = traced.out[LENGTH_BYTES:]
    else:
        response_left, response_bytes = len(response), response_bytes + sum(lengths)
    size, pack = exchange_layout(len(records) + len(lengths))
    fixed = pack(
        size + request_left + response_left,
        EXCHANGE,
        traced.seq,
        exchange.node.broker_id,
        exchange.peer.connection_id,
        exchange.now_ms,
        traced.received_ns,
        traced.handled_ns,
        traced.ready_ns,
        traced.sent_ns,
        traced.throttle_ms,
        traced.flags,
        exchange.size_bytes,
        response_bytes,
        request_left,
        response_left,
        len(records),
        len(lengths),
        traced.handled_ms,
        traced.wait_ns,
        *records,
        *lengths,
    )
    return b"".join((fixed, request, response))


def _packed_with_records(traced: Traced) -> bytes:
    flexible = codec(traced.exchange.api_key, traced.exchange.api_version).flexible
    return _packed(traced, *_cut_response(traced.out, traced.splices, flexible))


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


def _cut_response(out: Buffer, splices: Sequence[tuple[int, Any]], flexible: bool) -> tuple[Buffer, tuple[int, ...]]:
    """What is kept of a frame with records, without its length, and how long they were."""
    places = [(at, len(value), _heads(value)) for at, value in splices]
    return memoryview(cut(out, places, flexible))[LENGTH_BYTES:], tuple([length for _, length, _ in places])


def _heads(records: Any) -> bytes:
    return _file_heads(records) if type(records) is FileRange else batch_heads(records)


def _file_heads(part: FileRange) -> bytes:
    """`batch_heads` of a range of a file, of which no more is read than has to be."""
    fd, at, end = part.file.fileno(), part.offset, part.offset + len(part)
    heads: list[bytes] = []
    keep, length_and_magic, pread = heads.append, LENGTH_AND_MAGIC.unpack, os.pread
    while at + HEADER_BYTES <= end:
        head = pread(fd, HEADER_BYTES, at)
        if len(head) < HEADER_BYTES:
            break  # somebody else has cut the file
        length, magic = length_and_magic(head)
        size = length + PREFIX_BYTES
        if magic != MAGIC or not HEADER_BYTES <= size <= end - at:
            break
        if size < LARGE_BATCH_BYTES:
            head = batch_heads(pread(fd, min(READ_BYTES, end - at), at))
            size = sum(length + PREFIX_BYTES for length, _ in LENGTH_AND_MAGIC.iter_unpack(head))
            if not size:
                break
        keep(head)
        at += size
    return b"".join(heads)
