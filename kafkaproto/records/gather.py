"""Columns of records computed with numpy: one operation for all records instead of one record after the other.

Only the positions of the records are found one after the other, unless consecutive records have the same size. For unusual or damaged records,
`columns` and `keys` return None. The caller then uses the slower decoder `walk`, which reports damage. This module does not depend on batch headers.
Only `kafkaproto.records.columns` imports it, after checking that numpy is installed.
"""

from __future__ import annotations

from array import array
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kafkaproto.records.varint import read_varint
from kafkaproto.records.walk import NULL, read_headers, same_bytes

Ints = Any
"""A numpy array of int64. The alias is Any, so that type checking this package does not require numpy."""

_FIRST_LOOK = 64
_LOOK_BYTES = 1 << 20
_PADDING = bytes(32)
"""Zero bytes appended to the records, so that reading a varint at the very end does not run past the buffer."""
_LARGEST_BASE = 1 << 62
_FEW = 8
"""The number of consecutive records of the same size below which processing them one by one is faster than with numpy."""


class _Fields(NamedTuple):
    """The fields of all records of a batch, as arrays with one entry per record.

    Starts are indexes into the decompressed records; sizes are in bytes, -1 for null.
    """

    timestamp_deltas: Ints
    offset_deltas: Ints
    key_starts: Ints
    key_sizes: Ints
    value_starts: Ints
    value_sizes: Ints


class _Unusual(Exception):
    """Raised for records that are damaged, or that this module cannot decode. The caller then uses the slower decoder `kafkaproto.records.walk`."""


