"""State that wire types share while a message is decoded (`Reading`) or encoded (`Writing`) field by field.

An example of such state is how much memory the rest of the message may still take. The library construct passes an argument `context` to every wire
type. For a field of a `Message`, `context` is a `Reading` or a `Writing`. If a user puts a wire type into a `construct.Struct`, `context` is a
dictionary of the fields decoded so far, and the wire type ignores it. This module does not depend on wire types.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, BinaryIO


class Reading:
    """State of one message while it is decoded field by field.

    - room: bytes of memory that the rest of the message may still take (`kafkaproto.memory`); infinite if no limit applies.
    - skip: None if every item of an array must be decoded. Otherwise a function that skips the valid items at the start of an array, because that is
      faster than decoding them. Its arguments are ``(array type, number of items, stream, this Reading)``. It moves the stream to the first invalid
      item, and returns the number of skipped items.
    - follow: None, or a function that is called with ``(wire type, path, offset, size, value)`` for each encoded part of the message, in the order of
      the bytes, so that programs can show these parts. For a part that is not the value of a field, such as a count, a null marker or a tag, the wire
      type is None, and the value is a text or None.
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
        """Report an encoded part of the message to `follow`, if it is set: the bytes from ``start`` up to the stream's position.

        path: the path of the field. value: its decoded value, or a text about a count, a null marker or a tag. kind: the wire type of these bytes,
        None if they are not the value of a field.
        """
        if self.follow:
            self.follow(kind, path, start, stream.tell() - start, value)


class Writing:
    """State of one message while it is encoded field by field.

    splices: records in a file need not be copied into the output. Each range of a file is appended to this list, as (position in the output at which
    the range belongs, range), so that a broker can send it from the file. None if all records must be bytes.
    """

    __slots__ = ("splices",)

    def __init__(self, splices: list[tuple[int, Any]] | None = None) -> None:
        self.splices = splices


NO_MESSAGE = Reading()
"""The `Reading` for a wire type that is used alone, not for a field of a message: it has no memory limit."""


def reading(context: Any) -> Reading:
    """Return the `Reading` that a wire type uses to decode. context: the argument that the library construct passes to the wire type.

    If `context` is a `Reading`, the result is `context`. Otherwise the wire type is used outside a message, and the result is `NO_MESSAGE`.
    """
    return context if type(context) is Reading else NO_MESSAGE
