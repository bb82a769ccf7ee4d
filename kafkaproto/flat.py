"""Flat code: the source text of fast decoders and encoders, which are generated from the wire types of a message's fields.

`FlatCode` collects the lines of one generated function and the constants that these lines use. It decodes or encodes neighbouring fields of fixed
width with one `struct.Struct`, and gives variables unique names. This module does not depend on messages or the meaning of fields.

Variables of a generated decoder: ``b`` is the buffer, ``p`` the current position and ``n`` the end of the message. Variables of a generated encoder:
``out`` is the bytearray for the output, and ``splices`` is None or the list for records that are sent without being copied into ``out`` (`Splices`).
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
    """Raised by a generated decoder for invalid bytes. The slow decoder then finds the invalid field and raises DecodeError."""


DECODE_FAILURES = (Malformed, IndexError, struct.error)
ENCODE_FAILURES = (struct.error, AttributeError, TypeError, ValueError, OverflowError, BufferError, EncodeError)

MAX_STRING_BYTES = 0x7FFF

REPLACE = "kafkaproto.replace"
"""The name under which `replace_as_java_does` is registered as a codec error handler."""
HALF_OF_A_PAIR = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def replace_as_java_does(error: UnicodeError) -> tuple[str, int]:
    """Decode invalid UTF-8 like Python's error handler "replace", but with one U+FFFD for an encoded surrogate, as in Java; Python uses three.

    A codec error handler is called at the first invalid byte, and returns (text, position at which to continue). This handler decodes all bytes from
    the first invalid byte to the end, because that is faster than a call for each invalid byte.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    # decode the whole rest at once: a call for each invalid byte would be a hundred times slower
    rest = HALF_OF_A_PAIR.sub(b"\xff", error.object[error.start :])
    return rest.decode("utf-8", "replace"), len(error.object)


codecs.register_error(REPLACE, replace_as_java_does)


