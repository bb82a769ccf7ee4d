"""Whether what a Produce request before version 3 carries may be appended: messages of any magic, made one batch of magic 2.

`UnifiedLog.analyzeAndValidateRecords` and `LogValidator` in Kafka; rule P-4, second half. Messages of magic 0 and 1 that are not
compressed may be many; a compressed one, and a batch of magic 2, must be alone. Nothing at all is taken and appends nothing.
Must never know: offsets of the log, the topic's name.
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
    judge,
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
"""What a problem inside of a wrapper is to Kafka, by the field; all others are 87."""


def judge_any(produced: Buffer, limits: TopicLimits, now_ms: int) -> Valid | None:
    """One batch of magic 2 as its topic's settings want it, ready to be appended; None for nothing. Raises InvalidBatch.

    A. each message or batch: its offset, its size, its checksum; B. how many of which kind; C. what is inside of a wrapper;
    D. each record; E. the size after converting.
    """
    try:
        data = memoryview(produced)[: entries.complete_bytes(produced)]
        listed = list(entries.batches(data))
    except DecodeError as error:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"The messages are damaged: {error}") from error
    for entry in listed:
        _check_entry(entry, limits)
    if not listed:
        return None
    if listed[0].header.magic == MAGIC and len(listed) == 1:
        return judge(listed[0].view, limits, now_ms)
    return _converted(data, listed, limits, now_ms)


def _check_entry(entry: Entry, limits: TopicLimits) -> None:
    if entry.header.magic == MAGIC and read_header(entry.view).base_offset != 0:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, "The base offset of a produced batch must be 0.")
    check_size(len(entry.view), limits)
    if not entries.check_crc(entry.view):
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, "The checksum of a message is wrong.")


def _converted(data: memoryview, listed: list[Entry], limits: TopicLimits, now_ms: int) -> Valid:
    if any(entry.header.magic == MAGIC for entry in listed):
        raise InvalidBatch(ErrorCode.INVALID_RECORD, "A batch of magic 2 must be alone.")
    for entry in listed:
        _check_wrapper(entry, limits)
    try:
        batch = up_convert(data, base_offset=0)
        check_records(memoryview(batch), read_header(batch), limits, now_ms)
        wanted = Compression(CODECS.get(limits.compression_type, read_header(batch).compression))
        append_time_ms = now_ms if limits.log_append_time else None
        batch = up_convert(data, base_offset=0, compression=wanted, log_append_time_ms=append_time_ms)
    except EncodeError as error:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, str(error)) from error
    except DecodeError as error:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"The messages are damaged: {error}") from error
    check_size(len(batch), limits)
    check_fits_segment(len(batch), limits)
    return Valid(memoryview(bytearray(batch)), read_header(batch))


def _check_wrapper(entry: Entry, limits: TopicLimits) -> None:
    """What is inside of a compressed message: something, of its magic, not compressed again, with right checksums.

    Offsets are not looked at: some old clients count wrongly.
    """
    if entry.header.is_log_append_time and limits.log_append_time:
        raise InvalidBatch(ErrorCode.INVALID_TIMESTAMP, "A producer must not set the timestamp type LogAppendTime.")
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
            ErrorCode.UNKNOWN_SERVER_ERROR, f"A wrapper is not compressed as it says: {error}"
        ) from error
    for problem in verify.problems(entry.view):
        last_word = problem.field.rpartition(".")[2]
        if last_word != "offset_delta":
            code = _CODES.get(last_word, ErrorCode.INVALID_RECORD)
            raise InvalidBatch(code, f"{problem.field}: {problem.reason}")
