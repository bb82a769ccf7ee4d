"""Validation of the bytes that a client produces to one partition, in Kafka's order of checks.

Follows `ProduceRequest.validateRecords`, `UnifiedLog.analyzeAndValidateRecords` and `LogValidator` in Kafka; rules P-4, P-8 to P-12. For an
uncompressed batch and a topic with default settings, only the 61-byte header and the checksum are checked; records are decoded only if a setting
requires it. Malformed records with a correct checksum are therefore stored in the log and returned to consumers. `old_messages` validates requests
before version 3. This module does not depend on log offsets, producers' sequences or the topic's name.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from kafkaproto.broker.log.errors import InvalidBatch, RecordError
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError
from kafkaproto.records import checksum
from kafkaproto.records.batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    TRANSACTIONAL,
    BatchHeader,
    NewRecord,
    Record,
    build_batch,
    check_crc,
    patch_log_append_time,
    read_header,
    records,
)
from kafkaproto.records.compression import Buffer, Compression

_BASE_AND_LENGTH = Struct(">qi")
_SMALLEST_BODY_BYTES = 14  # a batch_length below this cannot be a batch of any magic
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_SMALLEST_RECORD_BYTES = 7  # length, attributes, two deltas, no key, no value, no headers: a byte each
_MAGIC_AT = 16
_CRC_AT = 17
_ATTRIBUTES_AT = 21
_UP_TO_MAGIC_BYTES = _MAGIC_AT + 1
_ANY_TIMESTAMP = (1 << 63) - 1
_SHOWN_ERRORS = 3
NO_KEY = "Compacted topic cannot accept message without key"
"""The error of a record without a key. Kafka's text continues with the partition, which this module does not know."""
# Codecs by the topic's compression.type, without "producer", which keeps the batch's codec.
CODECS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


@dataclass(slots=True, frozen=True)
class TopicLimits:
    """The settings of a topic that affect the validation of produced batches.

    `timestamp_before_max_ms`, `timestamp_after_max_ms`: by how many ms a CreateTime timestamp may be before or after the broker's time; 2**63 - 1 for
    no limit. `compression_type`: the codec to which the broker recompresses batches; "producer" keeps the codec of the producer. `compression_level`:
    the level at which the broker compresses with this codec; None for the codec's default level (KIP-390).
    """

    max_message_bytes: int = 1048588
    segment_bytes: int = 1 << 30
    compact: bool = False
    log_append_time: bool = False
    timestamp_before_max_ms: int = _ANY_TIMESTAMP
    timestamp_after_max_ms: int = _ANY_TIMESTAMP
    compression_type: str = "producer"
    compression_level: int | None = None

    @property
    def checks_each_record(self) -> bool:
        """Return whether each record must be checked: its key in a compacted topic, its timestamp in a topic that limits CreateTime timestamps."""
        if self.compact:
            return True
        return (
            not self.log_append_time and min(self.timestamp_before_max_ms, self.timestamp_after_max_ms) < _ANY_TIMESTAMP
        )


class Valid(NamedTuple):
    """A validated batch in a writable buffer, ready to be appended, and its header."""

    batch: memoryview
    header: BatchHeader


def validate(produced: Buffer, produce_version: int, limits: TopicLimits, now_ms: int) -> Valid:
    """Validate the bytes of a Produce request for one partition, and return the batch ready to be appended.

    produce_version: the version of the request. limits: the settings of the topic. now_ms: the broker's time. Raises InvalidBatch if a check fails.
    """
    return validate_batch(only_batch(produced, produce_version), limits, now_ms)


