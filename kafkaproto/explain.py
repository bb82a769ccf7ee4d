"""Explanation of a decoding failure: decodes the rejected message again, slowly, to find the invalid field and byte.

The generated decoders (`kafkaproto.flat`) are fast and do not know in which field they failed. The slow decoder goes field by field, and would take
minutes for a damaged frame of 100 MB. Therefore it decodes only the first invalid item of an array, after a generated decoder has skipped the valid
items before this item. Arrays inside the item are handled in the same way. This module does not depend on any API.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from io import SEEK_CUR, SEEK_END, SEEK_SET
from math import inf
from typing import Any

from kafkaproto import flat
from kafkaproto.arrays import ArrayType
from kafkaproto.contexts import Reading
from kafkaproto.errors import DecodeError
from kafkaproto.flat import FlatCode
from kafkaproto.memory import room_for
from kafkaproto.struct_types import StructType
from kafkaproto.wire_type import WireType


class Window:
    """A stream over a buffer, which copies only the bytes that are read. A position in the stream is an index into the buffer."""

    def __init__(self, view: memoryview, position: int) -> None:
        self.view = view
        self.position = position

    def tell(self) -> int:
        return self.position

    def read(self, size: int) -> bytes:
        data = bytes(self.view[self.position : self.position + size])
        self.position += len(data)
        return data

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        self.position = offset + {SEEK_SET: 0, SEEK_CUR: self.position, SEEK_END: len(self.view)}[whence]
        return self.position


def explain(layout: StructType[Any], view: memoryview, pos: int, end: int) -> DecodeError | None:
    """Decode a message field by field and return the error; None if there is none.

    layout: the type of the message. view: the buffer that has the message from ``pos`` up to ``end``, exclusive.
    """
    context = Reading(room_for(end - pos) if layout.is_heavy else inf, skip_sound_items)
    try:
        layout._parse(Window(view[:end], pos), context, "(parsing)")  # type: ignore[arg-type]
    except DecodeError as error:
        return error
    return None


def explain_decode_failure(layout: StructType[Any], view: flat.Buffer, pos: int, end: int, stopped: int) -> DecodeError:
    """Return the error in a message that the fast decoder rejected.

    stopped: the position at which the fast decoder failed. layout: the type of the message. view: the buffer that has the message from ``pos`` up to
    ``end``, exclusive.
    """
    return explain(layout, memoryview(view), pos, end) or DecodeError(layout.cls.__name__, stopped, "cannot be read")


def skip_sound_items(array: ArrayType, count: int, stream: Window, context: Reading) -> int:
    """Skip the items of an array before its first invalid item; all items if all are valid. Returns the number of skipped items.

    stream: positioned at the first item of the array before the call, and after the skipped items afterwards. count: the number of items in the
    array. context: its attribute `room`, the bytes of memory that decoding the message may still use, decreases as if the skipped items had been
    decoded.
    """
    if array.is_numeric:
        size: int = array.item.size
        sound = min(count, (len(stream.view) - stream.position) // size)
        stream.position += sound * size
        return sound
    skip = skipper(array.item)
    sound, stream.position, context.room = skip(stream.view, stream.position, len(stream.view), count, context.room)
    return sound


@cache
def skipper(item: WireType) -> Callable[..., tuple[int, int, float]]:
    """Return a fast function that finds the first invalid item of an array. item: the wire type of the items.

    The function takes ``(view, position of the first item, end of the message, number of items, room)``. It returns (number of items before the first
    invalid item, position after these items, room left). room: the bytes of memory that decoding may still use.
    """
    code = FlatCode(decoding=True, weighed=True)
    with code.block("for i in range(count):"):
        code.line("sound = i, p, room")
        item.emit_decode(code, "item")
        code.line("if p > n: return sound")  # fields do not check the end of the message themselves
    code.line("return count, p, room")
    code.names["failures"] = flat.DECODE_FAILURES
    text = code.text("def skip(b, p, n, count, room):", [], ["    except failures:", "        return sound"])
    return code.compile(text, "skip")
