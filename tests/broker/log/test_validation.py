"""Validation of produced batches, and the order of the checks (P-4, P-8 to P-12)."""

from __future__ import annotations

import struct

import pytest

from kafkaproto.broker.log.errors import InvalidBatch, RecordError
from kafkaproto.broker.log.validation import NO_KEY, TopicLimits, Valid, validate
from kafkaproto.records.batch import Compression, NewRecord, build_batch, check_crc, read_header, records
from tests.support.broker.batches import NOW_MS, batch

HOUR_MS = 3_600_000
COMPRESSED = [codec for codec in Compression if codec]
DEFAULTS = TopicLimits()


def judged(data: bytes | bytearray, limits: TopicLimits = DEFAULTS, version: int = 9) -> Valid:
    return validate(memoryview(data), version, limits, NOW_MS)


def refusal(data: bytes | bytearray, limits: TopicLimits = DEFAULTS, version: int = 9) -> InvalidBatch:
    with pytest.raises(InvalidBatch) as caught:
        judged(data, limits, version)
    return caught.value


def code(data: bytes | bytearray, limits: TopicLimits = DEFAULTS, version: int = 9) -> int:
    return refusal(data, limits, version).error_code


def built(codec: Compression, timestamps: list[int] | None = None, key: bytes | None = b"k") -> bytearray:
    times = timestamps or [NOW_MS] * 3
    return bytearray(build_batch([NewRecord(b"v" * 100, key, t) for t in times], compression=codec))


@pytest.mark.rule("P-12")
@pytest.mark.parametrize("version", [0, 2, 3, 7, 11])
def test_valid_batch_is_accepted_unchanged_without_a_copy(version: int) -> None:
    data = batch(3)
    valid = judged(data, version=version)
    assert valid.batch == data and valid.header == read_header(data)
    assert valid.batch.obj is data  # no copy


def test_batch_validation_copies_read_only_bytes_so_that_offsets_can_be_written() -> None:
    assert not judged(bytes(batch(3))).batch.readonly


# P-4: number and magic of batches


@pytest.mark.rule("P-4")
@pytest.mark.parametrize("cut", [0, 1, 11, 12, 16, 17, 60, 80])
def test_incomplete_batch_is_rejected_as_invalid_record(cut: int) -> None:
    error = refusal(batch()[:cut])
    assert error.error_code == 87 and not error.log_start_known


@pytest.mark.rule("P-4")
@pytest.mark.parametrize("magic", [0, 1])
def test_batch_with_an_old_magic_is_rejected_from_produce_version_3_on(magic: int) -> None:
    assert code(batch(magic=magic)) == 87
    assert code(batch(magic=magic), version=3) == 87


@pytest.mark.rule("P-4")
def test_zstd_batch_in_produce_v6_gets_error_unsupported_compression_type() -> None:
    assert code(built(Compression.ZSTD), version=6) == 76
    assert judged(built(Compression.ZSTD), version=7).header.compression == Compression.ZSTD


@pytest.mark.rule("P-4")
def test_produce_rejects_two_complete_batches_but_drops_an_incomplete_second_batch() -> None:
    assert code(batch() + batch()) == 87
    assert judged(batch(2) + batch()[:-1]).batch == batch(2)
    assert judged(batch(2) + b"\0" * 11).batch == batch(2)


@pytest.mark.rule("P-4")
@pytest.mark.parametrize("magic", [3, 127, 255])
def test_batch_with_an_unknown_magic_is_rejected_as_corrupt(magic: int) -> None:
    data = batch()
    data[16] = magic
    assert code(data) == 2
    assert code(batch() + data) == 2


@pytest.mark.rule("P-4")
@pytest.mark.parametrize("length", [-2147483648, -1, 0, 13])
def test_batch_whose_length_field_is_below_14_is_rejected_as_corrupt(length: int) -> None:
    data = batch()
    struct.pack_into(">i", data, 8, length)
    error = refusal(data)
    assert error.error_code == 2 and not error.log_start_known