def validate_batch(batch: memoryview, limits: TopicLimits, now_ms: int) -> Valid:
    """Validate one whole batch of magic 2, and return the batch ready to be appended. Raises InvalidBatch if a check fails.

    limits: the settings of the topic. If the topic uses LogAppendTime, `now_ms` is written into the batch (P-12).
    """
    header = _checked_header(batch, limits)
    _check_claims(header)
    compression, claims_log_time = header.compression, header.is_log_append_time
    if limits.checks_each_record or claims_log_time:
        check_records(batch, header, limits, now_ms)
    elif compression:
        deque(_opened(batch, header), maxlen=0)
    codec = CODECS.get(limits.compression_type, compression)
    if codec != compression:
        batch, header = _recompressed(batch, header, Compression(codec), limits)
    elif claims_log_time:
        batch, header = _with_clients_time(batch, header)
    if batch.readonly:
        batch = memoryview(bytearray(batch))
    if limits.log_append_time:
        patch_log_append_time(batch, now_ms)
        header = read_header(batch)
    check_fits_segment(len(batch), limits)
    return Valid(batch, header)


def only_batch(data: Buffer, version: int) -> memoryview:
    """Return the single batch of magic 2 that a Produce request of `version` 3 or later carries for a partition (P-4).

    An incomplete batch after the first is ignored. Raises InvalidBatch if `data` does not contain exactly one such batch, or if `version` does not
    allow the compression type of the batch. After such an error, the Produce response has log start offset -1.
    """
    produced = memoryview(data)
    size_bytes = _batch_size(produced, 0)
    if size_bytes is None:
        raise _refused_early(
            ErrorCode.INVALID_RECORD,
            "A produce request must carry one record batch per partition (got no complete batch).",
        )
    magic = produced[_MAGIC_AT]
    if magic != MAGIC:
        raise _refused_early(
            ErrorCode.INVALID_RECORD,
            f"Produce requests of version {version} must contain batches of magic 2 (got magic {magic}).",
        )
    batch = produced[:size_bytes]
    if version < 7 and size_bytes >= HEADER_BYTES:
        codec = read_header(batch).compression
        if codec == Compression.ZSTD:
            raise _refused_early(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"Produce requests of version {version} cannot contain batches compressed with zstd; use version 7 or later.",
            )
        if codec > Compression.ZSTD:
            raise _refused_early(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Unknown compression type {codec}; known types are 0 (none) to 4 (zstd).",
            )
    if _batch_size(produced, size_bytes) is not None:
        raise _refused_early(
            ErrorCode.INVALID_RECORD, "A produce request must carry one record batch per partition (got more than one)."
        )
    return batch


def is_transactional(data: Buffer) -> bool:
    """Return whether the first batch in `data` has the transactional flag.

    Raises InvalidBatch with error CORRUPT_MESSAGE (2) if the length field of this batch is too small or its magic is unknown.
    """
    if (  # nearly always true; this runs for every produce request
        len(data) > HEADER_BYTES
        and data[_MAGIC_AT] == MAGIC
        and len(data) >= _BASE_AND_LENGTH.unpack_from(data)[1] + PREFIX_BYTES > HEADER_BYTES
    ):
        return bool(data[_ATTRIBUTES_AT + 1] & TRANSACTIONAL)
    produced = memoryview(data)
    size_bytes = _batch_size(produced, 0)
    if size_bytes is None or size_bytes < HEADER_BYTES or produced[_MAGIC_AT] != MAGIC:
        return False
    return read_header(produced).is_transactional


