"""Format of a trace file, and its encoder: a header that describes the recording, then entries, each preceded by its length.

`kafkaproto.trace.reading` decodes it. Both modules need only the standard library. There are three kinds of entries:

- An exchange is a request and its response.
- A state has the offsets of logs whose high watermark, last stable offset or start offset has moved.
- An event reports, for example, that a connection was opened, a group rebalanced, a client was throttled, or entries were dropped.

Exchanges and states are binary because there are many; events are JSON. A file may end inside an entry: readers then use the complete entries.

There are two encoders of entries, which produce equal bytes. `encoded` in this module takes an `Entry`. The recorder's encoder in the broker
(`kafkaproto.broker.observe.packing`) takes the fields of a request: creating an object for each of thousands of requests per second is too slow. This
module imports neither the broker nor the proxy.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

Buffer = bytes | bytearray | memoryview

MAGIC = b"kptrace\n"
VERSION = 5
"""The version of the trace format that this module encodes. The module `reading` decodes this version and the versions 2 to 4.

Since version 5, a trace contains the control batches of responses completely, and events about transactions have more details.
"""
SUFFIX = ".kptrace"
EXCHANGE, EVENT, STATE = 1, 2, 3
VERSION_AND_LENGTH = Struct(">HI")
LENGTH_AND_KIND = Struct(">IB")
EXCHANGE_FIELDS = Struct(">QiQqqqqqiBIIIIIIqq")
"""The fields of fixed size in the entry of an exchange (a request and its response) in a trace file.

They are, in order:

- sequence number of the entry, broker id, number of the connection;
- broker's clock in ms at the response;
- monotonic clock in ns when the request was received, its handler started, the response was ready, and the response was sent;
- throttle time in ms;
- flags: `ANSWERED` if there was a response, `HELD` if it was delayed by the throttle time, `CLOSES` if the broker closes the connection;
- sizes in bytes of the request and of the response on the wire;
- sizes in bytes of the frames of the request and of the response in the entry, which have no records;
- numbers of records fields in the request and in the response;
- broker's clock in ms when the handler started;
- time in purgatory in ns.
"""
STATE_FIELDS = Struct(">QiqqH")
"""The fields of fixed size at the start of a state entry (`State`) of a trace file. The offsets of each log follow them.

In order: sequence number, broker id, broker's clock in ms, monotonic clock in ns, number of logs.
"""
POSITIONS_FIELDS = Struct(">HiBqqqq")
"""The fields of fixed size of one log in a state entry (`State`) of a trace file; the topic's name follows them.

They are, in order:

- length of the topic's name in bytes;
- partition number;
- flags: `BEGINS` if the trace has no earlier item for this log, else 0;
- high watermark, last stable offset, log start offset, log end offset.
"""
ANSWERED, HELD, CLOSES = 1, 2, 4
BEGINS = 1
UNKNOWN_WAIT_NS = -1
UNANSWERED = "the connection closed before the response was sent"
"""The text of the event "problem" in a trace for a request that required a response but got none, because its connection was closed."""


class TraceError(ValueError):
    """Raised for a file that is not a trace or cannot be read. The message names the file and the position."""


class Exchange(NamedTuple):
    """A request and its response.

    - seq: number of the entry, counted from 1 over all entries of a trace.
    - clock_ms: the broker's clock at the response; 0 if not recorded by a broker. handled_ms: the broker's clock when the handler started; 0 if not
      measured.
    - received_ns, handled_ns, ready_ns, sent_ns: when the request was received, when its handler started, when the response was ready and when it was
      sent, on the monotonic clock; 0 if not measured.
    - wait_ns: the part of the time between handled_ns and ready_ns that the request spent in purgatory, waiting for records, replicas or group
      members; 0 if none, -1 if not measured.
    - throttle_ms: the throttle time that the broker decided. held: whether the response was delayed by this time (releases before 2.0).
    - answered: whether there was a response; False for acks=0. closes: whether the broker closes the connection because of the request.
    - request_bytes, response_bytes: sizes on the wire, without the length prefix.
    - request, response: the frames with headers and without records (`cutting`).
    - request_records, response_records: the original length in bytes of each non-null records field, in order.
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
    """The offsets of one log on a broker, as one item of a state entry (`State`).

    begins: True if the trace has no earlier item for this log. Earlier items for the same partition on this broker then belong to an older log, such
    as that of a deleted topic.
    """

    topic: str
    partition: int
    begins: bool
    high_watermark: int
    last_stable_offset: int
    log_start: int
    log_end: int


