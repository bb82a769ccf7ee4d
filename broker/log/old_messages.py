"""Whether what a Produce request before version 3 carries may be appended: messages of any magic, made one batch of magic 2.

`UnifiedLog.analyzeAndValidateRecords` and `LogValidator` in Kafka; rule P-4, second half. Messages of magic 0 and 1 that are not
compressed may be many; a compressed one, and a batch of magic 2, must be alone. Nothing at all is taken and appends nothing.
Must never know: offsets of the log, the topic's name.
"""

from __future__ import annotations

from broker.log.errors import InvalidBatch
from broker.log.validation import CODECS, TopicLimits, Valid, check_fits_segment, check_records, check_size, judge
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records import entries, verify
from kafkaproto.records.batch import MAGIC, read_header
from kafkaproto.records.compression import Buffer, Compression
from kafkaproto.records.convert import up_convert
from kafkaproto.records.entries import Entry


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
    """What is said of the messages inside: checksums must be right, none compressed again, all of the wrapper's magic."""
    if entry.header.is_log_append_time and limits.log_append_time:
        raise InvalidBatch(ErrorCode.INVALID_TIMESTAMP, "A producer must not set the timestamp type LogAppendTime.")
    if entry.header.compression == Compression.ZSTD:
        raise InvalidBatch(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd is not for magic {entry.header.magic}.")
    if not entry.header.compression:
        return
    for problem in verify.problems(entry.view):
        if problem.field.endswith((".magic", ".attributes")):
            raise InvalidBatch(ErrorCode.INVALID_RECORD, f"{problem.field}: {problem.reason}")
        if not problem.field.endswith(
            ".offset_delta"
        ):  # some old clients count wrongly: their offsets are not looked at
            raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"{problem.field}: {problem.reason}")