def _batch_size(produced: memoryview, at: int) -> int | None:
    """Return the size in bytes of the batch that begins at index `at` of `produced`, None if it is incomplete.

    Raises InvalidBatch if the size is invalid or the magic is not supported.
    """
    bytes_left = len(produced) - at
    if bytes_left < PREFIX_BYTES:
        return None
    batch_length: int = _BASE_AND_LENGTH.unpack_from(produced, at)[1]
    if batch_length < _SMALLEST_BODY_BYTES:
        raise _refused_early(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {batch_length} is less than the minimum record overhead ({_SMALLEST_BODY_BYTES})",
        )
    if bytes_left < _UP_TO_MAGIC_BYTES:
        return None
    magic = produced[at + _MAGIC_AT]
    if magic > MAGIC:
        signed = magic if magic < 128 else magic - 256
        raise _refused_early(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {signed}")
    return batch_length + PREFIX_BYTES if bytes_left >= batch_length + PREFIX_BYTES else None


def _checked_header(batch: memoryview, limits: TopicLimits) -> BatchHeader:
    """Check a batch and return its header. Raises InvalidBatch if a check fails (P-8).

    The checks, in this order: base offset, size, checksum, compression type. limits: the settings of the topic.
    """
    if _BASE_AND_LENGTH.unpack_from(batch)[0] != 0:
        raise InvalidBatch(
            ErrorCode.INVALID_RECORD,
            f"The base offset of a produced batch must be 0 (got {_BASE_AND_LENGTH.unpack_from(batch)[0]}).",
        )
    check_size(len(batch), limits)
    if len(batch) < HEADER_BYTES:
        raise InvalidBatch(
            ErrorCode.CORRUPT_MESSAGE,
            f"A batch of {len(batch)} bytes is too small for its header of {HEADER_BYTES} bytes.",
        )
    header = read_header(batch)
    if not check_crc(batch):
        raise InvalidBatch(
            ErrorCode.CORRUPT_MESSAGE, "The checksum of the batch does not match its content: the batch is damaged."
        )
    if header.compression > Compression.ZSTD:
        raise InvalidBatch(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Unknown compression type {header.compression}; known types are 0 (none) to 4 (zstd).",
        )
    return header


def check_size(size_bytes: int, limits: TopicLimits) -> None:
    """Raise InvalidBatch if a batch or message of `size_bytes` bytes is larger than max.message.bytes in `limits` (P-8)."""
    if size_bytes > limits.max_message_bytes:
        raise InvalidBatch(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"A batch of {size_bytes} bytes is larger than max.message.bytes {limits.max_message_bytes}.",
        )


def check_fits_segment(size_bytes: int, limits: TopicLimits) -> None:
    """Raise InvalidBatch if a batch of `size_bytes` bytes is larger than segment.bytes in `limits` (P-11)."""
    if size_bytes > limits.segment_bytes:
        raise InvalidBatch(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"A batch of {size_bytes} bytes is larger than segment.bytes {limits.segment_bytes}.",
        )


def _check_claims(header: BatchHeader) -> None:
    """Raise InvalidBatch if the record count or the sequence number in the header is invalid, or if this is a control batch (P-9)."""
    if header.record_count <= 0 or header.last_offset_delta + 1 != header.record_count:
        raise InvalidBatch(
            ErrorCode.INVALID_RECORD,
            f"The record count of a batch must be at least 1 and equal its last offset delta plus 1 "
            f"(got record count {header.record_count} and last offset delta {header.last_offset_delta}).",
        )
    if not header.compression and header.record_count * _SMALLEST_RECORD_BYTES > header.size - HEADER_BYTES:
        raise InvalidBatch(
            ErrorCode.INVALID_RECORD,
            f"The record count in the header of a batch must not be larger than its records allow "
            f"(got record count {header.record_count}, and a batch of {header.size} bytes).",
        )
    if header.is_control:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, "Clients may not write control batches.")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise InvalidBatch(
            ErrorCode.INVALID_RECORD,
            f"Sequence number {header.base_sequence} of producer {header.producer_id} is negative; it must be at least 0.",
        )


def check_records(batch: memoryview, header: BatchHeader, limits: TopicLimits, now_ms: int) -> None:
    """Check every record of a batch against the topic's settings `limits`.

    now_ms: the broker's time, with which the timestamps are compared. Raises InvalidBatch if the batch is damaged, or if records are rejected; the
    exception then contains their indexes in the batch (P-10).
    """
    errors: list[RecordError] = []
    bad_timestamp = False
    for index, record in enumerate(_opened(batch, header)):
        if limits.compact and record.key is None:
            errors.append(RecordError(index, NO_KEY))
            continue
        message = _timestamp_error(record, header, limits, now_ms)
        if message is not None:
            bad_timestamp = True
            errors.append(RecordError(index, message))
    if bad_timestamp:
        raise InvalidBatch(
            ErrorCode.INVALID_TIMESTAMP, "One or more records have been rejected due to invalid timestamp", errors
        )
    if errors:
        error_texts = ", ".join(
            f"RecordError(batchIndex={error.batch_index}, message='{error.message}')"
            for error in errors[:_SHOWN_ERRORS]
        )
        raise InvalidBatch(
            ErrorCode.INVALID_RECORD,
            f"One or more records have been rejected due to {len(errors)} record errors in total, and only showing the first three errors at most: "
            f"[{error_texts}]",
            errors,
        )


