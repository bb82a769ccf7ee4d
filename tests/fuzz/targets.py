"""What a fuzzer is let loose on, and what must be true of any bytes. Each target takes the bytes that the fuzzer made up.

The first byte of a message chooses one of all layouts, so that one corpus serves all. This module knows no fuzzer:
``tests.fuzz`` runs the targets under atheris, and ``test_corpus`` feeds them the corpus without it.
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
    """Two bytes choose a version of a request, the rest is the request."""
    message(REQUESTS[int.from_bytes(data[:2], "big") % len(REQUESTS)], data[2:])


def responses(data: bytes) -> None:
    """Two bytes choose a version of a response, the rest is the response."""
    message(RESPONSES[int.from_bytes(data[:2], "big") % len(RESPONSES)], data[2:])


def message(entry: Entry, data: bytes) -> None:
    """Both forms say the same; what is read is written so that it is read again and written again as the same bytes."""
    flat, readable = outcome(entry.layout.decode, data), outcome(entry.layout.parse, data)
    assert same(flat, readable), (entry.id, flat, readable)
    if isinstance(flat, tuple):
        assert "cannot be read" not in flat[2], (entry.id, flat)
        return
    try:
        written = entry.layout.encode(flat)
    except EncodeError as error:
        # what only reading allows: one unknown tag twice, or a text that grows by its replacements
        if "unknown_tagged_fields" in error.path or "too long" in error.reason:
            return
        raise
    # the objects may differ: unknown tags are written in ascending order, whatever the order in which they came
    assert entry.layout.encode(entry.layout.decode(written)) == written, entry.id


LIMIT_BYTES = 1 << 20
"""What the records of one batch may unpack to here."""


def record_batches(data: bytes) -> None:
    """Records of any magic: each way to look at a batch says the same, and what cannot be looked at is a DecodeError."""
    found = outcome(lambda taken: [bytes(batch.view) for batch in entries.batches(taken)], data)
    if isinstance(found, tuple):
        outcome(entries.complete_bytes, data)
        return
    assert b"".join(found) == data
    for batch in found:
        told = outcome(lambda taken: list(entries.records(taken, LIMIT_BYTES)), batch)
        problems(batch, LIMIT_BYTES)
        if entries.read_header(batch).magic == MAGIC:
            as_columns(batch, told)
    for magic in (0, 1, 2):
        convert(data, magic)


def as_columns(batch: bytes, told: Any) -> None:
    """The columns and the keys of a batch are those of its records."""
    found = outcome(lambda taken: columns(taken, LIMIT_BYTES), batch)
    only_keys = outcome(lambda taken: keys(taken, LIMIT_BYTES), batch)
    if isinstance(told, tuple):
        # a timestamp or an offset that no array holds is damage to columns only; the other way round there is none
        assert isinstance(found, tuple), told
        assert isinstance(only_keys, tuple), told
        return
    assert only_keys == [record.key for record in told]
    if not isinstance(found, Columns):
        assert any(abs(record.offset) >> 63 or abs(record.timestamp) >> 63 for record in told), found
        return
    assert list(found.offsets) == [record.offset for record in told]
    assert list(found.timestamps) == [record.timestamp for record in told]


def convert(data: bytes, magic: int) -> None:
    """Converted records can be read, or there is a reason why not."""
    try:
        if magic == MAGIC:
            made = up_convert(data, limit_bytes=LIMIT_BYTES)
        else:
            made = down_convert(data, magic, limit_bytes=LIMIT_BYTES)
        list(entries.entries(made, LIMIT_BYTES))
    except (DecodeError, EncodeError):
        return


def outcome(read: Callable[[bytes], Any], data: bytes) -> Any:
    """The value, or path, offset and reason of the DecodeError. Anything else that is raised goes through."""
    try:
        return read(data)
    except DecodeError as error:
        return error.path, error.offset, error.reason


def same(one: Any, other: Any) -> bool:
    return bool(one == other) or repr(one) == repr(other)  # a NaN is not equal to itself


TARGETS: dict[str, Callable[[bytes], None]] = {
    "requests": requests,
    "responses": responses,
    "records": record_batches,
}
LONGEST = 4096
"""Bytes that a fuzzer makes up at most; larger ones find nothing that these do not."""
