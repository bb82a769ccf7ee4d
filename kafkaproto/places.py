"""Where each field of a message lies: a message read by the readable form, slowly, for people who look at bytes.

This module must never know an API.
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
    """A piece of a message: a value with its own bytes, the count of an array, the marker of a nullable struct, or a tag.

    ``path`` has the names of fields in JSON, and not the message's.
    """

    path: str
    offset: int
    size: int
    value: Json


def places(layout: Message[Any], data: bytes, start: int = 0) -> Iterator[Place]:
    """The pieces of the message that begins at ``start``, in the order of the bytes. Offsets count from the buffer's start.

    Raises DecodeError at the piece that cannot be read, after the ones before it.
    """
    found: list[Place] = []

    def follow(kind: WireType | None, path: str, offset: int, size: int, value: Any) -> None:
        shown = value if kind is None else value_to_json(kind, value, path)
        found.append(Place(wire_path(layout, path), offset, size, shown))

    stream = BytesIO(data)
    stream.seek(start)
    room = room_for(len(data) - start) if layout.is_heavy else inf
    damage = None
    try:
        layout._parse(stream, Reading(room, follow=follow), "(parsing)")
    except DecodeError as error:
        damage = error
    yield from found
    if damage:
        raise damage