def _timestamp_error(record: Record, header: BatchHeader, limits: TopicLimits, now_ms: int) -> str | None:
    if not limits.log_append_time and record.timestamp != NO_TIMESTAMP:
        earliest, latest = now_ms - limits.timestamp_before_max_ms, now_ms + limits.timestamp_after_max_ms
        if not earliest <= record.timestamp <= latest:
            return (
                f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range. "
                f"The timestamp should be within [{earliest}, {_as_java_long(latest)}]"
            )
        return None
    if header.is_log_append_time:
        described = _described(record, header, limits)
        return (
            f"Invalid timestamp type in message {described}. Producer should not set timestamp type to LogAppendTime."
        )
    return None


def _as_java_long(value: int) -> int:
    """Return `value`, the sum of two longs, as Java computes the sum: a value above 2**63 - 1 wraps around."""
    return value if value < 1 << 63 else value - (1 << 64)


def _described(record: Record, header: BatchHeader, limits: TopicLimits) -> str:
    """Return a record as Kafka's error messages print it: as PartialDefaultRecord or DefaultRecord.

    A record of a compressed batch is printed as PartialDefaultRecord if the topic's compression type, in `limits`, does not require another codec.
    """
    is_partial = header.compression and CODECS.get(limits.compression_type, header.compression) == header.compression
    kind, size_of_none = ("PartialDefaultRecord", -1) if is_partial else ("DefaultRecord", 0)
    key, value = (size_of_none if data is None else len(data) for data in (record.key, record.value))
    return f"{kind}(offset={record.offset}, timestamp={record.timestamp}, key={key} bytes, value={value} bytes)"


def _with_clients_time(batch: memoryview, header: BatchHeader) -> Valid:
    """Return a copy of the batch with timestamp type CreateTime, which the topic requires, instead of the producer's LogAppendTime (P-12)."""
    corrected = bytearray(batch)
    _ATTRIBUTES.pack_into(corrected, _ATTRIBUTES_AT, header.attributes & ~LOG_APPEND_TIME)
    _CRC.pack_into(corrected, _CRC_AT, checksum.crc32c(memoryview(corrected)[_ATTRIBUTES_AT:]))
    return Valid(memoryview(corrected), read_header(corrected))


def _recompressed(batch: memoryview, header: BatchHeader, codec: Compression, limits: TopicLimits) -> Valid:
    """Return the batch with its records compressed with `codec`, the topic's codec (P-12).

    Raises InvalidBatch if the records are damaged, or if the recompressed batch is larger than max.message.bytes. If the batch has the
    timestamp type LogAppendTime, each record gets the timestamp of the batch, as consumers would see it. limits: the topic's settings.
    """
    fixed_ms = header.max_timestamp if header.is_log_append_time else None
    rebuilt = build_batch(
        [
            NewRecord(record.value, record.key, record.timestamp if fixed_ms is None else fixed_ms, record.headers)
            for record in _opened(batch, header)
        ],
        compression=codec,
        compression_level=limits.compression_level,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        attributes=header.attributes & TRANSACTIONAL,
    )
    check_size(len(rebuilt), limits)
    return Valid(memoryview(bytearray(rebuilt)), read_header(rebuilt))


def _opened(batch: memoryview, header: BatchHeader) -> Iterator[Record]:
    """Return an iterator over the decoded records of a batch. Raises InvalidBatch if the batch is damaged (P-9)."""
    try:
        yield from records(batch)
    except DecodeError as error:
        code = ErrorCode.CORRUPT_MESSAGE if header.compression else ErrorCode.INVALID_RECORD
        raise InvalidBatch(code, f"The records of the batch are damaged: {error}") from error


def _refused_early(error_code: ErrorCode, message: str) -> InvalidBatch:
    """Return the error for a check that fails before the partition is accessed. The Produce response then has log start offset -1 (P-2).

    message: the text for the client.
    """
    return InvalidBatch(error_code, message, before_append=True)
