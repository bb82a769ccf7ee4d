"""Conversion of records for clients with old Fetch versions (F-31 to F-35, KIP-283).

Clients with a version below 4 cannot read magic 2; clients with a version below 10 cannot read zstd.

Records are converted when the response is built. Byte limits and min_bytes apply to the records as they are in the log, before the conversion
(`KafkaApis.maybeConvertFetchedData`, `LazyDownConversionRecords`). This module does not depend on sessions or quotas.
"""

from __future__ import annotations

import struct

from kafkaproto.broker.fetch.read import FetchParams, PartitionFetch, PartitionRead, failed, refused
from kafkaproto.broker.log.files import FileRange
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records.batch import batches, complete_bytes
from kafkaproto.records.convert import UnsupportedCompression, down_convert

FIRST_VERSION_WITH_MAGIC_1 = 2
FIRST_VERSION_WITH_MAGIC_2 = 4
FIRST_VERSION_WITH_ZSTD = 10
_PADDING_HEAD = struct.Struct(">qi")
_SMALLEST_BATCH_BYTES = 61
_CHUNK_BYTES = 128 << 10


def knows_all(version: int) -> bool:
    """Return whether clients of a Fetch version can read every record format and compression type, so that no record needs conversion."""
    return version >= FIRST_VERSION_WITH_ZSTD


def for_client(
    params: FetchParams, fetch: PartitionFetch, read: PartitionRead, partition: Partition | None
) -> PartitionRead:
    """Return the result of reading one partition, converted for a client whose Fetch version (below 10) does not support all records.

    params: the parameters of the Fetch request, such as its version. fetch: the requested partition. read: the result of reading it. partition: None
    if this broker has no replica of it; the result is then unchanged. Otherwise the first case that applies decides:

    A. The topic's compression.type is zstd: error UNSUPPORTED_COMPRESSION_TYPE (76), even if the read failed.
    B. The request has version 4 or later: the result is unchanged.
    C. A consumer reads a topic for which conversion is off: error UNSUPPORTED_VERSION (35), even if there is nothing to read.
    D. The read failed or returned no records: the result is unchanged.
    E. Otherwise the records are converted to an older format.
    """
    if partition is None:
        return read
    if partition.limits.compression_type == "zstd":
        return refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if params.version >= FIRST_VERSION_WITH_MAGIC_2:
        return read
    if not partition.down_converts and not params.from_follower:
        return refused(ErrorCode.UNSUPPORTED_VERSION)
    if not read.size_bytes:
        return read
    data = read.records.read() if isinstance(read.records, FileRange) else bytes(read.records)
    magic = 1 if params.version >= FIRST_VERSION_WITH_MAGIC_1 else 0
    try:
        read.records = _converted(data, magic, fetch.offset)
    except UnsupportedCompression:
        return refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    except DecodeError:
        return failed(ErrorCode.CORRUPT_MESSAGE)
    except EncodeError:
        return failed(ErrorCode.UNKNOWN_SERVER_ERROR)
    read.size_bytes = len(read.records)
    return read


def _converted(data: bytes, magic: int, offset: int) -> bytes:
    """Return the record batches in `data` that have records from `offset` on. Batches of a newer format are converted to `magic` (F-35).

    The result has the size of `data`: longer results are cut off, shorter ones padded. There are two exceptions. If the first converted batch alone
    is larger than `data`, the result is this whole batch. If no records are left to return, the result is a short padding.

    A batch compressed with zstd cannot be converted. Batches are converted in chunks, and the result ends before the chunk that contains this batch.
    If the result would then have no records, UnsupportedCompression is raised instead. Raises DecodeError for damaged records, and EncodeError for
    records that the older format cannot represent.
    """
    converted_bytes = bytearray()
    size_bytes = _PADDING_HEAD.size
    entries = list(batches(memoryview(data)[: complete_bytes(data)]))
    at = 0
    try:
        while at < len(entries) and (not converted_bytes or len(converted_bytes) < size_bytes):
            end = at + 1
            # As in Kafka: one batch first, then a chunk of many batches at a time. A zstd batch drops its whole chunk (F-33).
            while (
                converted_bytes
                and end < len(entries)
                and entries[end].position + entries[end].header.size <= (entries[at].position + _CHUNK_BYTES)
            ):
                end += 1
            converted = down_convert(b"".join(entry.view for entry in entries[at:end]), magic, offset)
            if converted and not converted_bytes:
                size_bytes = max(len(data), len(converted))
            converted_bytes += converted
            at = end
    except UnsupportedCompression:
        if not converted_bytes:
            raise
    return bytes(converted_bytes[:size_bytes]) + _padding(size_bytes - len(converted_bytes))


def _padding(size_bytes: int) -> bytes:
    """Return `size_bytes` bytes that look like the beginning of a longer batch. Clients skip them, as they skip any incomplete batch."""
    head = _PADDING_HEAD.pack(-1, max(size_bytes + 1, _SMALLEST_BATCH_BYTES))
    return head.ljust(size_bytes, b"\0")[: max(0, size_bytes)]
