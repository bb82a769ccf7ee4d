"""How what a recorder keeps becomes entries of a trace: many together, on the broker's loop, each exchange without its records."""

from __future__ import annotations

import logging
import os
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from kafkaproto.api import codec
from kafkaproto.broker.log.files import FileRange
from kafkaproto.frame import LENGTH_BYTES
from kafkaproto.records.headers import HEADER_BYTES, walk_headers
from kafkaproto.trace.cutting import batch_heads, cut
from kafkaproto.trace.format import (
    EXCHANGE,
    LENGTH_AND_KIND,
    STATE,
    Buffer,
    exchange_layout,
)
from kafkaproto.trace.frames import cut_request, is_silent

if TYPE_CHECKING:
    from kafkaproto.broker.log.replica_log import ReplicaLog
    from kafkaproto.broker.requests.exchange import Exchange

logger = logging.getLogger("kafkaproto.trace")

LARGE_BYTES = 64 * 1024
"""A larger entry is handed over at once and alone: the entries that wait take little memory, and none is dropped with a large one."""


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
    recorder: object
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


_ONE_LOG = struct.Struct(">HHi")
"""The part of a state of one log that never changes: the end of `STATE_FIELDS` and the beginning of `POSITIONS_FIELDS`."""

Waiting = bytes | Traced | tuple[Callable[..., bytes], tuple[Any, ...]]
"""An entry as bytes, an exchange that is not packed yet, or a move as (function that packs it, its arguments; the second is its number)."""


class StateOfOne(NamedTuple):
    """Writes the states of one log, equal to those of `encoded`.

    pack: takes head; seq, broker, clock_ms, at_ns; log; flags for begins and the four offsets; name.
    """

    pack: Callable[..., bytes]
    head: bytes
    log: bytes
    name: bytes


def state_of_one(topic: str, partition: int) -> StateOfOne:
    """Return what writes the states of a log: what they share is packed once."""
    name = topic.encode()
    log = _ONE_LOG.pack(1, len(name), partition)
    layout = struct.Struct(f">{LENGTH_AND_KIND.size}sQiqq{len(log)}sBqqqq{len(name)}s")
    head = LENGTH_AND_KIND.pack(layout.size - LENGTH_AND_KIND.size, STATE)
    return StateOfOne(layout.pack, head, log, name)


class Moves:
    """What the entries of one replica's moves share. flags: BEGINS for the first entry of a replica that stood nowhere.

    log: a reference that does not keep the log.
    """

    __slots__ = ("flags", "log", "packing")

    def __init__(self, packing: StateOfOne, flags: int, log: ref[ReplicaLog]) -> None:
        self.packing = packing
        self.flags = flags
        self.log = log


class MovesByLog:
    """The moves of each replica, until its log is gone."""

    def __init__(self) -> None:
        self._moves: dict[int, Moves] = {}  # by id: looking up a weak reference would take several times as long

    def of(self, log: ReplicaLog) -> Moves | None:
        """Return the moves of a log, None if it has not been added."""
        return self._moves.get(id(log))

    def add(self, log: ReplicaLog, topic: str, index: int, flags: int) -> Moves:
        """Begin the moves of a log. flags: BEGINS for one that stood nowhere."""
        key, all_moves = id(log), self._moves
        gone = ref(log, lambda _: all_moves.pop(key, None))
        moves = all_moves[key] = Moves(state_of_one(topic, index), flags, gone)
        return moves

    def clear(self) -> None:
        """Forget all moves."""
        self._moves.clear()


class Entries:
    """The entries that wait to be packed, in their order. sink, together: as of `Recorder`."""

    def __init__(self, sink: Callable[[bytes, int], None], together: int) -> None:
        self._sink = sink
        self._together = together
        self._waiting: list[Waiting] = []
        # Moves do not count as waiting entries: an exchange or a flush follows them.
        self.keep_move: Callable[[Waiting], None] = (
            partial(self.keep, size_bytes=0) if together == 1 else self._waiting.append
        )
        self.ended = False

    def keep(self, one: Waiting, size_bytes: int) -> None:
        """Have an entry of about `size_bytes` packed with the next ones."""
        large = size_bytes > LARGE_BYTES
        if large:
            self.flush()
        waiting = self._waiting
        waiting.append(one)
        if large or len(waiting) >= self._together:
            self.flush()

    def keep_packed(self, one: bytes) -> None:
        """Keep an entry that is packed already."""
        self.keep(one, len(one))

    def flush(self) -> None:
        """Hand what waits to the sink."""
        if self._waiting:
            waiting = self._waiting.copy()
            self._waiting.clear()  # in its place: `keep_move` has this list
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
        """Hand over what waits, and nothing after it."""
        self.flush()
        self.ended = True


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
    """Return the entry of an exchange, equal to that of `encoded`.

    response: what is left of a response that had records; lengths: how long they were.
    """
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


def packed_with_records(traced: Traced) -> bytes:
    """Return the entry of an exchange whose response has records."""
    flexible = codec(traced.exchange.api_key, traced.exchange.api_version).flexible
    return _packed(traced, *_cut_response(traced.out, traced.splices, flexible))


def _cut_response(out: Buffer, splices: Sequence[tuple[int, Any]], flexible: bool) -> tuple[Buffer, tuple[int, ...]]:
    """Return (a frame without its length and with the headers of its batches only, the length of each records field)."""
    places = [(at, len(value), heads(value)) for at, value in splices]
    return memoryview(cut(out, places, flexible))[LENGTH_BYTES:], tuple([length for _, length, _ in places])


def heads(records: Any) -> bytes:
    """Return the headers of the batches in memory or in a file."""
    return _file_heads(records) if type(records) is FileRange else batch_heads(records)


def _file_heads(part: FileRange) -> bytes:
    """`batch_heads` of a range of a file, of which no more is read than has to be."""
    fd, begin, end = part.file.fileno(), part.offset, part.offset + len(part)
    walked = walk_headers(lambda position, size_bytes: os.pread(fd, size_bytes, position), begin, end)
    return b"".join([buffer[at : at + HEADER_BYTES] for _, _, buffer, at in walked])
