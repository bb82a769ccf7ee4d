"""Generator of nearly empty requests: message objects with empty strings, bytes and arrays, and random numbers.

A conformance test sends them to check that every version of every API returns a complete response.
"""

from __future__ import annotations

import struct
from random import Random
from typing import Any

from kafkaproto.arrays import ArrayType
from kafkaproto.message import Message, NullableStruct
from kafkaproto.primitives import Bool, BytesType, FixedWidth, Float64, StringType, Uuid
from kafkaproto.wire_type import WireType

UUID_BYTES = 16


def bare(layout: Message[Any], random: Random) -> Any:
    """Return a message object whose strings, bytes and arrays are empty, and whose numbers are random.

    layout: the fields of the message in one version. Fields that this version lacks keep their defaults.
    """
    return layout.cls(**{name: _value(wire_type, random) for name, wire_type in layout.fields})


def _value(wire_type: WireType, random: Random) -> Any:
    match wire_type:
        case FixedWidth():
            return _number(wire_type, random)
        case StringType():
            return ""
        case BytesType():
            return b""
        case ArrayType():
            return []
        case Message():
            return bare(wire_type, random)
        case NullableStruct():
            return bare(wire_type.struct, random)
    raise TypeError(f"no value can be made for the wire type {wire_type}; add a case for it to _value in {__name__}")


def _number(wire_type: FixedWidth, random: Random) -> Any:
    """Return a random value for a wire type of fixed width.

    A boolean or uuid can have any value; a float is 0.0, -1.0, 0.1 or 1e300.
    An integer is near the lowest or highest value of its type, or from 0 to 100.
    """
    if wire_type is Bool:
        return random.random() < 0.5
    if wire_type is Float64:
        return random.choice((0.0, -1.0, 0.1, 1e300))
    if wire_type is Uuid:
        return random.randbytes(UUID_BYTES)
    bits = 8 * struct.calcsize(">" + wire_type.fmt)
    low, high = (0, 2**bits - 1) if wire_type.fmt.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return random.choice((0, 1, max(low, -1), low, low + 1, high - 1, high, random.randint(0, 100)))
