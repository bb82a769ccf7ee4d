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
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kafkaproto.api import ApiKey, Codec, codec
from kafkaproto.broker.fetch.read import Reader
from kafkaproto.broker.log.files import FileRange
from kafkaproto.broker.requests.registry import RequestContext
from kafkaproto.broker.runtime.clock import monotonic_ns
from kafkaproto.frame import LENGTH_BYTES
from kafkaproto.records.batch import HEADER_BYTES, MAGIC, PREFIX_BYTES
from kafkaproto.trace.cutting import LENGTH_AND_MAGIC, LeftOut, batch_heads, cut
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
    event,
    exchange_layout,
    packed_exchange,
    state,
    state_of_one,
)
from kafkaproto.trace.frames import cut_produce, cut_request, cut_unhandled, is_silent, without_records

if TYPE_CHECKING:
    from kafkaproto.broker.metadata.image import Topic
    from kafkaproto.broker.node import Node
    from kafkaproto.broker.observe.journal import ThrottleSeen
    from kafkaproto.broker.quota.entities import QuotaEntity
    from kafkaproto.broker.replication.partition import Partition
    from kafkaproto.broker.requests.registry import Peer
    from kafkaproto.broker.runtime.actions import ActionQueue

logger = logging.getLogger("kafkaproto.trace")

READ_BYTES = 64 * 1024
LARGE_BYTES = 64 * 1024
"""What is larger does not wait, so that what waits takes little, and goes alone, so that nothing is dropped with it."""
_PRODUCE = int(ApiKey.PRODUCE)
IN_THE_CLUSTER = -1
"""The broker of events that no broker has for itself."""
LARGE_BATCH_BYTES = 8 * 1024
"""Of batches from this size on only the headers are read."""


Told = tuple["Node", "Peer", int, int, int, str | None, int, int]
"""What a `RequestContext` is made of, in its order."""


