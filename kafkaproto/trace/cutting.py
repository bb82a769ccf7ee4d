"""Frames without their records: each batch is cut to its header, the rest is left out, and what is left still decodes.

A records field keeps its place; its length says what is left of it. Batches of magic 2 leave their 61-byte header, which tells offsets,
count, producer and times. Must never know what a message means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct

from kafkaproto.flat import uvarint
from kafkaproto.records.batch import HEADER_BYTES, MAGIC, PREFIX_BYTES
from kafkaproto.trace.format import Buffer

_LENGTH = Struct(">i")
_NO_TAGS = bytes(3)
"""Of a partition, of its topic and of the request, all empty."""
LENGTH_AND_MAGIC = Struct(f">8xi4xB{HEADER_BYTES - 17}x")
"""Of a batch's header: the length that it tells, and its magic."""


class LeftOut:
    """Records that the encoder is to leave out, whose place it is to tell: as bytes of their own they would be written."""

    __slots__ = ("records",)

    def __init__(self, records: Buffer) -> None:
        self.records = records

    def __len__(self) -> int:
        return len(self.records)


def cut(out: Buffer, places: Sequence[tuple[int, int, bytes]], flexible: bool) -> bytes:
    """A message whose records were left out while it was written, with what is to stand in their places.

    out: the message without them. places: (position in `out`, length that the records had, what is left of them), ascending; the
    length that stands in front of each position is written anew. flexible: how lengths are written.
    """
    parts: list[Buffer] = []
    done = 0
    for position, length, left in places:
        announced = len(uvarint(length + 1)) if flexible else _LENGTH.size
        parts.append(out[done : position - announced])
        parts.append(uvarint(len(left) + 1) if flexible else _LENGTH.pack(len(left)))
        parts.append(left)
        done = position
    parts.append(out[done:])
    return b"".join(parts)


def cut_only(frame: Buffer, length: int, left: bytes, flexible: bool) -> bytes | None:
    """The same of a request with one records field of `length` bytes that nothing follows but empty tags, without writing it anew.

    None where that is not how it ends: then `cut` has to do it.
    """
    tail = _NO_TAGS if flexible else b""
    end = len(frame) - len(tail)
    at = end - length
    announced = uvarint(length + 1) if flexible else _LENGTH.pack(length)
    begin = at - len(announced)
    if begin < 0 or frame[begin:at] != announced or (flexible and frame[end:] != tail):
        return None
    told = uvarint(len(left) + 1) if flexible else _LENGTH.pack(len(left))
    return b"".join((frame[:begin], told, left, tail))


def batch_heads(records: Buffer) -> bytes:
    """The headers of the whole batches of magic 2 at the beginning of `records`, one behind the other."""
    if whole_batch_bytes(records, 0) == len(records):
        return bytes(records[:HEADER_BYTES])
    return b"".join(_heads(records))


def _heads(records: Buffer) -> Iterator[Buffer]:
    at = 0
    while (size := whole_batch_bytes(records, at)) is not None:
        yield records[at : at + HEADER_BYTES]
        at += size


def whole_batch_bytes(records: Buffer, at: int) -> int | None:
    """The size of the batch of magic 2 that begins at `at`, None if there is none, or not all of it."""
    room = len(records) - at
    if room < HEADER_BYTES:
        return None
    length, magic = LENGTH_AND_MAGIC.unpack_from(records, at)
    size: int = length + PREFIX_BYTES
    return size if magic == MAGIC and HEADER_BYTES <= size <= room else None
