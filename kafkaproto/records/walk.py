"""Through the records of a batch of magic 2, decompressed: where each begins, ends, and has its key and value.

Plain Python is slow at single bytes and fast at slices. So records that follow each other with the same shape (the same
sizes, and numbers of the same width) are found with a few slices and told as one `Stretch`. Single records are told as
`One`. All bounds are checked here, those who read behind it need not. This module must never know headers of batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, repeat
from struct import Struct
from typing import NamedTuple, TypeAlias

from kafkaproto.errors import DecodeError
from kafkaproto.flat import REPLACE
from kafkaproto.records.record import Header
from kafkaproto.records.varint import read_varint

One: TypeAlias = tuple[int, int, int, int, int, int, tuple[Header, ...]]
"""Timestamp delta, offset delta, start and end of the key, start and end of the value (both -1 for null), headers."""

NULL = -1
_LOW = bytes(range(0x80))
_HIGH = bytes(range(0x80, 0x100))
_FIRST_LOOK = 64
_LONGEST_LOOK = 1024
_AT_ONCE = 64
"""Records whose parts are cut out in one step, at C speed."""
_LOOK_BYTES = 128 * 1024
"""A stretch is told in pieces of about so many bytes, so that nobody holds more at a time."""
_INT32 = range(-(2**31), 2**31)


class Shape(NamedTuple):
    """Where the parts of a record lie, counted from its first byte. Widths are those of varints, in bytes."""

    stride: int
    size_width: int
    timestamp_at: int
    offset_at: int
    offset_end: int
    key_at: int
    key_size: int
    key_end: int
    value_at: int
    value_size: int
    value_end: int


@lru_cache(1024)
def _cutters(at: int, size: int, stride: int) -> tuple[Struct, Struct]:
    """What cuts ``size`` bytes at ``at`` out of one record of ``stride`` bytes, and out of `_AT_ONCE` of them."""
    one = f"{at}x{size}s{stride - at - size}x"
    return Struct(one), Struct(one * _AT_ONCE)


class Stretch:
    """``count`` records of one shape without headers, the first at ``pos``."""

    # no dataclass: making the class would cost whoever imports batches as much as the rest of this module
    __slots__ = ("count", "pos", "shape")

    def __init__(self, pos: int, count: int, shape: Shape) -> None:
        self.pos = pos
        self.count = count
        self.shape = shape

    def column(self, b: bytes, at: int) -> bytes:
        """The bytes at one place of each record."""
        stride = self.shape.stride
        return b[self.pos + at : self.pos + self.count * stride : stride]

    def offsets(self, b: bytes, base: int) -> Sequence[int]:
        """The offset of each record."""
        return self._numbers(b, self.shape.offset_at, self.shape.offset_end, base)

    def timestamps(self, b: bytes, base: int) -> Sequence[int]:
        """The timestamp of each record, in ms."""
        return self._numbers(b, self.shape.timestamp_at, self.shape.offset_at, base)

    def keys(self, b: bytes) -> Iterable[bytes | None]:
        """The key of each record."""
        return self._cut(b, self.shape.key_at, self.shape.key_size)

    def values(self, b: bytes) -> Iterable[bytes | None]:
        """The value of each record."""
        return self._cut(b, self.shape.value_at, self.shape.value_size)

    def _cut(self, b: bytes, at: int, size: int) -> Iterable[bytes | None]:
        if size < 0:
            return repeat(None, self.count)
        stride = self.shape.stride
        one, many = _cutters(at, size, stride)
        middle = self.pos + self.count // _AT_ONCE * _AT_ONCE * stride
        view = memoryview(b)
        return chain.from_iterable(
            chain(
                many.iter_unpack(view[self.pos : middle]),
                one.iter_unpack(view[middle : self.pos + self.count * stride]),
            )
        )

    def _numbers(self, b: bytes, at: int, end: int, base: int) -> Sequence[int]:
        """``base`` and the varint at ``at``, for each record. Most are all the same, or count up by one."""
        columns = [self.column(b, place) for place in range(at, end)]
        first = base + read_varint(b, self.pos + at)[0]
        if all(column.count(column[0]) == self.count for column in columns):
            return [first] * self.count
        if len(columns) <= 2:
            if columns == _counting(len(columns), first - base, self.count):
                return range(first, first + self.count)
            if len(columns) == 1:
                return [base + (raw >> 1 ^ -(raw & 1)) for raw in columns[0]]
            raws = [low & 0x7F | high << 7 for low, high in zip(*columns, strict=True)]
            return [base + (raw >> 1 ^ -(raw & 1)) for raw in raws]
        stop = self.pos + self.count * self.shape.stride
        return [base + read_varint(b, p)[0] for p in range(self.pos + at, stop, self.shape.stride)]


@cache
def _counting_up(width: int) -> tuple[int, list[bytes]]:
    """The smallest number of a width, and the bytes of it and all that follow it, column by column."""
    if width == 1:
        return 0, [bytes(range(0, 0x80, 2))]
    raws = range(0x80, 0x4000, 2)
    return 64, [bytes(raw & 0x7F | 0x80 for raw in raws), bytes(raw >> 7 for raw in raws)]


def _counting(width: int, first: int, count: int) -> list[bytes]:
    """The varint columns of ``first`` and the numbers that follow it; shorter than ``count`` if the width ends before."""
    smallest, columns = _counting_up(width)
    begin = first - smallest
    return [column[begin : begin + count] for column in columns] if begin >= 0 else []


def walk(b: bytes, count: int) -> Iterator[One | Stretch]:
    """The records of ``b`` in their order, ``count`` of them. DecodeError, with the number of the record, for damage.

    What is left behind the last one is damage, too.
    """
    pos = before = i = 0
    while i < count:
        try:
            one, end = _read_one(b, pos)
        except (IndexError, ValueError) as error:
            reason = "is cut off" if isinstance(error, IndexError) else str(error)
            raise DecodeError(f"RecordBatch.records[{i}]", pos, reason) from None
        yield one
        stride = end - pos
        i += 1
        if stride == before and i < count and b[end : end + 1] == b[pos : pos + 1]:  # it may be the third of its kind
            shape = _shape(b, pos, one, stride)
            look = _FIRST_LOOK
            while shape and (alike := _alike(b, pos, end, shape, min(look, count - i))):
                yield Stretch(end, alike, shape)
                end += alike * stride
                i += alike
                look = min(look * 16, _LONGEST_LOOK, 1 + _LOOK_BYTES // stride)
        before = stride
        pos = end
    if count < 0 or pos != len(b):
        raise DecodeError("RecordBatch.record_count", pos, f"{len(b) - pos} bytes are left behind {count} records")


def _read_one(b: bytes, p: int) -> tuple[One, int]:  # noqa: C901 - varints of one and two bytes are read in place
    """The record at ``p`` and where it ends. IndexError and ValueError for damage."""
    size = b[p]
    if size < 0x80:
        p += 1
    elif b[p + 1] < 0x80:
        size = size & 0x7F | b[p + 1] << 7
        p += 2
    else:
        size, p = _read_raw(b, p)
    end = p + (size >> 1)
    if size & 1 or end > len(b):
        raise ValueError(f"a record of {size >> 1 ^ -(size & 1)} bytes, {len(b) - p} are left")
    p += 1  # the attributes, which nobody uses
    timestamp = b[p]
    if timestamp < 0x80:
        p += 1
    elif b[p + 1] < 0x80:
        timestamp = timestamp & 0x7F | b[p + 1] << 7
        p += 2
    else:
        timestamp, p = _read_raw(b, p)
    offset = b[p]
    if offset < 0x80:
        p += 1
    elif b[p + 1] < 0x80:
        offset = offset & 0x7F | b[p + 1] << 7
        p += 2
    else:
        offset, p = _read_raw(b, p)
        if offset >> 32:
            raise ValueError("an offset delta has more than 32 bits")
    size = b[p]
    if size < 0x80:
        p += 1
    elif b[p + 1] < 0x80:
        size = size & 0x7F | b[p + 1] << 7
        p += 2
    else:
        size, p = _read_raw(b, p)
    if size & 1:
        key_at = key_end = NULL
    else:
        key_at, p = p, p + (size >> 1)
        key_end = p
    size = b[p]
    if size < 0x80:
        p += 1
    elif b[p + 1] < 0x80:
        size = size & 0x7F | b[p + 1] << 7
        p += 2
    else:
        size, p = _read_raw(b, p)
    if size & 1:
        value_at = value_end = NULL
    else:
        value_at, p = p, p + (size >> 1)
        value_end = p
    if p >= end:
        raise ValueError(f"the record ends {p - end} bytes before its last field")
    if b[p]:
        headers, p = read_headers(b, p, end)
    else:
        headers = ()
        p += 1
    if p != end:
        raise ValueError(f"the record ends {end - p} bytes behind its fields")
    return (
        timestamp >> 1 ^ -(timestamp & 1),
        offset >> 1 ^ -(offset & 1),
        key_at,
        key_end,
        value_at,
        value_end,
        headers,
    ), end


def _read_raw(b: bytes, p: int) -> tuple[int, int]:
    """A varint of any width with its sign still in the lowest bit."""
    value, p = read_varint(b, p)
    return value << 1 ^ value >> 63, p


def _find_bytes(b: bytes, p: int, end: int) -> tuple[int, int, int]:
    size, p = read_varint(b, p)
    if size < 0:
        return NULL, NULL, p
    if size > end - p:
        raise ValueError(f"a field of {size} bytes, {end - p} are left of the record")
    return p, p + size, p + size


def read_headers(b: bytes, p: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, p = read_varint(b, p)
    if not 0 <= count <= end - p:
        raise ValueError(f"{count} headers, {end - p} bytes are left of the record")
    headers: list[Header] = []
    for _ in range(count):
        at, key_end, p = _find_bytes(b, p, end)
        if at < 0:
            raise ValueError("a header key may not be null")
        key = str(b[at:key_end], "utf-8", REPLACE)
        at, value_end, p = _find_bytes(b, p, end)
        headers.append((key, None if at < 0 else b[at:value_end]))
    return tuple(headers), p


def _shape(b: bytes, pos: int, one: One, stride: int) -> Shape | None:
    """The shape of the record at ``pos``, which was read before; None if it has headers or very wide numbers."""
    size_at = read_varint(b, pos)[1]
    offset_at = read_varint(b, size_at + 1)[1]
    offset_end = read_varint(b, offset_at)[1]
    _, _, key_at, key_end, value_at, value_end, headers = one
    if headers or offset_at - size_at > 9 or offset_end - offset_at > 4:
        return None
    key_size, value_size = key_end - key_at, value_end - value_at
    if key_at < 0:
        key_at = key_end = offset_end + 1
        key_size = NULL
    if value_at < 0:
        value_at = value_end = pos + stride - 1
        value_size = NULL
    return Shape(
        stride=stride,
        size_width=size_at - pos,
        timestamp_at=size_at + 1 - pos,
        offset_at=offset_at - pos,
        offset_end=offset_end - pos,
        key_at=key_at - pos,
        key_size=key_size,
        key_end=key_end - pos,
        value_at=value_at - pos,
        value_size=value_size,
        value_end=value_end - pos,
    )


def _alike(b: bytes, model: int, pos: int, shape: Shape, most: int) -> int:
    """How many records from ``pos`` on, at most ``most``, have the shape of the one at ``model``."""
    stride = shape.stride
    alike = min(most, (len(b) - pos) // stride)
    stop = pos + alike * stride
    same = (
        *range(shape.size_width),
        *range(shape.offset_end, shape.key_at),
        *range(shape.key_end, shape.value_at),
        shape.value_end,
    )
    for at in same:
        alike = min(alike, same_bytes(b[pos + at : stop : stride], b[model + at : model + at + 1]))
    for begin, end in ((shape.timestamp_at, shape.offset_at), (shape.offset_at, shape.offset_end)):
        for at in range(begin, end - 1):
            column = b[pos + at : stop : stride]
            if column.translate(None, _HIGH):
                alike = min(alike, len(column) - len(column.lstrip(_HIGH)))
        column = b[pos + end - 1 : stop : stride]
        if not column.isascii():
            alike = min(alike, len(column) - len(column.lstrip(_LOW)))
    return alike


def same_bytes(column: bytes, byte: bytes) -> int:
    """How many bytes at the start are this one."""
    count = len(column)
    return count if column == byte * count else count - len(column.lstrip(byte))
