"""Base class of all wire types, and the functions with which wire types read bytes.

A wire type encodes and decodes values in two ways. It is a `Construct` of the library construct: ``_parse`` and ``_build`` read and write a stream,
and their errors contain the path of the field and its offset. ``emit_decode`` and ``emit_encode`` generate equivalent lines of fast Python code (flat
code, `kafkaproto.flat`). A test compares the two ways. This module does not depend on any concrete type.
"""

from __future__ import annotations

from io import SEEK_END
from typing import Any, BinaryIO

from construct import Construct, SizeofError

from kafkaproto.errors import DecodeError
from kafkaproto.flat import FlatCode

TYPE_NAMES = {
    "b": "an int8",
    "h": "an int16",
    "i": "an int32",
    "q": "an int64",
    "H": "a uint16",
    "I": "a uint32",
    "d": "a float64",
    "?": "a bool",
    "16s": "a uuid",
}
"""Maps the `struct` format of a number type to the name of the type in error texts."""


class WireType(Construct):  # type: ignore[misc]  # construct ships no annotations
    """Base of wire types: a `Construct` that can also generate fast Python functions (flat code) to decode and encode its values."""

    def parse(self, data: bytes | memoryview, **context: Any) -> Any:
        """Decode one value without generated code, which is slow. Raises DecodeError, which names path and byte offset, if the bytes are invalid.

        context: construct's context, which wire types ignore.
        """
        return super().parse(bytes(data), **context)

    def emit_decode(self, code: FlatCode, target: str) -> None:
        """Add code that decodes a value into the variable ``target``. code: collects the source text of the generated decoder."""
        raise NotImplementedError

    def emit_items_decode(self, code: FlatCode, items: str, count: str) -> None:
        """Add code that decodes ``count`` values into the new list ``items``. Both are names of variables of the generated function."""
        item = code.local("item")
        code.line(f"{items} = []")
        with code.block(f"for _ in range({count}):"):
            self.emit_decode(code, item)
            code.line(f"{items}.append({item})")

    def emit_encode(self, code: FlatCode, source: str) -> None:
        """Add code that appends the encoded value of the expression ``source`` to the output. code: collects the text of the generated encoder."""
        raise NotImplementedError

    def weight(self, per_byte: int) -> int:
        """Return the weight W: a decoded value takes at most ``per_byte`` * (encoded size of the value) + W bytes of memory.

        W may be negative. For an array, neither the memory nor the encoded size includes the items; each item has its own weight. Decoders use
        weights to reject messages that would take too much memory (`kafkaproto.memory`).
        """
        raise NotImplementedError

    def _sizeof(self, context: Any, path: str) -> int:
        raise SizeofError(
            f"the encoded size of a {type(self).__name__} depends on its value; encode the value to get its size",
            path=path,
        )


def read(stream: BinaryIO, size: int, path: str) -> bytes:
    """Read exactly ``size`` bytes. Raises DecodeError, which names the field ``path``, if fewer are left."""
    offset = stream.tell()
    data = stream.read(size) if size <= remaining(stream) else b""
    if len(data) != size:
        raise DecodeError(path, offset, f"the value takes {size} bytes, but only {remaining(stream)} are left")
    return data


def remaining(stream: BinaryIO) -> int:
    """Return the number of bytes between the current position of a stream and its end."""
    position = stream.tell()
    end = stream.seek(0, SEEK_END)
    stream.seek(position)
    return end - position


def parse_uvarint(stream: BinaryIO, path: str) -> int:
    """Decode an unsigned varint of at most five bytes and 32 bits.

    path: the path of the field, for errors. Raises DecodeError if the varint is longer or incomplete.
    """
    offset = stream.tell()
    value = 0
    for shift in (0, 7, 14, 21, 28):
        byte = read(stream, 1, path)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise DecodeError(path, offset, f"an unsigned varint must fit in 32 bits (got {value})")
            return value
    raise DecodeError(path, offset, "an unsigned varint must have at most five bytes")
