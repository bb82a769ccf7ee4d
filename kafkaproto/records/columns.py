"""The records of a batch of magic 2 as columns (an array per field), for code that processes many records and few of their bytes.

numpy computes the columns if it is installed and likely to be faster; it is imported when first needed. Otherwise `kafkaproto.records.walk`,
which is plain Python, computes the same columns.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import NamedTuple, cast

from kafkaproto.errors import DecodeError
from kafkaproto.records.batch import BatchHeader, payload
from kafkaproto.records.compression import DEFAULT_LIMIT_BYTES, Buffer
from kafkaproto.records.varint import read_varint
from kafkaproto.records.walk import NULL, Stretch, walk

__all__ = ["Columns", "HeaderColumns", "columns", "header_columns", "keys"]

_FEW = 32
"""The number of records in a batch below which decoding them without numpy is faster than with numpy."""


class Columns(NamedTuple):
    """The records of one batch as arrays with one entry per record.

    The starts and ends (exclusive) of keys and values are indexes into ``payload``, the decompressed records; -1 for null. ``timestamps`` are in ms.
    Headers are separate (`header_columns`).
    """

    payload: memoryview
    offsets: array[int]
    timestamps: array[int]
    key_starts: array[int]
    key_ends: array[int]
    value_starts: array[int]
    value_ends: array[int]


def columns(batch: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Columns:
    """Return the records of one batch as arrays, one per field, such as offsets and timestamps. batch: exactly the bytes of one batch.

    Raises DecodeError for damaged records, or for more than ``limit_bytes`` bytes of decompressed records. The checksum is not verified.
    """
    header, b = payload(batch, limit_bytes)
    append_time = header.max_timestamp if header.is_log_append_time else None
    if header.record_count >= _FEW and (gather := _gather()):
        arrays = gather.columns(b, header.record_count, header.base_offset, header.base_timestamp, append_time)
        if arrays is not None:
            return Columns(memoryview(b), *arrays)
    return walked_columns(b, header)


class HeaderColumns(NamedTuple):
    """The headers of many records: how many headers each record has, and the names and values of all headers in order."""

    counts: array[int]
    names: list[str]
    values: list[bytes | None]


def header_columns(payload: bytes, count: int) -> HeaderColumns:
    """Return the headers of all records of a batch. payload: the decompressed records. count: the number of records.

    Raises DecodeError for damaged records.
    """
    header_table = HeaderColumns(array("q"), [], [])
    for part in walk(payload, count):
        if isinstance(part, Stretch):
            header_table.counts.frombytes(bytes(header_table.counts.itemsize * part.count))
            continue
        headers = part[6]
        header_table.counts.append(len(headers))
        for name, value in headers:
            header_table.names.append(name)
            header_table.values.append(value)
    return header_table


def keys(batch: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> list[bytes | None]:
    """Return the key of each record of one batch; None for a record without a key.

    Raises DecodeError for damaged records, or for more than ``limit_bytes`` bytes of decompressed records. batch: exactly the bytes of one batch.
    """
    header, b = payload(batch, limit_bytes)
    if not _begins_evenly(b) and (gather := _gather()):
        key_list = gather.keys(b, header.record_count)
        if key_list is not None:
            return cast("list[bytes | None]", key_list)
    return walked_keys(b, header)


def _begins_evenly(b: bytes) -> bool:
    """Return whether the first three records seem to have the same size. b: the decompressed records of a batch.

    If so, `kafkaproto.records.walk` is faster than numpy, because it decodes consecutive records of the same shape together.
    """
    try:
        size, width = read_varint(b, 0)
        stride = size + width
        return stride > 0 and b[stride] == b[0] == b[2 * stride]
    except (IndexError, ValueError):
        return False


@cache
def _gather() -> ModuleType | None:
    """Return the module `kafkaproto.records.gather`, which decodes records with numpy, or None if numpy is not installed."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        return None
    return import_module("kafkaproto.records.gather")


def walked_columns(b: bytes, header: BatchHeader) -> Columns:
    """Return the fields of a batch's records as arrays, one per field. Uses `walk`, which decodes the records in order, instead of numpy.

    b: the decompressed records of the batch. header: its header. Raises DecodeError for damaged records.
    """
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    table = Columns(memoryview(b), *(array("q") for _ in range(6)))
    _, offsets, timestamps, key_starts, key_ends, value_starts, value_ends = table
    try:
        for part in walk(b, header.record_count):
            if isinstance(part, Stretch):
                shape = part.shape
                offsets.extend(part.offsets(b, base_offset))
                timestamps.extend(part.timestamps(b, base_timestamp))
                key_starts.extend(_places(part, shape.key_at, shape.key_size))
                key_ends.extend(_places(part, shape.key_end, shape.key_size))
                value_starts.extend(_places(part, shape.value_at, shape.value_size))
                value_ends.extend(_places(part, shape.value_end, shape.value_size))
                continue
            timestamp_delta, offset_delta, key_at, key_end, value_at, value_end, _ = part
            offsets.append(base_offset + offset_delta)
            timestamps.append(base_timestamp + timestamp_delta)
            key_starts.append(key_at)
            key_ends.append(key_end)
            value_starts.append(value_at)
            value_ends.append(value_end)
    except OverflowError:
        raise DecodeError(
            "RecordBatch.records",
            0,
            "an offset or a timestamp does not fit in 64 bits; the batch's base plus the record's delta must fit",
        ) from None
    if header.is_log_append_time:
        return table._replace(timestamps=array("q", [header.max_timestamp]) * len(offsets))
    return table


def _places(stretch: Stretch, at: int, size: int) -> Sequence[int]:
    if size == NULL:
        return array("q", [NULL]) * stretch.count
    stride = stretch.shape.stride
    first = stretch.pos + at
    return range(first, first + stretch.count * stride, stride)


def walked_keys(b: bytes, header: BatchHeader) -> list[bytes | None]:
    """Return the key of each record of one batch, without numpy; None for a record without a key.

    b: the decompressed records of the batch. header: the header of the batch. Raises DecodeError for damaged records.
    """
    record_keys: list[bytes | None] = []
    for part in walk(b, header.record_count):
        if isinstance(part, Stretch):
            record_keys.extend(part.keys(b))
        else:
            record_keys.append(None if part[2] < 0 else b[part[2] : part[3]])
    return record_keys
