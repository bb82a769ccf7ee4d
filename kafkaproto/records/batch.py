"""Record batches of magic 2 (KIP-98), looked at and patched where they lie.

A broker touches the 61 bytes of the header and the checksum; `records` looks inside for those who must. Nothing is
copied unless records are asked for. This module must never know partitions, topics or clocks.
Twin: ``org.apache.kafka.common.record.DefaultRecordBatch``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records import checksum
from kafkaproto.records.compression import DEFAULT_LIMIT_BYTES, Buffer, Compression, compress, decompress
from kafkaproto.records.varint import read_varint, varint

__all__ = [
    "Batch",
    "BatchHeader",
    "Compression",
    "Header",
    "NewRecord",
    "Record",
    "batches",
    "build_batch",
    "check_crc",
    "complete_bytes",
    "patch_log_append_time",
    "patch_offset_and_epoch",
    "read_header",
    "records",
]

HEADER_BYTES = 61
PREFIX_BYTES = 12
"""Base offset and length: what ``batch_length`` does not count."""
MAGIC = 2

NO_TIMESTAMP = -1
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
_CRC_AT = 17
_ATTRIBUTES_AT = 21
"""Where the checksum begins to count, so that offset and epoch can be patched without it."""
_MAX_TIMESTAMP_AT = 35

_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_INT16 = struct.Struct(">h")

Header = tuple[str, bytes | None]


class BatchHeader(NamedTuple):
    """The header of a batch, field by field as it lies there. Timestamps are in ms, -1 for none."""

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
        """The bytes of the whole batch."""
        return self.batch_length + PREFIX_BYTES

    @property
    def last_offset(self) -> int:
        """The offset of the last record, or of the last that was there before compaction."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset behind the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        """The compression kind as it lies there, which need not be one that exists."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether ``max_timestamp``, set by the broker, is the time of all records."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a marker and no records of clients."""
        return bool(self.attributes & CONTROL)

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent producer sent it."""
        return self.producer_id > NO_PRODUCER


class Batch(NamedTuple):
    """A batch in a buffer: where it starts, its header, its bytes (a view of the buffer)."""

    position: int
    header: BatchHeader
    view: memoryview


class Record(NamedTuple):
    """A record as a consumer sees it. Header keys are text, header values may be None."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class NewRecord(NamedTuple):
    """A record that is yet to get an offset. ``timestamp`` in ms."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int = 0
    headers: Sequence[Header] = ()


def read_header(buffer: Buffer, pos: int = 0) -> BatchHeader:
    """The header at ``pos``.

    DecodeError if it is not all there, is not of magic 2, or announces a batch smaller than itself. Whether the whole
    batch is there is not looked at.
    """
    if len(buffer) - pos < HEADER_BYTES:
        raise DecodeError("RecordBatch", pos, f"a header has {HEADER_BYTES} bytes, {len(buffer) - pos} are left")
    header = BatchHeader._make(_HEADER.unpack_from(buffer, pos))
    if header.magic != MAGIC:
        raise DecodeError("RecordBatch.magic", pos + _MAGIC_AT, f"is {header.magic}, only {MAGIC} is known here")
    if header.batch_length < HEADER_BYTES - PREFIX_BYTES:
        raise DecodeError("RecordBatch.batch_length", pos + _LENGTH_AT, f"{header.batch_length} is below the header's")
    return header


def batches(buffer: Buffer) -> Iterator[Batch]:
    """The batches of a buffer, one after the other. DecodeError, when it is reached, for one that is not all there."""
    view = memoryview(buffer)
    pos = 0
    while pos < len(view):
        header = read_header(view, pos)
        if header.size > len(view) - pos:
            reason = f"announces {header.size} bytes, {len(view) - pos} are left"
            raise DecodeError("RecordBatch.batch_length", pos + _LENGTH_AT, reason)
        yield Batch(pos, header, view[pos : pos + header.size])
        pos += header.size


def complete_bytes(buffer: Buffer) -> int:
    """How many bytes at the start are whole batches; an answer to a fetch may end in the middle of one."""
    pos = 0
    while len(buffer) - pos >= HEADER_BYTES:
        size = read_header(buffer, pos).size
        if size > len(buffer) - pos:
            break
        pos += size
    return pos


def check_crc(batch: Buffer) -> bool:
    """Whether the checksum of a batch, given from its first to its last byte, is right."""
    view = memoryview(batch)
    (crc,) = _UINT32.unpack_from(view, _CRC_AT)
    return bool(crc == checksum.crc32c(view[_ATTRIBUTES_AT:]))


def patch_offset_and_epoch(buffer: bytearray | memoryview, pos: int, base_offset: int, leader_epoch: int) -> None:
    """Give the batch at ``pos`` its place in the log; the checksum does not count these fields."""
    _INT64.pack_into(buffer, pos, base_offset)
    _INT32.pack_into(buffer, pos + _EPOCH_AT, leader_epoch)


