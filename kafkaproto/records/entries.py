"""Records fields of any magic: a fetch response may contain messages of magic 0 and 1 and batches of magic 2.

The magic is at the same position in all of them. Code that handles only magic 2 uses
`kafkaproto.records.batch`. This module does not depend on the content of a batch. Kafka class: ``ByteBufferLogInputStream``.
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
"""The smallest valid number in the length field of a batch or message of any magic. The field counts the bytes that follow it."""
_SIZE_AT = 8
_MAGIC_AT = 16


class Entry(NamedTuple):
    """A batch, a compressed message or a single message: its start position, header and bytes (a view of the buffer).

    The header is a `BatchHeader` or a `MessageHeader`; both have ``magic``, ``size``, ``last_offset``, ``next_offset``, ``max_timestamp``,
    ``compression``, ``is_log_append_time``, ``is_control`` and ``crc``.
    """

    position: int
    header: BatchHeader | MessageHeader
    view: memoryview


def read_header(buffer: Buffer, pos: int = 0) -> BatchHeader | MessageHeader:
    """Return the header of the batch or message that begins at index ``pos`` of a buffer, of the class that its magic requires.

    Raises DecodeError if the header is incomplete or invalid.
    """
    if len(buffer) - pos <= _MAGIC_AT:
        raise DecodeError(
            "RecordBatch", pos, f"a batch needs at least {_MAGIC_AT + 1} bytes, but only {len(buffer) - pos} are left"
        )
    if buffer[pos + _MAGIC_AT] < magic_2.MAGIC:
        return message_set.read_header(buffer, pos)
    return magic_2.read_header(buffer, pos)


def batches(buffer: Buffer) -> Iterator[Entry]:
    """Yield the batches and messages of a buffer in order. Raises DecodeError when it reaches an incomplete batch or message."""
    return map(Entry._make, magic_2.whole(buffer, read_header, ENTRIES))


def complete_bytes(buffer: Buffer) -> int:
    """Return the size in bytes of the whole batches and messages at the start of a buffer, before an incomplete last one.

    Raises DecodeError for an invalid size or magic.
    """
    end = 0
    for pos, size, _, _ in walk_headers(in_memory(buffer), 0, len(buffer), ENTRIES):
        end = pos + size
    bytes_left = len(buffer) - end
    if bytes_left > _MAGIC_AT:
        length, magic = LENGTH_AND_MAGIC.unpack_from(buffer, end)
        if length < SMALLEST_BODY_BYTES:
            raise DecodeError(
                "RecordBatch.batch_length",
                end + _SIZE_AT,
                f"the length must be at least {SMALLEST_BODY_BYTES} bytes (got {length})",
            )
        if magic > magic_2.MAGIC:
            raise DecodeError(
                "RecordBatch.magic", end + _MAGIC_AT, f"magic {magic} is unknown; known are 0 to {magic_2.MAGIC}"
            )
        if length + PREFIX_BYTES <= bytes_left:
            read_header(buffer, end)  # raises DecodeError: the batch is complete, but smaller than its header
    return end


def crc_at(header: BatchHeader | MessageHeader) -> int:
    """Return the position of the checksum in a batch or message with this header, counted in bytes from the start of the batch or message."""
    return magic_2.CRC_AT if header.magic >= magic_2.MAGIC else message_set.CRC_AT


def check_crc(batch: Buffer) -> bool:
    """Return whether the checksum of a batch or message is correct. batch: exactly the bytes of one batch or message."""
    if read_header(batch).magic < magic_2.MAGIC:
        return message_set.check_crc(batch)
    return magic_2.check_crc(batch)


def records(batch: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Iterator[Record]:
    """Return the records of one batch or message.

    batch: exactly its bytes. Iterating raises DecodeError for damage, and for more than `limit_bytes` bytes of decompressed records.
    """
    if read_header(batch).magic < magic_2.MAGIC:
        return message_set.records(batch, limit_bytes)
    return magic_2.records(batch, limit_bytes)


def entries(buffer: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Iterator[Record]:
    """Yield all records of the whole batches in a records field, without transaction markers.

    An incomplete batch at the end is ignored. ``limit_bytes`` applies to each batch. Raises DecodeError on reaching damage.
    """
    view = memoryview(buffer)
    for _, header, batch in batches(view[: complete_bytes(view)]):
        if not header.is_control:
            yield from records(batch, limit_bytes)
