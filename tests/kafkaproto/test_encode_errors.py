"""Values that cannot be encoded are rejected with field and versions, at any depth, by both codec forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from kafkaproto.arrays import ArrayType
from kafkaproto.errors import EncodeError
from kafkaproto.json_form import to_json
from kafkaproto.message import Message, NullableStruct
from kafkaproto.primitives import Bool, FixedWidth, Float64, LengthPrefixed, RecordsType, StringType, Uuid
from kafkaproto.wire_type import WireType
from tests.support.codec.catalogue import ENTRIES, FIRST, LATEST, Entry
from tests.support.codec.example import EXAMPLE_ENTRIES
from tests.support.codec.values import Values

ENDS = list({entry.id: entry for entry in (*FIRST, *LATEST, *EXAMPLE_ENTRIES)}.values())
Put = Callable[[Any], None]


def places_of(layout: Message[Any], obj: Any, path: str) -> Iterator[tuple[str, WireType, Put]]:
    """Yield path, type and setter of each field of an object at any depth."""
    tagged = layout.tags.fields if layout.tags else ()
    for name, kind in (*layout.fields, *((field.name, field.type) for field in tagged)):
        field_path = f"{path}.{name}"
        yield field_path, kind, lambda value, name=name: setattr(obj, name, value)
        value = getattr(obj, name)
        inner = kind.struct if isinstance(kind, NullableStruct) else kind
        if isinstance(inner, Message) and value is not None:
            yield from places_of(inner, value, field_path)
        if isinstance(inner, ArrayType) and value:
            if isinstance(inner.item, Message):
                yield from places_of(inner.item, value[0], f"{field_path}[0]")
            else:
                yield f"{field_path}[0]", inner.item, lambda item, items=value: items.__setitem__(0, item)


def bad_values(kind: WireType) -> Iterator[tuple[Any, str]]:
    """Yield values that do not fit a type, with the expected error text."""
    if isinstance(kind, StringType):
        yield "x" * 32768, "32768 bytes is too long"
        yield "ä" * 16384, "32768 bytes is too long"
    if isinstance(kind, FixedWidth) and kind not in (Bool, Float64, Uuid):
        bits = 8 * kind.size - (not kind.fmt.isupper())
        yield 2**bits, "expected an? u?int"
        yield -(2**bits) - 1, "expected an? u?int"
    if isinstance(kind, LengthPrefixed) and not kind.nullable and not isinstance(kind, RecordsType):
        yield None, "null" if not isinstance(kind, StringType) else "null|expected text"


@pytest.mark.parametrize("entry", ENDS, ids=lambda entry: entry.id)
def test_encode_error_for_a_value_outside_its_field_type_contains_the_field_path(entry: Entry) -> None:
    layout = entry.layout
    count = len(list(places_of(layout, Values(entry.id).object(layout, "tiny"), "")))
    for number in range(count):
        obj = Values(entry.id).object(layout, "tiny")
        path, kind, put = list(places_of(layout, obj, layout.cls.__name__))[number]
        for value, why in bad_values(kind):
            put(value)
            for encode in (layout.encode, layout.build):
                with pytest.raises(EncodeError, match=why) as error:
                    encode(obj)
                assert (error.value.path, error.value.versions) == (path, layout.versions)
                assert str(error.value).startswith(f"{path} in v{layout.versions}: ")


def structs(layout: Message[Any], obj: Any, path: str) -> Iterator[tuple[str, Message[Any], Any]]:
    """Yield the structs of an object at any depth with their layouts."""
    yield path, layout, obj
    for name, kind in layout.fields:
        value, inner = getattr(obj, name), kind.struct if isinstance(kind, NullableStruct) else kind
        if isinstance(inner, ArrayType) and isinstance(inner.item, Message) and value:
            yield from structs(inner.item, value[0], f"{path}.{name}[0]")
        elif isinstance(inner, Message) and value is not None:
            yield from structs(inner, value, f"{path}.{name}")


def another(value: Any) -> Any:
    """Return a value that differs from a default."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case list():
            return [None]
        case bytes():
            return b"\x01" * 16
    return "other"


LOSING = [
    entry
    for entry in ENTRIES
    if any(part.absent for _, part, _ in structs(entry.layout, Values(1).object(entry.layout, "tiny"), ""))
]


@pytest.mark.parametrize("entry", LOSING, ids=lambda entry: entry.id)
def test_encode_error_for_a_field_unknown_in_the_version_contains_the_field_path(entry: Entry) -> None:
    layout = entry.layout
    fields = [
        (number, name)
        for number, (_, part, _) in enumerate(structs(layout, Values(entry.id).object(layout, "tiny"), ""))
        for name in part.absent
    ]
    for number, name in fields:
        obj = Values(entry.id).object(layout, "tiny")
        path, part, owner = list(structs(layout, obj, layout.cls.__name__))[number]
        default = part.defaults[name]()
        setattr(owner, name, another(default) if not hasattr(default, "__slots__") else None)
        for write in (layout.encode, layout.build, partial(to_json, layout)):
            with pytest.raises(EncodeError, match="would be lost") as error:
                write(obj)
            assert (error.value.path, error.value.versions) == (f"{path}.{name}", layout.versions)