class Traced(RequestContext):
    """One request on its way: what the trace of `recorder` has of it until it is answered, and its answer until that is out.

    Made by `Recorder.begun` alone. kept: what is left of its frame, and how long its records were. ready_ns: 0: its answer is not made; what
    follows is told then. out: its answer with its length, and without what `splices` put into it.
    """

    __slots__ = (
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
    traced = True
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

    def parked(self) -> None:
        self.wait_ns = -monotonic_ns()

    def woken(self) -> None:
        if self.wait_ns < 0:
            self.wait_ns += monotonic_ns()

    def answered(self, out: bytearray, splices: Sequence[tuple[int, Any]], throttle_ms: int, held: bool) -> None:
        self.ready_ns = monotonic_ns()
        self.throttle_ms = throttle_ms
        self.flags = _ANSWERED_AND_HELD if held else ANSWERED
        self.out = out
        self.splices = splices

    def unanswered(self, throttle_ms: int, closes: bool, held: bool) -> None:
        self.ready_ns = monotonic_ns()
        self.throttle_ms = throttle_ms
        self.flags = (CLOSES if closes else 0) | (HELD if held else 0)
        self.out = _NO_ANSWER
        self.splices = ()

    @property
    def silent(self) -> bool:
        """It awaits no answer, as far as can be read from what is kept."""
        return is_silent(*cut_request(self.kept[0]))


_ANSWERED_AND_HELD = ANSWERED | HELD
_NO_ANSWER = bytes(LENGTH_BYTES)
Waiting = bytes | Traced | tuple[Callable[..., bytes], tuple[Any, ...]]
"""An entry; or an exchange as its context, which nobody changes any more; or a move: who packs it, and of what, its number second."""


class Recorder:
    """sink: takes entries as the file has them, in one piece, and how many they are. They are packed on the loop: a thread that did it would
    take the interpreter from the loop for longer, and hold more.

    together: how many entries wait until all are packed, one after the other, which takes half the time that it would between two requests.
    `flush` is for who cannot wait for more of them.
    """

    def __init__(self, sink: Callable[[bytes, int], None], together: int = 1) -> None:
        self._sink = sink
        self._together = together
        self._waiting: list[Waiting] = []
        """In their order."""
        self._seq = itertools.count(1)
        self.ended = False

    def flush(self) -> None:
        """Hand over what waits."""
        if self._waiting:
            waiting = self._waiting.copy()
            self._waiting.clear()  # in its place: who tells of moves has this list
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

    def begun(self, told: Told, api: Codec | None, frame: memoryview, body_at: int, end: int, request: Any) -> Traced:
        """A request was decoded, and its handler is about to begin, with the context that is returned. `frame` is not kept.

        told: what a context is made of. end: where the message ends. api: None where no handler is given it, as its version is not offered,
        and it is about to be answered all the same (KIP-511).
        """
        handled_ns = monotonic_ns()
        traced = Traced(*told)
        if api is None:
            traced.kept = cut_unhandled(frame)
        elif api.key == _PRODUCE:
            traced.kept = cut_produce(api, frame, body_at, end, request)
        else:
            traced.kept = bytes(frame), ()
        peer = traced.peer
        traced.recorder = self
        traced.seq = next(self._seq)
        traced.received_ns = peer.received_ns or handled_ns
        traced.handled_ns = handled_ns
        traced.handled_ms = traced.now_ms
        traced.wait_ns = traced.ready_ns = 0
        peer.outgoing = traced
        return traced

    def refused(self, broker_id: int, peer: Peer, frame: memoryview, now_ms: int, why: str) -> None:
        """A request gets no answer but the end of its connection."""
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

    def encode_fetch(self, api: Codec, message: Any, out: bytearray, splices: list[tuple[int, Any]]) -> None:
        """Encode a fetch response so that all its records are spliced in, small ones too: their places are wanted."""
        with without_records([p for t in message.responses for p in t.partitions if type(p.records) is bytes]):
            api.encode_response(message, out, splices)
        splices[:] = [(at, value.records if type(value) is LeftOut else value) for at, value in splices]

    def unsent(self, traced: Traced) -> None:
        """The connection went before the answer was out, or made."""
        if not traced.ready_ns:
            self._give_up(traced)
        self.done(traced, False)

    def done(self, traced: Traced, sent: bool = True) -> None:
        """The whole answer is with the kernel, or there was none to send: while the client reads it, there is time to record it."""
        traced.sent_ns = monotonic_ns() if sent else 0
        if traced.splices:  # of records in files, which may go
            self._keep_packed(_packed_with_records(traced))
        else:
            self._keep(traced, len(traced.kept[0]) + len(traced.out))

    def _give_up(self, traced: Traced) -> None:
        """The connection went before there was an answer; what was asked for may be done all the same."""
        node = traced.node
        traced.woken()
        traced.unanswered(0, False, False)
        traced.now_ms = node.actions.now_ms
        if not traced.silent:
            self._trouble(traced.now_ms, node.broker_id, traced.peer, traced.seq, UNANSWERED)

    def _trouble(self, at_ms: int, broker_id: int, peer: Peer, seq: int, why: str) -> None:
        """What is wrong with an exchange is told in front of it."""
        self.event(at_ms, broker_id, "trouble", {"connection": peer.connection_id, "of": seq, "why": why})

    def watch(self, actions: ActionQueue, partitions: Sequence[Partition]) -> None:
        """Record where these replicas of one broker stand, if they have anything, and from now on each move of what `State` tells.

        A move comes before the answers that it lets go.
        """
        standing = [_positions(partition, begins=True) for partition in partitions if partition.log.log_end_offset]
        if standing:
            at = next(self._seq), partitions[0].broker_id, actions.now_ms, monotonic_ns()
            self._keep_packed(state(State(*at, tuple(standing))))
        for partition in partitions:
            partition.log.advanced = self._mover(actions, partition, begins=not partition.log.log_end_offset)

    def _mover(self, actions: ActionQueue, partition: Partition, begins: bool) -> Callable[[], None]:
        # Moves are not counted: an exchange follows, or who flushes.
        keep: Callable[[Waiting], None] = (
            partial(self._keep, size_bytes=0) if self._together == 1 else self._waiting.append
        )
        stable, seq, broker_id, log = Reader.last_stable_offset, self._seq, partition.broker_id, partition.log
        pack, head, place, name = state_of_one(partition.topic, partition.index)
        flags = BEGINS if begins else 0

        def advanced() -> None:
            nonlocal flags
            keep(
                (
                    pack,
                    (
                        head,
                        next(seq),
                        broker_id,
                        actions.now_ms,
                        monotonic_ns(),
                        place,
                        flags,
                        log.high_watermark,
                        stable(partition),
                        log.log_start_offset,
                        log.log_end_offset,
                        name,
                    ),
                )
            )
            flags = 0

        return advanced

    def event(self, at_ms: int, broker_id: int, kind: str, facts: dict[str, Any]) -> None:
        """Something happened: see the journal for kinds and facts."""
        told = {"seq": next(self._seq), "clock_ms": at_ms, "at_ns": monotonic_ns(), "broker": broker_id, **facts}
        self._keep_packed(event(kind, told))

    def topic(self, at_ms: int, state: str, topic: Topic) -> None:
        """state: there (when the trace begins), created, changed, deleted."""
        partitions = [
            {"leader": p.leader, "leader_epoch": p.leader_epoch, "isr": list(p.isr)} for p in topic.partitions
        ]
        told = {"topic": topic.name, "topic_id": topic.topic_id.hex(), "configs": dict(topic.configs)}
        self.event(at_ms, IN_THE_CLUSTER, "topic", {"state": state, **told, "partitions": partitions})

    def topic_became(self, at_ms: int, before: Topic | None, after: Topic | None) -> None:
        """The cluster's image of a topic is another one. Who leads and is in sync is told by events of their own."""
        same = before is not None and after is not None and before.topic_id == after.topic_id
        if before is not None and not same:
            self.topic(at_ms, "deleted", before)
        if after is not None and not (same and _looks_same(before, after)):
            self.topic(at_ms, "changed" if same else "created", after)

    def log(self, at_ms: int, broker_id: int, topic: str, index: int, what: str, before: int, after: int) -> None:
        """Records went: by retention, DeleteRecords, or because the leader has others (`ReplicaLog.moved`)."""
        facts = {"topic": topic, "partition": index, "what": what, "before": before, "after": after}
        self.event(at_ms, broker_id, "log", facts)

    def quota(self, at_ms: int, entity: QuotaEntity, key: str, value: float | None) -> None:
        """A client quota holds from now on. value None: there is none any more."""
        self.event(at_ms, IN_THE_CLUSTER, "quota", {"entity": str(entity), "quota": key, "value": value})

    def throttle(self, context: RequestContext, seen: ThrottleSeen) -> None:
        """A decision to throttle: of which exchange, and why."""
        reason = seen.reason
        of = context.seq if isinstance(context, Traced) and context.recorder is self else None
        facts: dict[str, Any] = {"of": of, "connection": seen.connection_id}
        facts |= {name: getattr(reason, name) for name in _REASON if hasattr(reason, name)}
        facts["throttle_ms"] = seen.throttle_time_ms
        facts["entity"] = str(getattr(reason, "entity", ""))
        self.event(seen.at_ms, seen.broker_id, "throttle", facts)


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
        traced.node.broker_id,
        traced.peer.connection_id,
        traced.now_ms,
        traced.received_ns,
        traced.handled_ns,
        traced.ready_ns,
        traced.sent_ns,
        traced.throttle_ms,
        traced.flags,
        traced.size_bytes,
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
    flexible = codec(traced.api_key, traced.api_version).flexible
    return _packed(traced, *_cut_response(traced.out, traced.splices, flexible))


def _positions(partition: Partition, begins: bool) -> Positions:
    log = partition.log
    stable = Reader.last_stable_offset(partition)
    return Positions(
        partition.topic,
        partition.index,
        begins,
        log.high_watermark,
        stable,
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
