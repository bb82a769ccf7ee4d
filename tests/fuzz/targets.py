"""What a fuzzer is let loose on, and what must be true of any bytes. Each target takes the bytes that the fuzzer made up.

The first byte of a message chooses one of all layouts, so that one corpus serves all. This module knows no fuzzer:
``tests.fuzz`` runs the targets under atheris, and ``test_corpus`` feeds them the corpus without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records.batch import batches, records
from tests.kafkaproto.catalogue import ENTRIES, Entry

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


def record_batches(data: bytes) -> None:
    """Batches of any magic: an object or a DecodeError, and the same when read twice."""
    found = outcome(lambda taken: [(batch.header, bytes(batch.view)) for batch in batches(taken)], data)
    if isinstance(found, tuple):
        return
    assert b"".join(view for _, view in found) == data[: sum(len(view) for _, view in found)]
    assert outcome(all_records, data) == outcome(all_records, data)


def all_records(data: bytes) -> list[Any]:
    return list(records(data))


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
