"""The records of a batch of magic 2 as columns: for those who look at many records and at few of their bytes.

With numpy installed it is used, imported at the first call; without, the same comes from `walk`. This module must never
know what columns are used for.
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
"""Fewer records than that are read before numpy has begun."""


class Columns(NamedTuple):
    """One entry a record in each array. Starts and ends are places in ``payload``, the decompressed records; -1 for null.

    ``timestamps`` are in ms. Headers are not told (`header_columns`).
    """

    payload: memoryview
    offsets: array[int]
    timestamps: array[int]
    key_starts: array[int]
    key_ends: array[int]
    value_starts: array[int]
    value_ends: array[int]


def columns(batch: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Columns:
    """The columns of one batch, given from its first to its last byte.

    DecodeError for damaged records or more than ``limit_bytes`` of them. The checksum is not looked at.
    """
    header, b = payload(batch, limit_bytes)
    append_time = header.max_timestamp if header.is_log_append_time else None
    if header.record_count >= _FEW and (gather := _gather()):
        gathered = gather.columns(b, header.record_count, header.base_offset, header.base_timestamp, append_time)
        if gathered is not None:
            return Columns(memoryview(b), *gathered)
    return walked_columns(b, header)


class HeaderColumns(NamedTuple):
    """The headers of many records, one after the other: how many each record has, and all their names and values."""

    counts: array[int]
    names: list[str]
    values: list[bytes | None]


def header_columns(payload: bytes, count: int) -> HeaderColumns:
    """The headers of the ``count`` records that a batch's decompressed bytes are. DecodeError for damage."""
    made = HeaderColumns(array("q"), [], [])
    for part in walk(payload, count):
        if isinstance(part, Stretch):
            made.counts.frombytes(bytes(made.counts.itemsize * part.count))
            continue
        headers = part[6]
        made.counts.append(len(headers))
        for name, value in headers:
            made.names.append(name)
            made.values.append(value)
    return made


def keys(batch: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> list[bytes | None]:
    """The keys of one batch, given from its first to its last byte. DecodeError as for `columns`."""
    header, b = payload(batch, limit_bytes)
    if not _begins_evenly(b) and (gather := _gather()):
        found = gather.keys(b, header.record_count)
        if found is not None:
            return cast("list[bytes | None]", found)
    return walked_keys(b, header)


def _begins_evenly(b: bytes) -> bool:
    """Whether the first records seem to be of one size: then slices are faster than numpy at getting a column of bytes."""
    try:
        size, width = read_varint(b, 0)
        stride = size + width
        return stride > 0 and b[stride] == b[0] == b[2 * stride]
    except (IndexError, ValueError):
        return False


@cache
def _gather() -> ModuleType | None:
    """The module that does it with numpy, if numpy is here."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        return None
    return import_module("kafkaproto.records.gather")


def walked_columns(b: bytes, header: BatchHeader) -> Columns:
    """The same without numpy, from the decompressed records."""
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    made = Columns(memoryview(b), *(array("q") for _ in range(6)))
    _, offsets, timestamps, key_starts, key_ends, value_starts, value_ends = made
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
        raise DecodeError("RecordBatch.records", 0, "an offset or a timestamp has more than 64 bits") from None
    if header.is_log_append_time:
        return made._replace(timestamps=array("q", [header.max_timestamp]) * len(offsets))
    return made


def _places(stretch: Stretch, at: int, size: int) -> Sequence[int]:
    if size == NULL:
        return array("q", [NULL]) * stretch.count
    stride = stretch.shape.stride
    first = stretch.pos + at
    return range(first, first + stretch.count * stride, stride)


def walked_keys(b: bytes, header: BatchHeader) -> list[bytes | None]:
    """The same without numpy, from the decompressed records."""
    found: list[bytes | None] = []
    for part in walk(b, header.record_count):
        if isinstance(part, Stretch):
            found.extend(part.keys(b))
        else:
            found.append(None if part[2] < 0 else b[part[2] : part[3]])
    return found