# P-8: base offset, size, checksum, in this order


@pytest.mark.rule("P-8")
def test_too_large_batch_with_a_nonzero_base_offset_gets_error_invalid_record() -> None:
    error = refusal(batch(base_offset=5), TopicLimits(max_message_bytes=10))
    assert error.error_code == 87 and error.log_start_known


@pytest.mark.rule("P-8")
def test_batch_of_max_message_bytes_is_accepted_and_a_larger_batch_is_rejected() -> None:
    data = batch()
    assert judged(data, TopicLimits(max_message_bytes=len(data))).batch == data
    data[-1] ^= 1  # the size is checked before the checksum
    error = refusal(data, TopicLimits(max_message_bytes=len(data) - 1))
    assert error.error_code == 10 and not error.log_start_known


@pytest.mark.rule("P-8")
@pytest.mark.parametrize("at", [17, 20, 21, 40, 60, 61, -1])
def test_batch_with_a_wrong_checksum_is_rejected_as_corrupt(at: int) -> None:
    data = batch()
    data[at] ^= 0x40
    error = refusal(data)
    assert error.error_code == 2 and not error.log_start_known


@pytest.mark.rule("P-8")
@pytest.mark.parametrize("size", [26, 40, 60])
def test_batch_smaller_than_its_header_is_rejected_as_corrupt(size: int) -> None:
    data = batch()[:size]
    struct.pack_into(">i", data, 8, size - 12)
    assert code(data) == 2


# P-9: invalid header fields


@pytest.mark.rule("P-9")
@pytest.mark.parametrize(("delta", "count"), [(2, 2), (0, 3), (-1, 0), (-5, -4), (-1, 3), (2147483647, 3)])
def test_record_count_that_does_not_match_the_offset_delta_is_rejected(delta: int, count: int) -> None:
    error = refusal(batch(3, last_offset_delta=delta, record_count=count))
    assert error.error_code == 87 and error.log_start_known


@pytest.mark.rule("P-9")
def test_record_count_too_large_for_the_batch_size_is_rejected() -> None:
    assert code(batch(1, last_offset_delta=2_000_000_000 - 1, record_count=2_000_000_000)) == 87
    smallest = build_batch([NewRecord(None)] * 50)
    assert judged(smallest).batch == smallest


@pytest.mark.rule("P-9")
def test_control_batch_from_a_client_is_rejected() -> None:
    assert code(batch(attributes=0x20)) == 87


@pytest.mark.rule("P-9")
@pytest.mark.parametrize("sequence", [-1, -2147483648])
def test_batch_with_a_producer_id_but_no_sequence_is_rejected(sequence: int) -> None:
    assert code(batch(producer_id=0, producer_epoch=0, sequence=sequence)) == 87
    assert judged(batch(producer_id=0, producer_epoch=0, sequence=0)).header.producer_id == 0


@pytest.mark.rule("P-9")
@pytest.mark.parametrize("codec", COMPRESSED)
def test_batch_that_cannot_be_decompressed_is_rejected_as_corrupt(codec: Compression) -> None:
    damaged = batch(attributes=codec, payload=b"this is no compressed data")
    assert code(damaged, TopicLimits(compact=True)) == 2
    assert code(damaged, TopicLimits(compression_type="uncompressed")) == 2
    assert code(damaged, DEFAULTS) == 2
    whole = built(codec)
    assert judged(whole, DEFAULTS).batch == whole


@pytest.mark.rule("P-9")
def test_unparsable_records_are_rejected_in_a_compacted_topic() -> None:
    assert code(batch(2, payload=b"\x80\x80"), TopicLimits(compact=True)) == 87


# P-10: single records


@pytest.mark.rule("P-10")
@pytest.mark.parametrize("codec", list(Compression))
def test_compacted_topic_rejects_records_without_a_key(codec: Compression) -> None:
    assert judged(built(codec), TopicLimits(compact=True)).header.record_count == 3
    error = refusal(built(codec, key=None), TopicLimits(compact=True))
    assert error.error_code == 87 and error.log_start_known
    assert [record_error.batch_index for record_error in error.record_errors] == [0, 1, 2]


