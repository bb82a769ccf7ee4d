"""Decoding uses at most 40 bytes of memory per byte besides records, plus 64 KiB, and linear time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from kafkaproto import memory
from kafkaproto.arrays import ArrayType
from kafkaproto.errors import DecodeError
from kafkaproto.message import Message, NullableStruct, parts
from kafkaproto.primitives import BytesType, FixedWidth, RecordsType, StringType, Uuid
from kafkaproto.wire_type import WireType
from tests.support.codec.catalogue import ENTRIES, LATEST, Entry, core_first
from tests.support.codec.example import EXAMPLE_ENTRIES
from tests.support.codec.measure import decoding_peak, decoding_steps

HEAVY = [entry for entry in ENTRIES if entry.layout.is_heavy]
NEWEST = {entry.id: entry for entry in (*{e.name: e for e in HEAVY}.values(), *LATEST, EXAMPLE_ENTRIES[5])}.values()
"""The newest version of each message, and the newest heavy one."""
LONG_BYTES = 10_000
"""The approximate size in bytes of the items of a long array."""
STAND_IN = b"\x7f"
"""A character that occurs in no other value. In the bytes it is replaced by an invalid UTF-8 byte, which costs the most memory."""


def worst_messages(layout: Message[Any]) -> Iterator[bytes]:
    """Yield for each array at any depth messages with thousands of its smallest items, small in several ways."""
    arrays = [part for part in parts(layout) if isinstance(part, ArrayType)]
    for array, (text, inner) in itertools.product(arrays, (("", 0), (STAND_IN.decode(), 0), (STAND_IN.decode(), 1))):
        first, second = (len(layout.encode(Smallest(array, text, inner, items).message(layout))) for items in (1, 2))
        data = layout.encode(Smallest(array, text, inner, LONG_BYTES // (second - first)).message(layout))
        yield data.replace(STAND_IN, b"\xff")


class Smallest:
    """Generates small objects: one array is long, the others have ``inner`` items, and those around the long one have one."""

    def __init__(self, long: ArrayType, text: str, inner: int, items: int) -> None:
        self.long = long
        self.items = items
        self.text = text
        self.inner = inner

    def message(self, layout: Message[Any]) -> Any:
        return layout.cls(**{name: self.value(kind) for name, kind in layout.fields}, **self.tagged(layout))

    def tagged(self, layout: Message[Any]) -> dict[str, Any]:
        """Return only the tagged fields that contain the long array."""
        tagged = layout.tags.fields if layout.tags else ()
        return {field.name: self.value(field.type) for field in tagged if self.long in parts(field.type)}

    def value(self, kind: WireType) -> Any:
        match kind:
            case ArrayType():
                if kind is self.long:
                    return [self.value(kind.item)] * self.items
                return [self.value(kind.item) for _ in range(1 if self.long in parts(kind) else self.inner)]
            case StringType():
                return self.text
            case RecordsType():
                return b"\x01"
            case BytesType():
                return self.text.encode()
            case Message():
                return self.message(kind)
            case NullableStruct():
                return self.message(kind.struct) if self.long in parts(kind) or self.inner else None
        return self.number(kind)

    def number(self, kind: WireType) -> Any:
        if kind is Uuid:
            return bytes(16)
        assert isinstance(kind, FixedWidth)
        # not a number that Python caches
        return {"?": True, "b": -100, "d": 0.5}.get(kind.fmt, 1000 if kind.size < 8 else 2**50)


@core_first(NEWEST)
def test_decoding_uses_at_most_40_bytes_of_memory_per_message_byte_outside_records(entry: Entry) -> None:
    for data in worst_messages(entry.layout):
        peak = decoding_peak(entry.layout, data)
        assert peak <= 40 * (len(data) - records_in(entry.layout, data)) + records_in(entry.layout, data) + 64 * 1024


def records_in(layout: Message[Any], data: bytes) -> int:
    """Return how many bytes of a message are records."""
    if not layout.has_records:
        return 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "spend", lambda *_: None)
        return records_of(layout, layout.parse(data))


def records_of(kind: WireType, value: Any) -> int:
    """Return how many bytes of a value are records."""
    match kind:
        case RecordsType():
            return len(value or b"")
        case ArrayType():
            return sum(records_of(kind.item, item) for item in value or ())
        case NullableStruct():
            return 0 if value is None else records_of(kind.struct, value)
        case Message():
            tagged = [(field.name, field.type) for field in kind.tags.fields] if kind.tags else []
            return sum(records_of(of_field, getattr(value, name)) for name, of_field in (*kind.fields, *tagged))
    return 0


@core_first([entry for entry in NEWEST if entry.layout.is_heavy])
def test_decoding_a_message_uses_at_most_the_memory_that_the_decoder_estimated(entry: Entry) -> None:
    """The estimates of heavy layouts are exact: with all accounting disabled, memory stays below the accounted amount."""
    layout = entry.layout
    spent = 0

    def spend(context: object, amount: int, path: str, offset: int) -> None:
        nonlocal spent
        spent += amount

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "ROOM_PER_BYTE", 10_000)
        uncounted = Message(layout.cls, *fields_of(layout), versions=layout.versions)
        for data in worst_messages(layout):
            peak = decoding_peak(uncounted, data)
            spent = 0
            with pytest.MonkeyPatch.context() as counting:
                counting.setattr(memory, "spend", spend)
                layout.parse(data)
            assert peak <= spent + (memory.FREE + 1) * len(data) + 16 * 1024


def fields_of(layout: Message[Any]) -> list[Any]:
    fields = [name / kind for name, kind in layout.fields]
    return [*fields, layout.tags] if layout.tags else fields


class Ordinary(Smallest):
    """Generates the least demanding realistic objects: short names, one struct or three numbers in each array, nothing null."""

    def __init__(self, long: ArrayType, items: int) -> None:
        super().__init__(long, "abcde", 1, items)

    def value(self, kind: WireType) -> Any:
        if isinstance(kind, ArrayType) and kind.is_numeric and kind is not self.long:
            return [self.number(kind.item)] * 3
        return b"x" * 70 if isinstance(kind, RecordsType) else super().value(kind)


@core_first(HEAVY)
def test_decoder_memory_limit_accepts_any_array_of_1500_items_with_5_letter_strings(entry: Entry) -> None:
    for array in [part for part in parts(entry.layout) if isinstance(part, ArrayType)]:
        obj = Ordinary(array, 1500).message(entry.layout)
        assert entry.layout.decode(entry.layout.encode(obj)) == obj


def test_generated_and_construct_library_decoders_reject_messages_above_memory_limit() -> None:
    entry = next(entry for entry in ENTRIES if entry.id == "OffsetFetchRequest-v8")
    assert entry.layout.is_heavy
    topics = next(part for part in parts(entry.layout) if isinstance(part, ArrayType) and not part.is_numeric)
    data = entry.layout.encode(Smallest(topics, "", 0, 3000).message(entry.layout))
    for read in (entry.layout.decode, entry.layout.parse):
        with pytest.raises(DecodeError, match="40 bytes for each byte") as error:
            read(data)
        assert error.value.path == "OffsetFetchRequest.groups" and error.value.offset == 0


def test_generated_decoder_checks_memory_only_if_an_array_can_exceed_the_limit() -> None:
    light = [entry for entry in ENTRIES if not entry.layout.is_heavy]
    assert len(light) > len(ENTRIES) / 2
    assert all("room" not in entry.layout.decoder_text()[0] for entry in light)


@pytest.mark.parametrize("entry", LATEST, ids=lambda entry: entry.id)
@pytest.mark.parametrize("damaged", [False, True], ids=["sound", "damaged"])
def test_decoding_time_grows_linearly_with_the_message_size(entry: Entry, damaged: bool) -> None:
    for array in [part for part in parts(entry.layout) if isinstance(part, ArrayType)][:2]:
        steps = []
        for items in (200, 400):
            data = entry.layout.encode(Ordinary(array, items).message(entry.layout))
            steps.append(decoding_steps(entry.layout, data[: -len(data) // 100] if damaged else data))
        assert steps[1] <= 2.1 * steps[0] + 200
