"""What a broker records of its traffic: every exchange without its records, every event of the journal, every connection, and where each
high watermark moves to.

A recorder is there only while somebody wants a trace; without one a request pays for one look at an attribute. It hands entries to a
sink, which must not wait. Must never know threads or files, nor what a message means beyond where its records are.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.clock import monotonic_ns
from broker.fetch.read import Reader
from broker.log.files import FileRange
from kafkaproto.api import ApiKey, Codec
from kafkaproto.records.batch import HEADER_BYTES, PREFIX_BYTES
from kafkaproto.trace.cutting import LeftOut, batch_heads, cut
from kafkaproto.trace.format import Entry, Event, Exchange, Positions, State
from kafkaproto.trace.frames import cut_produce, without_records

if TYPE_CHECKING:
    from broker.faults.journal import ThrottleSeen
    from broker.metadata.image import Topic
    from broker.quota.entities import QuotaEntity
    from broker.registry import RequestContext
    from broker.replication.partition import Partition
    from broker.turn import Turn

READ_BYTES = 64 * 1024
IN_THE_CLUSTER = -1
"""The broker of events that no broker has for itself."""
LARGE_BATCH_BYTES = 8 * 1024
"""Of batches from this size on only the headers are read."""


class Traced:
    """One request on its way: what the trace has of it until it is answered."""

    __slots__ = ("handled_ms", "handled_ns", "parked_ns", "received_ns", "records", "request", "seq", "wait_ns")

    def __init__(
        self, seq: int, received_ns: int, handled_ns: int, handled_ms: int, request: bytes, records: tuple[int, ...]
    ) -> None:
        self.seq = seq
        self.received_ns = received_ns
        self.handled_ns = handled_ns
        self.handled_ms = handled_ms
        self.request = request
        self.records = records
        self.parked_ns = self.wait_ns = 0

    def parked(self) -> None:
        """Its handler has done what it can: it waits for others."""
        self.parked_ns = monotonic_ns()

    def woken(self) -> None:
        """What it waited for is there, or its time is over: its answer is about to be made."""
        if self.parked_ns:
            self.wait_ns = monotonic_ns() - self.parked_ns


class Outgoing(NamedTuple):
    """An answer that is made and not yet out: the fields of its `Exchange` before `sent_ns`, and those after."""

    before: tuple[Any, ...]
    after: tuple[Any, ...]

    def exchange(self, sent_ns: int) -> Exchange:
        return Exchange._make((*self.before, sent_ns, *self.after))


class Recorder:
    """sink: takes an entry, now."""

    def __init__(self, sink: Callable[[Entry], None]) -> None:
        self._sink = sink
        self._seq = itertools.count(1)

    def begun(self, context: RequestContext, api: Codec, frame: memoryview, body_at: int, request: Any) -> None:
        """A request was decoded, and its handler is about to begin. `frame` is not kept."""
        handled_ns = monotonic_ns()
        records: tuple[int, ...] = ()
        if api.key == ApiKey.PRODUCE:
            kept, records = cut_produce(api, frame, body_at, request)
        else:
            kept = bytes(frame)
        context.traced = Traced(
            next(self._seq), context.peer.received_ns or handled_ns, handled_ns, context.now_ms, kept, records
        )

    def encode_fetch(self, api: Codec, message: Any, out: bytearray, splices: list[tuple[int, Any]]) -> None:
        """Encode a fetch response so that all its records are spliced in, small ones too: their places are wanted."""
        with without_records([p for t in message.responses for p in t.partitions if type(p.records) is bytes]):
            api.encode_response(message, out, splices)
        splices[:] = [(at, value.records if type(value) is LeftOut else value) for at, value in splices]

    def answered(
        self,
        context: RequestContext,
        api: Codec,
        out: bytearray,
        splices: list[tuple[int, Any]],
        size_bytes: int,
        throttle_ms: int,
        held: bool,
    ) -> None:
        """The answer is made, and about to go out: `out` is its frame with its length, into which `splices` go."""
        places = [(at, len(value), _heads(value)) for at, value in splices]
        self._exchange(
            context,
            throttle_ms,
            held=held,
            response_bytes=size_bytes,
            response=cut(out, places, api.flexible)[4:],
            response_records=tuple(length for _, length, _ in places),
        )

    def unanswered(self, context: RequestContext, throttle_ms: int, closes: bool) -> None:
        """acks=0: it is done, and nothing goes back."""
        self._exchange(context, throttle_ms, answered=False, closes=closes)

    def _exchange(
        self,
        context: RequestContext,
        throttle_ms: int,
        *,
        answered: bool = True,
        held: bool = False,
        closes: bool = False,
        response_bytes: int = 0,
        response: bytes = b"",
        response_records: tuple[int, ...] = (),
    ) -> None:
        traced = context.traced
        context.peer.outgoing = Outgoing(
            (
                traced.seq,
                context.node.broker_id,
                context.peer.connection_id,
                context.now_ms,
                traced.received_ns,
                traced.handled_ns,
                monotonic_ns(),
            ),
            (
                throttle_ms,
                answered,
                held,
                closes,
                context.size_bytes,
                response_bytes,
                traced.request,
                response,
                traced.records,
                response_records,
                traced.handled_ms,
                traced.wait_ns,
            ),
        )

    def sent(self, one: Outgoing) -> None:
        """The whole answer is with the kernel, or there was none to send."""
        self._sink(one.exchange(monotonic_ns()))

    def lost(self, one: Outgoing) -> None:
        """The connection went before its answer was out."""
        self._sink(one.exchange(0))

    def watch(self, turn: Turn, partitions: Sequence[Partition]) -> None:
        """Record where these replicas of one broker stand, if they have anything, and from now on each move of what `State` tells.

        A move comes before the answers that it lets go.
        """
        standing = [_positions(partition, begins=True) for partition in partitions if partition.log.log_end_offset]
        if standing:
            at = next(self._seq), partitions[0].broker_id, turn.now_ms, monotonic_ns()
            self._sink(State(*at, tuple(standing)))
        for partition in partitions:
            partition.log.advanced = self._mover(turn, partition, begins=not partition.log.log_end_offset)

    def _mover(self, turn: Turn, partition: Partition, begins: bool) -> Callable[[], None]:
        def advanced() -> None:
            nonlocal begins
            told = (_positions(partition, begins),)
            self._sink(State(next(self._seq), partition.broker_id, turn.now_ms, monotonic_ns(), told))
            begins = False

        return advanced

    def event(self, at_ms: int, broker_id: int, kind: str, facts: dict[str, Any]) -> None:
        """Something happened: see the journal for kinds and facts."""
        told = {"seq": next(self._seq), "clock_ms": at_ms, "at_ns": monotonic_ns(), "broker": broker_id, **facts}
        self._sink(Event(kind, told))

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
        facts = {"of": None if context.traced is None else context.traced.seq, "connection": seen.connection_id}
        facts |= {name: getattr(reason, name) for name in _REASON if hasattr(reason, name)}
        facts["throttle_ms"] = seen.throttle_time_ms
        facts["entity"] = str(getattr(reason, "entity", ""))
        self.event(seen.at_ms, seen.broker_id, "throttle", facts)


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


def _heads(records: Any) -> bytes:
    return b"".join(_file_heads(records)) if type(records) is FileRange else batch_heads(records)


def _file_heads(part: FileRange) -> Iterator[bytes]:
    """`batch_heads` of a range of a file, of which no more is read than has to be."""
    fd, at, end = part.file.fileno(), part.offset, part.offset + len(part)
    chunk, begins, read_bytes = b"", at, READ_BYTES
    while at + HEADER_BYTES <= end:
        inside = at - begins
        if inside + HEADER_BYTES > len(chunk):
            chunk = os.pread(fd, min(read_bytes, end - at), at)
            begins, inside = at, 0
        head = chunk[inside : inside + HEADER_BYTES]
        size = int.from_bytes(head[8:12], "big", signed=True) + PREFIX_BYTES
        if len(head) < HEADER_BYTES or head[16] != 2 or not HEADER_BYTES <= size <= end - at:
            return
        yield head
        at += size
        read_bytes = HEADER_BYTES if size >= LARGE_BATCH_BYTES else READ_BYTES
