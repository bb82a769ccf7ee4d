"""Memory limit for decoding: `LIMIT` bytes per input byte, excluding records, plus the constant `SLACK`.

A few bytes can describe large objects: an item of three bytes (an empty name, an empty list and no tags) takes two hundred bytes in Python. So a
decoder has a budget, which grows with the size of the message (`room_for`). Before it decodes the items of an array, it deducts their memory from the
budget. If the budget is too small, it rejects the message. `FREE` bytes of memory for each encoded byte are not deducted, because every value may
take them. If a message type has no array that can exceed the limit, its decoder has no budget. Ordinary messages never reach the limit.

To compute the memory of a value, each wire type has a method `weight`. For a given number N, such as `FREE`, it returns a number W: a value whose
encoding has S bytes takes at most N * S + W bytes of memory.

Sizes are those of CPython, including the garbage collector's header of an object; `docs/explanation/memory.md` explains each constant, and a test
compares them with `sys.getsizeof`. This module does not depend on wire types.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from kafkaproto.contexts import reading
from kafkaproto.errors import DecodeError

LIMIT = 40
"""The memory limit: how many bytes of memory a decoder may use for each byte of a message. Bytes of records do not count."""

HEAVY = LIMIT - 1
"""How many bytes of memory decoded values may take for each encoded byte: `LIMIT` minus 1 byte for the copy that a decoder first makes.

Decoders check the memory only of those arrays whose items can take more than this.
"""

FREE = 12
"""How many bytes of memory a decoded value may take for each encoded byte without being counted against the memory limit.

This suffices for strings, bytes and numbers. The items of an array can take more memory; decoders count the memory beyond this number.
"""

ROOM_PER_BYTE = HEAVY - FREE
SLACK = 32 * 1024
"""The bytes of memory that a message of any length may take, in addition to those allowed for each of its bytes (`LIMIT`).

The documentation states 64 KiB: these 32 KiB, and 32 KiB for the objects that every message has whatever its length. Decoders do not count the
memory of those objects.
"""

OBJECT = 32  # including the garbage collector's header
POINTER = 8
LIST = 56
LIST_SPARE, ITEM = 20, 12
"""Two sizes in bytes: a list takes at most `LIST_SPARE` more than an empty list, plus `ITEM` for each item that was appended.

The memory of the item objects is not included.
"""
SHORTEST_TEXT = 76  # one character beyond Latin-1; shorter texts and Latin-1 characters are shared
SHORTEST_BYTES = 34
SMALL_NUMBER, LARGE_NUMBER = 32, 36
MEMORYVIEW = 184
UNKNOWN_TAG = 83
"""How many bytes of memory an unknown tagged field, decoded as (tag, bytes), takes at most beyond 12 bytes (`FREE`) for each encoded byte."""


def room_for(size: int) -> int:
    """Return the memory budget, in bytes, for the items of the arrays in a message of ``size`` bytes.

    Before a decoder decodes the items of an array, it deducts their memory from this budget. The decoder may use 1 + `FREE` further bytes of memory
    for each byte of the message, which it does not deduct: 1 for a copy of the message, and `FREE` for the decoded values.
    """
    return SLACK + ROOM_PER_BYTE * size


def spend(context: Any, amount: int, path: str, offset: int) -> None:
    """Deduct ``amount`` bytes from the memory that decoding a message may still use. Raises DecodeError if too few bytes are left.

    context: the state (`Reading`) of decoding the message; its attribute `room` is the memory left. path, offset: the field and the byte position,
    for the error.
    """
    message = reading(context)
    message.room -= amount
    if message.room < 0:
        raise DecodeError(
            path,
            offset,
            f"decoding would exceed the memory limit, which is {LIMIT} bytes for each byte of the message, plus 64 KiB",
        )


def size_of_default(value: Any) -> int:
    """Return the memory in bytes that a field's default value adds to each object: 0 for numbers and texts, which all objects share."""
    if isinstance(value, list):
        return LIST
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return size_of_object(type(value)) + sum(size_of_default(getattr(value, field.name)) for field in fields)
    return 0


def size_of_object(cls: type) -> int:
    """Return the memory in bytes of an object of a dataclass with slots, without the values of its fields."""
    return OBJECT + POINTER * len(dataclasses.fields(cls))
