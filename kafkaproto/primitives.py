"""Wire types of Kafka's protocol as classes of the library construct: integers, strings, bytes, uuids and records.

The compact forms came with flexible versions (KIP-482): an unsigned varint of length plus one, 0 for null. This module
does not depend on messages.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, BinaryIO, Protocol, TypeAlias

from kafkaproto import flat, memory
from kafkaproto.contexts import Writing, reading
from kafkaproto.errors import DecodeError, EncodeError, safe_repr
from kafkaproto.flat import FlatCode
from kafkaproto.wire_type import TYPE_NAMES, WireType, parse_uvarint, read, remaining


class ByteRange(Protocol):
    """Bytes stored elsewhere, such as a range of a file. An encoder writes only their length, and adds this object to its `Splices`."""

    def __len__(self) -> int: ...


RecordsValue: TypeAlias = bytes | bytearray | memoryview | ByteRange
"""The value of a records field: record batches in wire format.

The fast decoder returns a memoryview of the buffer with the message, the slow decoder returns bytes. Encoders also accept a `ByteRange`: they write
only its length, and their caller sends its bytes, for example from a file.
"""

Splices: TypeAlias = list[tuple[int, ByteRange]]
"""Ranges of records to send without copying them, as (position in the encoded output at which the range is inserted, the range)."""


class FixedWidth(WireType):
    """Wire type of a number, boolean or uuid of fixed width. Its format is a letter of the `struct` module."""

    def __init__(self, fmt: str) -> None:
        super().__init__()
        self.fmt = fmt
        self.size = struct.calcsize(">" + fmt)

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> Any:
        offset = stream.tell()
        (value,) = struct.unpack(">" + self.fmt, read(stream, self.size, path))
        reading(context).passed(path, offset, stream, value, self)
        return value

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        try:
            stream.write(struct.pack(">" + self.fmt, obj))
        except (struct.error, TypeError, OverflowError) as error:
            raise EncodeError(path, f"expected {TYPE_NAMES[self.fmt]} (got {safe_repr(obj)}): {error}") from None
        return obj

    def _sizeof(self, context: Any, path: str) -> int:
        return self.size

    def weight(self, per_byte: int) -> int:
        number = memory.LARGE_NUMBER if self.size == 8 else memory.SMALL_NUMBER
        return (0 if self.fmt == "?" else number) - per_byte * self.size

    def emit_decode(self, code: FlatCode, target: str) -> None:
        code.fixed(self.fmt, target)

    def emit_encode(self, code: FlatCode, source: str) -> None:
        code.fixed(self.fmt, source)


class UuidType(FixedWidth):
    """Wire type of a uuid: sixteen raw bytes, kept as `bytes`, because the broker compares and looks up ids but does not print them."""

    def __init__(self) -> None:
        super().__init__("16s")

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        if not isinstance(obj, bytes | bytearray) or len(obj) != 16:
            raise EncodeError(path, f"expected a uuid of 16 bytes (got {safe_repr(obj)})")
        return super()._build(obj, stream, context, path)

    def weight(self, per_byte: int) -> int:
        return memory.SHORTEST_BYTES + self.size - per_byte * self.size

    def emit_encode(self, code: FlatCode, source: str) -> None:
        value = code.local("uuid")
        # struct would pad or truncate silently
        code.before(f"{value} = {source}", f"if len({value}) != 16: raise ValueError('a uuid must have 16 bytes')")
        code.fixed(self.fmt, value)


Int8 = FixedWidth("b")
Int16 = FixedWidth("h")
Int32 = FixedWidth("i")
Int64 = FixedWidth("q")
Uint16 = FixedWidth("H")
Uint32 = FixedWidth("I")
Float64 = FixedWidth("d")
Bool = FixedWidth("?")
Uuid = UuidType()


class LengthPrefixed(WireType):
    """Base of strings, bytes, records and arrays: a length, which may be null, precedes the value.

    A plain length is a signed integer of ``width`` (a `struct` letter), negative for null; a compact one is a varint of length + 1, 0 for null.
    """

    def __init__(self, *, width: str, compact: bool, nullable: bool) -> None:
        super().__init__()
        self.width = width
        self.compact = compact
        self.nullable = nullable

    def parse_length(self, stream: BinaryIO, path: str) -> int | None:
        """Decode a length from the stream, None for null. Raises DecodeError, with the field ``path``, for a forbidden null or too few bytes."""
        offset = stream.tell()
        if self.compact:
            length = parse_uvarint(stream, path) - 1
        else:
            width = struct.calcsize(">" + self.width)
            (length,) = struct.unpack(">" + self.width, read(stream, width, path))
        if length < 0:
            if not self.nullable:
                raise DecodeError(path, offset, "must not be null")
            return None
        if length > remaining(stream):
            raise DecodeError(
                path, offset, f"a length of {length} is announced, but only {remaining(stream)} bytes are left"
            )
        return length

    def build_length(self, length: int | None, stream: BinaryIO, path: str) -> None:
        """Encode a length, or null if it is None. Raises EncodeError, with the field ``path``, for a forbidden null or too large a length."""
        if length is None and not self.nullable:
            raise EncodeError(path, "must not be null")
        if self.compact:
            stream.write(flat.uvarint(0 if length is None else length + 1))
            return
        try:
            stream.write(struct.pack(">" + self.width, -1 if length is None else length))
        except struct.error:
            raise EncodeError(path, f"a length of {length} does not fit in {TYPE_NAMES[self.width]}") from None

    def emit_length_decode(self, code: FlatCode) -> str:
        """Add code that decodes the length prefix. Returns the variable with the result: the length, or the length plus one if compact."""
        length = code.local("length")
        if self.compact:
            code.fixed("B", length)
            self.emit_tail_decode(code, length)
        else:
            code.fixed(self.width, length)
        return length

    def emit_tail_decode(self, code: FlatCode, length: str) -> None:
        """Add code that reads the rest of a compact length (a varint) into the variable ``length``, which holds the length's first byte so far."""
        code.constant("read_uvarint_tail", flat.read_uvarint_tail)
        code.line(f"if {length} > 127: {length}, p = read_uvarint_tail(b, p, {length})")

    def emit_value_decode(self, code: FlatCode, target: str, empty: str, emit_value: Callable[[str], None]) -> None:
        """Add code that decodes length and value into the variable ``target``.

        empty: the source text of an empty value. emit_value: a function that adds the code for a value that is neither empty nor null; it is called
        with the name of the variable that holds the length.
        """
        length = self.emit_length_decode(code)
        on_wire = 1 if self.compact else 0
        with code.block(f"if {length} > {on_wire}:"):
            emit_value(length)
        code.line(f"elif {length} == {on_wire}: {target} = {empty}")
        if self.nullable:
            code.line(f"else: {target} = None")
        else:
            code.constant("Malformed", flat.Malformed)
            code.line("else: raise Malformed")

    def emit_slice_end(self, code: FlatCode, length: str) -> str:
        """Add code that computes the position at which the value's bytes end, and return the name of the variable with this position.

        length: the variable with the length as sent, which is one more if compact. The caller must add code that checks if the end is in the message.
        """
        end = code.local("q")
        code.line(f"{end} = p + {length} - 1" if self.compact else f"{end} = p + {length}")
        return end

    def emit_length_encode(self, code: FlatCode, length: str, long_form: str = "uvarint") -> None:
        """Add code that encodes a length. length: the variable in the added code that holds the length or, if compact, the length plus one.

        long_form: the name of the function in `kafkaproto.flat` that encodes a compact length of more than one byte.
        """
        if self.compact:
            code.constant(long_form, getattr(flat, long_form))
            code.line(
                f"if {length} < 128: {code.out}.append({length})",
                f"else: {code.out} += {long_form}({length})",
            )
        else:
            code.fixed(self.width, length)

    @property
    def prefix_size(self) -> int:
        """Return the minimum number of bytes that an encoded length takes."""
        return 1 if self.compact else struct.calcsize(">" + self.width)

    @property
    def null_on_wire(self) -> str:
        """Return the number that is sent as length for null, as source text of generated code: "0" in the compact form, otherwise "-1"."""
        return "0" if self.compact else "-1"

    def wire_length(self, length: str) -> str:
        """Return a Python expression of the number sent as length: one more in the compact form. length: a Python expression of the length."""
        return f"{length} + 1" if self.compact else length


