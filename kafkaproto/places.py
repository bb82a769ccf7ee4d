"""Where each field of a message lies: a message read field by field, slowly, for people who look at bytes.

This module must never know an API.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import NamedTuple

from kafkaproto.arrays import ArrayType
from kafkaproto.errors import DecodeError
from kafkaproto.json_form import Json, value_to_json, wire_name
from kafkaproto.message import Message, NullableStruct
from kafkaproto.tags import Tags
from kafkaproto.wire_type import WireType, parse_uvarint, read


class Place(NamedTuple):
    """A piece of a message: a value with its own bytes, or the count of an array, or what marks a struct as there."""

    path: str
    offset: int
    size: int
    value: Json


def places(layout: Message, data: bytes, start: int = 0) -> Iterator[Place]:  # type: ignore[type-arg]
    """The pieces of the message that begins at ``start``, in the order of the bytes. Offsets count from the buffer's start.

    Raises DecodeError at the piece that cannot be read, after the ones before it.
    """
    stream = BytesIO(data)
    stream.seek(start)
    yield from _of(layout, stream, "")


def _of(kind: WireType, stream: BytesIO, path: str) -> Iterator[Place]:
    match kind:
        case Message():
            for name, field in kind.fields:
                yield from _of(field, stream, f"{path}.{wire_name(kind, name)}".lstrip("."))
            if kind.tags:
                yield from _tags(kind, kind.tags, stream, path)
        case ArrayType():
            yield from _array(kind, stream, path)
        case NullableStruct():
            offset = stream.tell()
            is_null = kind._is_null(read(stream, 1, path)[0])
            yield Place(path, offset, 1, None if is_null else "(a struct follows)")
            if not is_null:
                yield from _of(kind.struct, stream, path)
        case _:
            offset = stream.tell()
            value = kind._parse(stream, None, path)
            yield Place(path, offset, stream.tell() - offset, value_to_json(kind, value, path))


def _array(kind: ArrayType, stream: BytesIO, path: str) -> Iterator[Place]:
    offset = stream.tell()
    count = kind.parse_length(stream, path)
    yield Place(path, offset, stream.tell() - offset, None if count is None else f"({count} items)")
    for i in range(count or 0):
        yield from _of(kind.item, stream, f"{path}[{i}]")


def _tags(layout: Message, tags: Tags, stream: BytesIO, path: str) -> Iterator[Place]:  # type: ignore[type-arg]
    here = f"{path}.(tags)".lstrip(".")
    offset = stream.tell()
    count = parse_uvarint(stream, here)
    yield Place(here, offset, stream.tell() - offset, f"({count} tags)")
    known = {field.tag: field for field in tags.fields}
    for _ in range(count):
        offset = stream.tell()
        tag, size = parse_uvarint(stream, here), parse_uvarint(stream, here)
        named = f"{path}.(tag {tag})".lstrip(".")
        yield Place(named, offset, stream.tell() - offset, f"({size} bytes)")
        end = stream.tell() + size
        if tag not in known:
            yield Place(named, stream.tell(), size, read(stream, size, named).hex())
            continue
        yield from _of(known[tag].type, stream, f"{path}.{wire_name(layout, known[tag].name)}".lstrip("."))
        if stream.tell() != end:
            raise DecodeError(named, offset, f"does not fill the {size} bytes of its tag")
