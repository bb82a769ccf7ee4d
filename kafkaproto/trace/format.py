"""The file of a trace: a header that says who recorded what, then entries with their length in front. Written and read with the
standard library alone.

An entry is an exchange (a request and its answer, in binary, as there are many), a state (where high watermarks have moved to, in binary
too) or an event (JSON: a connection opened, a broker stopped, somebody was throttled, entries were dropped). A file may end anywhere: what
is whole is read. Must never know where entries come from.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, NamedTuple

Buffer = bytes | bytearray | memoryview

MAGIC = b"kptrace\n"
VERSION = 3
SUFFIX = ".kptrace"
EXCHANGE, EVENT, STATE = 1, 2, 3
LARGEST_ENTRY_BYTES = 1 << 30

_VERSION_AND_LENGTH = Struct(">HI")
_LENGTH_AND_KIND = Struct(">IB")
_EXCHANGE = Struct(">QiQqqqqqiBIIIIIIqq")
"""seq, broker, connection, clock ms, received, handled, ready, sent (ns), throttle, flags, bytes in and out, bytes of both frames as
they stand here, how many record fields each had, clock ms when it was handled, how long it was parked (ns)."""
_EXCHANGE_2 = Struct(">QiQqqqqqiBIIIIHHq")
"""The same without the last, and with narrower counts."""
_STATE = Struct(">QiqqH")
"""seq, broker, clock ms, at (ns), how many logs."""
_POSITIONS = Struct(">HiBqqqq")
"""Of each log: bytes of the topic's name, which comes behind it, partition, flags, high watermark, last stable offset, start, end."""
_ONE_LOG = Struct(">HHi")
"""What is always the same where there is one log: the end of `_STATE`, and the beginning of `_POSITIONS`."""

ANSWERED, HELD, CLOSES = 1, 2, 4
BEGINS = 1
UNKNOWN_WAIT_NS = -1
UNANSWERED = "its connection ended before its answer was there"
"""What an event of kind "trouble" says of an exchange without an answer that should have had one."""


class TraceError(ValueError):
    """A file that is no trace, or not one that can be read: the message names the file and the place."""


class Exchange(NamedTuple):
    """A request and its answer.

    seq: counts everything in a trace, from 1. clock_ms: the broker's clock when it answered, 0: not
    recorded by a broker. *_ns: the monotonic clock of `Meta`; 0 where
    nobody looked. throttle_ms: as decided. answered: False for acks=0. held: the answer was kept back for its throttle (before 2.0).
    request_bytes, response_bytes: as they went over the wire, without their length. request, response: the frames with headers and
    without records (`cutting`); request_records, response_records: how long each records field was that was not null, in order.
    handled_ms: the broker's clock when its handler began, 0 where nobody looked. wait_ns: how long it was parked, for records, replicas or
    members of a group to come, of the time between handled_ns and ready_ns; 0: it was not; -1 where nobody looked.
    """

    seq: int
    broker: int
    connection: int
    clock_ms: int
    received_ns: int
    handled_ns: int
    ready_ns: int
    sent_ns: int
    throttle_ms: int
    answered: bool
    held: bool
    closes: bool
    request_bytes: int
    response_bytes: int
    request: bytes
    response: bytes
    request_records: tuple[int, ...]
    response_records: tuple[int, ...]
    handled_ms: int = 0
    wait_ns: int = UNKNOWN_WAIT_NS


class Positions(NamedTuple):
    """The offsets of one log. begins: nothing that was told before of this broker's log of that name is of this one, or nothing was."""

    topic: str
    partition: int
    begins: bool
    high_watermark: int
    last_stable_offset: int
    log_start: int
    log_end: int


class State(NamedTuple):
    """Where the logs of one broker stand now: those of which the high watermark, the last stable offset or the start has moved. seq,
    clock_ms: as of an exchange. at_ns: the monotonic clock."""

    seq: int
    broker: int
    clock_ms: int
    at_ns: int
    logs: tuple[Positions, ...]


class Event(NamedTuple):
    """Anything else. `facts` has at least "seq", "clock_ms" and "broker"."""

    kind: str
    facts: dict[str, Any]


Entry = Exchange | State | Event


def header(meta: dict[str, Any]) -> bytes:
    """The beginning of a file."""
    told = json.dumps(meta, separators=(",", ":")).encode()
    return MAGIC + _VERSION_AND_LENGTH.pack(VERSION, len(told)) + told


def exchange(one: Exchange) -> bytes:
    flags = (ANSWERED if one.answered else 0) | (HELD if one.held else 0) | (CLOSES if one.closes else 0)
    return packed_exchange(
        one.seq,
        one.broker,
        one.connection,
        one.clock_ms,
        one.received_ns,
        one.handled_ns,
        one.ready_ns,
        one.sent_ns,
        one.throttle_ms,
        flags,
        one.request_bytes,
        one.response_bytes,
        one.request,
        one.response,
        one.request_records,
        one.response_records,
        one.handled_ms,
        one.wait_ns,
    )


