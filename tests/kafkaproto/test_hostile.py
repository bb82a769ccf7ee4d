"""Hostile message bytes: the decoder returns an object or raises DecodeError, quickly and in little memory."""

from __future__ import annotations

import random
import time
import tracemalloc
from functools import cache
from io import BytesIO
from typing import Any, BinaryIO, NamedTuple

import pytest

from kafkaproto import flat, tags
from kafkaproto.errors import DecodeError
from kafkaproto.flat import uvarint
from kafkaproto.primitives import LengthPrefixed
from kafkaproto.wire_type import parse_uvarint
from tests.support.codec.catalogue import ENTRIES, FIRST, LATEST, Entry, core_first
from tests.support.codec.example import EXAMPLE_ENTRIES
from tests.support.codec.values import Values

ALL = [*ENTRIES, *EXAMPLE_ENTRIES]
NEWEST = [*LATEST, *EXAMPLE_ENTRIES[5::6]]
ENDS = [*(entry for entry in FIRST if entry not in LATEST), *NEWEST]
"""The first and the newest version of each message."""

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


@pytest.mark.rule("W-5")
@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_every_truncation_of_a_message_raises_a_decode_error(entry: Entry) -> None:
    data = small_bytes(entry)
    for length in range(len(data)):
        with pytest.raises(DecodeError):
            entry.layout.decode(data[:length])


@pytest.mark.rule("W-5")
@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_decoder_raises_decode_error_if_the_end_argument_truncates_the_message(entry: Entry) -> None:
    data = small_bytes(entry)
    buffer = memoryview(data + data)
    for end in range(0, len(data), 7):
        with pytest.raises(DecodeError):
            entry.layout.decode_flat(buffer, 0, end)


@core_first(ENDS)
def test_decoding_a_message_with_a_byte_set_to_any_value_raises_only_decode_errors(entry: Entry) -> None:
    data = bytearray(small_bytes(entry))
    for at, was in enumerate(data):
        for byte in range(256):
            data[at] = byte
            decode_or_refuse(entry, bytes(data))
        data[at] = was


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_decoding_any_message_version_with_a_changed_byte_raises_only_decode_errors(entry: Entry) -> None:
    data = bytearray(small_bytes(entry))
    for at, was in enumerate(data):
        for byte in (0, 1, 0x7F, 0x80, 0xFF):
            data[at] = byte
            decode_or_refuse(entry, bytes(data))
        data[at] = was


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_decoding_random_bytes_raises_only_decode_errors(entry: Entry) -> None:
    chance = random.Random(entry.id)
    for _ in range(25):
        decode_or_refuse(entry, chance.randbytes(chance.randrange(200)))


class Prefix(NamedTuple):
    """A count or a length: its position and kind, which is an array, a string, bytes, or None for tag sections."""

    path: str
    start: int
    end: int
    of: LengthPrefixed | None


def prefixes(entry: Entry, data: bytes) -> list[Prefix]:
    """Find every count and length of a message at every depth by observing the readable codec form."""
    all_prefixes: list[Prefix] = []
    sections: set[int] = set()
    """Positions of tag sections, each with its count."""

    def watch(holder: Any, name: str) -> None:
        read = getattr(holder, name)

        def watched(*arguments: Any) -> Any:
            stream = next(argument for argument in arguments if isinstance(argument, BytesIO))
            start = stream.tell()
            value = read(*arguments)
            if read is parse_uvarint and arguments[-1].endswith("(tags)") and start not in sections:
                return value  # a tag's number
            of = arguments[0] if isinstance(arguments[0], LengthPrefixed) else None
            all_prefixes.append(Prefix(arguments[-1], start, stream.tell(), of))
            return value

        patch.setattr(holder, name, watched)

    parse_values = tags.Tags.parse_values

    def section(self: tags.Tags, stream: BinaryIO, context: Any, path: str) -> dict[str, Any]:
        sections.add(stream.tell())
        return parse_values(self, stream, context, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tags.Tags, "parse_values", section)
        watch(LengthPrefixed, "parse_length")
        watch(tags, "parse_uvarint")
        entry.layout.parse(data)
    return all_prefixes