class State(NamedTuple):
    """A state entry: the current offsets of one or more logs of a broker.

    When a recording starts, the recorder writes an entry with all logs of the broker that are not empty. Later, an entry has the logs whose high
    watermark, last stable offset or log start offset has moved. seq: number of the entry. clock_ms: the broker's clock. at_ns: the monotonic clock.
    """

    seq: int
    broker: int
    clock_ms: int
    at_ns: int
    logs: tuple[Positions, ...]


class Event(NamedTuple):
    """An entry about something that happened, for example a connection was opened or a client was throttled.

    kind: what happened. facts: details as JSON values, at least "seq", "clock_ms" and "broker".
    """

    kind: str
    facts: dict[str, Any]


Entry = Exchange | State | Event

_ANSWERED_AT = Exchange._fields.index("answered")
"""The index of the field `answered` in `Exchange`. The encoder writes the fields before it unchanged, and converts it and the fields after it."""


def header(meta: dict[str, Any]) -> bytes:
    """Return the start of a trace file. meta: describes the recording and the recorded cluster; it is stored as a JSON object."""
    text = json.dumps(meta, separators=(",", ":")).encode()
    return MAGIC + VERSION_AND_LENGTH.pack(VERSION, len(text)) + text


def exchange(entry: Exchange) -> bytes:
    size, pack = exchange_layout(len(entry.request_records) + len(entry.response_records))
    fixed = pack(
        size + len(entry.request) + len(entry.response),
        EXCHANGE,
        *entry[:_ANSWERED_AT],
        (ANSWERED if entry.answered else 0) | (HELD if entry.held else 0) | (CLOSES if entry.closes else 0),
        entry.request_bytes,
        entry.response_bytes,
        len(entry.request),
        len(entry.response),
        len(entry.request_records),
        len(entry.response_records),
        entry.handled_ms,
        entry.wait_ns,
        *entry.request_records,
        *entry.response_records,
    )
    return b"".join((fixed, entry.request, entry.response))


@cache
def exchange_layout(lengths: int) -> tuple[int, Callable[..., bytes]]:
    """Return (size, function) for encoding the part of an exchange's entry that precedes the two frames.

    - function: encodes its arguments: the length of the entry, its kind (`EXCHANGE`), the fields of `EXCHANGE_FIELDS`, and the original length in
      bytes of each records field.
    - size: how many bytes the fields and the original lengths take. The first argument of `function` must be `size` plus the sizes of the two frames.
    - lengths: how many records fields the request and the response have together.
    """
    layout = Struct(f"{LENGTH_AND_KIND.format}{EXCHANGE_FIELDS.format[1:]}{lengths}I")
    return layout.size - LENGTH_AND_KIND.size, layout.pack


def state(entry: State) -> bytes:
    parts = [STATE_FIELDS.pack(entry.seq, entry.broker, entry.clock_ms, entry.at_ns, len(entry.logs))]
    for topic, partition, begins, *offsets in entry.logs:
        name = topic.encode()
        parts += POSITIONS_FIELDS.pack(len(name), partition, BEGINS if begins else 0, *offsets), name
    return b"".join((LENGTH_AND_KIND.pack(sum(map(len, parts)), STATE), *parts))


def event(kind: str, facts: dict[str, Any]) -> bytes:
    text = json.dumps({"kind": kind, **facts}, separators=(",", ":"), default=str).encode()
    return LENGTH_AND_KIND.pack(len(text), EVENT) + text


def encoded(entry: Entry) -> bytes:
    """Return any entry of a trace as bytes, preceded by its length."""
    if isinstance(entry, Exchange):
        return exchange(entry)
    return state(entry) if isinstance(entry, State) else event(entry.kind, entry.facts)
