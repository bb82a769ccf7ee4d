"""The file of a trace: a header that says who recorded what, then entries with their length in front; and how it is written.

`kafkaproto.trace.reading` reads it. Both need the standard library alone.

An entry is an exchange (a request and its answer, in binary, as there are many), a state (where high watermarks have moved to, in binary
too) or an event (JSON: a connection opened, a broker stopped, somebody was throttled, entries were dropped). A file may end anywhere: what
is whole is read. Must never know where entries come from.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

Buffer = bytes | bytearray | memoryview

MAGIC = b"kptrace\n"
VERSION = 3
SUFFIX = ".kptrace"
EXCHANGE, EVENT, STATE = 1, 2, 3
VERSION_AND_LENGTH = Struct(">HI")
LENGTH_AND_KIND = Struct(">IB")
EXCHANGE_FIELDS = Struct(">QiQqqqqqiBIIIIIIqq")
"""seq, broker, connection, clock ms, received, handled, ready, sent (ns), throttle, flags, bytes in and out, bytes of both frames as
they stand here, how many record fields each had, clock ms when it was handled, how long it was parked (ns)."""
STATE_FIELDS = Struct(">QiqqH")
"""seq, broker, clock ms, at (ns), how many logs."""
POSITIONS_FIELDS = Struct(">HiBqqqq")
"""Of each log: bytes of the topic's name, which comes behind it, partition, flags, high watermark, last stable offset, start, end."""
_ONE_LOG = Struct(">HHi")
"""What is always the same where there is one log: the end of `STATE_FIELDS`, and the beginning of `POSITIONS_FIELDS`."""

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
    return MAGIC + VERSION_AND_LENGTH.pack(VERSION, len(told)) + told


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
    layout = Struct(f"{LENGTH_AND_KIND.format}{EXCHANGE_FIELDS.format[1:]}{lengths}I")
    return layout.size - LENGTH_AND_KIND.size, layout.pack


def state(one: State) -> bytes:
    parts = [STATE_FIELDS.pack(one.seq, one.broker, one.clock_ms, one.at_ns, len(one.logs))]
    for topic, partition, begins, *offsets in one.logs:
        name = topic.encode()
        parts += POSITIONS_FIELDS.pack(len(name), partition, BEGINS if begins else 0, *offsets), name
    return b"".join((LENGTH_AND_KIND.pack(sum(map(len, parts)), STATE), *parts))


def event(kind: str, facts: dict[str, Any]) -> bytes:
    told = json.dumps({"kind": kind, **facts}, separators=(",", ":"), default=str).encode()
    return LENGTH_AND_KIND.pack(len(told), EVENT) + told


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
    layout = Struct(f">{LENGTH_AND_KIND.size}sQiqq{len(log)}sBqqqq{len(name)}s")
    head = LENGTH_AND_KIND.pack(layout.size - LENGTH_AND_KIND.size, STATE)
    return StateOfOne(layout.pack, head, log, name)


def encoded(entry: Entry) -> bytes:
    """Whatever it is, with its length in front."""
    if isinstance(entry, Exchange):
        return exchange(entry)
    return state(entry) if isinstance(entry, State) else event(entry.kind, entry.facts)