def columns(
    b: bytes, count: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> tuple[array[int], ...] | None:
    """Return (offsets, timestamps, key starts, key ends, value starts, value ends) of the ``count`` decompressed records in ``b``.

    base_offset, base_timestamp: the values in the header of the batch; timestamps are in ms. append_time: the timestamp of all records, None if each
    has its own. Ends are exclusive. Returns None if the caller must use the slower decoder in `kafkaproto.records.walk`.
    """
    if max(abs(base_offset), abs(base_timestamp)) >= _LARGEST_BASE:
        return None
    try:
        fields = _fields(b, count)
    except (_Unusual, IndexError, ValueError):
        return None
    timestamps: Ints
    if append_time is None:
        timestamps = fields.timestamp_deltas + base_timestamp
    else:
        timestamps = np.full(count, append_time, dtype=np.int64)
    return (
        _as_array(fields.offset_deltas + base_offset),
        _as_array(timestamps),
        *_starts_and_ends(fields.key_starts, fields.key_sizes),
        *_starts_and_ends(fields.value_starts, fields.value_sizes),
    )


def keys(b: bytes, count: int) -> list[bytes | None] | None:
    """Return the key of each of the ``count`` decompressed records in ``b``.

    Returns None if the caller must use the slower decoder in `kafkaproto.records.walk`.
    """
    try:
        fields = _fields(b, count)
    except (_Unusual, IndexError, ValueError):
        return None
    return _cut(b, fields.key_starts, fields.key_sizes)


def _cut(b: bytes, starts: Ints, sizes: Ints) -> list[bytes | None]:
    """Return ``b[start : start + size]`` for each pair of a start in ``starts`` and a size in ``sizes``; None for a negative size."""
    count = len(starts)
    differs = sizes[1:] != sizes[:-1]
    steps = np.diff(starts)
    differs[1:] |= steps[1:] != steps[:-1]
    edges = [0, *(np.flatnonzero(differs) + 1).tolist(), count]
    if len(edges) * _FEW > count:
        places = zip(starts.tolist(), sizes.tolist(), strict=True)
        return [None if size < 0 else b[start : start + size] for start, size in places]
    pieces: list[bytes | None] = []
    for first, stop in pairwise(edges):
        size, start = int(sizes[first]), int(starts[first])
        if size <= 0:
            pieces += [None if size < 0 else b""] * (stop - first)
        else:
            step = int(steps[first]) if stop - first > 1 else size
            pieces += np.ndarray((stop - first,), f"V{size}", b, start, (step,)).tolist()
    return pieces


def _fields(b: bytes, count: int) -> _Fields:
    """Return all fields of the ``count`` decompressed records in ``b``, each field as an array with one entry per record.

    Raises _Unusual, IndexError or ValueError if the records are damaged, or are of a kind that only the slower decoder in `kafkaproto.records.walk`
    can decode. Each field begins where the one before ends, and the last must end where the record ends, so no field extends into the next record.
    """
    padded = b + _PADDING
    words = np.ndarray((len(padded) - 1,), "<u2", padded, 0, (1,))  # the two bytes at every position
    at, body_ends = _bodies(b, count)
    timestamp_deltas, at = _varints(padded, words, at + 1)
    offset_deltas, at = _varints(padded, words, at, widest=4)  # four bytes hold less than 32 bits
    key_sizes, key_starts = _varints(padded, words, at)
    value_sizes, value_starts = _varints(padded, words, key_starts + np.maximum(key_sizes, 0))
    at = value_starts + np.maximum(value_sizes, 0)
    header_counts = np.frombuffer(padded, np.uint8).take(at)
    if header_counts.any():
        for i in np.flatnonzero(header_counts).tolist():
            at[i] = read_headers(b, int(at[i]), int(body_ends[i]))[1] - 1
    if not (at + 1 == body_ends).all():
        raise _Unusual
    return _Fields(timestamp_deltas, offset_deltas, key_starts, key_sizes, value_starts, value_sizes)


def _bodies(b: bytes, count: int) -> tuple[Ints, Ints]:
    """Return two arrays of positions in the decompressed records ``b``: the ends of the size fields, and the ends of the records.

    count: the number of records. Consecutive records of the same size are found without visiting each of them.
    """
    begins: list[Ints] = []
    body_ends: list[Ints] = []
    singles: list[int] = []
    single_ends: list[int] = []
    end = len(b)
    pos = previous_stride = 0
    records_left = count
    while records_left > 0 and pos < end:
        size, width = b[pos], 1
        if size >= 0x80:
            high, width = b[pos + 1], 2
            size = size & 0x7F | high << 7
            if high >= 0x80:
                size, body_at = read_varint(b, pos)
                size, width = size << 1, body_at - pos
        stride = width + (size >> 1)
        singles.append(pos + width)
        records_left -= 1
        pos += stride
        if size & 1 or size < 0 or pos > end:
            raise _Unusual
        single_ends.append(pos)
        if stride == previous_stride:
            look = _FIRST_LOOK
            while same_count := _same_size(b, pos - stride, pos, stride, width, min(look, records_left)):
                stop = pos + same_count * stride
                if same_count < _FEW:
                    singles += range(pos + width, stop + width, stride)
                    single_ends += range(pos + stride, stop + stride, stride)
                else:
                    begins += (np.array(singles, np.int64), np.arange(pos + width, stop + width, stride))
                    body_ends += (np.array(single_ends, np.int64), np.arange(pos + stride, stop + stride, stride))
                    singles.clear()
                    single_ends.clear()
                pos = stop
                records_left -= same_count
                look = min(look * 16, 1 + _LOOK_BYTES // stride)
        previous_stride = stride
    if records_left or pos != end:
        raise _Unusual
    return np.concatenate([*begins, np.array(singles, np.int64)]), np.concatenate(
        [*body_ends, np.array(single_ends, np.int64)]
    )


def _same_size(b: bytes, model: int, pos: int, stride: int, width: int, most: int) -> int:
    """Return how many consecutive records, from the one that begins at byte ``pos``, have the same size as the one that begins at byte ``model``.

    b: the decompressed records. stride: the size in bytes of the record at ``model``, including its size field. width: the size in bytes of this
    field. most: the maximum to return.
    """
    same_count = min(most, (len(b) - pos) // stride)
    for at in range(width):
        column = b[pos + at : pos + same_count * stride : stride]
        same_count = min(same_count, same_bytes(column, b[model + at : model + at + 1]))
    return same_count


@cache
def _short() -> tuple[Ints, Ints]:
    """Return two tables for decoding varints of one or two bytes: the decoded number, and the number of bytes of the varint.

    The index into both tables is the first two bytes as a number, low byte first. The number of bytes is 0 if the varint has more than two.
    """
    words = np.arange(1 << 16, dtype=np.int64)
    low, high = words & 0xFF, words >> 8
    raw = np.where(low < 0x80, low, low & 0x7F | high << 7)
    width = np.where(low < 0x80, 1, np.where(high < 0x80, 2, 0))
    return raw >> 1 ^ -(raw & 1), width


def _varints(padded: bytes, words: Ints, at: Ints, widest: int = 9) -> tuple[Ints, Ints]:
    """Decode the varints at the positions ``at``. Returns two arrays: their values, and the positions after them.

    padded: the decompressed records, with `_PADDING` after them. words: for every position, the two bytes there as a number, low byte first. Raises
    _Unusual for a varint of more than ``widest`` bytes.
    """
    values, widths = _short()
    first_two = words[at]
    numbers, width = values.take(first_two), widths.take(first_two)
    positions_after = at + width
    if not width.all():
        wide = np.flatnonzero(width == 0)
        numbers[wide], positions_after[wide] = _wide_varints(padded, at[wide], widest)
    return numbers, positions_after


def _wide_varints(padded: bytes, at: Ints, widest: int) -> tuple[Ints, Ints]:
    """Decode varints of more than two bytes byte by byte. Returns two arrays: the varints at the positions ``at``, the positions after them.

    padded: the records, with `_PADDING` after them. Raises _Unusual for a varint of more than ``widest`` bytes, at most 9: ten bytes would need more
    than 63 bits.
    """
    octets = np.frombuffer(padded, np.uint8)
    raw = np.zeros(len(at), np.int64)
    unfinished = np.ones(len(at), np.bool_)
    for shift in range(0, 7 * widest, 7):
        byte = octets[at].astype(np.int64)
        raw |= np.where(unfinished, (byte & 0x7F) << shift, 0)
        at = at + unfinished
        unfinished &= byte >= 0x80
        if not unfinished.any():
            return raw >> 1 ^ -(raw & 1), at
    raise _Unusual


def _starts_and_ends(starts: Ints, sizes: Ints) -> tuple[array[int], array[int]]:
    null = sizes < 0
    if null.any():
        starts, sizes = np.where(null, NULL, starts), np.maximum(sizes, 0)
    return _as_array(starts), _as_array(starts + sizes)


def _as_array(column: Ints) -> array[int]:
    values = array("q")
    values.frombytes(column.tobytes())
    return values
