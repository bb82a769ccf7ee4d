"""Straight-line functions, written line by line by the constructs of one layout.

`FlatCode` is the page they write on: it joins neighbouring fixed-width fields into one `struct.Struct`, keeps names
apart and collects the constants that the text refers to. It must never know a message, nor what a field means.

Inside a decoder ``b`` is the buffer, ``p`` the position and ``n`` its end; inside an encoder ``out`` is the caller's
bytearray and ``splices`` the caller's list or None.
"""

from __future__ import annotations

import codecs
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import repeat
from typing import Any

from kafkaproto.errors import EncodeError

Buffer = bytes | memoryview


class Malformed(Exception):
    """Raised inside flat code only; what leaves is a DecodeError made by the readable form, with path and offset."""


DECODE_FAILURES = (Malformed, IndexError, struct.error)
ENCODE_FAILURES = (struct.error, AttributeError, TypeError, ValueError, OverflowError, BufferError, EncodeError)

MAX_STRING_BYTES = 0x7FFF

REPLACE = "kafkaproto.replace"
"""The name of `replace_as_java_does` among the error handlers of codecs."""


HALF_OF_A_PAIR = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def replace_as_java_does(error: UnicodeError) -> tuple[str, int]:
    """Python's "replace", but that half of a surrogate pair becomes one U+FFFD, not one for each of its bytes."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    # the whole rest at once: a call for each bad byte would make such text a hundred times slower
    rest = HALF_OF_A_PAIR.sub(b"\xff", error.object[error.start :])
    return rest.decode("utf-8", "replace"), len(error.object)


codecs.register_error(REPLACE, replace_as_java_does)


class FlatCode:
    """The text of one flat function while it is being written."""

    def __init__(self, *, decoding: bool, copied: bool = False, weighed: bool = False) -> None:
        self.decoding = decoding
        self.copied = copied
        """Whether ``b`` is always `bytes`, a copy of the message, and never the caller's memoryview."""
        self.weighed = weighed
        """Whether the decoder keeps count of the memory that it may still use, in ``room`` (`kafkaproto.memory`)."""
        self.out = "out"
        self.names: dict[str, Any] = {}
        self.locals: list[str] = []
        """All names that `local` handed out."""
        self._lines: list[str] = []
        self._depth = 1
        self._run: list[tuple[str, str]] = []

    def local(self, hint: str) -> str:
        """A variable name that nothing else in this function uses."""
        name = f"{hint}_{len(self.locals) + 1}"
        self.locals.append(name)
        return name

    def constant(self, hint: str, value: object) -> str:
        """A name under which the function finds ``value``; the same value keeps its name."""
        name = hint
        while name in self.names and self.names[name] is not value:
            name += "_"
        self.names[name] = value
        return name

    def fixed(self, fmt: str, item: str) -> None:
        """Read into (or write from) ``item`` as the struct format ``fmt``, together with the fields before it."""
        self._run.append((fmt, item))

    def before(self, *lines: str) -> None:
        """Lines that may stand in front of the waiting run: they touch neither the position nor the output."""
        self._lines += ["    " * self._depth + line for line in lines]

    def line(self, *lines: str) -> None:
        """Lines that come after everything that was asked for so far."""
        self._flush()
        self.before(*lines)

    def spend(self, count: str, each: int) -> None:
        """Pay for ``count`` things of ``each`` bytes, if this decoder counts."""
        if self.weighed and each > 0:
            self.constant("Malformed", Malformed)
            self.line(f"room -= {count} * {each}", "if room < 0: raise Malformed")

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """An indented block under ``header``."""
        self.line(header)
        self._depth += 1
        written = len(self._lines)
        try:
            yield
            self._flush()
            if len(self._lines) == written:
                self.before("pass")
        finally:
            self._depth -= 1

    @contextmanager
    def output(self, name: str) -> Iterator[None]:
        """Write into another bytearray: the value of a tagged field, whose size must be known first."""
        self._flush()
        outer, self.out = self.out, name
        try:
            yield
            self._flush()
        finally:
            self.out = outer

    def text(self, header: str, prologue: list[str], epilogue: list[str]) -> str:
        """The finished function: the body inside a ``try`` whose handler is ``epilogue``."""
        self._flush()
        body = ["    " + line for line in self._lines or ["    pass"]]
        return "\n".join([header, *prologue, "    try:", *body, *epilogue, ""])

    def compile(self, text: str, name: str) -> Callable[..., Any]:
        """Run the text and hand out the function that it defines."""
        namespace = dict(self.names)
        exec(compile(text, f"<flat {name}>", "exec"), namespace)
        function: Callable[..., Any] = namespace[name]
        return function

    def _flush(self) -> None:
        run, self._run = self._run, []
        if not run:
            return
        fmt = "".join(fmt for fmt, _ in run)
        items = ", ".join(item for _, item in run)
        if self.decoding:
            self._flush_read(fmt, items)
        elif fmt == "B":
            self.before(f"{self.out}.append({items})")
        else:
            pack = self.constant("pack_" + identifier(fmt), packer(fmt))
            self.before(f"{self.out} += {pack}({items})")

    def _flush_read(self, fmt: str, items: str) -> None:
        if fmt == "B":
            self.before(f"{items} = b[p]", "p += 1")
            return
        unpack = self.constant("unpack_" + identifier(fmt), unpacker(fmt))
        comma = "" if ", " in items else ","
        self.before(f"{items}{comma} = {unpack}(b, p)", f"p += {layout(fmt).size}")


def identifier(fmt: str) -> str:
    """A struct format as part of a name."""
    return fmt.replace("?", "t")


@cache
def layout(fmt: str) -> struct.Struct:
    """The big-endian struct of a run of fields. One object per format, so that flat functions share them."""
    return struct.Struct(">" + fmt)