class StringType(LengthPrefixed):
    """Wire type of UTF-8 text of at most 32767 bytes. Invalid UTF-8 becomes U+FFFD, as in Java."""

    def __init__(self, *, compact: bool, nullable: bool) -> None:
        super().__init__(width="h", compact=compact, nullable=nullable)

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> str | None:
        offset = stream.tell()
        length = self.parse_length(stream, path)
        if length is not None and length > flat.MAX_STRING_BYTES:
            raise DecodeError(
                path, offset, f"a string of {length} bytes is too long: the limit is {flat.MAX_STRING_BYTES} bytes"
            )
        text = None if length is None else str(read(stream, length, path), "utf-8", flat.REPLACE)
        reading(context).passed(path, offset, stream, text, self)
        return text

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        if obj is None:
            self.build_length(None, stream, path)
            return obj
        try:
            data = obj.encode()
        except (AttributeError, UnicodeEncodeError):
            raise EncodeError(path, f"expected text that UTF-8 can encode (got {safe_repr(obj)})") from None
        if len(data) > flat.MAX_STRING_BYTES:
            raise EncodeError(
                path, f"a string of {len(data)} bytes is too long: the limit is {flat.MAX_STRING_BYTES} bytes"
            )
        self.build_length(len(data), stream, path)
        stream.write(data)
        return obj

    def weight(self, per_byte: int) -> int:
        # an empty string takes no memory, because it is shared
        return max(0, memory.SHORTEST_TEXT - per_byte) - per_byte * self.prefix_size

    def emit_decode(self, code: FlatCode, target: str) -> None:
        def emit_text(length: str) -> None:
            end = self.emit_slice_end(code, length)
            decoding = f"'utf-8', {flat.REPLACE!r}"
            text = f"b[p:{end}].decode({decoding})" if code.copied else f"str(b[p:{end}], {decoding})"
            code.line(f"{target} = {text}", f"p = {end}")

        self.emit_value_decode(code, target, "''", emit_text)

    def emit_tail_decode(self, code: FlatCode, length: str) -> None:
        code.constant("read_string_length_tail", flat.read_string_length_tail)
        code.line(f"if {length} > 127: {length}, p = read_string_length_tail(b, p, {length})")

    def emit_encode(self, code: FlatCode, source: str) -> None:
        text, length = code.local("text"), code.local("length")
        if self.nullable:
            code.before(
                f"{text} = {source}",
                f"if {text} is None: {text}, {length} = b'', {self.null_on_wire}",
                "else:",
                f"    {text} = {text}.encode()",
                f"    {length} = {self.wire_length(f'len({text})')}",
            )
        else:
            code.before(f"{text} = {source}.encode()", f"{length} = {self.wire_length(f'len({text})')}")
        self.emit_length_encode(code, length, "long_string_length")
        code.line(f"{code.out} += {text}")