def bombs(prefix: Prefix) -> list[bytes]:
    """Return prefixes that exceed any message of this size."""
    if prefix.of is None or prefix.of.compact:
        return [UVARINT_MAX, b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x01", b"\xff" * 5 + b"\x01"]
    return [b"\x7f\xff"] if prefix.of.width == "h" else [INT32_MAX, b"\x01\x00\x00\x00"]


def negatives(prefix: Prefix) -> list[bytes]:
    """Return the encodings of null."""
    if prefix.of is None:
        return []
    if prefix.of.compact:
        return [b"\x00", b"\x80\x00"]
    return [b"\xff\xfe", b"\x80\x00"] if prefix.of.width == "h" else [b"\xff\xff\xff\xfe", b"\x80\x00\x00\x00"]


@pytest.mark.rule("W-5")
@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_oversized_count_or_length_is_rejected_with_the_field_name(entry: Entry) -> None:
    data = small_bytes(entry)
    for prefix in prefixes(entry, data):
        for bomb in bombs(prefix):
            assert_refused(entry, data, prefix, bomb)
        for negative in negatives(prefix):
            if prefix.of and prefix.of.nullable:
                decode_or_refuse(entry, data[: prefix.start] + negative + data[prefix.end :])
            else:
                assert_refused(entry, data, prefix, negative)


def assert_refused(entry: Entry, data: bytes, prefix: Prefix, instead: bytes) -> None:
    with pytest.raises(DecodeError) as error:
        entry.layout.decode(data[: prefix.start] + instead + data[prefix.end :])
    path, offset = error.value.path, error.value.offset
    if prefix.of is None:  # for a tag's number, size or count the error names the section or the tag
        assert path.rpartition(".")[0] == prefix.path.rpartition(".")[0]
        assert prefix.start - 5 <= offset <= prefix.start + 1
    else:
        assert (path, offset) == (prefix.path, prefix.start)


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_message_with_a_count_or_length_off_by_one_raises_only_decode_errors(entry: Entry) -> None:
    data = small_bytes(entry)
    for prefix in prefixes(entry, data):
        for step in (1, -1, 2):
            changed = bytearray(data)
            changed[prefix.end - 1] = (changed[prefix.end - 1] + step) % 128
            decode_or_refuse(entry, bytes(changed))


@pytest.mark.rule("W-5")
@core_first(ENDS)
def test_oversized_counts_are_rejected_before_memory_is_allocated(entry: Entry) -> None:
    data = small_bytes(entry)
    armed = [data[: p.start] + bomb + data[p.end :] for p in prefixes(entry, data) for bomb in bombs(p)]
    for bomb in armed:
        decode_or_refuse(entry, bomb)  # generates the flat code, outside the measurement
    tracemalloc.start()
    try:
        for bomb in armed:
            decode_or_refuse(entry, bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024 + 40 * len(data)


@cache
def tag_sections() -> list[tuple[str, bytes, bool]]:
    """Return name and bytes of tag sections that no correct peer writes, and whether Kafka accepts them."""
    many = [(number, b"") for number in range(100, 5100)]
    return [
        ("very many", section(many), True),
        ("in descending order", section(many[::-1]), True),
        ("one tag three thousand times", section([(100, b"x")] * 3000), True),
        ("one too few", section(many, count=len(many) + 1), False),
        ("a size beyond the end", section([*many, (5000, b"")])[:-1] + b"\x05", False),
        ("a section in a section in a section", nested(500), True),
        ("the largest number", section([(2**32 - 1, b"x")]), True),
    ]


def section(fields: list[tuple[int, bytes]], count: int | None = None) -> bytes:
    body = b"".join(uvarint(number) + uvarint(len(value)) + value for number, value in fields)
    return uvarint(len(fields) if count is None else count) + body


def nested(depth: int) -> bytes:
    inner = section([])
    for _ in range(depth):
        inner = section([(100, inner)])
    return inner


@core_first([e for e in LATEST if e.layout.tags])
def test_valid_tagged_fields_are_decoded_and_invalid_tagged_fields_raise_an_error(entry: Entry) -> None:
    whole = entry.layout.encode(Values(entry.id).object(entry.layout, "empty"))
    empty = entry.layout.encode(drop_tags(entry, entry.layout.decode(whole)))
    assert empty.endswith(b"\x00")
    for name, tagged, readable in tag_sections():
        data = empty[:-1] + tagged
        if readable:
            read = entry.layout.decode(data)
            assert len(read.unknown_tagged_fields) == flat.read_uvarint(tagged, 0)[0], name
        else:
            with pytest.raises(DecodeError, match=r"\(tag"):
                entry.layout.decode(data)


def drop_tags(entry: Entry, obj: Any) -> Any:
    """Return the object with the default values of its tagged fields."""
    for field in entry.layout.tags.fields if entry.layout.tags else ():
        setattr(obj, field.name, entry.layout.defaults[field.name]())
    return obj


@pytest.mark.rule("W-6")
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("MetadataRequest-v1", INT32_MAX + b"\x00" * 8),
        ("MetadataRequest-v9", UVARINT_MAX + b"\x00" * 8),
        ("OffsetFetchRequest-v1", b"\x00\x01g" + INT32_MAX + b"\x00" * 8),
        ("JoinGroupResponse-v0", b"\x00" * 12 + INT32_MAX),
    ],
)
def test_array_count_larger_than_the_remaining_bytes_is_rejected(name: str, data: bytes) -> None:
    entry = next(entry for entry in ENTRIES if entry.id == name)
    with pytest.raises(DecodeError, match=r"a length of 214748364\d|a length of 4294967294"):
        entry.layout.decode(data)


