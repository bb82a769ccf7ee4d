"""What consumers are told that do not know all that lies in a log: magic 2 came with version 4, zstd with 10 (F-31 to F-35, KIP-283).

Applied to what has been read when it is answered, so that limits and waiting count the bytes of the log
(`KafkaApis.maybeConvertFetchedData`, `LazyDownConversionRecords`). Must never know sessions or quotas.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from broker.fetch.read import FetchParams, PartitionFetch, PartitionRead, failed, refused
from broker.log.files import FileRange
from broker.replication.partition import Partition
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records.batch import complete_bytes
from kafkaproto.records.convert import UnsupportedCompression, down_converted

FIRST_VERSION_WITH_MAGIC_1 = 2
FIRST_VERSION_WITH_MAGIC_2 = 4
FIRST_VERSION_WITH_ZSTD = 10
_PADDING_HEAD = struct.Struct(">qi")
_SMALLEST_BATCH_BYTES = 61


def knows_all(version: int) -> bool:
    """Whether a client of this version can be told whatever a log holds."""
    return version >= FIRST_VERSION_WITH_ZSTD


def told(params: FetchParams, fetch: PartitionFetch, read: PartitionRead, partition: Partition | None) -> PartitionRead:
    """What this client is answered for `read`. A. errors as they are; B. 76 on a zstd topic before version 10;

    C. nothing, and from version 4 on anything, as it is; D. 35 where converting is off, for consumers; E. converted.
    """
    if read.error_code or partition is None:
        return read
    if partition.limits.compression_type == "zstd":
        return refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if params.version >= FIRST_VERSION_WITH_MAGIC_2 or not read.size_bytes:
        return read
    data = read.records.read() if isinstance(read.records, FileRange) else bytes(read.records)
    whole_bytes = complete_bytes(data)
    if not whole_bytes:
        return read  # a fragment of the first batch (F-12)
    if not partition.down_converts and not params.from_follower:
        return refused(ErrorCode.UNSUPPORTED_VERSION)
    magic = 1 if params.version >= FIRST_VERSION_WITH_MAGIC_1 else 0
    try:
        read.records = _converted(data[:whole_bytes], len(data), magic, fetch.offset)
    except UnsupportedCompression:
        return refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    except DecodeError:
        return failed(ErrorCode.CORRUPT_MESSAGE)
    except EncodeError:
        return failed(ErrorCode.UNKNOWN_SERVER_ERROR)
    read.size_bytes = len(read.records)
    return read


def _converted(batches: bytes, read_bytes: int, magic: int, offset: int) -> bytes:
    """As many bytes as were read, or the first converted batch if it is larger; the end is cut off or filled (F-35).

    Raises UnsupportedCompression when there is nothing before zstd, and what `down_converted` raises.
    """
    pieces = down_converted(batches, magic, offset)
    first = next(pieces, None)
    if first is None:
        return _padding(_PADDING_HEAD.size)
    size_bytes = max(read_bytes, len(first))
    found = bytearray(first)
    for piece in _before_zstd(pieces):
        if len(found) >= size_bytes:
            break
        found += piece
    del found[size_bytes:]
    return bytes(found) + _padding(size_bytes - len(found))


def _before_zstd(pieces: Iterator[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    try:
        yield from pieces
    except UnsupportedCompression:
        """F-33: what came before is told, and the next fetch meets it at its beginning."""


def _padding(size_bytes: int) -> bytes:
    """The head of a batch that ends beyond the answer: clients take it for one that was cut off."""
    head = _PADDING_HEAD.pack(-1, max(size_bytes + 1, _SMALLEST_BATCH_BYTES))
    return head.ljust(size_bytes, b"\0")[:size_bytes]
