"""Random objects for a layout, from a seed: defaults, limits of every type, empty, null, long, and ordinary ones."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any

from kafkaproto.arrays import ArrayType
from kafkaproto.message import Message, NullableStruct
from kafkaproto.primitives import (
    Bool,
    BytesType,
    FixedWidth,
    Float64,
    LengthPrefixed,
    StringType,
    Uuid,
    WireType,
)

TEXTS = ("", "a", "topic-1", "ä" * 40, "日本語", "🙂" * 3, "\x00", "x" * 126, "y" * 127, "z" * 128, '"\\/\n\t\r')
LONG_TEXT = "l" * 32767
BLOBS = (b"", b"\x00", b"\xff" * 126, bytes(range(256)), b"b" * 127, b"c" * 16400)
FLOATS = (0.0, -0.5, 1e300, 123456.75, -1.0, 5e-324)
SHAPES = ("default", "small", "lowest", "highest", "null", "empty", *["random"] * 14)
"""What a run of objects is made of; 20 for every version of a message. ("tiny" is for tests that go byte by byte.)"""


class Values:
    """Makes objects; the same seed makes the same ones."""

    def __init__(self, seed: object) -> None:
        self.random = random.Random(str(seed))
        self.shape = "random"
        self.depth = 0

    def objects(self, layout: Message[Any]) -> Iterator[Any]:
        """One object of every shape."""
        for shape in SHAPES:
            yield self.object(layout, shape)

    def object(self, layout: Message[Any], shape: str = "random") -> Any:
        self.shape = shape
        return layout.cls() if shape == "default" and not _needs_values(layout) else self.message(layout)

    def message(self, layout: Message[Any]) -> Any:
        """An object whose fields of this layout have values; all others keep their defaults."""
        values = {name: self.value(wire_type) for name, wire_type in layout.fields}
        for field in layout.tags.fields if layout.tags else ():
            if self.shape == "highest" or self.random.random() < 0.5:
                values[field.name] = self.value(field.type)
        return layout.cls(**values)

    def value(self, wire_type: WireType) -> Any:
        nullable = isinstance(wire_type, NullableStruct) or (
            isinstance(wire_type, LengthPrefixed) and wire_type.nullable
        )
        if nullable and (self.shape == "null" or (self.shape == "random" and self.random.random() < 0.25)):
            return None
        match wire_type:
            case FixedWidth():
                return self.scalar(wire_type)
            case StringType():
                return self.text()
            case BytesType():
                return self.blob()
            case ArrayType():
                return [self.value(wire_type.item) for _ in range(self.count(wire_type))]
            case Message():
                return self.message(wire_type)
            case NullableStruct():
                return self.message(wire_type.struct)
        raise AssertionError(f"no values for {wire_type}")

    def text(self) -> str:
        if self.shape in ("empty", "lowest"):
            return ""
        if self.shape == "tiny":
            return "ab"
        if self.shape == "highest":
            return LONG_TEXT if self.random.random() < 0.05 else TEXTS[-2]
        return self.random.choice(TEXTS)

    def blob(self) -> bytes:
        if self.shape in ("empty", "lowest"):
            return b""
        return b"\xff\x00" if self.shape == "tiny" else self.random.choice(BLOBS)

    def count(self, array: ArrayType) -> int:
        if self.shape in ("empty", "lowest"):
            return 0
        if self.shape in ("small", "tiny"):
            return 1
        if isinstance(array.item, FixedWidth):
            return self.random.choice((0, 1, 3, 16, 17, 130))
        return self.random.choice((0, 1, 1, 2, 3))

    def scalar(self, wire_type: FixedWidth) -> Any:
        if wire_type is Bool:
            return self.random.random() < 0.5
        if wire_type is Float64:
            return self.random.choice(FLOATS)
        if wire_type is Uuid:
            # a first byte without its top bit: Java prints ids that begin with "-" only when it must
            return self.random.choice((bytes(16), bytes([1] * 16), self.random.randbytes(16)))
        bits = 8 * struct.calcsize(">" + wire_type.fmt)
        low, high = (0, 2**bits - 1) if wire_type.fmt.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if self.shape in ("lowest", "highest"):
            return low if self.shape == "lowest" else high
        return self.random.choice((0, 1, low, high, self.random.randint(low, high), self.random.randint(0, 100)))

    def add_unknown_tags(self, layout: WireType, obj: Any) -> None:
        """Give unknown tags to every struct of the object that has a tag section in this layout."""
        if isinstance(layout, NullableStruct):
            layout = layout.struct
        if isinstance(layout, ArrayType) and obj is not None:
            for item in obj:
                self.add_unknown_tags(layout.item, item)
        if not isinstance(layout, Message) or layout.tags is None or obj is None:
            return
        obj.unknown_tagged_fields = self.tags()
        for name, wire_type in layout.fields:
            self.add_unknown_tags(wire_type, getattr(obj, name))

    def tags(self) -> list[tuple[int, bytes]]:
        if self.shape == "tiny":
            return [(300, b"x")]
        numbers = sorted(self.random.sample((100, 127, 128, 16383, 16384, 2**31 - 2), self.random.randint(1, 3)))
        return [(number, self.random.choice(BLOBS[:4])) for number in numbers]


def _needs_values(layout: Message[Any]) -> bool:
    """Whether a default is null where this version has no null."""
    return any(
        getattr(layout.cls(), name) is None and isinstance(wire_type, LengthPrefixed) and not wire_type.nullable
        for name, wire_type in layout.fields
    )
