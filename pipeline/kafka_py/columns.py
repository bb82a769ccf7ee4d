"""Record batches as Arrow columns, those of Spark's Kafka source; no record becomes a Python object on the way.

What Kafka stores is records one after the other. `kafkaproto.records.columns` tells where keys and values lie in there,
and Arrow copies them out in one step. Must never know brokers, offsets to come or Spark.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import pyarrow as pa

from kafkaproto.records.batch import BatchHeader
from kafkaproto.records.columns import Columns, HeaderColumns, columns, header_columns
from kafkaproto.records.entries import Entry, records
from pipeline.kafka_py.offsets import Range

DDL = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
HEADERS_DDL = "headers array<struct<key: string, value: binary>>"
FULL_ROWS = 10_000
FULL_BYTES = 8 << 20
"""A batch of rows is full with so many rows, or with about so many bytes of records."""
NO_TIMESTAMP_TYPE, CREATE_TIME, LOG_APPEND_TIME = -1, 0, 1
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_HEADERS = pa.list_(pa.field("element", _HEADER))
_TIMESTAMP = pa.timestamp("us", tz="UTC")
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", _TIMESTAMP),
        ("timestampType", pa.int32()),
    ]
)
SCHEMAS = {False: _SCHEMA, True: _SCHEMA.append(pa.field("headers", _HEADERS))}
"""By whether there are headers."""

Ints = Any
"""A numpy array of int64."""


class Rows:
    """Collects batches of one range until they are worth a RecordBatch; records that are not wanted are left out."""

    def __init__(self, wanted: Range, with_headers: bool) -> None:
        self._wanted = wanted
        self._with_headers = with_headers
        self._clear()

    def _clear(self) -> None:
        self._pieces: list[Columns] = []
        self._starts: list[int] = []
        self._kinds: list[int] = []
        self._headers: list[HeaderColumns] = []
        self._count = self._bytes = 0

    def add(self, entry: Entry, start: int) -> bool:
        """Take the records of a batch or old message in, from offset ``start`` on; whether that is enough now. DecodeError for damage."""
        header = entry.header
        if isinstance(header, BatchHeader):
            if not header.record_count:  # what a cleaner leaves of a producer's last batch
                return False
            piece = columns(entry.view)
            kind = LOG_APPEND_TIME if header.is_log_append_time else CREATE_TIME
        else:
            piece = _old_columns(entry)
            kind = (
                (LOG_APPEND_TIME if header.is_log_append_time else CREATE_TIME) if header.magic else NO_TIMESTAMP_TYPE
            )
        if self._with_headers:
            self._headers.append(_headers_of(piece, header))
        self._pieces.append(piece)
        self._starts.append(start)
        self._kinds.append(kind)
        self._count += len(piece.offsets)
        self._bytes += len(piece.payload)
        return self._count >= FULL_ROWS or self._bytes >= FULL_BYTES

    def take(self) -> pa.RecordBatch:
        """The rows that were collected, none of them twice; there may be none."""
        pieces, wanted, count = self._pieces, self._wanted, self._count
        lengths = [len(piece.offsets) for piece in pieces]
        payload = pieces[0].payload if len(pieces) == 1 else b"".join(piece.payload for piece in pieces)
        places = np.cumsum([0, *(len(piece.payload) for piece in pieces[:-1])])
        shift = np.repeat(places, lengths) if pieces else np.zeros(0, np.int64)
        offsets = _joined([piece.offsets for piece in pieces])
        made = [
            _cut(payload, [p.key_starts for p in pieces], [p.key_ends for p in pieces], shift),
            _cut(payload, [p.value_starts for p in pieces], [p.value_ends for p in pieces], shift),
            pa.repeat(wanted.topic, count),
            pa.repeat(pa.scalar(wanted.partition, pa.int32()), count),
            pa.array(offsets, pa.int64()),
            pa.array(_joined([piece.timestamps for piece in pieces]) * 1000, pa.int64()).cast(_TIMESTAMP),
            pa.array(np.repeat(np.array(self._kinds, np.int32), lengths), pa.int32()),
        ]
        if self._with_headers:
            made.append(_header_lists(self._headers))
        inside = (offsets >= np.repeat(np.array(self._starts, np.int64), lengths)) & (offsets < wanted.end)
        self._clear()
        rows = pa.RecordBatch.from_arrays(made, schema=SCHEMAS[self._with_headers])
        return rows if inside.all() else rows.filter(pa.array(inside))


def _joined(parts: list[array[int]]) -> Ints:
    return np.concatenate([np.frombuffer(part, np.int64) for part in parts]) if parts else np.zeros(0, np.int64)


def _cut(payload: bytes | memoryview, starts: list[array[int]], ends: list[array[int]], shift: Ints) -> pa.Array:
    """The bytes between starts and ends, null where those are negative. shift: what is to be added to both.

    Arrow can read the payload where it lies, as wanted bytes and gaps by turns; of those every second one is taken.
    """
    count = len(shift)
    first, last = _joined(starts), _joined(ends)
    null = first < 0
    if null.all():
        return pa.nulls(count, pa.binary())
    edges = np.zeros(2 * count + 1, np.int32)
    edges[0 : 2 * count : 2] = np.where(null, 0, first + shift)
    edges[1 : 2 * count : 2] = np.where(null, 0, last + shift)
    edges[2 * count] = edges[2 * count - 1]
    np.maximum.accumulate(edges, out=edges)  # a null begins and ends where what is before it does
    by_turns = pa.BinaryArray.from_buffers(
        pa.binary(), 2 * count, [None, pa.py_buffer(edges), pa.py_buffer(payload)], null_count=0
    )
    return by_turns.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32), mask=null if null.any() else None))


def _headers_of(piece: Columns, header: Any) -> HeaderColumns:
    if isinstance(header, BatchHeader):
        return header_columns(bytes(piece.payload), header.record_count)
    return HeaderColumns(array("q", bytes(8 * len(piece.offsets))), [], [])


def _header_lists(parts: list[HeaderColumns]) -> pa.Array:
    """A list for each record that has headers, null for one that has none, as Spark's source does."""
    counts = _joined([part.counts for part in parts])
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    names = pa.array([name for part in parts for name in part.names], pa.string())
    values = pa.array([value for part in parts for value in part.values], pa.binary())
    structs = pa.StructArray.from_arrays([names, values], fields=list(_HEADER))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs, type=_HEADERS, mask=pa.array(counts == 0))


def _old_columns(entry: Entry) -> Columns:
    """Messages of magic 0 and 1, which are few by now, record by record."""
    made = Columns(memoryview(b""), *(array("q") for _ in range(6)))
    payload = bytearray()
    for record in records(entry.view):
        made.offsets.append(record.offset)
        made.timestamps.append(record.timestamp)
        for part, starts, ends in (
            (record.key, made.key_starts, made.key_ends),
            (record.value, made.value_starts, made.value_ends),
        ):
            starts.append(-1 if part is None else len(payload))
            payload += part or b""
            ends.append(-1 if part is None else len(payload))
    return made._replace(payload=memoryview(bytes(payload)))