@pytest.mark.parametrize("entry", [entry for entry in NEWEST if entry.layout.tags], ids=lambda entry: entry.id)
def test_endless_varint_is_rejected_after_five_bytes(entry: Entry) -> None:
    data = small_bytes(entry)
    started = time.perf_counter()
    for at in range(0, len(data), 5):
        decode_or_refuse(entry, data[:at] + ENDLESS_VARINT)
    assert time.perf_counter() - started < 0.02 * len(data)


def test_varint_of_more_than_32_bits_is_rejected() -> None:
    entry = next(entry for entry in ENTRIES if entry.id == "MetadataRequest-v9")
    for varint, reason in ((b"\xff\xff\xff\xff\x1f", "32 bits"), (b"\x80\x80\x80\x80\x80\x00", "five bytes")):
        with pytest.raises(DecodeError, match=reason):
            entry.layout.decode(varint + bytes(50))


def test_error_for_too_large_array_count_contains_path_of_the_first_missing_item() -> None:
    entry = next(entry for entry in ENTRIES if entry.id == "MetadataRequest-v0")
    with pytest.raises(DecodeError, match=r"topics\[2\]\.name"):
        entry.layout.decode(b"\x00\x00\x00\x04\x00\x00\x00\x00")


def test_invalid_utf8_text_is_decoded_with_replacement_characters_as_in_kafka() -> None:
    entry = next(entry for entry in ENTRIES if entry.id == "MetadataRequest-v1")
    request = entry.layout.decode(b"\x00\x00\x00\x01\x00\x03a\xff\xc3")
    assert request.topics[0].name == "a\ufffd\ufffd"
    surrogates = b"\x00\x00\x00\x01\x00\x0b" + b"\xed\xa0\x80\xed\xb0\xed\xbf.\xf0\x9f\x98"
    assert entry.layout.decode(surrogates).topics[0].name == "\ufffd\ufffd\ufffd.\ufffd"


def test_compact_string_longer_than_32767_bytes_is_rejected() -> None:
    entry = next(entry for entry in ENTRIES if entry.id == "HeartbeatRequest-v4")
    longest = b"\x80\x80\x02" + b"x" * 32767
    rest = b"\x00\x00\x00\x01" + b"\x02m" + b"\x00" + b"\x00"
    assert len(entry.layout.decode(longest + rest).group_id) == 32767
    with pytest.raises(DecodeError, match="32768 bytes is too long"):
        entry.layout.decode(b"\x81\x80\x02" + b"x" * 32768 + rest)
