"""Converts record batches to the Arrow columns of Spark's Kafka source, without a Python object for each record.

`kafkaproto.records.columns` finds the positions of keys and values in a batch, and Arrow copies them in one step. numpy makes that faster
and is not required. This module does not depend on brokers, offsets or Spark.
"""

from __future__ import annotations

from array import array
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkaproto.pipeline.kafka_py.offsets import Range
from kafkaproto.records.batch import BatchHeader
from kafkaproto.records.columns import Columns, HeaderColumns, columns, header_columns
from kafkaproto.records.compression import Buffer
from kafkaproto.records.entries import Entry, records

DDL = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
HEADERS_DDL = "headers array<struct<key: string, value: binary>>"
FULL_ROWS = 10_000
FULL_BYTES = 8 << 20
"""The size of collected records, in bytes, at which an Arrow batch is full. An Arrow batch is also full with 10,000 rows (`FULL_ROWS`)."""
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
"""The two schemas of the rows: the key True is for rows with the column `headers`, the key False for rows without it."""


class Rows:
    """Collects the records of a range of offsets until they fill an Arrow RecordBatch. Records outside this range are left out."""

    def __init__(self, range_: Range, with_headers: bool) -> None:
        self._range = range_
        self._with_headers = with_headers
        self._clear()

    def _clear(self) -> None:
        self._payloads: list[memoryview] = []
        self._bytes = 0
        self._columns = Columns(memoryview(b""), *(array("q") for _ in range(6)))
        """The columns of all collected batches, one after another: byte positions of keys and values, offsets, and timestamps.

        A byte position counts from the start of the payload of the record's own batch. `take` joins the payloads of all batches into one buffer.
        The position in this buffer is the byte position plus the record's entry in `_shifts`.
        """
        self._shifts, self._kinds = array("q"), array("i")
        """Two arrays with an entry for each record.

        The payloads of all batches are joined into one buffer. `_shifts`: where the payload of the record's batch starts in that buffer, in bytes.
        `_kinds`: the timestamp type.
        """
        self._first_offsets = array("q")
        self._cuts = False
        """True if `take` must drop collected records: their offsets are below the argument `start` of `add`, or outside the range to read."""
        self._headers: list[HeaderColumns] = []

    def add(self, entry: Entry, start: int) -> bool:
        """Add the records of a batch, or of a message of magic 0 or 1, to the collected rows.

        Returns whether the collected rows now fill an Arrow batch, so that `take` should be called. entry: the batch or message. start: records with
        a lower offset are left out. Raises DecodeError if the batch is damaged.
        """
        header = entry.header
        if isinstance(header, BatchHeader):
            if not header.record_count:  # compaction keeps an empty batch for a producer's state
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
        for collected, more in zip(self._columns[1:], piece[1:], strict=True):
            collected.extend(more)
        count = len(piece.offsets)
        self._shifts.extend(array("q", [self._bytes]) * count)
        self._kinds.extend(array("i", [kind]) * count)
        self._first_offsets.extend(array("q", [start]) * count)
        self._cuts |= piece.offsets[0] < start or piece.offsets[-1] >= self._range.end
        self._payloads.append(piece.payload)
        self._bytes += len(piece.payload)
        return len(self._shifts) >= FULL_ROWS or self._bytes >= FULL_BYTES

    def take(self) -> pa.RecordBatch:
        """Return the collected rows as an Arrow RecordBatch, which may be empty, and start a new collection."""
        columns, range_, count = self._columns, self._range, len(self._shifts)
        payload = self._payloads[0] if len(self._payloads) == 1 else b"".join(self._payloads)
        shifts, offsets = _arrow(self._shifts), _arrow(columns.offsets)
        arrays = [
            _cut(payload, columns.key_starts, columns.key_ends, shifts),
            _cut(payload, columns.value_starts, columns.value_ends, shifts),
            pa.repeat(range_.topic, count),
            pa.repeat(pa.scalar(range_.partition, pa.int32()), count),
            offsets,
            pc.multiply(_arrow(columns.timestamps), 1000).cast(_TIMESTAMP),
            _arrow(self._kinds),
        ]
        if self._with_headers:
            arrays.append(_header_lists(self._headers))
        rows = pa.RecordBatch.from_arrays(arrays, schema=SCHEMAS[self._with_headers])
        if self._cuts:
            is_from_start = pc.greater_equal(offsets, _arrow(self._first_offsets))
            rows = rows.filter(pc.and_(is_from_start, pc.less(offsets, range_.end)))
        self._clear()
        return rows


