"""Random objects for a layout, from a seed: defaults, limits of every type, empty, null, long and ordinary values."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any

from kafkaproto.arrays import ArrayType
from kafkaproto.message import Message, NullableStruct
from kafkaproto.primitives import Bool, BytesType, FixedWidth, Float64, LengthPrefixed, StringType, Uuid
from kafkaproto.wire_type import WireType

EDGES = (126, 127, 128)
FAR_EDGES = (16382, 16383, 16384)
"""Lengths around which the varint of a length, or of a length plus one, grows by a byte."""

TEXTS: tuple[str, ...] = (
    "",
    "a",
    "topic-1",
    "ä" * 40,
    "日本語",
    "🙂" * 3,
    "\x00\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U0010ffff",
)
TEXTS += ('"\\/\n\t\r\u2028', *("x" * length for length in EDGES))
LONG_TEXTS = tuple("l" * length for length in (*EDGES, *FAR_EDGES, 32766, 32767))
BLOBS = (b"", b"\x00", b"\x7f", bytes(range(256)), *(b"\xff" * length for length in EDGES))
LONG_BLOBS = tuple(b"c" * length for length in (*EDGES, *FAR_EDGES))
FLOATS = (0.0, -0.0, -0.5, 123456.75, -1.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1e300)
UUIDS = (bytes(16), bytes([1] * 16), b"\xff" * 16, b"\xf8" + bytes(15), b"\xfb\xef\xbe" * 5 + b"\xfb")
"""As text, two of these UUIDs begin with a dash, and another consists only of dashes."""
TAG_NUMBERS = (100, 127, 128, 16383, 16384, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**31 - 2)

SPECIAL = ("default", "small", "lowest", "highest", "null", "empty", "long", "long", "wide")
"""The shapes that every series of objects contains; the others are random. "tiny" is for tests that go byte by byte."""


class Values:
    """Generates random objects; the same seed generates the same objects."""

    def __init__(self, seed: object) -> None:
        self.random = random.Random(str(seed))
        self.shape = "random"
        self.depth = 0
        """The number of arrays around the current value."""
        self.floats = FLOATS

    def objects(self, layout: Message[Any], count: int = 20) -> Iterator[Any]:
        """Yield `count` objects, at least one of each special shape."""
        for i in range(count):
            yield self.object(layout, SPECIAL[i] if i < len(SPECIAL) else "random")

    def object(self, layout: Message[Any], shape: str = "random") -> Any:
        self.shape = shape
        return layout.cls() if shape == "default" and not _needs_values(layout) else self.message(layout)

    def message(self, layout: Message[Any]) -> Any:
        """Return an object in which the fields of this layout have values and all others keep their defaults."""
        values = {name: self.value(wire_type) for name, wire_type in layout.fields}
        for field in layout.tags.fields if layout.tags else ():
            if self.shape in ("highest", "tiny") or self.random.random() < 0.5:
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
                count = self.count(wire_type)
                self.depth += 1
                items = [self.value(wire_type.item) for _ in range(count)]
                self.depth -= 1
                return items
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
        if self.shape == "wide":
            return "ab"
        return self.random.choice(LONG_TEXTS if self.shape == "long" and self.depth < 2 else TEXTS)

    def blob(self) -> bytes:
        if self.shape in ("empty", "lowest"):
            return b""
        if self.shape in ("tiny", "wide"):
            return b"\xff\x00"
        return self.random.choice(LONG_BLOBS if self.shape == "long" else BLOBS)

    def count(self, array: ArrayType) -> int:
        if self.shape in ("empty", "lowest"):
            return 0
        if self.shape in ("small", "tiny"):
            return 1
        if self.shape == "wide":
            return self.random.choice(EDGES) if self.depth == 0 else 1
        if self.shape == "long":
            return int(self.random.choice((*EDGES, FAR_EDGES[-1]))) if isinstance(array.item, FixedWidth) else 1
        if isinstance(array.item, FixedWidth):
            return int(self.random.choice((0, 1, 3, 16, 17, *(EDGES if self.depth == 0 else ()))))
        return self.random.choice((0, 1, 1, 2, 3) if self.depth < 2 else (0, 1, 1, 2))

    def scalar(self, wire_type: FixedWidth) -> Any:
        if wire_type is Bool:
            return self.random.random() < 0.5
        if wire_type is Float64:
            return self.random.choice(self.floats)
        if wire_type is Uuid:
            return self.random.choice((*UUIDS, self.random.randbytes(16)))
        bits = 8 * struct.calcsize(">" + wire_type.fmt)
        low, high = (0, 2**bits - 1) if wire_type.fmt.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if self.shape in ("lowest", "highest"):
            return low if self.shape == "lowest" else high
        edges = (0, 1, max(low, -1), low, low + 1, high - 1, high)
        return self.random.choice((*edges, self.random.randint(low, high), self.random.randint(0, 100)))

    def add_unknown_tags(self, layout: WireType, obj: Any) -> None:
        """Add unknown tags to every struct of the object that has a tag section in this layout."""
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
        numbers = sorted(self.random.sample(TAG_NUMBERS, self.random.randint(1, 3)))
        return [(number, self.random.choice(BLOBS)) for number in numbers]


def _needs_values(layout: Message[Any]) -> bool:
    """Return whether a field's default is null but this version does not allow null."""
    return any(
        getattr(layout.cls(), name) is None and isinstance(wire_type, LengthPrefixed) and not wire_type.nullable
        for name, wire_type in layout.fields
    )
