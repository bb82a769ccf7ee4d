"""The file of a trace: a header that says who recorded what, then entries with their length in front. Written and read with the
standard library alone.

An entry is an exchange (a request and its answer, in binary, as there are many) or an event (JSON: a connection opened, a broker
stopped, somebody was throttled, entries were dropped). A file may end anywhere: what is whole is read. Must never know where
entries come from.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct, pack
from typing import Any, BinaryIO, NamedTuple

MAGIC = b"kptrace\n"
VERSION = 2
SUFFIX = ".kptrace"
EXCHANGE, EVENT = 1, 2
LARGEST_ENTRY_BYTES = 1 << 30

_VERSION_AND_LENGTH = Struct(">HI")
_LENGTH_AND_KIND = Struct(">IB")
_EXCHANGE = Struct(">QiQqqqqqiBIIIIHHq")
"""seq, broker, connection, clock ms, received, handled, ready, sent (ns), throttle, flags, bytes in and out, bytes of both frames as
they stand here, how many record fields each had, clock ms when it was handled."""

ANSWERED, HELD, CLOSES = 1, 2, 4


class TraceError(ValueError):
    """A file that is no trace, or not one that can be read: the message names the file and the place."""


class Exchange(NamedTuple):
    """A request and its answer.

    seq: counts everything in a trace, from 1. clock_ms: the broker's clock when it answered, 0: not
    recorded by a broker. *_ns: the monotonic clock of `Meta`; 0 where
    nobody looked. throttle_ms: as decided. answered: False for acks=0. held: the answer was kept back for its throttle (before 2.0).
    request_bytes, response_bytes: as they went over the wire, without their length. request, response: the frames with headers and
    without records (`cutting`); request_records, response_records: how long each records field was that was not empty, in order.
    handled_ms: the broker's clock when its handler began, 0 where nobody looked.
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


class Event(NamedTuple):
    """Anything else. `facts` has at least "seq", "clock_ms" and "broker"."""

    kind: str
    facts: dict[str, Any]


Entry = Exchange | Event


def header(meta: dict[str, Any]) -> bytes:
    """The beginning of a file."""
    told = json.dumps(meta, separators=(",", ":")).encode()
    return MAGIC + _VERSION_AND_LENGTH.pack(VERSION, len(told)) + told


def exchange(one: Exchange) -> bytes:
    flags = (ANSWERED if one.answered else 0) | (HELD if one.held else 0) | (CLOSES if one.closes else 0)
    lengths = (*one.request_records, *one.response_records)
    body = _EXCHANGE.pack(
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
        len(one.request),
        len(one.response),
        len(one.request_records),
        len(one.response_records),
        one.handled_ms,
    )
    told = pack(f">{len(lengths)}I", *lengths)
    size = len(body) + len(told) + len(one.request) + len(one.response)
    return b"".join((_LENGTH_AND_KIND.pack(size, EXCHANGE), body, told, one.request, one.response))


def event(kind: str, facts: dict[str, Any]) -> bytes:
    told = json.dumps({"kind": kind, **facts}, separators=(",", ":"), default=str).encode()
    return _LENGTH_AND_KIND.pack(len(told), EVENT) + told


class Trace:
    """One file: `meta`, then `entries()` once. `torn` tells afterwards what was left at its end.

    Raises TraceError for what is no trace, and for one of another version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = ""
        self._at = 0
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
                if kind not in (EXCHANGE, EVENT) or size > LARGEST_ENTRY_BYTES:
                    raise TraceError(f"{self.path}: no entry begins at byte {self._at}")
                body = file.read(min(size, ends - self._at - len(head)))
                if len(body) < size:
                    self.torn = self._torn(len(head) + len(body))
                    return
                try:
                    entry = _exchange(body) if kind == EXCHANGE else _event(body)
                except (ValueError, KeyError) as error:
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
        if version != VERSION:
            raise TraceError(f"{self.path} is a trace of version {version}, and this program reads version {VERSION}")
        told = file.read(length)
        try:
            meta = json.loads(told)
            if not isinstance(meta, dict):
                raise ValueError("not an object")
        except ValueError as error:
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


def _exchange(body: bytes) -> Exchange:
    if len(body) < _EXCHANGE.size:
        raise ValueError(f"{len(body)} bytes are too few")
    (
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
        request_left,
        response_left,
        request_fields,
        response_fields,
        handled_ms,
    ) = _EXCHANGE.unpack_from(body)
    count = request_fields + response_fields
    at = _EXCHANGE.size + 4 * count
    if at + request_left + response_left != len(body):
        raise ValueError("its lengths do not add up")
    lengths: Sequence[int] = Struct(f">{count}I").unpack_from(body, _EXCHANGE.size)
    return Exchange(
        seq,
        broker,
        connection,
        clock_ms,
        received_ns,
        handled_ns,
        ready_ns,
        sent_ns,
        throttle_ms,
        bool(flags & ANSWERED),
        bool(flags & HELD),
        bool(flags & CLOSES),
        request_bytes,
        response_bytes,
        body[at : at + request_left],
        body[at + request_left :],
        tuple(lengths[:request_fields]),
        tuple(lengths[request_fields:]),
        handled_ms,
    )


def _event(body: bytes) -> Event:
    facts = json.loads(body)
    if not isinstance(facts, dict) or not isinstance(facts.get("kind"), str):
        raise ValueError("it has no kind")
    return Event(facts.pop("kind"), facts)
