"""Layouts of messages made only of classes of the library construct, as a user of this library would write them.

The length of a nullable or compact value is a field of its own before the value, and tagged fields stay raw bytes: construct compiles
this form best.
"""

from __future__ import annotations

from typing import Any

import construct
from construct import this

from kafkaproto.arrays import ArrayType
from kafkaproto.message import Message
from kafkaproto.primitives import BytesType, FixedWidth, LengthPrefixed, StringType, UuidType
from kafkaproto.wire_type import WireType

NUMBERS = {
    "b": construct.Int8sb,
    "h": construct.Int16sb,
    "i": construct.Int32sb,
    "q": construct.Int64sb,
    "H": construct.Int16ub,
    "I": construct.Int32ub,
    "d": construct.Float64b,
    "?": construct.Flag,
}
RAW_TAGS = construct.PrefixedArray(
    construct.VarInt,
    construct.Sequence(construct.VarInt, construct.Prefixed(construct.VarInt, construct.GreedyBytes)),
)


def stock(wire_type: WireType) -> construct.Construct:
    """Return an object that encodes values into the same bytes as `wire_type`, made only of classes of the library construct.

    wire_type: this project's description of the encoding of a message, or of a part of one.
    """
    match wire_type:
        case Message():
            fields = [name / stock(field) for name, field in wire_type.fields]
            return construct.Struct(*fields, *(["tags" / RAW_TAGS] if wire_type.tags else []))
        case UuidType():
            return construct.Bytes(16)
        case FixedWidth():
            return NUMBERS[wire_type.fmt]
        case ArrayType(compact=False, nullable=False):
            return construct.PrefixedArray(construct.Int32sb, stock(wire_type.item))
        case StringType(compact=False, nullable=False):
            return construct.PascalString(construct.Int16sb, "utf8")
        case BytesType(compact=False, nullable=False):
            return construct.Prefixed(construct.Int32sb, construct.GreedyBytes)
        case LengthPrefixed():
            return beside_its_length(wire_type)
    raise TypeError(
        f"the benchmark cannot encode the wire type {wire_type} with the library construct; in benchmarks/codec/stock.py, add a case to the "
        "function stock that returns a construct.Construct with the same encoding"
    )


def beside_its_length(wire_type: LengthPrefixed) -> construct.Construct:
    if wire_type.compact:
        prefix, present, length = construct.VarInt, this.length > 0, this.length - 1
    else:
        prefix, present, length = NUMBERS[wire_type.width], this.length >= 0, this.length
    value: Any = construct.Bytes(length)
    if isinstance(wire_type, ArrayType):
        value = construct.Array(length, stock(wire_type.item))
    elif isinstance(wire_type, StringType):
        value = construct.StringEncoded(value, "utf8")
    return construct.Struct("length" / prefix, "value" / construct.If(present, value))
