"""Removal of the records in a frame: each batch is reduced to its header, and the shortened frame can still be decoded.

A records field keeps its position, and its length is adjusted. Batches of magic 2 keep their 61-byte header, which contains offsets, count, producer
and times; messages of magic 0 and 1, which old clients use, keep everything before their keys. This module does not depend on the meaning of a
message.
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
"""The size in bytes of a message's two length fields for key and value, which `SMALLEST_BYTES` includes."""
_MESSAGE_HEAD_BYTES = {magic: PREFIX_BYTES + least - _KEY_AND_VALUE_BYTES for magic, least in SMALLEST_BYTES.items()}


def cut(out: Buffer, places: Sequence[tuple[int, int, bytes]], flexible: bool) -> bytes:
    """Return an encoded message whose records fields are replaced by shorter bytes.

    out: the message, encoded without its records. places: one (byte position in `out` of the missing records, their original length in bytes, their
    replacement) for each field, ascending by position; the length field before each position is rewritten. flexible: lengths are encoded as varints.
    """
    parts: list[Buffer] = []
    copied_to = 0
    for position, length, replacement in places:
        prefix_bytes = len(uvarint(length + 1)) if flexible else _LENGTH.size
        parts.append(out[copied_to : position - prefix_bytes])
        parts.append(uvarint(len(replacement) + 1) if flexible else _LENGTH.pack(len(replacement)))
        parts.append(replacement)
        copied_to = position
    parts.append(out[copied_to:])
    return b"".join(parts)


def batch_heads(records: Buffer) -> bytes:
    """Return the headers of all batches and messages in `records`, one after the other, up to the first incomplete one.

    Messages of magic 0 and 1 may come after batches of magic 2.
    """
    if batch_bytes(records, 0, len(records)) == len(records):
        return bytes(records[:HEADER_BYTES])
    return b"".join(_heads(records))


def read_heads(headers: Buffer) -> list[BatchHeader] | list[MessageHeader]:
    """Decode the bytes that `batch_heads` returned: headers of batches, or of messages of magic 0 and 1.

    A compressed message has the offset of its last inner message. Raises nothing: decoding stops at the first invalid header.
    """
    of_messages = len(headers) > _MAGIC_AT and headers[_MAGIC_AT] in SMALLEST_BYTES
    heads: list[Any] = []
    at = 0
    try:
        while at < len(headers):
            heads.append(read_message_header(headers, at) if of_messages else read_header(headers, at))
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
