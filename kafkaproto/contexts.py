"""Context that the readable forms of wire types pass down while they decode or encode one message.

construct (the library) passes a context, a dictionary of the fields read so far, to every construct. A message inside a user's own `construct.Struct`
therefore receives one with arbitrary fields. So the wire types ignore a foreign context: `Message` replaces it by a `Reading` or a `Writing`. This
module does not depend on wire types.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, BinaryIO


class Reading:
    """State of one message while it is decoded.

    room: bytes of memory that the rest of the message may still take (`kafkaproto.memory`), infinite if the layout does not count memory.
    skip: if not None, a function that skips the valid items of an array and returns their number (`kafkaproto.explain`); no objects are built
    for these items. follow: if not None, a function called with ``(wire type, path, offset, size, value)`` for each encoded part of the
    message, in the order of the bytes (`kafkaproto.places`). For a count, a marker or a tag, which is no value of a field, the wire type is
    None, and the value is a text or None.
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
        """Call `follow`, if set, for the bytes from ``start`` up to the stream's position.

        kind: the wire type of these bytes, None if they are no field.
        """
        if self.follow:
            self.follow(kind, path, start, stream.tell() - start, value)


class Writing:
    """State of one message while it is encoded. splices: the list to append ranges of records to; None if only bytes can be encoded."""

    __slots__ = ("splices",)

    def __init__(self, splices: list[tuple[int, Any]] | None = None) -> None:
        self.splices = splices


NO_MESSAGE = Reading()
"""The `Reading` to use when a wire type decodes bytes on its own, outside a message."""


def reading(context: Any) -> Reading:
    """Return the context if it is a `Reading`, else `NO_MESSAGE`."""
    return context if type(context) is Reading else NO_MESSAGE