@pytest.mark.rule("P-10")
@pytest.mark.parametrize("age_ms", [5 * HOUR_MS, -5 * HOUR_MS])
def test_records_with_timestamps_outside_the_limits_get_error_invalid_timestamp(age_ms: int) -> None:
    """Kafka's ProduceRequestTest.testProduceWithInvalidTimestamp."""
    limits = TopicLimits(timestamp_before_max_ms=1000, timestamp_after_max_ms=1000)
    error = refusal(built(Compression.GZIP, [NOW_MS - age_ms] * 3), limits)
    assert error.error_code == 32 and error.log_start_known
    assert [record_error.batch_index for record_error in error.record_errors] == [0, 1, 2]
    assert error.message == "One or more records have been rejected due to invalid timestamp"


@pytest.mark.rule("P-10")
def test_record_timestamps_of_minus_one_or_at_the_limits_are_accepted() -> None:
    limits = TopicLimits(timestamp_before_max_ms=1000, timestamp_after_max_ms=2000)
    assert judged(batch(timestamps=[NOW_MS - 1000, NOW_MS + 2000, -1]), limits).header.record_count == 3
    error = refusal(batch(timestamps=[NOW_MS, NOW_MS - 1001, NOW_MS + 2001]), limits)
    limits_text = f"is out of range. The timestamp should be within [{NOW_MS - 1000}, {NOW_MS + 2000}]"
    assert error.record_errors == [
        RecordError(1, f"Timestamp {NOW_MS - 1001} of message with offset 1 {limits_text}"),
        RecordError(2, f"Timestamp {NOW_MS + 2001} of message with offset 2 {limits_text}"),
    ]


@pytest.mark.rule("P-10")
def test_upper_timestamp_limit_in_an_error_message_wraps_around_like_a_java_long() -> None:
    error = refusal(batch(timestamps=[5]), TopicLimits(timestamp_before_max_ms=1000))
    assert error.record_errors[0].message.endswith(f"within [{NOW_MS - 1000}, {NOW_MS - 2**63 - 1}]")


@pytest.mark.rule("P-10")
def test_error_message_about_records_without_keys_lists_the_first_three_records() -> None:
    error = refusal(built(Compression.NONE, [1, 2, 3, 4], key=None), TopicLimits(compact=True))
    record_texts = ", ".join(f"RecordError(batchIndex={i}, message='{NO_KEY}')" for i in range(3))
    assert error.message == (
        "One or more records have been rejected due to 4 record errors in total, and only showing the first three errors at most: "
        f"[{record_texts}]"
    )


@pytest.mark.rule("P-10")
@pytest.mark.parametrize(
    ("codec", "compression_type", "described"),
    [
        (Compression.NONE, "producer", "DefaultRecord(offset=0, timestamp=7, key=0 bytes, value=1 bytes)"),
        (Compression.GZIP, "gzip", "PartialDefaultRecord(offset=0, timestamp=7, key=-1 bytes, value=1 bytes)"),
        (Compression.GZIP, "lz4", "DefaultRecord(offset=0, timestamp=7, key=0 bytes, value=1 bytes)"),
    ],
)
def test_error_for_a_log_append_time_flag_prints_the_record_in_the_format_of_kafka(
    codec: Compression, compression_type: str, described: str
) -> None:
    data = build_batch([NewRecord(b"v", None, 7)], compression=codec, attributes=0x08)
    error = refusal(bytearray(data), TopicLimits(log_append_time=True, compression_type=compression_type))
    assert error.record_errors[0].message == (
        f"Invalid timestamp type in message {described}. Producer should not set timestamp type to LogAppendTime."
    )