def packed_exchange(
    seq: int,
    broker: int,
    connection: int,
    clock_ms: int,
    received_ns: int,
    handled_ns: int,
    ready_ns: int,
    sent_ns: int,
    throttle_ms: int,
    flags: int,
    request_bytes: int,
    response_bytes: int,
    request: Buffer,
    response: Buffer,
    request_records: tuple[int, ...],
    response_records: tuple[int, ...],
    handled_ms: int,
    wait_ns: int,
) -> bytes:
    """`exchange` for who has its fields and makes no object of them: many may come in a second."""
    size, pack = exchange_layout(len(request_records) + len(response_records))
    fixed = pack(
        size + len(request) + len(response),
        EXCHANGE,
        seq,
        broker,
        connection,
        clock_ms,
        received_ns,
        handled_ns,
        ready_ns,
        sent_ns,
        throttle_ms,
        flags,
        request_bytes,
        response_bytes,
        len(request),
        len(response),
        len(request_records),
        len(response_records),
        handled_ms,
        wait_ns,
        *request_records,
        *response_records,
    )
    return b"".join((fixed, request, response))


@cache
def exchange_layout(lengths: int) -> tuple[int, Callable[..., bytes]]:
    """Of an exchange with so many record fields, up to its frames: its size as an entry tells it, and what packs it: that size with the
    frames', `EXCHANGE`, what `packed_exchange` takes (of frames and record fields how many), and how long each field was."""
    layout = Struct(f"{_LENGTH_AND_KIND.format}{_EXCHANGE.format[1:]}{lengths}I")
    return layout.size - _LENGTH_AND_KIND.size, layout.pack


@cache
def _lengths(count: int) -> Struct:
    return Struct(f">{count}I")


def state(one: State) -> bytes:
    parts = [_STATE.pack(one.seq, one.broker, one.clock_ms, one.at_ns, len(one.logs))]
    for topic, partition, begins, *offsets in one.logs:
        name = topic.encode()
        parts += _POSITIONS.pack(len(name), partition, BEGINS if begins else 0, *offsets), name
    return b"".join((_LENGTH_AND_KIND.pack(sum(map(len, parts)), STATE), *parts))


def event(kind: str, facts: dict[str, Any]) -> bytes:
    told = json.dumps({"kind": kind, **facts}, separators=(",", ":"), default=str).encode()
    return _LENGTH_AND_KIND.pack(len(told), EVENT) + told


class StateOfOne(NamedTuple):
    """`state` for who tells of the same log again and again. pack: takes head; seq, broker, clock_ms, at_ns; log; flags for begins and the
    four offsets; name."""

    pack: Callable[..., bytes]
    head: bytes
    log: bytes
    name: bytes


def state_of_one(topic: str, partition: int) -> StateOfOne:
    name = topic.encode()
    log = _ONE_LOG.pack(1, len(name), partition)
    layout = Struct(f">{_LENGTH_AND_KIND.size}sQiqq{len(log)}sBqqqq{len(name)}s")
    head = _LENGTH_AND_KIND.pack(layout.size - _LENGTH_AND_KIND.size, STATE)
    return StateOfOne(layout.pack, head, log, name)


def encoded(entry: Entry) -> bytes:
    """Whatever it is, with its length in front."""
    if isinstance(entry, Exchange):
        return exchange(entry)
    return state(entry) if isinstance(entry, State) else event(entry.kind, entry.facts)


