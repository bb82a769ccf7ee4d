"""Record batch v2 (magic 2) in place: the 61-byte header, the checksum, and the fields a broker stamps.

A batch stays the bytes it came as. Everything here reads or patches a buffer; nothing copies records.
Must never know: logs, partitions, time.

Layout (`DefaultRecordBatch` in Kafka): base_offset int64, batch_length int32, partition_leader_epoch int32, magic int8,
crc uint32 (over everything after it), attributes int16, last_offset_delta int32, base_timestamp int64,
max_timestamp int64, producer_id int64, producer_epoch int16, base_sequence int32, record_count int32.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

HEADER_BYTES = 61
PREFIX_BYTES = 12  # base_offset and batch_length: what batch_length does not count
CRC_START = 21  # the checksum covers everything from the attributes field on
MAGIC_OFFSET = 16

_HEADER = Struct(">qiibIhiqqqhii")
_BASE_OFFSET = Struct(">q")
_BASE_AND_LENGTH = Struct(">qi")
_LEADER_EPOCH = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_MAX_TIMESTAMP = Struct(">q")

COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20


class BatchHeader(NamedTuple):
    """The header of one batch. Size of the whole batch on the wire: ``batch_length + 12``."""

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
    def size_bytes(self) -> int:
        return self.batch_length + PREFIX_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & TIMESTAMP_TYPE_BIT)


def read_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header at `position`; the caller has checked that 61 bytes are there."""
    return BatchHeader._make(_HEADER.unpack_from(buffer, position))


def crc_is_valid(batch: memoryview, header: BatchHeader) -> bool:
    """Whether the CRC-32C over `batch` (one whole batch, exactly) is the one in its header."""
    return crc32c(batch[CRC_START:]) == header.crc


def stamp_offset_and_epoch(batch: memoryview, base_offset: int, leader_epoch: int) -> None:
    """Write what a leader assigns. The checksum covers neither field, so it stays valid (P-12)."""
    _BASE_OFFSET.pack_into(batch, 0, base_offset)
    _LEADER_EPOCH.pack_into(batch, PREFIX_BYTES, leader_epoch)


def stamp_log_append_time(batch: memoryview, header: BatchHeader, now_ms: int) -> None:
    """Set max_timestamp and the timestamp-type bit, and the checksum that covers them (LogAppendTime, P-12)."""
    _ATTRIBUTES.pack_into(batch, CRC_START, header.attributes | TIMESTAMP_TYPE_BIT)
    _MAX_TIMESTAMP.pack_into(batch, 35, now_ms)
    _CRC.pack_into(batch, 17, crc32c(batch[CRC_START:]))