def patch_log_append_time(batch: bytearray | memoryview, now_ms: int) -> None:
    """Make ``now_ms`` the time of all records of a batch (``message.timestamp.type=LogAppendTime``), checksum too."""
    (attributes,) = _INT16.unpack_from(batch, _ATTRIBUTES_AT)
    _INT16.pack_into(batch, _ATTRIBUTES_AT, attributes | LOG_APPEND_TIME)
    _INT64.pack_into(batch, _MAX_TIMESTAMP_AT, now_ms)
    _UINT32.pack_into(batch, _CRC_AT, checksum.crc32c(memoryview(batch)[_ATTRIBUTES_AT:]))


def records(batch: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Iterator[Record]:
    """The records of one batch, given from its first to its last byte, read as they are asked for.

    DecodeError for damaged records or more than ``limit_bytes`` of them. The checksum is not looked at. Offsets in
    errors count from the first record, decompressed.
    """
    header = read_header(batch)
    payload = decompress(header.compression, memoryview(batch)[HEADER_BYTES : header.size], limit_bytes)
    pos = 0
    for i in range(header.record_count):
        try:
            record, pos = _read_record(payload, pos, header)
        except (IndexError, ValueError) as error:
            raise DecodeError(f"RecordBatch.records[{i}]", pos, str(error)) from None
        yield record
    if header.record_count < 0 or pos != len(payload):
        reason = f"{len(payload) - pos} bytes are left behind {header.record_count} records"
        raise DecodeError("RecordBatch.record_count", pos, reason)


def _read_record(b: bytes, pos: int, header: BatchHeader) -> tuple[Record, int]:
    size, p = read_varint(b, pos)
    end = p + size
    if size < 0 or end > len(b):
        raise ValueError(f"a record of {size} bytes, {len(b) - p} are left")
    timestamp_delta, p = read_varint(b, p + 1)  # behind the attributes, which nobody uses
    offset_delta, p = read_varint(b, p)
    key, p = _read_bytes(b, p, end)
    value, p = _read_bytes(b, p, end)
    headers, p = _read_headers(b, p, end)
    if p != end:
        raise ValueError(f"the record ends {end - p} bytes behind its fields")
    timestamp = header.max_timestamp if header.is_log_append_time else header.base_timestamp + timestamp_delta
    return Record(header.base_offset + offset_delta, timestamp, key, value, headers), p


def _read_bytes(b: bytes, p: int, end: int) -> tuple[bytes | None, int]:
    size, p = read_varint(b, p)
    if size < 0:
        return None, p
    if size > end - p:
        raise ValueError(f"a field of {size} bytes, {end - p} are left of the record")
    return b[p : p + size], p + size


def _read_headers(b: bytes, p: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, p = read_varint(b, p)
    if not 0 <= count <= end - p:
        raise ValueError(f"{count} headers, {end - p} bytes are left of the record")
    headers: list[Header] = []
    for _ in range(count):
        key, p = _read_bytes(b, p, end)
        if key is None:
            raise ValueError("a header key may not be null")
        value, p = _read_bytes(b, p, end)
        headers.append((str(key, "utf-8", "replace"), value))
    return tuple(headers), p


def build_batch(
    new_records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
    compression: Compression = Compression.NONE,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    attributes: int = 0,
) -> bytes:
    """A batch of the records, at consecutive offsets, with its checksum.

    ``attributes`` are the bits beside the compression kind (`TRANSACTIONAL`, `CONTROL`, `LOG_APPEND_TIME`). Raises
    EncodeError for no records at all, which no producer sends, and for values that do not fit.
    """
    listed = list(new_records)
    if not listed:
        raise EncodeError("RecordBatch.records", "a batch has at least one record")
    base_timestamp = listed[0].timestamp
    try:
        payload = b"".join(_build_record(record, i, base_timestamp) for i, record in enumerate(listed))
    except (AttributeError, OverflowError, TypeError) as error:
        raise EncodeError("RecordBatch.records", str(error)) from None
    packed = compress(compression, payload)
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=HEADER_BYTES - PREFIX_BYTES + len(packed),
        partition_leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes | compression,
        last_offset_delta=len(listed) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in listed),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(listed),
    )
    try:
        batch = bytearray(_HEADER.pack(*header))
    except struct.error as error:
        raise EncodeError("RecordBatch", str(error)) from None
    batch += packed
    _UINT32.pack_into(batch, _CRC_AT, checksum.crc32c(memoryview(batch)[_ATTRIBUTES_AT:]))
    return bytes(batch)


def _build_record(record: NewRecord, offset_delta: int, base_timestamp: int) -> bytes:
    body = bytearray(1)  # attributes
    body += varint(record.timestamp - base_timestamp)
    body += varint(offset_delta)
    _append_bytes(body, record.key)
    _append_bytes(body, record.value)
    body += varint(len(record.headers))
    for key, value in record.headers:
        _append_bytes(body, key.encode())
        _append_bytes(body, value)
    return varint(len(body)) + body


def _append_bytes(body: bytearray, data: bytes | None) -> None:
    if data is None:
        body += varint(-1)
        return
    body += varint(len(data))
    body += data
