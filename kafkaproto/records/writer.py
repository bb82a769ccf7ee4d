"""Encoder of the records of a batch of magic 2, before compression.

This module does not depend on batch headers.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkaproto.records.record import NewRecord
from kafkaproto.records.varint import varint

_KEPT = range(-64, 8192)


class _Varints(dict[int, bytes]):
    """A cache of encoded varints of at most two bytes, because a lookup is faster than encoding."""

    def __missing__(self, value: int) -> bytes:
        encoded = varint(value)
        if value in _KEPT:
            self[value] = encoded
        return encoded


_varints = _Varints()


def write_records(listed: Sequence[NewRecord], offset_deltas: Sequence[int], base_timestamp: int) -> bytes:
    """Return the encoded records, one after the other.

    offset_deltas: the offset of each record minus the base offset of the batch. base_timestamp: the time in ms from which the records' timestamps are
    counted. Raises AttributeError, OverflowError, TypeError or ValueError for objects that are not records and for values that do not fit.
    """
    varints = _varints
    null = varints[-1]
    parts: list[bytes] = []
    for (value, key, timestamp, headers), offset_delta in zip(listed, offset_deltas, strict=True):
        times = varints[timestamp - base_timestamp]
        offset = varints[offset_delta]
        if key is None:
            key_size, key = null, b""
        else:
            key_size = varints[len(key)]
        if value is None:
            value_size, value = null, b""
        else:
            value_size = varints[len(value)]
        tail = _headers(headers) if headers else b"\x00"
        # one byte of attributes, which are unused, after the size
        size = 1 + len(times) + len(offset) + len(key_size) + len(key) + len(value_size) + len(value) + len(tail)
        parts += (varints[size], b"\x00", times, offset, key_size, key, value_size, value, tail)
    return b"".join(parts)


def _headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    parts = [varint(len(headers))]
    for name, value in headers:
        encoded = name.encode()
        parts += (varint(len(encoded)), encoded)
        parts += (varint(-1),) if value is None else (varint(len(value)), value)
    return b"".join(parts)
