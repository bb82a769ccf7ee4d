"""The bound on decoding memory: `LIMIT` bytes for each byte of a message that is not records, and `SLACK` for any message.

A byte can stand for an object: three bytes are an empty name, an empty list and no tags, and in Python that is two
hundred bytes. So each wire type knows its *weight*, the most memory that a value takes beyond a given number of bytes
for each of its own, and a layout in which the items of some array weigh more than the limit counts while it decodes:
it starts with the room that the whole message buys, and each array, before it is read, pays for its items. Ordinary
messages never come near. Layouts without such arrays, which are most of the busy ones, do not count at all.

Sizes are CPython's, with what the garbage collector keeps of an object; `docs/memory.md` explains each constant, and a
test compares them with `sys.getsizeof`. This module must never know a wire type.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from kafkaproto.contexts import reading
from kafkaproto.errors import DecodeError

LIMIT = 40
"""Bytes of memory for each byte of a message that is not records."""

HEAVY = LIMIT - 1
"""What a value may take for each of its bytes; the one that is missing is the flat decoder's copy of the message."""

FREE = 12
"""Bytes of memory for each byte that are not counted: contents of strings and bytes, and numbers. Arrays pay for the rest."""

ROOM_PER_BYTE = HEAVY - FREE
SLACK = 32 * 1024
"""Bytes that any message may take, however short. With the objects of one message this stays under 64 KiB."""

OBJECT = 32  # with what the garbage collector keeps
POINTER = 8
LIST = 56
LIST_SPARE, ITEM = 20, 12
"""A list that grows by appending takes at most so much, and so much for each item: 32 bytes for one, 128 for nine."""
SHORTEST_TEXT = 76  # one character that is neither ASCII nor Latin-1, and those are shared
SHORTEST_BYTES = 34
SMALL_NUMBER, LARGE_NUMBER = 32, 36
MEMORYVIEW = 184
UNKNOWN_TAG = 83
"""What an unknown tag, a pair of its number and its bytes, takes beyond FREE."""


def room_for(size: int) -> int:
    """What a heavy message of so many bytes may spend."""
    return SLACK + ROOM_PER_BYTE * size


def spend(context: Any, amount: int, path: str, offset: int) -> None:
    """Take from the room of a message that is read with the readable form. Raises DecodeError when it is used up."""
    message = reading(context)
    message.room -= amount
    if message.room < 0:
        raise DecodeError(path, offset, f"would take more than {LIMIT} times the message's bytes in memory")


def size_of_default(value: Any) -> int:
    """The memory of a default that is made anew for each object."""
    if isinstance(value, list):
        return LIST
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return size_of_object(type(value)) + sum(size_of_default(getattr(value, field.name)) for field in fields)
    return 0


def size_of_object(cls: type) -> int:
    """The memory of an object with slots."""
    return OBJECT + POINTER * len(dataclasses.fields(cls))
