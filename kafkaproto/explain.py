"""Where a message breaks: one that flat code could not read is read again, to name the field and the byte.

The readable form is slow, and who sends damaged frames of 100 MB must not get minutes of our time for each. So the
items of an array that are sound are passed over by flat code, and only the one that is not is read field by field; an
array in it likewise. That is one pass of flat code for each level of nesting, whatever the size, and it keeps nothing
of what it reads. This module must never know an API.
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
    """A stream over a buffer that copies nothing but what is read. The positions are the buffer's."""

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
    """What is wrong with the message between ``pos`` and ``end``; None if the readable form finds nothing."""
    context = Reading(room_for(end - pos) if layout.is_heavy else inf, skip_sound_items)
    try:
        layout._parse(Window(view[:end], pos), context, "(parsing)")  # type: ignore[arg-type]
    except DecodeError as found:
        return found
    return None


def explain_decode_failure(layout: StructType[Any], view: flat.Buffer, pos: int, end: int, stopped: int) -> DecodeError:
    """Return what is wrong with the message that flat code could not read. stopped: the position it had reached."""
    return explain(layout, memoryview(view), pos, end) or DecodeError(layout.cls.__name__, stopped, "cannot be read")


def skip_sound_items(array: ArrayType, count: int, stream: Window, context: Reading) -> int:
    """Go to the first item that cannot be read, behind the last if there is none; the number of items before it."""
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
    """``(view, position, end, count, room) -> (number of sound items, position behind them, room that is left)``"""
    code = FlatCode(decoding=True, weighed=True)
    with code.block("for i in range(count):"):
        code.line("sound = i, p, room")
        item.emit_decode(code, "item")
        code.line("if p > n: return sound")  # fields look at nobody's end but the message's
    code.line("return count, p, room")
    code.names["failures"] = flat.DECODE_FAILURES
    text = code.text("def skip(b, p, n, count, room):", [], ["    except failures:", "        return sound"])
    return code.compile(text, "skip")
