"""The readable codec and the code generated from it agree on valid and invalid bytes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.message import Message
from tests.support.codec.catalogue import DATA_ENTRIES, ENTRIES, Entry, core_first
from tests.support.codec.example import EXAMPLE_ENTRIES
from tests.support.codec.values import Values

ALL = [*ENTRIES, *DATA_ENTRIES, *EXAMPLE_ENTRIES]
BAD_VALUES: tuple[Any, ...] = (
    None,
    "text",
    2**70,
    -(2**70),
    b"bytes",
    1.5,
    [1],
    [None],
    "\ud800",
    object(),
    "x" * 40000,
)


@core_first(ALL)
def test_generated_codec_and_construct_library_encode_and_decode_identically(entry: Entry) -> None:
    values = Values(f"parity {entry.id}")
    for obj in values.objects(entry.layout, 200):
        values.add_unknown_tags(entry.layout, obj)
        data = entry.layout.build(obj)
        assert data == entry.layout.encode(obj)
        assert entry.layout.parse(data) == entry.layout.decode(data)


@core_first(ALL)
def test_generated_codec_and_construct_library_reject_the_same_bytes(entry: Entry) -> None:
    chance = random.Random(entry.id)
    values = Values(f"bytes {entry.id}")
    for shape in ("small", "tiny", "wide", *["random"] * 17):
        obj = values.object(entry.layout, shape)
        values.add_unknown_tags(entry.layout, obj)
        data = entry.layout.encode(obj)
        for _ in range(5 if data else 0):
            at = chance.randrange(len(data))
            other = chance.choice((b"", b"\xff", b"\x00", b"\x7f", chance.randbytes(5)))
            assert_same_outcome(entry, data[:at] + other + data[at + 1 :])


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_generated_codec_and_construct_library_reject_the_same_truncated_messages(entry: Entry) -> None:
    values = Values(f"truncated {entry.id}")
    obj = values.object(entry.layout, "tiny")
    values.add_unknown_tags(entry.layout, obj)
    data = entry.layout.encode(obj)
    for length in range(len(data)):
        assert_same_outcome(entry, data[:length])


def assert_same_outcome(entry: Entry, data: bytes) -> None:
    flat, readable = outcome(entry.layout.decode, data), outcome(entry.layout.parse, data)
    # a NaN is not equal to itself
    assert flat == readable or entry.layout.encode(flat) == entry.layout.encode(readable)
    assert "cannot be read" not in str(flat), "the readable form accepted the value"


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_generated_codec_and_construct_library_reject_the_same_values(entry: Entry) -> None:
    for name in [name for name, _ in entry.layout.fields]:
        for bad in BAD_VALUES:
            obj = Values(entry.id).object(entry.layout, "small")
            setattr(obj, name, bad)
            flat, readable = outcome(entry.layout.encode, obj), outcome(entry.layout.build, obj)
            assert flat == readable, (name, bad)
            assert "cannot be written" not in str(flat)


def outcome(function: Any, argument: Any) -> Any:
    """Return the value or the codec's error; other exceptions propagate."""
    try:
        return function(argument)
    except DecodeError as error:
        return error.path, error.offset, error.reason
    except EncodeError as error:
        return error.path, error.reason, error.versions


def test_decode_error_names_the_field_and_the_byte_offset() -> None:
    layout: Message[Any] = next(e.layout for e in ENTRIES if e.id == "MetadataRequest-v1")
    data = bytes.fromhex("00000002 0001 61 0005 6263".replace(" ", ""))
    with pytest.raises(DecodeError) as error:
        layout.decode_flat(memoryview(b"\x00" * 10 + data), 10, 10 + len(data))
    assert (error.value.path, error.value.offset) == ("MetadataRequest.topics[1].name", 10 + 7)
    assert "5" in error.value.reason and "2 bytes are left" in error.value.reason
