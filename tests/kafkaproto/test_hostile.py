"""Bytes from nobody's client: whatever comes, there is an object or a DecodeError, at once and in little memory."""

from __future__ import annotations

import random
import time
import tracemalloc
from typing import Any

import pytest

from kafkaproto.errors import DecodeError
from tests.kafkaproto.catalogue import ENTRIES, LATEST, Entry
from tests.kafkaproto.example import EXAMPLE_ENTRIES
from tests.kafkaproto.values import Values

ALL = [*ENTRIES, *EXAMPLE_ENTRIES]
NEWEST = [*LATEST, *EXAMPLE_ENTRIES[5::6]]

INT32_MAX = b"\x7f\xff\xff\xff"
UVARINT_MAX = b"\xff\xff\xff\xff\x0f"
ENDLESS_VARINT = b"\xff" * 200_000


def small_bytes(entry: Entry) -> bytes:
    values = Values(f"hostile {entry.id}")
    obj = values.object(entry.layout, "tiny")
    values.add_unknown_tags(entry.layout, obj)
    return entry.layout.encode(obj)


def decode_or_refuse(entry: Entry, data: bytes) -> Any:
    try:
        return entry.layout.decode(data)
    except DecodeError:
        return None


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_W5_every_truncation_raises(entry: Entry) -> None:
    data = small_bytes(entry)
    for length in range(len(data)):
        with pytest.raises(DecodeError):
            entry.layout.decode(data[:length])


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_W5_a_message_that_ends_before_its_buffer_does_is_not_read_on(entry: Entry) -> None:
    data = small_bytes(entry)
    buffer = memoryview(data + data)
    for end in range(0, len(data), 7):
        with pytest.raises(DecodeError):
            entry.layout.decode_flat(buffer, 0, end)


@pytest.mark.parametrize("entry", NEWEST, ids=lambda entry: entry.id)
def test_any_single_byte_may_be_anything(entry: Entry) -> None:
    data = small_bytes(entry)
    for at in range(len(data)):
        for byte in (0, 1, 0x7F, 0x80, 0xFF):
            decode_or_refuse(entry, data[:at] + bytes([byte]) + data[at + 1 :])


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_random_bytes_are_no_trouble(entry: Entry) -> None:
    chance = random.Random(entry.id)
    for _ in range(25):
        decode_or_refuse(entry, chance.randbytes(chance.randrange(200)))


@pytest.mark.parametrize("entry", NEWEST, ids=lambda entry: entry.id)
def test_W5_a_length_or_count_of_billions_is_refused_before_anything_is_allocated(entry: Entry) -> None:
    data = small_bytes(entry)
    for at in range(len(data)):
        decode_or_refuse(entry, data[:at] + INT32_MAX + data[at + 4 :])  # makes the flat code, outside the measurement
    tracemalloc.start()
    try:
        for at in range(len(data)):
            decode_or_refuse(entry, data[:at] + INT32_MAX + data[at + 4 :])
            decode_or_refuse(entry, data[:at] + UVARINT_MAX + data[at + 1 :])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 300_000 + 20 * len(data)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("MetadataRequest-v1", INT32_MAX + b"\x00" * 8),
        ("MetadataRequest-v9", UVARINT_MAX + b"\x00" * 8),
        ("OffsetFetchRequest-v1", b"\x00\x01g" + INT32_MAX + b"\x00" * 8),
        ("JoinGroupResponse-v0", b"\x00" * 12 + INT32_MAX),
    ],
)
def test_W6_more_items_than_bytes_left_raise_and_say_so(name: str, data: bytes) -> None:
    entry = next(entry for entry in ENTRIES if entry.id == name)
    with pytest.raises(DecodeError, match=r"a length of 214748364\d|a length of 4294967294"):
        entry.layout.decode(data)


@pytest.mark.parametrize("entry", [entry for entry in NEWEST if entry.layout.tags], ids=lambda entry: entry.id)
def test_an_endless_varint_ends_after_five_bytes(entry: Entry) -> None:
    data = small_bytes(entry)
    started = time.perf_counter()
    for at in range(0, len(data), 5):
        decode_or_refuse(entry, data[:at] + ENDLESS_VARINT)
    assert time.perf_counter() - started < 0.02 * len(data)


def test_a_varint_of_more_than_32_bits_raises() -> None:
    entry = next(entry for entry in ENTRIES if entry.id == "MetadataRequest-v9")
    for varint, reason in ((b"\xff\xff\xff\xff\x1f", "32 bits"), (b"\x80\x80\x80\x80\x80\x00", "five bytes")):
        with pytest.raises(DecodeError, match=reason):
            entry.layout.decode(varint + bytes(50))


def test_as_many_items_as_bytes_are_allowed_but_must_be_there() -> None:
    entry = next(entry for entry in ENTRIES if entry.id == "MetadataRequest-v0")
    with pytest.raises(DecodeError, match=r"topics\[2\]\.name"):
        entry.layout.decode(b"\x00\x00\x00\x04\x00\x00\x00\x00")


def test_text_that_is_no_utf8_is_read_as_kafka_reads_it() -> None:
    entry = next(entry for entry in ENTRIES if entry.id == "MetadataRequest-v1")
    request = entry.layout.decode(b"\x00\x00\x00\x01\x00\x03a\xff\xc3")
    assert request.topics[0].name == "a\ufffd\ufffd"
    surrogates = b"\x00\x00\x00\x01\x00\x0b" + b"\xed\xa0\x80\xed\xb0\xed\xbf.\xf0\x9f\x98"
    assert entry.layout.decode(surrogates).topics[0].name == "\ufffd\ufffd\ufffd.\ufffd"


def test_a_compact_string_above_kafkas_limit_is_refused() -> None:
    entry = next(entry for entry in ENTRIES if entry.id == "HeartbeatRequest-v4")
    longest = b"\x80\x80\x02" + b"x" * 32767
    rest = b"\x00\x00\x00\x01" + b"\x02m" + b"\x00" + b"\x00"
    assert len(entry.layout.decode(longest + rest).group_id) == 32767
    with pytest.raises(DecodeError, match="32768 bytes is too long"):
        entry.layout.decode(b"\x81\x80\x02" + b"x" * 32768 + rest)