class FlatCode:
    """The source text of one generated function (flat code), which is built line by line."""

    def __init__(self, *, decoding: bool, copied: bool = False, weighed: bool = False) -> None:
        self.decoding = decoding
        self.copied = copied
        """Whether the decoder first copies the message into `bytes`; otherwise its buffer ``b`` may be a memoryview."""
        self.weighed = weighed
        """Whether the generated decoder has a memory limit. If so, its local variable ``room`` is the memory left, in bytes (`kafkaproto.memory`)."""
        self.out = "out"
        self.names: dict[str, Any] = {}
        self.locals: list[str] = []
        """The variable names that `local` has returned so far. A decoder that fails deletes these variables to free their memory."""
        self._lines: list[str] = []
        self._depth = 1
        self._run: list[tuple[str, str]] = []

    def local(self, hint: str) -> str:
        """Return a variable name that begins with ``hint`` and is unique in the generated function."""
        name = f"{hint}_{len(self.locals) + 1}"
        self.locals.append(name)
        return name

    def constant(self, hint: str, value: object) -> str:
        """Return a name by which the generated function can refer to ``value``. The same value always gets the same name.

        The name begins with ``hint``.
        """
        name = hint
        while name in self.names and self.names[name] is not value:
            name += "_"
        self.names[name] = value
        return name

    def fixed(self, fmt: str, item: str) -> None:
        """Collect a value for the next `struct` call: a decoder stores it in the variable ``item``, an encoder writes the expression ``item``.

        The next call of `line` or `text` adds the code: one call of `struct` for all collected values. fmt: the `struct` format of the value.
        """
        self._run.append((fmt, item))

    def before(self, *lines: str) -> None:
        """Add lines of code before the `struct` call for the values that `fixed` has collected.

        Unlike `line`, this method does not add that call yet, so that values which `fixed` collects later can be part of the same call. The lines
        must change neither the decoder's position nor the encoder's output.
        """
        self._lines += ["    " * self._depth + line for line in lines]

    def line(self, *lines: str) -> None:
        """Append lines to the generated code. Before them, add one call of `struct` for all values that `fixed` has collected."""
        self._flush()
        self.before(*lines)

    def spend(self, count: str, each: int) -> None:
        """Add code that deducts the memory of items from the memory limit, if the decoder has one, and fails when the limit is exceeded.

        count: the source text of the number of items. each: the memory in bytes to deduct for each item.
        """
        if self.weighed and each > 0:
            self.constant("Malformed", Malformed)
            self.line(f"room -= {count} * {each}", "if room < 0: raise Malformed")

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Return a context in which lines are indented under the line ``header``."""
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
        """Return a context in which the added code of an encoder writes into the bytearray ``name`` instead of the function's usual output.

        A tagged field is first encoded into such a bytearray, because its size must be written before its value.
        """
        self._flush()
        outer, self.out = self.out, name
        try:
            yield
            self._flush()
        finally:
            self.out = outer

    def text(self, header: str, prologue: list[str], epilogue: list[str]) -> str:
        """Return the source text of the function: ``header`` and ``prologue``, then the added lines inside a ``try``, then ``epilogue``.

        epilogue: the lines that handle the exceptions of the ``try``.
        """
        self._flush()
        body = ["    " + line for line in self._lines or ["    pass"]]
        return "\n".join([header, *prologue, "    try:", *body, *epilogue, ""])

    def compile(self, text: str, name: str) -> Callable[..., Any]:
        """Execute generated source text, and return the function ``name`` that it defines."""
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
    """Return a `struct` format in a form that variable names may contain: `?` becomes `t`.

    fmt: format characters without byte order, such as "hi?".
    """
    return fmt.replace("?", "t")


@cache
def layout(fmt: str) -> struct.Struct:
    """Return the big-endian `Struct` of a format, the same object every time.

    fmt: format characters without byte order, such as "hi?".
    """
    return struct.Struct(">" + fmt)


@cache
def packer(fmt: str) -> Callable[..., bytes]:
    """Return the method ``pack`` of the `Struct` of a format, the same object every time.

    fmt: format characters without byte order, such as "hi?".
    """
    return layout(fmt).pack


@cache
def unpacker(fmt: str) -> Callable[..., tuple[Any, ...]]:
    """Return the method ``unpack_from`` of the `Struct` of a format, the same object every time.

    fmt: format characters without byte order, such as "hi?".
    """
    return layout(fmt).unpack_from


def read_uvarint(b: Buffer, p: int) -> tuple[int, int]:
    """Decode the unsigned varint at index ``p`` of the buffer ``b``, of at most five bytes and 32 bits. Returns ``(value, index after it)``."""
    value = b[p]
    p += 1
    return (value, p) if value < 0x80 else read_uvarint_tail(b, p, value)


def read_uvarint_tail(b: Buffer, p: int, first: int) -> tuple[int, int]:
    """Decode the rest of an unsigned varint whose first byte has been read. Returns ``(value, index after it)``.

    b: the buffer. p: the index of the second byte. first: the first byte, which has the continuation bit.
    """
    value = (first & 0x7F) + (b[p] << 7)
    p += 1
    return (value, p) if value < 0x4000 else read_uvarint_end(b, p, value)


def read_uvarint_end(b: Buffer, p: int, value: int) -> tuple[int, int]:
    """Decode the rest of an unsigned varint whose first two bytes have been read. Returns ``(value, index after it)``.

    b: the buffer. p: the index of the third byte. value: (first byte & 0x7F) + (second byte << 7); bit 14, a continuation bit, is ignored.
    """
    value &= 0x3FFF
    for shift in (14, 21, 28):
        byte = b[p]
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    else:
        raise Malformed(
            f"the unsigned varint at byte {p - 5} of the buffer takes more than 5 bytes; at most 5 are allowed"
        )
    if value > 0xFFFFFFFF:
        raise Malformed(f"the unsigned varint at byte {p - 5} of the buffer must be at most 4294967295 (got {value})")
    return value, p


def read_string_length_tail(b: Buffer, p: int, first: int) -> tuple[int, int]:
    """Decode the rest of the length prefix of a compact string. Returns ``(length + 1, index after the prefix)``.

    The prefix is an unsigned varint of the length + 1. b: the buffer. p: the index of the prefix's second byte. first: the first byte of the prefix,
    which has the continuation bit. Raises Malformed for a length above 32767.
    """
    length_plus_one, p = read_uvarint_tail(b, p, first)
    if length_plus_one > MAX_STRING_BYTES + 1:
        raise Malformed(f"a string of {length_plus_one - 1} bytes is too long: the limit is {MAX_STRING_BYTES} bytes")
    return length_plus_one, p


def uvarint(value: int) -> bytes:
    """Return the bytes of an unsigned varint."""
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
    """Return the length + 1 of a compact string as an unsigned varint. Raises ValueError for a string of more than 32767 bytes."""
    if length_plus_one > MAX_STRING_BYTES + 1:
        raise ValueError(f"a string of {length_plus_one - 1} bytes is too long: the limit is {MAX_STRING_BYTES} bytes")
    return uvarint(length_plus_one)


RawTags = list[tuple[int, bytes]]


def read_raw_tags(b: Buffer, p: int, n: int, count: int) -> tuple[RawTags | None, int]:
    """Decode ``count`` tags of a struct that has no known tagged fields. Returns (tags, index after them).

    b: the buffer. p: the index after the count. n: the end of the message. tags is None if ``count`` is 0. Raises Malformed for a tag beyond ``n``.
    """
    if count > n - p:
        raise Malformed(f"{count} tagged fields are announced, but only {n - p} bytes are left")
    raw: RawTags = []
    for _ in range(count):
        tag, p = read_uvarint(b, p)
        size, p = read_uvarint(b, p)
        if size > n - p:
            raise Malformed(f"tagged field {tag} announces {size} bytes, but only {n - p} are left")
        raw.append((tag, bytes(b[p : p + size])))
        p += size
    return raw or None, p


def write_tags(out: bytearray, known: list[tuple[int, bytes]], unknown: RawTags | None) -> None:
    """Append a tag section to ``out``: the tagged fields in ``known`` and ``unknown``, in ascending order of tags.

    Raises ValueError for a repeated or negative tag, as Kafka's ``RawTaggedFieldWriter`` does, and for a tag of more than 32 bits, which no decoder
    accepts. known, unknown: (tag, encoded value) of each field; None stands for no unknown fields.
    """
    fields = sorted([*known, *(unknown or ())], key=_tag_number)
    out += uvarint(len(fields))
    previous = -1
    for tag, value in fields:
        if not 0 <= tag <= 0xFFFFFFFF:
            raise ValueError(f"a tagged field has the tag {tag}; the lowest is 0, the highest {0xFFFFFFFF}")
        if tag == previous:
            raise ValueError(f"two tagged fields have the tag {tag}; give each tag once")
        previous = tag
        out += uvarint(tag)
        out += uvarint(len(value))
        out += value


def _tag_number(field: tuple[int, bytes]) -> int:
    return field[0]


SHORT_ARRAY = 16
"""The maximum number of items of an array of numbers for which a compiled `struct.Struct` is kept. Lists of replicas are usually shorter."""


SIGNED_BYTES = (*range(128), *range(-128, 0))
"""Maps a byte, 0 to 255, to its value as an int8. The numbers are shared objects, so decoding a byte allocates nothing."""


@cache
def array_unpackers(fmt: str) -> tuple[Callable[..., tuple[Any, ...]], ...]:
    """Return a tuple of functions, one for each length of a short array: function N is the ``unpack_from`` that decodes N numbers.

    fmt: the `struct` format of one number. The highest N is `SHORT_ARRAY` (16).
    """
    return tuple(unpacker(f"{count}{fmt}") for count in range(SHORT_ARRAY + 1))


@cache
def endless(cls: type) -> Iterator[Any]:
    """Return an iterator that yields a new empty object of the class at each step, and never ends.

    This is faster than a call for each object. Every call of this function with the same class returns the same iterator; this does no harm, because
    each step yields an independent object.
    """
    return map(object.__new__, repeat(cls))


@cache
def rows_unpacker(fmt: str) -> Callable[[Buffer], Iterator[tuple[Any, ...]]]:
    """Return a function that decodes the fields of consecutive structs in a buffer, and yields one tuple of field values for each struct.

    fmt: the format characters of one struct, without byte order, such as "hi?".
    """
    return layout(fmt).iter_unpack


@cache
def array_packers(fmt: str) -> tuple[Callable[..., bytes], ...]:
    """Return a tuple of functions, one for each length of a short array: function N is the ``pack`` that encodes N numbers.

    fmt: the `struct` format of one number. The highest N is `SHORT_ARRAY` (16).
    """
    return tuple(packer(f"{count}{fmt}") for count in range(SHORT_ARRAY + 1))


def read_long_array(b: Buffer, p: int, n: int, count: int, fmt: str) -> tuple[list[Any], int]:
    """Decode ``count`` numbers from index ``p`` on; ``count`` has no maximum. Returns ``(list, index after the numbers)``.

    b: the buffer. n: the index at which the message ends. fmt: the `struct` format of one number. Raises Malformed for a count above the number of
    bytes left in the message, and struct.error if the numbers extend beyond the buffer.
    """
    if count > n - p:
        raise Malformed(f"the array at byte {p} has {count} numbers, but only {n - p} bytes are left in the message")
    return list(struct.unpack_from(f">{count}{fmt}", b, p)), p + count * layout(fmt).size


def write_long_array(values: list[Any], fmt: str) -> bytes:
    """Return the encoded numbers of an array with many items, without the count of items.

    fmt: the format character of one number in the module `struct`, for example "i".
    """
    return struct.pack(f">{len(values)}{fmt}", *values)
