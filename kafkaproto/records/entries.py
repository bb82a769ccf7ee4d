"""Records fields of any magic: what an answer to a fetch carries may be messages of magic 0 and 1 and batches of magic 2.

The byte that tells them apart lies at the same place in all of them. A broker of today looks at magic 2 only and takes
`kafkaproto.records.batch`. This module must never know what is inside of a batch. Twin: ``ByteBufferLogInputStream``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkaproto.errors import DecodeError
from kafkaproto.records import batch as magic_2
from kafkaproto.records import message_set
from kafkaproto.records.batch import BatchHeader
from kafkaproto.records.compression import DEFAULT_LIMIT_BYTES, Buffer
from kafkaproto.records.headers import ENTRIES, LENGTH_AND_MAGIC, PREFIX_BYTES, in_memory, walk_headers
from kafkaproto.records.message_set import MessageHeader
from kafkaproto.records.record import Record

__all__ = ["Entry", "batches", "check_crc", "complete_bytes", "entries", "read_header", "records"]

SMALLEST_BODY_BYTES = 14
"""What offset and size announce at least, in any magic."""
_SIZE_AT = 8
_MAGIC_AT = 16


class Entry(NamedTuple):
    """A batch, a wrapper or a single message: where it starts, its header, its bytes (a view of the buffer).

    Both kinds of header have ``magic``, ``size``, ``last_offset``, ``next_offset``, ``max_timestamp``, ``compression``,
    ``is_log_append_time``, ``is_control`` and ``crc``.
    """

    position: int
    header: BatchHeader | MessageHeader
    view: memoryview


def read_header(buffer: Buffer, pos: int = 0) -> BatchHeader | MessageHeader:
    """The header at ``pos``, of the kind that its magic says. DecodeError if it is not all there or cannot be."""
    if len(buffer) - pos <= _MAGIC_AT:
        raise DecodeError("RecordBatch", pos, f"the magic is at byte {_MAGIC_AT}, {len(buffer) - pos} are left")
    if buffer[pos + _MAGIC_AT] < magic_2.MAGIC:
        return message_set.read_header(buffer, pos)
    return magic_2.read_header(buffer, pos)


def batches(buffer: Buffer) -> Iterator[Entry]:
    """What lies in a buffer, one after the other. DecodeError, when it is reached, for one that is not all there."""
    return map(Entry._make, magic_2.whole(buffer, read_header, ENTRIES))


def complete_bytes(buffer: Buffer) -> int:
    """How many bytes at the start are whole; an answer to a fetch may end in the middle of a batch or message.

    DecodeError for a size or a magic that cannot be.
    """
    end = 0
    for pos, size, _, _ in walk_headers(in_memory(buffer), 0, len(buffer), ENTRIES):
        end = pos + size
    left = len(buffer) - end
    if left > _MAGIC_AT:
        length, magic = LENGTH_AND_MAGIC.unpack_from(buffer, end)
        if length < SMALLEST_BODY_BYTES:
            raise DecodeError("RecordBatch.batch_length", end + _SIZE_AT, f"{length} is below {SMALLEST_BODY_BYTES}")
        if magic > magic_2.MAGIC:
            raise DecodeError("RecordBatch.magic", end + _MAGIC_AT, f"{magic} is unknown")
        if length + PREFIX_BYTES <= left:
            read_header(buffer, end)  # raises DecodeError: all of it is there, and smaller than its header
    return end


def check_crc(batch: Buffer) -> bool:
    """Whether the checksum of a batch or message, given from its first to its last byte, is right."""
    if read_header(batch).magic < magic_2.MAGIC:
        return message_set.check_crc(batch)
    return magic_2.check_crc(batch)


def records(batch: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Iterator[Record]:
    """The records of one batch or message, given from its first to its last byte. DecodeError as it is read."""
    if read_header(batch).magic < magic_2.MAGIC:
        return message_set.records(batch, limit_bytes)
    return magic_2.records(batch, limit_bytes)


def entries(buffer: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Iterator[Record]:
    """All records that lie whole in a records field, markers of transactions left out.

    What is cut off at the end is left out; ``limit_bytes`` is for each batch. DecodeError when damage is reached.
    """
    view = memoryview(buffer)
    for _, header, batch in batches(view[: complete_bytes(view)]):
        if not header.is_control:
            yield from records(batch, limit_bytes)
