"""What the readable forms of wire types pass down while they read or write one message.

construct passes a context, a dictionary of the fields read so far, to every construct. A message inside somebody's own
`construct.Struct` therefore receives one with fields of that person's choice. So the wire types look for nothing in a
foreign context: `Message` replaces it by a `Reading` or a `Writing`. This module must never know a wire type.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, BinaryIO


class Reading:
    """One message while it is read.

    room: bytes of memory that the rest of the message may still take (`kafkaproto.memory`), infinite if the layout does
    not count. skip: passes over the sound items of an array and returns their number; the objects of the message are
    not kept then (`kafkaproto.explain`). follow: is called with ``(wire type, path, offset, size, value)`` for each
    piece that was read, in the order of the bytes (`kafkaproto.places`). The wire type is None, and the value a text or
    None, for pieces that are no value of a field: counts, markers and tags.
    """

    __slots__ = ("follow", "room", "skip")

    def __init__(
        self,
        room: float = inf,
        skip: Callable[..., int] | None = None,
        follow: Callable[[Any, str, int, int, Any], None] | None = None,
    ) -> None:
        self.room = room
        self.skip = skip
        self.follow = follow

    def passed(self, path: str, start: int, stream: BinaryIO, value: Any, kind: Any = None) -> None:
        """Tell `follow` of the piece between ``start`` and the stream's position."""
        if self.follow:
            self.follow(kind, path, start, stream.tell() - start, value)


class Writing:
    """One message while it is written. splices: receives the ranges that the caller splices, None if it cannot."""

    __slots__ = ("splices",)

    def __init__(self, splices: list[tuple[int, Any]] | None = None) -> None:
        self.splices = splices


NO_MESSAGE = Reading()
"""Stands for any other context: a wire type that is read alone, outside a message."""


def reading(context: Any) -> Reading:
    """Return the `Reading` that a context is, `NO_MESSAGE` for another one."""
    return context if type(context) is Reading else NO_MESSAGE
