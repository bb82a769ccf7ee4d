"""Position of each field in the bytes of a message, for people who inspect bytes.

This module uses the slow decoder, which decodes field by field. It works for the messages of all Kafka APIs, and has no code for a particular one.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from math import inf
from typing import Any, NamedTuple

from kafkaproto.contexts import Reading
from kafkaproto.errors import DecodeError
from kafkaproto.json_form import Json, value_to_json, wire_path
from kafkaproto.memory import room_for
from kafkaproto.message import Message
from kafkaproto.wire_type import WireType


class Place(NamedTuple):
    """One encoded part of a message: a field's value, the count of an array, the marker of a nullable struct, or a tag.

    ``path`` uses the field names of the JSON form and omits the message's name. ``offset`` and ``size`` are in bytes. ``value`` is the value of a
    field in JSON form; for a count, marker or tag it is a short description, such as the number of items, or None.
    """

    path: str
    offset: int
    size: int
    value: Json


def places(layout: Message[Any], data: bytes, start: int = 0) -> Iterator[Place]:
    """Yield the encoded parts of the message that begins at ``start``, in the order of the bytes. Offsets count from the buffer's start.

    Raises DecodeError at the part that cannot be decoded, after yielding the parts before it. layout: the type of the message. data: the buffer.
    """
    pieces: list[Place] = []

    def follow(kind: WireType | None, path: str, offset: int, size: int, value: Any) -> None:
        json_value = value if kind is None else value_to_json(kind, value, path)
        pieces.append(Place(wire_path(layout, path), offset, size, json_value))

    stream = BytesIO(data)
    stream.seek(start)
    room = room_for(len(data) - start) if layout.is_heavy else inf
    damage = None
    try:
        layout._parse(stream, Reading(room, follow=follow), "(parsing)")
    except DecodeError as error:
        damage = error
    yield from pieces
    if damage:
        raise damage
