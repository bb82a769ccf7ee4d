"""Validation of Produce requests before version 3: messages of any magic, converted to one batch of magic 2.

Follows `UnifiedLog.analyzeAndValidateRecords` and `LogValidator` in Kafka (P-4). A request may carry many
uncompressed messages of magic 0 and 1, but only one message if it is compressed, and only one batch of magic 2. An empty request is accepted
and appends nothing. This module does not depend on log offsets or the topic's name.
"""

from __future__ import annotations

from kafkaproto.broker.log.errors import InvalidBatch
from kafkaproto.broker.log.validation import (
    CODECS,
    TopicLimits,
    Valid,
    check_fits_segment,
    check_records,
    check_size,
    validate_batch,
)
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records import entries, verify
from kafkaproto.records.batch import MAGIC, read_header
from kafkaproto.records.compression import Buffer, Compression, decompress
from kafkaproto.records.convert import up_convert
from kafkaproto.records.entries import Entry
from kafkaproto.records.lz4_header import with_right_checksum
from kafkaproto.records.message_set import read_message

_CODES = {"crc": ErrorCode.CORRUPT_MESSAGE, "key": ErrorCode.UNKNOWN_SERVER_ERROR}
"""Maps the name of an invalid field in an inner message (a message inside a compressed message) to Kafka's error code.

The error code for any other field is INVALID_RECORD (87).
"""


def validate_any_batch(produced: Buffer, limits: TopicLimits, now_ms: int) -> Valid | None:
    """Return the messages in `produced` as one valid batch of magic 2, ready to be appended, or None if there are none.

    Raises InvalidBatch if a check fails. The checks in order: A. offset, size and checksum of each message or batch; B. the number and kinds of
    messages and batches; C. the content of a compressed message; D. each record; E. the size after conversion. produced: the bytes of a Produce
    request for one partition. limits: the settings of its topic. now_ms: the broker's time, with which timestamps are compared.
    """
    try:
        data = memoryview(produced)[: entries.complete_bytes(produced)]
        listed_batches = list(entries.batches(data))
    except DecodeError as error:
        raise InvalidBatch(
            ErrorCode.CORRUPT_MESSAGE, f"The produced messages are damaged and were not appended: {error}"
        ) from error
    for entry in listed_batches:
        _check_entry(entry, limits)
    if not listed_batches:
        return None
    if listed_batches[0].header.magic == MAGIC and len(listed_batches) == 1:
        return validate_batch(listed_batches[0].view, limits, now_ms)
    return _converted(data, listed_batches, limits, now_ms)


def _check_entry(entry: Entry, limits: TopicLimits) -> None:
    if entry.header.magic == MAGIC and read_header(entry.view).base_offset != 0:
        raise InvalidBatch(
            ErrorCode.INVALID_RECORD,
            f"The base offset of a produced batch must be 0 (got {read_header(entry.view).base_offset}).",
        )
    check_size(len(entry.view), limits)
    if not entries.check_crc(entry.view):
        raise InvalidBatch(
            ErrorCode.CORRUPT_MESSAGE, "The checksum of a message does not match its content: the message is damaged."
        )


def _converted(data: memoryview, listed: list[Entry], limits: TopicLimits, now_ms: int) -> Valid:
    if any(entry.header.magic == MAGIC for entry in listed):
        raise InvalidBatch(
            ErrorCode.INVALID_RECORD,
            f"A record batch of magic 2 must be the only batch of its partition in a request (got {len(listed)} batches and messages).",
        )
    for entry in listed:
        _check_wrapper(entry, limits)
    try:
        batch = up_convert(data, base_offset=0)
        check_records(memoryview(batch), read_header(batch), limits, now_ms)
        codec = Compression(CODECS.get(limits.compression_type, read_header(batch).compression))
        append_time_ms = now_ms if limits.log_append_time else None
        batch = up_convert(
            data,
            base_offset=0,
            compression=codec,
            compression_level=limits.compression_level,
            log_append_time_ms=append_time_ms,
        )
    except EncodeError as error:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, str(error)) from error
    except DecodeError as error:
        raise InvalidBatch(
            ErrorCode.CORRUPT_MESSAGE, f"The produced messages are damaged and were not appended: {error}"
        ) from error
    check_size(len(batch), limits)
    check_fits_segment(len(batch), limits)
    return Valid(memoryview(bytearray(batch)), read_header(batch))


def _check_wrapper(entry: Entry, limits: TopicLimits) -> None:
    """Check the timestamp type of a message and, if it is compressed, the messages inside it. Raises InvalidBatch if they break a rule.

    A compressed message must contain at least one message. The inner messages must have the magic of the outer message and correct checksums, and
    must not be compressed again. Their offsets are not checked, because some old clients number them wrongly. limits: the topic's settings.
    """
    if entry.header.is_log_append_time and limits.log_append_time:
        raise InvalidBatch(
            ErrorCode.INVALID_TIMESTAMP, "A producer must not set the timestamp type LogAppendTime; use CreateTime."
        )
    if not entry.header.compression:
        return
    packed = read_message(entry.view).value
    if entry.header.compression == Compression.LZ4 and entry.header.magic == 0 and packed is not None:
        packed = with_right_checksum(packed)
    try:
        if entry.header.compression != Compression.ZSTD and packed is not None:
            decompress(entry.header.compression, packed)
    except DecodeError as error:
        raise InvalidBatch(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"A compressed message of the produce request cannot be decompressed: {error}",
        ) from error
    for problem in verify.problems(entry.view):
        last_word = problem.field.rpartition(".")[2]
        if last_word != "offset_delta":
            code = _CODES.get(last_word, ErrorCode.INVALID_RECORD)
            raise InvalidBatch(code, f"{problem.field}: {problem.reason}")
