"""What every wire type is: a construct that can also write itself as flat code; and the readers that they share.

Each type says its bytes twice: ``_parse`` and ``_build`` are the readable form, which walks a stream and names path and
offset when something is wrong; ``emit_decode`` and ``emit_encode`` write the lines that do the same in flat code. A
test holds the two together. This module must never know a type.
"""

from __future__ import annotations

from io import SEEK_END
from typing import Any, BinaryIO

from construct import Construct, SizeofError

from kafkaproto.errors import DecodeError
from kafkaproto.flat import FlatCode


class WireType(Construct):  # type: ignore[misc]  # construct ships no annotations
    """A construct that can also write itself as flat code."""

    def parse(self, data: bytes | memoryview, **context: Any) -> Any:
        """Read one value with the readable form. Raises DecodeError."""
        return super().parse(bytes(data), **context)

    def emit_decode(self, code: FlatCode, target: str) -> None:
        """Write the lines that read a value into the variable ``target``."""
        raise NotImplementedError

    def emit_items_decode(self, code: FlatCode, items: str, count: str) -> None:
        """Write the lines that read ``count`` values into the new list ``items``."""
        item = code.local("item")
        code.line(f"{items} = []")
        with code.block(f"for _ in range({count}):"):
            self.emit_decode(code, item)
            code.line(f"{items}.append({item})")

    def emit_encode(self, code: FlatCode, source: str) -> None:
        """Write the lines that append the value of the expression ``source`` to the output."""
        raise NotImplementedError

    def weight(self, per_byte: int) -> int:
        """The most memory that a value takes beyond ``per_byte`` for each of its bytes (`kafkaproto.memory`)."""
        raise NotImplementedError

    def _sizeof(self, context: Any, path: str) -> int:
        raise SizeofError("the size depends on the value", path=path)


def read(stream: BinaryIO, size: int, path: str) -> bytes:
    """Exactly ``size`` bytes, or DecodeError."""
    offset = stream.tell()
    data = stream.read(size) if size <= remaining(stream) else b""
    if len(data) != size:
        raise DecodeError(path, offset, f"needs {size} bytes, {remaining(stream)} are left")
    return data


def remaining(stream: BinaryIO) -> int:
    """The number of bytes between the stream's position and its end."""
    position = stream.tell()
    end = stream.seek(0, SEEK_END)
    stream.seek(position)
    return end - position


def parse_uvarint(stream: BinaryIO, path: str) -> int:
    """An unsigned varint of at most five bytes and 32 bits."""
    offset = stream.tell()
    value = 0
    for shift in (0, 7, 14, 21, 28):
        byte = read(stream, 1, path)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise DecodeError(path, offset, "the varint has more than 32 bits")
            return value
    raise DecodeError(path, offset, "the varint has more than five bytes")
