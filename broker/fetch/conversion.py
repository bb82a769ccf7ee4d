"""What consumers are told that do not know all that lies in a log: magic 2 came with version 4, zstd with 10 (F-31 to F-35, KIP-283).

Applied to what has been read when it is answered, so that limits and waiting count the bytes of the log
(`KafkaApis.maybeConvertFetchedData`, `LazyDownConversionRecords`). Must never know sessions or quotas.
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
    """Whether a client of this version can be told whatever a log holds."""
    return version >= FIRST_VERSION_WITH_ZSTD


def told(params: FetchParams, fetch: PartitionFetch, read: PartitionRead, partition: Partition | None) -> PartitionRead:
    """What this client is answered for `read`. A. 76 on a zstd topic before version 10, whatever else is wrong;

    B. from version 4 on anything as it is; C. 35 where converting is off, for consumers, also when there is nothing;
    D. errors and nothing as they are; E. converted.
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
    """As many bytes as were read, or the first converted batch if it is larger; the end is cut off or filled (F-35).

    Raises UnsupportedCompression when there is nothing before zstd, and what `down_convert` raises.
    """
    found = bytearray()
    size_bytes = _PADDING_HEAD.size
    listed = list(batches(memoryview(data)[: complete_bytes(data)]))
    at = 0
    try:
        while at < len(listed) and (not found or len(found) < size_bytes):
            end = at + 1
            # As Kafka does: one batch first, then as many at once as make a chunk. One of zstd loses its chunk (F-33).
            while (
                found
                and end < len(listed)
                and listed[end].position + listed[end].header.size <= (listed[at].position + _CHUNK_BYTES)
            ):
                end += 1
            converted = down_convert(b"".join(one.view for one in listed[at:end]), magic, offset)
            if converted and not found:
                size_bytes = max(len(data), len(converted))
            found += converted
            at = end
    except UnsupportedCompression:
        if not found:
            raise
    return bytes(found[:size_bytes]) + _padding(size_bytes - len(found))


def _padding(size_bytes: int) -> bytes:
    """The head of a batch that ends beyond the answer: clients take it for one that was cut off."""
    head = _PADDING_HEAD.pack(-1, max(size_bytes + 1, _SMALLEST_BATCH_BYTES))
    return head.ljust(size_bytes, b"\0")[: max(0, size_bytes)]