class Trace:
    """One file: `meta`, then `entries()` once. `torn` tells afterwards what was left at its end.

    Raises TraceError for what is no trace, and for one of a version that this program does not read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = ""
        self._at = 0
        self._read: dict[int, Callable[[bytes], Entry]] = {}
        with path.open("rb") as file:
            self.meta = self._read_header(file)

    @property
    def run(self) -> str:
        """Which recording it is of."""
        return str(self.meta.get("run", self.path.stem))

    @property
    def read_bytes(self) -> int:
        """How far `entries` is."""
        return self._at

    def entries(self, begins: int = 0, ends: int = sys.maxsize) -> Iterator[Entry]:
        """Every whole entry. An end in the middle of one is noted in `torn`; what cannot be an entry raises TraceError.

        begins: a byte behind a whole entry, from which to go on. ends: a byte from which on the file is as if it were not there.
        """
        self._at = max(self._at, begins)
        with self.path.open("rb") as file:
            file.seek(self._at)
            while True:
                head = file.read(min(_LENGTH_AND_KIND.size, ends - self._at))
                if not head:
                    return
                if len(head) < _LENGTH_AND_KIND.size:
                    self.torn = self._torn(len(head))
                    return
                size, kind = _LENGTH_AND_KIND.unpack(head)
                read = self._read.get(kind)
                if read is None or size > LARGEST_ENTRY_BYTES:
                    raise TraceError(f"{self.path}: no entry begins at byte {self._at}")
                body = file.read(min(size, ends - self._at - len(head)))
                if len(body) < size:
                    self.torn = self._torn(len(head) + len(body))
                    return
                try:
                    entry = read(body)
                except (ValueError, KeyError, RecursionError) as error:
                    raise TraceError(f"{self.path}: the entry at byte {self._at} cannot be read: {error}") from None
                self._at += len(head) + size
                yield entry

    def _torn(self, left: int) -> str:
        return f"{self.path}: {left} bytes at byte {self._at} are no whole entry, and are left out"

    def _read_header(self, file: BinaryIO) -> dict[str, Any]:
        start = file.read(len(MAGIC) + _VERSION_AND_LENGTH.size)
        if not start.startswith(MAGIC) or len(start) < len(MAGIC) + _VERSION_AND_LENGTH.size:
            raise TraceError(f"{self.path} is no trace: it does not begin with {MAGIC!r}")
        version, length = _VERSION_AND_LENGTH.unpack_from(start, len(MAGIC))
        if version not in READERS:
            readable = " and ".join(map(str, READERS))
            raise TraceError(f"{self.path} is a trace of version {version}, and this program reads versions {readable}")
        self._read = READERS[version]
        told = file.read(length)
        try:
            if len(told) < length:
                raise ValueError(f"{length - len(told)} bytes of it are not there")
            meta = json.loads(told)
            if not isinstance(meta, dict):
                raise ValueError("not an object")
        except (ValueError, RecursionError) as error:
            raise TraceError(f"{self.path}: its header cannot be read: {error}") from None
        self._at = len(start) + length
        return meta


def files_of(path: Path) -> list[Path]:
    """The files of a trace: of a folder in order, or the one file. Raises TraceError where there is none."""
    if path.is_file():
        return [path]
    found = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else []
    if not found:
        raise TraceError(f"{path} holds no trace: no file *{SUFFIX} is there")
    return found


def _exchange(body: bytes, layout: Struct = _EXCHANGE, untold: tuple[int, ...] = ()) -> Exchange:
    """untold: the last fields, of a version that has them not."""
    if len(body) < layout.size:
        raise ValueError(f"{len(body)} bytes are too few")
    fields: tuple[int, ...] = (*layout.unpack_from(body), *untold)
    (
        *before,
        flags,
        in_bytes,
        out_bytes,
        request_left,
        response_left,
        request_fields,
        response_fields,
        handled_ms,
        wait_ns,
    ) = fields
    count = request_fields + response_fields
    at = layout.size + 4 * count
    if at + request_left + response_left != len(body):
        raise ValueError("its lengths do not add up")
    lengths: Sequence[int] = _lengths(count).unpack_from(body, layout.size)
    return Exchange._make(
        (
            *before,
            bool(flags & ANSWERED),
            bool(flags & HELD),
            bool(flags & CLOSES),
            in_bytes,
            out_bytes,
            body[at : at + request_left],
            body[at + request_left :],
            tuple(lengths[:request_fields]),
            tuple(lengths[request_fields:]),
            handled_ms,
            wait_ns,
        )
    )


def _state(body: bytes) -> State:
    if len(body) < _STATE.size:
        raise ValueError(f"{len(body)} bytes are too few")
    seq, broker, clock_ms, at_ns, count = _STATE.unpack_from(body)
    logs, at = [], _STATE.size
    for _ in range(count):
        if at + _POSITIONS.size > len(body):
            raise ValueError("its lengths do not add up")
        name_bytes, partition, flags, *offsets = _POSITIONS.unpack_from(body, at)
        at += _POSITIONS.size + name_bytes
        logs.append(Positions(body[at - name_bytes : at].decode(), partition, bool(flags & BEGINS), *offsets))
    if at != len(body):
        raise ValueError("its lengths do not add up")
    return State(seq, broker, clock_ms, at_ns, tuple(logs))


def _event(body: bytes) -> Event:
    facts = json.loads(body)
    if not isinstance(facts, dict) or not isinstance(facts.get("kind"), str):
        raise ValueError("it has no kind")
    return Event(facts.pop("kind"), facts)


READERS: dict[int, dict[int, Callable[[bytes], Entry]]] = {
    2: {EXCHANGE: partial(_exchange, layout=_EXCHANGE_2, untold=(UNKNOWN_WAIT_NS,)), EVENT: _event},
    VERSION: {EXCHANGE: _exchange, EVENT: _event, STATE: _state},
}
"""Of each version that can be read how each kind of its entries is. Version 2 has no states, and does not tell how long an exchange was
parked."""
