"""Removal of the records in a frame: each batch is reduced to its header, and the shortened frame can still be decoded.

A records field keeps its position, and its length is adjusted. Batches of magic 2 keep their 61-byte header, which contains offsets, count, producer
and times; messages of magic 0 and 1, which old clients use, keep everything before their keys. Control batches in responses remain complete, because
only their record says whether a transaction was committed. This module does not know which fields of a message contain records; `frames` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Any

from kafkaproto.errors import DecodeError
from kafkaproto.flat import uvarint
from kafkaproto.records.batch import CONTROL, BatchHeader, read_header
from kafkaproto.records.headers import HEADER_BYTES, MESSAGES, PREFIX_BYTES, batch_bytes, in_memory, walk_headers
from kafkaproto.records.message_set import SMALLEST_BYTES, MessageHeader
from kafkaproto.records.message_set import read_header as read_message_header
from kafkaproto.trace.format import Buffer

_LENGTH = Struct(">i")
_MAGIC_AT = 16
_LOW_ATTRIBUTES_AT = 22
"""The index, in a batch of magic 2, of the low byte of its attributes."""
LARGEST_CONTROL_BYTES = 128
"""The size in bytes of the largest control batch that a trace stores completely; of a larger one it stores only the header.

The control batch with the marker of a transaction has 78 bytes.
"""
_KEY_AND_VALUE_BYTES = 8
"""The size in bytes of two fields of a message of magic 0 or 1 together: the length of the key and the length of the value.

A trace stores only the bytes before the first of these fields. It stores neither the two fields nor the key nor the value.
"""
_MESSAGE_HEAD_BYTES = {magic: PREFIX_BYTES + least - _KEY_AND_VALUE_BYTES for magic, least in SMALLEST_BYTES.items()}


def cut(out: Buffer, places: Sequence[tuple[int, int, bytes]], flexible: bool) -> bytes:
    """Return an encoded message with the content of each records field replaced by shorter bytes.

    out: the message, encoded with the original length of each records field, but without the bytes of the records. places: one item for each records
    field, in ascending order: (index in `out` at which the bytes are missing, original length in bytes, the bytes to insert). The length of the
    inserted bytes replaces the original length. flexible: whether the encoded lengths are varints.
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


def batch_heads_and_markers(records: Buffer) -> bytes:
    """Return the headers of all batches and messages in `records`, one after the other.

    Control batches of at most `LARGEST_CONTROL_BYTES` (128) are returned completely, because only their record says whether a transaction was
    committed. Stops at the first incomplete batch. `records` may contain batches of magic 2 and, after them, messages of magic 0 and 1.
    """
    if batch_bytes(records, 0, len(records)) == len(records):
        return bytes(records[: kept_bytes(records, 0, len(records))])
    return b"".join(_heads(records, kept_bytes))


def kept_bytes(buffer: Buffer, at: int, size: int) -> int:
    """Return the number of bytes that a trace stores of a batch in a response: the header, or all bytes of a small control batch.

    at: the index in the buffer at which the batch begins. size: size in bytes of the whole batch.
    """
    is_kept = size <= LARGEST_CONTROL_BYTES and buffer[at + _LOW_ATTRIBUTES_AT] & CONTROL
    return size if is_kept else HEADER_BYTES


def read_heads(headers: Buffer) -> list[BatchHeader] | list[MessageHeader]:
    """Decode headers of batches, or of messages of magic 0 and 1.

    headers: the result of `batch_heads` or `batch_heads_and_markers`: headers one after the other, some followed by the record of a control batch.
    Decoding stops at the first invalid header, without an error. If messages follow after batches, only the headers of the batches are returned.
    """
    return [head for head, _ in read_kept(headers)]


def read_kept(headers: Buffer) -> list[tuple[Any, Buffer]]:
    """Decode the result of `batch_heads_and_markers` into a list of (header, the bytes of the whole batch), one for each batch or message.

    The bytes are empty if the trace has only the header. Only control batches are stored whole, and only since version 5 of the trace format.
    Decoding stops at the first invalid header, without an error.
    """
    of_messages = len(headers) > _MAGIC_AT and headers[_MAGIC_AT] in SMALLEST_BYTES
    heads: list[tuple[Any, Buffer]] = []
    at = 0
    try:
        while at < len(headers):
            if of_messages:
                message = read_message_header(headers, at)
                heads.append((message, b""))
                at += _MESSAGE_HEAD_BYTES[message.magic]
            else:
                header = read_header(headers, at)
                head_bytes = HEADER_BYTES + _tail_bytes(headers, at, header)
                heads.append((header, headers[at : at + head_bytes] if head_bytes > HEADER_BYTES else b""))
                at += head_bytes
    except DecodeError:
        pass
    return heads


def _tail_bytes(headers: Buffer, at: int, header: BatchHeader) -> int:
    """Return the size in bytes of the records after a batch header, 0 if the trace contains only the header.

    The bytes after a header are a record or the next header. A record begins with its length, which is not 0; a header begins with an offset, whose
    first byte is 0. at: the index in ``headers`` at which the header begins.
    """
    tail_at, end = at + HEADER_BYTES, at + header.size
    is_kept = header.is_control and tail_at < end <= len(headers) and header.size <= LARGEST_CONTROL_BYTES
    return end - tail_at if is_kept and headers[tail_at] else 0


def _only_header(buffer: Buffer, at: int, size: int) -> int:
    return HEADER_BYTES


def _heads(records: Buffer, kept: Callable[[Buffer, int, int], int] = _only_header) -> Iterator[Buffer]:
    """Yield, for each batch or message, the bytes at its start that a trace stores.

    kept: a function that returns how many bytes of a batch to store. Its arguments are a buffer, the index in it at which the batch begins, and the
    size of the batch in bytes. It is not called for messages of magic 0 and 1: a trace always stores only their headers.
    """
    end = 0
    for position, size, buffer, at in walk_headers(in_memory(records), 0, len(records)):
        end = position + size
        yield buffer[at : at + kept(buffer, at, size)]
    for _, _, buffer, at in walk_headers(in_memory(records), end, len(records), MESSAGES):
        yield buffer[at : at + _MESSAGE_HEAD_BYTES[buffer[at + _MAGIC_AT]]]