class BytesType(LengthPrefixed):
    """Wire type of uninterpreted bytes, decoded as a new `bytes` object."""

    def __init__(self, *, compact: bool, nullable: bool) -> None:
        super().__init__(width="i", compact=compact, nullable=nullable)

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> bytes | None:
        offset = stream.tell()
        length = self.parse_length(stream, path)
        data = None if length is None else read(stream, length, path)
        reading(context).passed(path, offset, stream, data, self)
        return data

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        if obj is not None and not isinstance(obj, bytes | bytearray | memoryview):
            raise EncodeError(path, f"expected bytes (got {safe_repr(obj)})")
        self.build_length(None if obj is None else len(obj), stream, path)
        stream.write(obj or b"")
        return obj

    def weight(self, per_byte: int) -> int:
        return max(0, memory.SHORTEST_BYTES - per_byte) - per_byte * self.prefix_size

    def emit_decode(self, code: FlatCode, target: str) -> None:
        def emit_slice(length: str) -> None:
            end = self.emit_slice_end(code, length)
            code.line(f"{target} = {f'b[p:{end}]' if code.copied else f'bytes(b[p:{end}])'}", f"p = {end}")

        self.emit_value_decode(code, target, "b''", emit_slice)

    def emit_tail_decode(self, code: FlatCode, length: str) -> None:
        # most lengths take two bytes, so they are decoded inline
        code.constant("read_uvarint_end", flat.read_uvarint_end)
        with code.block(f"if {length} > 127:"):
            code.line(f"{length} += b[p] - 1 << 7", "p += 1")
            code.line(f"if {length} > 16383: {length}, p = read_uvarint_end(b, p, {length})")

    def emit_encode(self, code: FlatCode, source: str) -> None:
        data, length = self.emit_measure(code, source)
        self.emit_length_encode(code, length)
        code.constant("BYTES_LIKE", BYTES_LIKE)
        code.line(f"if not isinstance({data}, BYTES_LIKE): raise TypeError", f"{code.out} += {data}")

    def emit_measure(self, code: FlatCode, source: str) -> tuple[str, str]:
        """Add code that stores the value of the expression `source`, and the length to send, in two variables. Returns the names of the two."""
        data, length = code.local("data"), code.local("length")
        code.before(f"{data} = {source}")
        if self.nullable:
            code.before(f"if {data} is None: {data}, {length} = b'', {self.null_on_wire}")
            code.before(f"else: {length} = {self.wire_length(f'len({data})')}")
        else:
            code.before(f"{length} = {self.wire_length(f'len({data})')}")
        return data, length


