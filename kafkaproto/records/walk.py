"""Decoder of the decompressed records of a batch of magic 2: finds start and end of each record, its key and its value.

Plain Python is slow at single bytes and fast at slices. So consecutive records of the same shape (the same
sizes, and numbers of the same width) are found with a few slices and returned as one `Stretch`. Single records are returned as
`SingleRecord`. This module checks that every field lies inside its record, so callers need not check it. This module does not depend on batch
headers.
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

SingleRecord: TypeAlias = tuple[int, int, int, int, int, int, tuple[Header, ...]]
"""One decoded record: (timestamp delta, offset delta, key start, key end, value start, value end, headers).

Starts and ends are indexes in the decompressed records of the batch. Those of a null key or value are -1.
"""

NULL = -1
_LOW = bytes(range(0x80))
_HIGH = bytes(range(0x80, 0x100))
_FIRST_LOOK = 64
_LONGEST_LOOK = 1024
_AT_ONCE = 64
"""The number of records whose keys (or values) one call of `struct` extracts."""
_LOOK_BYTES = 128 * 1024
"""The approximate maximum size in bytes of the similar records that `walk` returns as one `Stretch`, to bound the memory in use at a time."""
_INT32 = range(-(2**31), 2**31)


class Shape(NamedTuple):
    """The positions of the fields of a record, in bytes from its first byte. Positions named `_end` are exclusive.

    stride: the size of the whole record. size_width: the size of the record's size field. timestamp_at, offset_at: where the timestamp delta and the
    offset delta begin. key_at, value_at: where the bytes of the key and the value begin. key_size, value_size: their sizes, -1 for null.
    """

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
    """Return two `struct.Struct` objects that extract a field: from one record, and from `_AT_ONCE` (64) consecutive records.

    at, size: the position of the field, counted from the first byte of its record, and its size, both in bytes. stride: the size in bytes of a
    record.
    """
    pattern = f"{at}x{size}s{stride - at - size}x"
    return Struct(pattern), Struct(pattern * _AT_ONCE)


class Stretch:
    """Consecutive records of the same shape (fields of the same sizes at the same positions), without headers.

    pos: the index at which the first of these records begins in the decompressed records of the batch. Every method takes the decompressed records as
    its argument ``b``.
    """

    # no dataclass: creating it would take as much import time as the rest of this module
    __slots__ = ("count", "pos", "shape")

    def __init__(self, pos: int, count: int, shape: Shape) -> None:
        self.pos = pos
        self.count = count
        self.shape = shape

    def column(self, b: bytes, at: int) -> bytes:
        """Return one byte of each record of this stretch (consecutive records of the same shape): byte N of the result is from record N.

        b: the decompressed records of the batch. at: the index of the byte in each record.
        """
        stride = self.shape.stride
        return b[self.pos + at : self.pos + self.count * stride : stride]

    def offsets(self, b: bytes, base: int) -> Sequence[int]:
        """Return the offset of each record of this stretch (consecutive records of the same shape).

        b: the decompressed records of the batch. base: the batch's base offset.
        """
        return self._numbers(b, self.shape.offset_at, self.shape.offset_end, base)

    def timestamps(self, b: bytes, base: int) -> Sequence[int]:
        """Return the timestamp in ms of each record of this stretch (consecutive records of the same shape).

        b: the decompressed records of the batch. base: the batch's base timestamp.
        """
        return self._numbers(b, self.shape.timestamp_at, self.shape.offset_at, base)

    def keys(self, b: bytes) -> Iterable[bytes | None]:
        """Return the key of each record of this stretch (consecutive records of the same shape); None for a record without a key.

        b: the decompressed records of the batch.
        """
        return self._cut(b, self.shape.key_at, self.shape.key_size)

    def values(self, b: bytes) -> Iterable[bytes | None]:
        """Return the value of each record of this stretch (consecutive records of the same shape); None for a null value.

        b: the decompressed records of the batch.
        """
        return self._cut(b, self.shape.value_at, self.shape.value_size)

    def _cut(self, b: bytes, at: int, size: int) -> Iterable[bytes | None]:
        if size < 0:
            return repeat(None, self.count)
        stride = self.shape.stride
        element, chunk = _cutters(at, size, stride)
        middle = self.pos + self.count // _AT_ONCE * _AT_ONCE * stride
        view = memoryview(b)
        return chain.from_iterable(
            chain(
                chunk.iter_unpack(view[self.pos : middle]),
                element.iter_unpack(view[middle : self.pos + self.count * stride]),
            )
        )

    def _numbers(self, b: bytes, at: int, end: int, base: int) -> Sequence[int]:
        """Return ``base`` plus a varint of the record, for each record of this stretch (consecutive records of the same shape).

        at, end: where the varint begins and ends (exclusive), in bytes from the first byte of the record. b: the decompressed records of the batch.
        This is fast if the varints of all records are equal, or if each is one larger than the one before.
        """
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
    """Return the varints of all non-negative numbers that take ``width`` bytes (1 or 2) as (smallest number, columns).

    smallest number: the number that the first varint encodes; the next varint encodes this number + 1, and so on. columns: column 0 has the first
    byte of every varint, column 1 the second byte.
    """
    if width == 1:
        return 0, [bytes(range(0, 0x80, 2))]
    raws = range(0x80, 0x4000, 2)
    return 64, [bytes(raw & 0x7F | 0x80 for raw in raws), bytes(raw >> 7 for raw in raws)]


def _counting(width: int, first: int, count: int) -> list[bytes]:
    """Return the varints of the ``count`` numbers ``first``, ``first`` + 1, … as columns: column N has byte N of every varint, in order.

    width: the number of bytes of each varint (1 or 2), which is also the number of columns. The columns end before the first number whose varint
    takes more than ``width`` bytes, so they may have fewer than ``count`` bytes. Returns an empty list if ``first`` is negative or if its varint
    takes fewer than ``width`` bytes.
    """
    smallest, columns = _counting_up(width)
    begin = first - smallest
    return [column[begin : begin + count] for column in columns] if begin >= 0 else []


def walk(b: bytes, count: int) -> Iterator[SingleRecord | Stretch]:
    """Yield the ``count`` decompressed records in ``b``, in order: consecutive similar records as one `Stretch`, others as `SingleRecord`.

    Raises DecodeError, with the number of the record, for damage. Bytes left after the last record count as damage.
    """
    pos = previous_stride = i = 0
    while i < count:
        try:
            record, end = _read_one(b, pos)
        except (IndexError, ValueError) as error:
            reason = (
                "the record is cut off: the data ends before its last field"
                if isinstance(error, IndexError)
                else str(error)
            )
            raise DecodeError(f"RecordBatch.records[{i}]", pos, reason) from None
        yield record
        stride = end - pos
        i += 1
        if (
            stride == previous_stride and i < count and b[end : end + 1] == b[pos : pos + 1]
        ):  # the next record may have the same shape, too
            shape = _shape(b, pos, record, stride)
            look = _FIRST_LOOK
            while shape and (same_count := _alike(b, pos, end, shape, min(look, count - i))):
                yield Stretch(end, same_count, shape)
                end += same_count * stride
                i += same_count
                look = min(look * 16, _LONGEST_LOOK, 1 + _LOOK_BYTES // stride)
        previous_stride = stride
        pos = end
    if count < 0 or pos != len(b):
        raise DecodeError(
            "RecordBatch.record_count",
            pos,
            f"the records must end after {count} records, but {len(b) - pos} bytes are left",
        )


def _read_one(b: bytes, p: int) -> tuple[SingleRecord, int]:  # noqa: C901 - varints of one and two bytes are decoded inline
    """Return the record at index ``p`` of the decompressed records ``b``, and the index after it.

    Raises IndexError and ValueError for damage.
    """
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
        raise ValueError(f"the record takes {size >> 1 ^ -(size & 1)} bytes, but only {len(b) - p} are left")
    p += 1  # the attributes, which are unused
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
            raise ValueError(f"the offset delta must fit in 32 bits (got {offset >> 1 ^ -(offset & 1)})")
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
        raise ValueError(
            f"the record has no header count: it ends at byte {end}, but the count would begin at byte {p}"
        )
    if b[p]:
        headers, p = read_headers(b, p, end)
    else:
        headers = ()
        p += 1
    if p != end:
        raise ValueError(f"the record must end at byte {end}, as its length says, but its last field ends at byte {p}")
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
    """Decode the varint at index ``p`` of ``b`` as an unsigned number, without undoing its zigzag encoding. Returns (number, index after it)."""
    value, p = read_varint(b, p)
    return value << 1 ^ value >> 63, p


def _find_bytes(b: bytes, p: int, end: int) -> tuple[int, int, int]:
    size, p = read_varint(b, p)
    if size < 0:
        return NULL, NULL, p
    if size > end - p:
        raise ValueError(f"a field takes {size} bytes, but only {end - p} are left in the record")
    return p, p + size, p + size


def read_headers(b: bytes, p: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, p = read_varint(b, p)
    if not 0 <= count <= end - p:
        raise ValueError(f"{count} headers are announced, but only {end - p} bytes are left in the record")
    headers: list[Header] = []
    for _ in range(count):
        at, key_end, p = _find_bytes(b, p, end)
        if at < 0:
            raise ValueError(f"the key of header {len(headers)} must not be null; it may be empty")
        key = str(b[at:key_end], "utf-8", REPLACE)
        at, value_end, p = _find_bytes(b, p, end)
        headers.append((key, None if at < 0 else b[at:value_end]))
    return tuple(headers), p


def _shape(b: bytes, pos: int, first: SingleRecord, stride: int) -> Shape | None:
    """Return the shape (positions of the fields) of a record; None if the record cannot be decoded together with similar records.

    b: the decompressed records. pos: the position of the record. first: the decoded record. stride: its size in bytes.

    The result is None if the record has headers, a timestamp delta of more than 8 bytes or an offset delta of more than 4 bytes.
    """
    size_at = read_varint(b, pos)[1]
    offset_at = read_varint(b, size_at + 1)[1]
    offset_end = read_varint(b, offset_at)[1]
    _, _, key_at, key_end, value_at, value_end, headers = first
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
    """Return how many consecutive records, from the one that begins at byte ``pos``, have the same shape as the one at byte ``model``.

    b: the decompressed records. shape: the shape (positions of the fields) of the record that begins at ``model``. most: the maximum to return.
    """
    stride = shape.stride
    same_count = min(most, (len(b) - pos) // stride)
    stop = pos + same_count * stride
    same = (
        *range(shape.size_width),
        *range(shape.offset_end, shape.key_at),
        *range(shape.key_end, shape.value_at),
        shape.value_end,
    )
    for at in same:
        same_count = min(same_count, same_bytes(b[pos + at : stop : stride], b[model + at : model + at + 1]))
    for begin, end in ((shape.timestamp_at, shape.offset_at), (shape.offset_at, shape.offset_end)):
        for at in range(begin, end - 1):
            column = b[pos + at : stop : stride]
            if column.translate(None, _HIGH):
                same_count = min(same_count, len(column) - len(column.lstrip(_HIGH)))
        column = b[pos + end - 1 : stop : stride]
        if not column.isascii():
            same_count = min(same_count, len(column) - len(column.lstrip(_LOW)))
    return same_count


def same_bytes(column: bytes, byte: bytes) -> int:
    """Return how many bytes at the start of ``column`` are equal to the one byte in ``byte``."""
    count = len(column)
    return count if column == byte * count else count - len(column.lstrip(byte))