@pytest.mark.rule("P-10")
def test_batch_with_a_missing_key_and_an_old_timestamp_gets_error_invalid_timestamp() -> None:
    limits = TopicLimits(compact=True, timestamp_before_max_ms=1000)
    data = bytearray(
        build_batch([NewRecord(b"v", None, NOW_MS), NewRecord(b"v", b"k", 5), NewRecord(b"v", b"k", NOW_MS)])
    )
    error = refusal(data, limits)
    assert error.error_code == 32 and [record_error.batch_index for record_error in error.record_errors] == [0, 1]


@pytest.mark.rule("P-10")
def test_log_append_time_topic_rejects_a_batch_with_the_log_append_time_flag() -> None:
    error = refusal(batch(2, attributes=0x08), TopicLimits(log_append_time=True))
    assert error.error_code == 32 and [record_error.batch_index for record_error in error.record_errors] == [0, 1]
    assert code(batch(timestamps=[-1], attributes=0x08)) == 32


@pytest.mark.rule("P-12")
def test_create_time_topic_clears_the_log_append_time_flag_of_a_produced_batch() -> None:
    valid = judged(batch(2, attributes=0x08, timestamps=[10, 20]))
    assert not valid.header.is_log_append_time and check_crc(valid.batch)
    assert [r.timestamp for r in records(valid.batch)] == [10, 20]


# P-11, P-12: segments, LogAppendTime, recompression


@pytest.mark.rule("P-11")
def test_batch_larger_than_segment_bytes_gets_error_record_list_too_large() -> None:
    data = batch()
    assert judged(data, TopicLimits(segment_bytes=len(data))).batch == data
    error = refusal(data, TopicLimits(segment_bytes=len(data) - 1))
    assert error.error_code == 18 and not error.log_start_known


@pytest.mark.rule("P-12")
@pytest.mark.parametrize("codec", list(Compression))
def test_log_append_time_topic_sets_the_batch_timestamp_and_checksum(codec: Compression) -> None:
    valid = judged(built(codec, [1, 2, 3]), TopicLimits(log_append_time=True, timestamp_before_max_ms=1))
    assert valid.header.is_log_append_time and valid.header.max_timestamp == NOW_MS
    assert check_crc(valid.batch) and valid.header == read_header(valid.batch)
    assert [r.timestamp for r in records(valid.batch)] == [NOW_MS] * 3


@pytest.mark.rule("P-12")
@pytest.mark.parametrize("source", list(Compression))
@pytest.mark.parametrize("codec_name", ["uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"])
def test_batch_not_compressed_with_the_topic_codec_is_recompressed_with_that_codec(
    source: Compression, codec_name: str
) -> None:
    data = bytearray(
        build_batch(
            [NewRecord(b"v" * 50, b"k", t, [("h", b"1"), ("n", None)]) for t in (7, 9, 8)],
            compression=source,
            producer_id=3,
            producer_epoch=1,
            base_sequence=5,
            attributes=0x10,
        )
    )
    valid = judged(data, TopicLimits(compression_type=codec_name))
    target = source if codec_name == "producer" else Compression[codec_name.upper().replace("UNCOMPRESSED", "NONE")]
    assert valid.header.compression == target and check_crc(valid.batch)
    assert valid.header.is_transactional and valid.header[8:] == read_header(data)[8:]
    assert list(records(valid.batch)) == list(records(data))
    assert (valid.batch.obj is data) == (source == target)


@pytest.mark.rule("P-12")
def test_batch_above_max_message_bytes_after_recompression_is_rejected() -> None:
    data = bytearray(build_batch([NewRecord(b"v" * 10_000, b"k")], compression=Compression.GZIP))
    assert code(data, TopicLimits(max_message_bytes=5000, compression_type="uncompressed")) == 10
    assert judged(data, TopicLimits(max_message_bytes=5000)).batch == data


@pytest.mark.rule("P-12")
def test_recompressed_batch_gets_the_log_append_time_and_a_valid_checksum() -> None:
    valid = judged(built(Compression.NONE, [1, 2, 3]), TopicLimits(log_append_time=True, compression_type="lz4"))
    assert valid.header.compression == Compression.LZ4 and check_crc(valid.batch)
    assert [r.timestamp for r in records(valid.batch)] == [NOW_MS] * 3
