"""Records from one magic to another, as brokers do it for old clients.

Down for an old fetch (``RecordsUtil.downConvert``), up for an old produce (``LogValidator``). Headers, producers and
markers have no place in old magics and are lost, timestamps in magic 0. What is compressed stays so. Checksums of what
comes in are not looked at; `kafkaproto.records.verify` does. This module must never know requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kafkaproto.errors import EncodeError
from kafkaproto.records import entries, message_set
from kafkaproto.records.batch import LOG_APPEND_TIME, MAGIC, NO_EPOCH, build_batch
from kafkaproto.records.compression import DEFAULT_LIMIT_BYTES, Buffer, Compression
from kafkaproto.records.entries import Entry
from kafkaproto.records.record import NO_TIMESTAMP, NewRecord, Record

__all__ = ["UnsupportedCompression", "down_convert", "down_converted", "up_convert"]


class UnsupportedCompression(EncodeError):
    """The magic has no such compression: zstd came with magic 2 (KIP-110)."""


def down_convert(buffer: Buffer, magic: int, first_offset: int = 0, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """All of a records field in at most this magic; `down_converted` piece by piece, joined."""
    return b"".join(down_converted(buffer, magic, first_offset, limit_bytes))


def down_converted(
    buffer: Buffer, magic: int, first_offset: int = 0, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> Iterator[bytes | memoryview]:
    """The whole batches of a buffer, each in at most this magic; pieces that need no change are views of the buffer.

    Records keep their offsets. Records below ``first_offset`` are left out where each gets a message of its own; what
    is compressed stays whole (rule F-31). Control batches are left out. ``limit_bytes`` is for each batch. Raises
    UnsupportedCompression when it reaches zstd, so that what came before can be used (F-33); EncodeError for records
    that no old message can carry; DecodeError for damage.
    """
    view = memoryview(buffer)
    for entry in entries.batches(view[: entries.complete_bytes(view)]):
        header = entry.header
        if magic < MAGIC and header.is_control:
            continue
        if magic < MAGIC and header.compression == Compression.ZSTD:
            raise UnsupportedCompression("RecordBatch.attributes", f"zstd cannot be converted to magic {magic}")
        if header.magic <= magic:
            yield entry.view
            continue
        kept = [
            record
            for record in entries.records(entry.view, limit_bytes)
            if header.compression or record.offset >= first_offset
        ]
        if kept:
            append_time = header.max_timestamp if header.is_log_append_time else None
            yield message_set.write_messages(kept, magic, header.compression, append_time)


def up_convert(
    buffer: Buffer,
    *,
    base_offset: int | None = None,
    compression: Compression | None = None,
    log_append_time_ms: int | None = None,
    leader_epoch: int = NO_EPOCH,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
) -> bytes:
    """The messages of magic 0 or 1 in a buffer as one batch of magic 2.

    Consecutive offsets from ``base_offset`` on, as a broker gives them; without it the messages keep theirs.
    ``compression`` is the batch's; without it, the messages' own. With ``log_append_time_ms`` the batch is marked to
    have the broker's time. Messages of magic 0 have no timestamp afterwards, either (-1). Raises EncodeError for no
    messages at all, for a wrapper that is not alone (Kafka takes only one), and for magics that differ; DecodeError for
    damage.
    """
    listed = list(entries.batches(buffer))
    _check_one_kind(listed)
    found = [record for entry in listed for record in message_set.records(entry.view, limit_bytes)]
    _check_timestamps(found)
    first = found[0].offset
    deltas: Sequence[int] = range(len(found))
    if base_offset is None:
        base_offset, deltas = first, [record.offset - first for record in found]
        if any(delta >= after for delta, after in pairwise(deltas)) or deltas[-1] >= 2**31:
            raise EncodeError("RecordBatch.records", "the offsets do not rise, or too far")
    return build_batch(
        [NewRecord(record.value, record.key, record.timestamp) for record in found],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        compression=Compression(listed[0].header.compression) if compression is None else compression,
        attributes=0 if log_append_time_ms is None else LOG_APPEND_TIME,
        max_timestamp=log_append_time_ms,
        offset_deltas=deltas,
    )


def _check_one_kind(listed: Sequence[Entry]) -> None:
    if not listed:
        raise EncodeError("RecordBatch.records", "there are no messages")
    if len(listed) > 1 and any(entry.header.compression for entry in listed):
        raise EncodeError("Message", f"a compressed message must be alone, here are {len(listed)}")
    magics = {entry.header.magic for entry in listed}
    if len(magics) > 1:
        raise EncodeError("Message.magic", f"magics {sorted(magics)} in one set")


def _check_timestamps(found: Sequence[Record]) -> None:
    for record in found:
        if record.timestamp < NO_TIMESTAMP:
            raise EncodeError("Message.timestamp", f"{record.timestamp} is negative")