def _arrow(column: array[int]) -> pa.Array:
    kind = pa.int64() if column.typecode == "q" else pa.int32()
    return pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(column)])


def _cut(payload: Buffer, starts: array[int], ends: array[int], shifts: pa.Array) -> pa.Array:
    """Return an Arrow array with the bytes of the key (or value) of each record, cut out of `payload`; null where `starts` is negative.

    payload: the payloads of all batches, joined. starts, ends: where each key begins (inclusive) and ends (exclusive), as byte positions in the
    payload of the record's own batch. shifts: for each record, the byte position in `payload` at which the payload of its batch begins.

    For speed, no Python object is made for a record: Arrow views `payload` as an alternation of keys and the gaps between them, and takes the keys.
    """
    count = len(starts)
    null = pc.less(_arrow(starts), 0)
    if pc.all(null).as_py():
        return pa.nulls(count, pa.binary())
    moved = [pc.add(_arrow(places), shifts) for places in (starts, ends)]
    borders = array("q", bytes(16 * count + 8))
    with memoryview(borders) as view:
        for first, places in enumerate(moved):
            view[first : 2 * count : 2] = memoryview(places.buffers()[1]).cast("q")[:count]
        view[2 * count] = len(payload)
    # a null has the position of the value before it
    rising = pc.cumulative_max(_arrow(borders), start=0)
    by_turns = pa.Array.from_buffers(
        pa.large_binary(), 2 * count, [None, rising.buffers()[1], pa.py_buffer(payload)], null_count=0
    )
    even = _arrow(array("q", range(0, 2 * count, 2)))
    return by_turns.take(pc.if_else(null, None, even)).cast(pa.binary())


def _headers_of(piece: Columns, header: Any) -> HeaderColumns:
    if isinstance(header, BatchHeader):
        return header_columns(bytes(piece.payload), header.record_count)
    return HeaderColumns(array("q", bytes(8 * len(piece.offsets))), [], [])


def _header_lists(parts: list[HeaderColumns]) -> pa.Array:
    """Return an Arrow array with one item for each record: the list of its headers, or null without headers, as in Spark's source.

    parts: one item for each batch, with the headers of all records of the batch.
    """
    joined = array("q")
    for part in parts:
        joined.extend(part.counts)
    counts = _arrow(joined)
    ends = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(counts)]).cast(pa.int32())
    names = pa.array([name for part in parts for name in part.names], pa.string())
    values = pa.array([value for part in parts for value in part.values], pa.binary())
    structs = pa.StructArray.from_arrays([names, values], fields=list(_HEADER))
    return pa.ListArray.from_arrays(ends, structs, type=_HEADERS, mask=pc.equal(counts, 0))


def _old_columns(entry: Entry) -> Columns:
    """Return the byte positions, offsets and timestamps (`Columns`) of a message of magic 0 or 1.

    Such messages are rare, so each record is converted separately.

    entry: the message, which contains several records if it is compressed.
    """
    record_columns = Columns(memoryview(b""), *(array("q") for _ in range(6)))
    payload = bytearray()
    for record in records(entry.view):
        record_columns.offsets.append(record.offset)
        record_columns.timestamps.append(record.timestamp)
        for part, starts, ends in (
            (record.key, record_columns.key_starts, record_columns.key_ends),
            (record.value, record_columns.value_starts, record_columns.value_ends),
        ):
            starts.append(-1 if part is None else len(payload))
            payload += part or b""
            ends.append(-1 if part is None else len(payload))
    return record_columns._replace(payload=memoryview(bytes(payload)))