BYTES_LIKE = (bytes, bytearray, memoryview)


class RecordsType(BytesType):
    """Wire type of record batches, which are neither copied nor interpreted.

    The fast decoder returns a slice of the memoryview that contains the message. The encoder appends bytes to the output. For a `ByteRange`, which is
    sent without being copied, it writes only the length, and appends (position in the output, range) to the list of splices.
    """

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        splices = context.splices if type(context) is Writing else None
        if obj is None or isinstance(obj, BYTES_LIKE) or not hasattr(obj, "__len__"):
            return super()._build(obj, stream, context, path)
        if splices is None:
            raise EncodeError(
                path, f"expected bytes (got {safe_repr(obj)}); to encode a ByteRange, pass a list as `splices`"
            )
        self.build_length(len(obj), stream, path)
        splices.append((stream.tell(), obj))
        return obj

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> bytes | None:
        offset = stream.tell()
        records: bytes | None = super()._parse(stream, context, path)
        memory.spend(context, len(records or b"") * (memory.ROOM_PER_BYTE - 1), path, offset)
        return records

    def weight(self, per_byte: int) -> int:
        return memory.MEMORYVIEW - per_byte * self.prefix_size

    def emit_decode(self, code: FlatCode, target: str) -> None:
        def emit_view(length: str) -> None:
            end = self.emit_slice_end(code, length)
            # records add only their own bytes to the room
            code.spend(f"({end} - p)", memory.ROOM_PER_BYTE - 1)
            code.line(f"{target} = b[p:{end}]", f"p = {end}")

        self.emit_value_decode(code, target, "b[p:p]", emit_view)

    def emit_encode(self, code: FlatCode, source: str) -> None:
        data, length = self.emit_measure(code, source)
        self.emit_length_encode(code, length)
        code.constant("BYTES_LIKE", BYTES_LIKE)
        code.line(
            f"if isinstance({data}, BYTES_LIKE): {code.out} += {data}",
            f"else: splices.append((len({code.out}), {data}))",
        )


String = StringType(compact=False, nullable=False)
NullableString = StringType(compact=False, nullable=True)
CompactString = StringType(compact=True, nullable=False)
CompactNullableString = StringType(compact=True, nullable=True)

Bytes = BytesType(compact=False, nullable=False)
NullableBytes = BytesType(compact=False, nullable=True)
CompactBytes = BytesType(compact=True, nullable=False)
CompactNullableBytes = BytesType(compact=True, nullable=True)

Records = RecordsType(compact=False, nullable=False)
NullableRecords = RecordsType(compact=False, nullable=True)
CompactRecords = RecordsType(compact=True, nullable=False)
CompactNullableRecords = RecordsType(compact=True, nullable=True)
