"""Record batches of magic 2 (KIP-98): decode headers and records, patch headers in place, build batches.

The header of 61 bytes can be read, and the checksum verified, without decoding records; the function `records` decodes
them. Nothing is copied unless records are decoded. This module does not depend on partitions, topics or clocks.
Kafka class: ``org.apache.kafka.common.record.DefaultRecordBatch``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import NamedTuple, Protocol, TypeVar

from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records import checksum
from kafkaproto.records.compression import DEFAULT_LIMIT_BYTES, Buffer, Compression, compress, decompress
from kafkaproto.records.headers import BATCHES, HEADER_BYTES, MAGIC, PREFIX_BYTES, in_memory, walk_headers
from kafkaproto.records.record import NO_TIMESTAMP, Header, NewRecord, Record
from kafkaproto.records.walk import Stretch, walk
from kafkaproto.records.writer import write_records

__all__ = [
    "Batch",
    "BatchHeader",
    "Compression",
    "HEADER_BYTES",
    "Header",
    "MAGIC",
    "NO_TIMESTAMP",
    "NewRecord",
    "PREFIX_BYTES",
    "Record",
    "batches",
    "build_batch",
    "build_empty_batch",
    "check_crc",
    "complete_bytes",
    "payload",
    "patch_log_append_time",
    "patch_offset_and_epoch",
    "read_header",
    "records",
]

NO_PRODUCER = -1
NO_EPOCH = -1
NO_SEQUENCE = -1

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

_HEADER = struct.Struct(">qiibIhiqqqhii")
_MAGIC_AT = 16
_LENGTH_AT = 8
_EPOCH_AT = 12
CRC_AT = 17
_ATTRIBUTES_AT = 21
"""The index of the attributes in a batch. The checksum covers the attributes and all bytes after them, but no earlier field."""
_MAX_TIMESTAMP_AT = 35

_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_INT16 = struct.Struct(">h")


class BatchHeader(NamedTuple):
    """The header of a record batch; the fields are in wire order. Timestamps are in ms, -1 if there is none."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Return the size in bytes of the whole batch, including the base offset and the length field, which the batch length does not count."""
        return self.batch_length + PREFIX_BYTES

    @property
    def last_offset(self) -> int:
        """Return the offset of the last record that the batch had when it was appended; compaction may have removed this record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Return the offset after the last offset of the batch, at which the next batch may begin."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        """Return the compression kind in the header as a number, because the kind may be unknown (`Compression` has the known ones)."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Return whether ``max_timestamp`` was set by the broker and is the time of all records."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Return whether the batch is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Return whether the batch has control records, which brokers write, instead of records of clients."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """Return the time from which markers and tombstones in the batch may be deleted, or None if no cleaner has set it (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def has_producer_id(self) -> bool:
        """Return whether an idempotent producer sent the batch."""
        return self.producer_id > NO_PRODUCER


class Sized(Protocol):
    """Interface of a header that contains the size in bytes of its batch or message."""

    @property
    def size(self) -> int: ...


H = TypeVar("H", bound=Sized)


class Batch(NamedTuple):
    """A batch in a buffer: its start position, its header and its bytes (a view of the buffer)."""

    position: int
    header: BatchHeader
    view: memoryview


def read_header(buffer: Buffer, pos: int = 0) -> BatchHeader:
    """Return the header of the batch that begins at index ``pos`` of a buffer.

    Raises DecodeError if the header is incomplete, is not of magic 2, or announces a batch smaller than a header. The batch itself may be incomplete:
    only the header must be in the buffer.
    """
    if len(buffer) - pos < HEADER_BYTES:
        raise DecodeError(
            "RecordBatch", pos, f"the header takes {HEADER_BYTES} bytes, but only {len(buffer) - pos} are left"
        )
    header = tuple.__new__(
        BatchHeader, _HEADER.unpack_from(buffer, pos)
    )  # faster than `_make`; this runs for every appended batch
    if header.magic != MAGIC:
        raise DecodeError(
            "RecordBatch.magic", pos + _MAGIC_AT, f"the magic of a record batch must be {MAGIC} (got {header.magic})"
        )
    if header.batch_length < HEADER_BYTES - PREFIX_BYTES:
        raise DecodeError(
            "RecordBatch.batch_length",
            pos + _LENGTH_AT,
            f"the batch length must be at least {HEADER_BYTES - PREFIX_BYTES}, the rest of the header (got {header.batch_length})",
        )
    return header


def batches(buffer: Buffer) -> Iterator[Batch]:
    """Yield the batches of a buffer in order. Raises DecodeError when it reaches an incomplete batch."""
    return map(Batch._make, whole(buffer, read_header, BATCHES))


def whole(
    buffer: Buffer, read: Callable[[Buffer, int], H], kinds: Mapping[int, int]
) -> Iterator[tuple[int, H, memoryview]]:
    """Yield (position, header, bytes as a view) of each batch or message in a buffer. Raises DecodeError when an invalid or incomplete one follows.

    read: decodes the header at a position of the buffer, and raises DecodeError if it is invalid. kinds: maps each accepted magic to the smallest
    valid size of a batch or message in bytes.
    """
    view = memoryview(buffer)
    end = 0
    for pos, size, _, _ in walk_headers(in_memory(view), 0, len(view), kinds):
        end = pos + size
        yield pos, read(view, pos), view[pos:end]
    if end < len(view):
        reason = f"the batch takes {read(view, end).size} bytes, but only {len(view) - end} are left"
        raise DecodeError("RecordBatch.batch_length", end + _LENGTH_AT, reason)


def complete_bytes(buffer: Buffer) -> int:
    """Return the size in bytes of the whole batches at the start of a buffer. An incomplete batch may follow, as in a fetch response.

    Raises DecodeError if the bytes after the whole batches are not the beginning of a batch.
    """
    end = 0
    for pos, size, _, _ in walk_headers(in_memory(buffer), 0, len(buffer)):
        end = pos + size
    if len(buffer) - end >= HEADER_BYTES:
        read_header(buffer, end)  # raises DecodeError for an invalid header, as opposed to an incomplete batch
    return end


def check_crc(batch: Buffer) -> bool:
    """Return whether the checksum of a batch is correct. batch: exactly the bytes of one batch."""
    view = memoryview(batch)
    if len(view) < HEADER_BYTES:
        return False
    (crc,) = _UINT32.unpack_from(view, CRC_AT)
    return bool(crc == checksum.crc32c(view[_ATTRIBUTES_AT:]))


def patch_offset_and_epoch(buffer: bytearray | memoryview, pos: int, base_offset: int, leader_epoch: int) -> None:
    """Set base offset and leader epoch of the batch that begins at index ``pos`` of the buffer. The checksum does not cover these fields."""
    _INT64.pack_into(buffer, pos, base_offset)
    _INT32.pack_into(buffer, pos + _EPOCH_AT, leader_epoch)


def patch_log_append_time(batch: bytearray | memoryview, now_ms: int) -> None:
    """Set ``now_ms`` as the time of all records of one batch (``message.timestamp.type=LogAppendTime``), and update the checksum."""
    (attributes,) = _INT16.unpack_from(batch, _ATTRIBUTES_AT)
    _INT16.pack_into(batch, _ATTRIBUTES_AT, attributes | LOG_APPEND_TIME)
    _INT64.pack_into(batch, _MAX_TIMESTAMP_AT, now_ms)
    _UINT32.pack_into(batch, CRC_AT, checksum.crc32c(memoryview(batch)[_ATTRIBUTES_AT:]))


def records(batch: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Iterator[Record]:
    """Return the records of one batch, decoded lazily. batch: exactly the bytes of one batch.

    Raises DecodeError for damaged records, or for more than ``limit_bytes`` bytes of decompressed records. The checksum is not
    verified. Byte offsets in errors count from the start of the decompressed records.
    """
    return chain.from_iterable(_record_pieces(batch, limit_bytes))


def _record_pieces(batch: Buffer, limit_bytes: int) -> Iterator[Iterable[Record]]:
    header, b = payload(batch, limit_bytes)
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.is_log_append_time else None
    make = tuple.__new__  # like Record(...), without a Python call
    for part in walk(b, header.record_count):
        if isinstance(part, Stretch):
            yield _stretched(b, part, header)
            continue
        timestamp_delta, offset_delta, key_at, key_end, value_at, value_end, headers = part
        fields = (
            base_offset + offset_delta,
            base_timestamp + timestamp_delta if append_time is None else append_time,
            None if key_at < 0 else b[key_at:key_end],
            None if value_at < 0 else b[value_at:value_end],
            headers,
        )
        yield (make(Record, fields),)


def payload(batch: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> tuple[BatchHeader, bytes]:
    """Return the header of one batch and its decompressed records.

    Raises DecodeError if the header is invalid, the batch is incomplete, or the records are damaged or larger than ``limit_bytes``.
    """
    header = read_header(batch)
    if header.size > len(batch):
        reason = f"the batch takes {header.size} bytes, but only {len(batch)} are left"
        raise DecodeError("RecordBatch.batch_length", _LENGTH_AT, reason)
    return header, decompress(header.compression, memoryview(batch)[HEADER_BYTES : header.size], limit_bytes)


def _stretched(b: bytes, stretch: Stretch, header: BatchHeader) -> Iterator[Record]:
    """Yield the records of a `Stretch`: consecutive records whose fields have the same sizes.

    b: the decompressed records of the batch.
    """
    timestamps: Iterable[int]
    if header.is_log_append_time:
        timestamps = repeat(header.max_timestamp)
    else:
        timestamps = stretch.timestamps(b, header.base_timestamp)
    columns = zip(
        stretch.offsets(b, header.base_offset),
        timestamps,
        stretch.keys(b),
        stretch.values(b),
        repeat(()),
        strict=False,
    )
    return map(tuple.__new__, repeat(Record), columns)


def build_batch(
    new_records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
    compression: Compression = Compression.NONE,
    compression_level: int | None = None,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    attributes: int = 0,
    max_timestamp: int | None = None,
    delete_horizon_ms: int | None = None,
    offset_deltas: Sequence[int] | None = None,
    last_offset_delta: int | None = None,
) -> bytes:
    """Return a batch of the records with its checksum, at consecutive offsets unless ``offset_deltas`` is given.

    ``compression_level`` is the level of gzip, lz4 or zstd; None stands for Kafka's default level (`compress`). ``producer_id``, ``producer_epoch``
    and ``base_sequence`` are -1 if the producer is not idempotent; ``leader_epoch`` is -1 if it is unknown.

    ``offset_deltas`` are the offsets minus ``base_offset``. ``last_offset_delta`` is written into the header. It may be larger than the delta of the
    last record, if a cleaner removed later records; None stands for the delta of the last record.

    ``attributes`` are the bits beside the compression kind (`TRANSACTIONAL`, `CONTROL`, `LOG_APPEND_TIME`). ``max_timestamp``, in ms, is written into
    the header: with `LOG_APPEND_TIME` the append time; None stands for the records' largest timestamp. ``delete_horizon_ms`` (KIP-534) is written as
    base timestamp, and an attribute bit marks it as delete horizon.

    Raises EncodeError if there are no records, because producers send no empty batch, and for values that do not fit.
    """
    record_list = list(new_records)
    if not record_list:
        raise EncodeError("RecordBatch.records", "a batch must have at least one record")
    deltas = range(len(record_list)) if offset_deltas is None else offset_deltas
    try:
        base_timestamp = record_list[0].timestamp
        if delete_horizon_ms is not None:
            base_timestamp = delete_horizon_ms
            attributes |= DELETE_HORIZON
        packed = write_records(record_list, deltas, base_timestamp)
        if compression:
            packed = compress(compression, packed, compression_level)
        header = BatchHeader(
            base_offset=base_offset,
            batch_length=HEADER_BYTES - PREFIX_BYTES + len(packed),
            partition_leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=attributes | compression,
            last_offset_delta=deltas[-1] if last_offset_delta is None else last_offset_delta,
            base_timestamp=base_timestamp,
            max_timestamp=max([record.timestamp for record in record_list]) if max_timestamp is None else max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=len(record_list),
        )
        batch = bytearray(_HEADER.pack(*header))
    except (struct.error, AttributeError, OverflowError, TypeError, BufferError, ValueError) as error:
        raise EncodeError("RecordBatch", str(error)) from None
    batch += packed
    return _with_crc(batch)


def build_empty_batch(header: BatchHeader) -> bytes:
    """Return a batch without records. A cleaner keeps such a batch to preserve a producer's last sequence number.

    header: the header of the batch that had the records. The result has the same header, but with length, record count and checksum of an empty
    batch, and without base timestamp, compression and delete horizon (``DefaultRecordBatch.writeEmptyHeader``). Raises EncodeError for a header whose
    numbers do not fit.
    """
    empty_header = header._replace(
        batch_length=HEADER_BYTES - PREFIX_BYTES,
        attributes=header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON),
        base_timestamp=NO_TIMESTAMP,
        record_count=0,
    )
    try:
        return _with_crc(bytearray(_HEADER.pack(*empty_header)))
    except struct.error as error:
        raise EncodeError("RecordBatch", str(error)) from None


def _with_crc(batch: bytearray) -> bytes:
    _UINT32.pack_into(batch, CRC_AT, checksum.crc32c(memoryview(batch)[_ATTRIBUTES_AT:]))
    return bytes(batch)