@cache
def packer(fmt: str) -> Callable[..., bytes]:
    """``pack`` of a format, one object per format."""
    return layout(fmt).pack


@cache
def unpacker(fmt: str) -> Callable[..., tuple[Any, ...]]:
    """``unpack_from`` of a format, one object per format."""
    return layout(fmt).unpack_from


def read_uvarint(b: Buffer, p: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes and 32 bits: ``(value, position behind it)``."""
    value = b[p]
    p += 1
    return (value, p) if value < 0x80 else read_uvarint_tail(b, p, value)


def read_uvarint_tail(b: Buffer, p: int, first: int) -> tuple[int, int]:
    """The rest of a varint whose first byte, already read, says that more follow."""
    value = (first & 0x7F) + (b[p] << 7)
    p += 1
    return (value, p) if value < 0x4000 else read_uvarint_end(b, p, value)


def read_uvarint_end(b: Buffer, p: int, value: int) -> tuple[int, int]:
    """The rest of a varint of which two bytes are read; ``value`` has the second's first bit still in it."""
    value &= 0x3FFF
    for shift in (14, 21, 28):
        byte = b[p]
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    else:
        raise Malformed("a varint has more than five bytes")
    if value > 0xFFFFFFFF:
        raise Malformed("a varint has more than 32 bits")
    return value, p


def read_string_length_tail(b: Buffer, p: int, first: int) -> tuple[int, int]:
    """The same for the length + 1 of a string; Malformed above Kafka's limit."""
    length_plus_one, p = read_uvarint_tail(b, p, first)
    if length_plus_one > MAX_STRING_BYTES + 1:
        raise Malformed("a string has at most 32767 bytes")
    return length_plus_one, p


def uvarint(value: int) -> bytes:
    """The bytes of an unsigned varint."""
    if value < 0x80:
        return value.to_bytes(1, "big")
    if value < 0x4000:
        return (value & 0x7F | 0x80 | value >> 7 << 8).to_bytes(2, "little")
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def long_string_length(length_plus_one: int) -> bytes:
    """The length in front of a compact string that one byte is too small for; ValueError above Kafka's limit."""
    if length_plus_one > MAX_STRING_BYTES + 1:
        raise ValueError("a string has at most 32767 bytes")
    return uvarint(length_plus_one)


RawTags = list[tuple[int, bytes]]


def read_raw_tags(b: Buffer, p: int, n: int, count: int) -> tuple[RawTags | None, int]:
    """A tag section of a struct that has no tagged fields of its own; ``count`` has been read.

    None for no tags, which a clumsy writer may say in two bytes.
    """
    if count > n - p:
        raise Malformed("more tags than bytes left")
    raw: RawTags = []
    for _ in range(count):
        tag, p = read_uvarint(b, p)
        size, p = read_uvarint(b, p)
        if size > n - p:
            raise Malformed("a tagged field ends behind the message")
        raw.append((tag, bytes(b[p : p + size])))
        p += size
    return raw or None, p


def write_tags(out: bytearray, known: list[tuple[int, bytes]], unknown: RawTags | None) -> None:
    """The tag section: the fields that are set and the unknown ones that were kept, in ascending order.

    Raises ValueError for a tag that comes twice or is negative, as Kafka's ``RawTaggedFieldWriter`` does, and for one
    of more than 32 bits, which nobody could read.
    """
    fields = sorted([*known, *(unknown or ())], key=_tag_number)
    out += uvarint(len(fields))
    previous = -1
    for tag, value in fields:
        if tag <= previous:
            raise ValueError(f"tag {tag} is there twice" if tag >= 0 else f"tag {tag} is negative")
        if tag > 0xFFFFFFFF:
            raise ValueError("a tag has more than 32 bits")
        previous = tag
        out += uvarint(tag)
        out += uvarint(len(value))
        out += value


def _tag_number(field: tuple[int, bytes]) -> int:
    return field[0]


SHORT_ARRAY = 16
"""Up to so many numbers there are ready-made structs for an array; replica lists are that short."""


SIGNED_BYTES = (*range(128), *range(-128, 0))
"""The int8 of each byte, to be shared."""


@cache
def array_unpackers(fmt: str) -> tuple[Callable[..., tuple[Any, ...]], ...]:
    """``unpack_from`` of 0, 1, 2, … numbers of a format."""
    return tuple(unpacker(f"{count}{fmt}") for count in range(SHORT_ARRAY + 1))


@cache
def endless(cls: type) -> Iterator[Any]:
    """Empty objects of a class, as many as are asked for. One iterator for all, for it remembers nothing."""
    return map(object.__new__, repeat(cls))


@cache
def rows_unpacker(fmt: str) -> Callable[[Buffer], Iterator[tuple[Any, ...]]]:
    """``iter_unpack`` of a format: the fields of structs that lie one behind the other."""
    return layout(fmt).iter_unpack


@cache
def array_packers(fmt: str) -> tuple[Callable[..., bytes], ...]:
    """``pack`` of 0, 1, 2, … numbers of a format."""
    return tuple(packer(f"{count}{fmt}") for count in range(SHORT_ARRAY + 1))


def read_long_array(b: Buffer, p: int, n: int, count: int, fmt: str) -> tuple[list[Any], int]:
    """Any number of numbers: ``(list, position behind them)``. Malformed for more of them than bytes are left."""
    if count > n - p:
        raise Malformed("more numbers than bytes left")
    return list(struct.unpack_from(f">{count}{fmt}", b, p)), p + count * layout(fmt).size


def write_long_array(values: list[Any], fmt: str) -> bytes:
    """The numbers one after the other, without their count."""
    return struct.pack(f">{len(values)}{fmt}", *values)
