"""Fuzz targets and the properties that must hold for any bytes. Each target takes the input of the fuzzer.

The first bytes of a message choose one of all layouts, so that one corpus serves all. This module does not depend on a fuzzer:
``tests.fuzz`` runs the targets under atheris, and ``test_corpus`` passes the corpus to them without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records import entries
from kafkaproto.records.batch import MAGIC
from kafkaproto.records.columns import Columns, columns, keys
from kafkaproto.records.convert import down_convert, up_convert
from kafkaproto.records.verify import problems
from tests.support.codec.catalogue import ENTRIES, Entry

REQUESTS = [entry for entry in ENTRIES if entry.name.endswith(("Request", "RequestHeader"))]
RESPONSES = [entry for entry in ENTRIES if entry not in REQUESTS]


def requests(data: bytes) -> None:
    """Decode a request whose version is chosen by two bytes."""
    message(REQUESTS[int.from_bytes(data[:2], "big") % len(REQUESTS)], data[2:])


def responses(data: bytes) -> None:
    """Decode a response whose version is chosen by two bytes."""
    message(RESPONSES[int.from_bytes(data[:2], "big") % len(RESPONSES)], data[2:])


def message(entry: Entry, data: bytes) -> None:
    """Check that both codec forms agree, and that a decoded message survives encoding and decoding."""
    flat, readable = outcome(entry.layout.decode, data), outcome(entry.layout.parse, data)
    assert same(flat, readable), (entry.id, flat, readable)
    if isinstance(flat, tuple):
        assert "cannot be read" not in flat[2], (entry.id, flat)
        return
    try:
        written = entry.layout.encode(flat)
    except EncodeError as error:
        # values that can be decoded but not encoded: a repeated unknown tag, or a text that grows when invalid bytes are replaced
        if "unknown_tagged_fields" in error.path or "too long" in error.reason:
            return
        raise
    # the objects may differ: unknown tags are encoded in ascending order, whatever their original order
    assert entry.layout.encode(entry.layout.decode(written)) == written, entry.id


LIMIT_BYTES = 1 << 20
"""The limit of decompressed bytes per batch."""


def record_batches(data: bytes) -> None:
    """Check that all ways to read records of any magic agree, and that unreadable bytes raise DecodeError."""
    from_batches = outcome(lambda buffer: [bytes(batch.view) for batch in entries.batches(buffer)], data)
    if isinstance(from_batches, tuple):
        outcome(entries.complete_bytes, data)
        return
    assert b"".join(from_batches) == data
    for batch in from_batches:
        from_records = outcome(lambda buffer: list(entries.records(buffer, LIMIT_BYTES)), batch)
        problems(batch, LIMIT_BYTES)
        if entries.read_header(batch).magic == MAGIC:
            as_columns(batch, from_records)
    for magic in (0, 1, 2):
        convert(data, magic)


def as_columns(batch: bytes, expected: Any) -> None:
    """Check that the columns and keys of a batch equal those of its records."""
    from_columns = outcome(lambda buffer: columns(buffer, LIMIT_BYTES), batch)
    only_keys = outcome(lambda buffer: keys(buffer, LIMIT_BYTES), batch)
    if isinstance(expected, tuple):
        # a timestamp or offset outside an array's range is damage only for columns; there is no opposite case
        assert isinstance(from_columns, tuple), expected
        assert isinstance(only_keys, tuple), expected
        return
    assert only_keys == [record.key for record in expected]
    if not isinstance(from_columns, Columns):
        assert any(abs(record.offset) >> 63 or abs(record.timestamp) >> 63 for record in expected), from_columns
        return
    assert list(from_columns.offsets) == [record.offset for record in expected]
    assert list(from_columns.timestamps) == [record.timestamp for record in expected]


def convert(data: bytes, magic: int) -> None:
    """Check that records can be read after conversion, unless conversion is rejected."""
    try:
        if magic == MAGIC:
            converted = up_convert(data, limit_bytes=LIMIT_BYTES)
        else:
            converted = down_convert(data, magic, limit_bytes=LIMIT_BYTES)
        list(entries.entries(converted, LIMIT_BYTES))
    except (DecodeError, EncodeError):
        return


def outcome(read: Callable[[bytes], Any], data: bytes) -> Any:
    """Return the value, or path, offset and reason of a DecodeError. Other exceptions propagate."""
    try:
        return read(data)
    except DecodeError as error:
        return error.path, error.offset, error.reason


def same(left: Any, other: Any) -> bool:
    return bool(left == other) or repr(left) == repr(other)  # a NaN is not equal to itself


TARGETS: dict[str, Callable[[bytes], None]] = {
    "requests": requests,
    "responses": responses,
    "records": record_batches,
}
LONGEST = 4096
"""The largest input of the fuzzer in bytes; larger ones find nothing new."""
