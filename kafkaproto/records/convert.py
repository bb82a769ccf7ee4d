"""Conversion of records from one magic to another, as brokers do for old clients.

Fetch responses to old clients are converted down (``RecordsUtil.downConvert``), produced data of old clients is converted up
(``LogValidator``). Old magics cannot represent headers, producers and markers, so these are lost; magic 0 also loses timestamps. Compressed
records stay compressed. Checksums of the input are not verified; `kafkaproto.records.verify` does that. This module does not depend on Kafka
requests.
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
    """Raised if the target magic does not support the compression of the records: zstd requires magic 2 (KIP-110)."""


def down_convert(buffer: Buffer, magic: int, first_offset: int = 0, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """Return the complete batches of a records field, with each batch of a higher magic converted to ``magic``.

    - buffer: the records field.
    - magic: the target; below 2, control batches are omitted.
    - first_offset: a converted batch loses its records below this offset, unless it is compressed (F-31).
    - limit_bytes: the maximum decompressed size of one batch.

    Raises DecodeError for damage or a larger batch, UnsupportedCompression for a batch compressed with zstd if ``magic`` is below 2, and EncodeError
    for records that old messages cannot represent. `down_converted` yields the same batches one by one.
    """
    return b"".join(down_converted(buffer, magic, first_offset, limit_bytes))


def down_converted(
    buffer: Buffer, magic: int, first_offset: int = 0, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> Iterator[bytes | memoryview]:
    """Yield the complete batches of a buffer. A batch of a higher magic is converted to ``magic``; any other is yielded as a view of the buffer.

    - magic: the target; below 2, control batches are omitted.
    - first_offset: a converted batch loses its records below this offset, unless it is compressed (F-31). Records keep their offsets. A batch that
      loses all records is omitted.
    - limit_bytes: the maximum decompressed size of one batch.

    If ``magic`` is below 2, raises UnsupportedCompression for a batch compressed with zstd, after the batches before it were yielded (F-33). Raises
    EncodeError for records that old messages cannot represent, and DecodeError for damage or a batch above the limit.
    """
    view = memoryview(buffer)
    for entry in entries.batches(view[: entries.complete_bytes(view)]):
        header = entry.header
        if magic < MAGIC and header.is_control:
            continue
        if magic < MAGIC and header.compression == Compression.ZSTD:
            raise UnsupportedCompression(
                "RecordBatch.attributes",
                f"records compressed with zstd cannot be converted to magic {magic}; zstd needs magic 2",
            )
        if header.magic <= magic:
            yield entry.view
            continue
        kept_records = [
            record
            for record in entries.records(entry.view, limit_bytes)
            if header.compression or record.offset >= first_offset
        ]
        if kept_records:
            append_time = header.max_timestamp if header.is_log_append_time else None
            yield message_set.write_messages(kept_records, magic, header.compression, append_time)


def up_convert(
    buffer: Buffer,
    *,
    base_offset: int | None = None,
    compression: Compression | None = None,
    compression_level: int | None = None,
    log_append_time_ms: int | None = None,
    leader_epoch: int = NO_EPOCH,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
) -> bytes:
    """Return the messages of magic 0 or 1 in a buffer as one batch of magic 2.

    - base_offset: the offset of the first record; the others follow consecutively, as a broker assigns them. None: all messages keep their offsets.
    - compression: the compression kind of the batch. None: the kind of the messages.
    - compression_level: the level of that kind. None: Kafka's default level.
    - log_append_time_ms: the broker's time, which becomes the timestamp of all records (`LogAppendTime`). None: messages keep their timestamps;
      those of magic 0 have none (-1).
    - leader_epoch: the epoch in the batch's header; -1 if it is unknown.
    - limit_bytes: the maximum size of the messages inside a compressed message, after decompression; DecodeError above it.

    Raises EncodeError if there are no messages, if a compressed message is not alone (Kafka accepts only one), if magics differ, if a timestamp is
    below -1, or if kept offsets do not increase or span 2**31 or more. Raises DecodeError for damage.
    """
    listed_batches = list(entries.batches(buffer))
    _check_one_kind(listed_batches)
    messages = [record for entry in listed_batches for record in message_set.records(entry.view, limit_bytes)]
    _check_timestamps(messages)
    first = messages[0].offset
    deltas: Sequence[int] = range(len(messages))
    if base_offset is None:
        base_offset, deltas = first, [record.offset - first for record in messages]
        if any(delta >= next_delta for delta, next_delta in pairwise(deltas)) or deltas[-1] >= 2**31:
            raise EncodeError(
                "RecordBatch.records",
                f"the offsets must increase, and the last must be less than 2**31 above the first (first {first}, last {first + deltas[-1]})",
            )
    return build_batch(
        [NewRecord(record.value, record.key, record.timestamp) for record in messages],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        compression=Compression(listed_batches[0].header.compression) if compression is None else compression,
        compression_level=compression_level,
        attributes=0 if log_append_time_ms is None else LOG_APPEND_TIME,
        max_timestamp=log_append_time_ms,
        offset_deltas=deltas,
    )


def _check_one_kind(listed: Sequence[Entry]) -> None:
    if not listed:
        raise EncodeError(
            "RecordBatch.records", "there must be at least one message of magic 0 or 1 to convert (got none)"
        )
    compressed = sum(bool(entry.header.compression) for entry in listed)
    if len(listed) > 1 and compressed:
        raise EncodeError(
            "Message",
            f"several messages can be converted to one record batch only if none of them is compressed (got {len(listed)} messages, of which "
            f"{compressed} are compressed); convert each compressed message separately",
        )
    magics = {entry.header.magic for entry in listed}
    if len(magics) > 1:
        raise EncodeError("Message.magic", f"a message set must have one magic (got {sorted(magics)})")


def _check_timestamps(messages: Sequence[Record]) -> None:
    for record in messages:
        if record.timestamp < NO_TIMESTAMP:
            raise EncodeError(
                "Message.timestamp", f"a timestamp must be at least {NO_TIMESTAMP} (got {record.timestamp})"
            )
