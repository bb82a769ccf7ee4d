"""The file of a trace: a header that says who recorded what, then entries with their length in front; and how it is written.

`kafkaproto.trace.reading` reads it. Both need the standard library alone.

There are two writers of entries, equal in bytes: `encoded` here, which takes an `Entry`, and that of a recorder in the broker
(`kafkaproto.broker.observe.packing`), which takes what it kept of a request and makes no object of it, as many come in a second.

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

_ANSWERED_AT = Exchange._fields.index("answered")
"""The fields before it are written as they are."""


def header(meta: dict[str, Any]) -> bytes:
    """The beginning of a file."""
    told = json.dumps(meta, separators=(",", ":")).encode()
    return MAGIC + VERSION_AND_LENGTH.pack(VERSION, len(told)) + told


def exchange(one: Exchange) -> bytes:
    size, pack = exchange_layout(len(one.request_records) + len(one.response_records))
    fixed = pack(
        size + len(one.request) + len(one.response),
        EXCHANGE,
        *one[:_ANSWERED_AT],
        (ANSWERED if one.answered else 0) | (HELD if one.held else 0) | (CLOSES if one.closes else 0),
        one.request_bytes,
        one.response_bytes,
        len(one.request),
        len(one.response),
        len(one.request_records),
        len(one.response_records),
        one.handled_ms,
        one.wait_ns,
        *one.request_records,
        *one.response_records,
    )
    return b"".join((fixed, one.request, one.response))


@cache
def exchange_layout(lengths: int) -> tuple[int, Callable[..., bytes]]:
    """Return the size of an exchange with so many record fields, without its frames, and what packs it up to its frames.

    The size is that behind `LENGTH_AND_KIND`. The packer takes the size with the frames', `EXCHANGE`, the values of
    `EXCHANGE_FIELDS`, and how long each record field was.
    """
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


def encoded(entry: Entry) -> bytes:
    """Whatever it is, with its length in front."""
    if isinstance(entry, Exchange):
        return exchange(entry)
    return state(entry) if isinstance(entry, State) else event(entry.kind, entry.facts)
