"""Frames without their records: each batch is cut to its header, the rest is left out, and what is left still decodes.

A records field keeps its place; its length says what is left of it. Batches of magic 2 leave their 61-byte header, which tells offsets,
count, producer and times; messages of magic 0 and 1, which old clients read, leave all in front of their keys. Must never know what
a message means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any

from kafkaproto.errors import DecodeError
from kafkaproto.flat import uvarint
from kafkaproto.records.batch import BatchHeader, read_header
from kafkaproto.records.headers import HEADER_BYTES, MESSAGES, PREFIX_BYTES, batch_bytes, in_memory, walk_headers
from kafkaproto.records.message_set import SMALLEST_BYTES, MessageHeader
from kafkaproto.records.message_set import read_header as read_message_header
from kafkaproto.trace.format import Buffer

_LENGTH = Struct(">i")
_MAGIC_AT = 16
_KEY_AND_VALUE_BYTES = 8
"""Their lengths, which the smallest message has."""
_MESSAGE_HEAD_BYTES = {magic: PREFIX_BYTES + least - _KEY_AND_VALUE_BYTES for magic, least in SMALLEST_BYTES.items()}


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


def batch_heads(records: Buffer) -> bytes:
    """The headers of the whole batches of magic 2 at the beginning of `records`, one behind the other, or of whole messages before them."""
    if batch_bytes(records, 0, len(records)) == len(records):
        return bytes(records[:HEADER_BYTES])
    return b"".join(_heads(records))


def read_heads(left: Buffer) -> list[BatchHeader] | list[MessageHeader]:
    """What `batch_heads` has left: of batches, or of messages of magic 0 and 1, of which a wrapper has the offset of its last one.

    Raises nothing: what cannot be left of anything ends it.
    """
    of_messages = len(left) > _MAGIC_AT and left[_MAGIC_AT] in SMALLEST_BYTES
    heads: list[Any] = []
    at = 0
    try:
        while at < len(left):
            heads.append(read_message_header(left, at) if of_messages else read_header(left, at))
            at += _MESSAGE_HEAD_BYTES[heads[-1].magic] if of_messages else HEADER_BYTES
    except DecodeError:
        pass
    return heads


def _heads(records: Buffer) -> Iterator[Buffer]:
    end = 0
    for position, size, buffer, at in walk_headers(in_memory(records), 0, len(records)):
        end = position + size
        yield buffer[at : at + HEADER_BYTES]
    for _, _, buffer, at in walk_headers(in_memory(records), end, len(records), MESSAGES):
        yield buffer[at : at + _MESSAGE_HEAD_BYTES[buffer[at + _MAGIC_AT]]]
