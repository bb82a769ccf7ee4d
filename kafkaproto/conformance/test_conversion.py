"""Tests of old clients: down-conversion to magic 0 and 1 in Fetch, and messages of these magics in Produce (F-12, F-31 to F-35, P-4)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import pytest

from kafkaproto.conformance.needs import FETCH_MAX_BYTES
from kafkaproto.conformance.scene import Topic, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, produce, produced
from kafkaproto.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkaproto.records import entries
from kafkaproto.records.batch import BatchHeader, NewRecord, Record, build_batch
from kafkaproto.records.compression import Compression, compress
from kafkaproto.records.convert import down_convert, up_convert
from kafkaproto.records.message_set import build_message_set

pytestmark = pytest.mark.releases(before="4.0")
"""All tests of the module run only before Kafka 4, which does not serve old Fetch and Produce versions and converts nothing (KIP-896)."""

NOW_MS = 1_700_000_000_000
OLD = [(0, 0), (1, 0), (2, 1), (3, 1)]
"""Fetch versions for which records are converted, as (Fetch version, magic of the returned records)."""
NOT_YET_LEADER = 6
CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4]


def numbered(first: int, count: int, value_bytes: int = 60, **options: Any) -> bytes:
    new_records = [
        NewRecord(
            b"%d" % i + b"v" * value_bytes, b"key-%d" % i, NOW_MS + i, (("header", b"x"),) if options.get("h") else ()
        )
        for i in range(first, first + count)
    ]
    options.pop("h", None)
    return build_batch(new_records, **options)


def read(
    topic: Topic, offset: int, version: int, partition_max: int = 1 << 20, replica_id: int = -1
) -> tuple[int, bytes | None, Any]:
    """Fetch partition 0 of a topic, and return (error code, records, the partition's whole response).

    version: the version of Fetch. partition_max: the partition's limit in bytes. replica_id: the broker id of a follower, -1 for a consumer. The
    records are None if the broker sends null.
    """
    request = FetchRequest(
        replica_id=replica_id,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 30,
        topics=[
            FetchTopic(
                topic.name, partitions=[FetchPartition(0, fetch_offset=offset, partition_max_bytes=partition_max)]
            )
        ],
    )
    connection = topic.connect()

    def leader_response() -> Any:
        [result] = topic.subject.ask(connection, request, version).responses[0].partitions
        return None if result.error_code == NOT_YET_LEADER else result

    data = wait_until(topic.subject, leader_response, f"the leader of {topic.name}-0 knows that it leads")
    return data.error_code, None if data.records is None else bytes(data.records), data


def magics(data: bytes) -> set[int]:
    return {entry.header.magic for entry in entries.batches(data[: whole(data)])}


def whole(data: bytes) -> int:
    """Return how many bytes at the start of a response's records are complete messages. An incomplete message may follow.

    Raises DecodeError if the bytes after the complete messages are not the start of a message.
    """
    return entries.complete_bytes(data)


def records_of(data: bytes) -> list[Record]:
    return list(entries.entries(data[: whole(data)]))


def drained(topic: Topic, offset: int, version: int) -> list[Record]:
    """Return all records that a consumer with this Fetch version reads from `offset` on, with as many fetches as necessary."""
    result: list[Record] = []
    while True:
        error, data, _ = read(topic, offset, version)
        assert error == 0 and data is not None
        next_records = [record for record in records_of(data) if record.offset >= offset]
        if not next_records:
            return result
        result += next_records
        offset = result[-1].offset + 1


@pytest.mark.needs(at_least={"fetch.max.bytes": FETCH_MAX_BYTES})
@pytest.mark.rule("F-31", "F-34")
@pytest.mark.parametrize(("version", "magic"), OLD)
def test_fetch_versions_before_4_return_converted_messages_from_the_fetch_offset_on(
    subject: Subject, version: int, magic: int
) -> None:
    topic = new_topic(subject)
    topic.fill(numbered(0, 10), numbered(10, 15))
    for offset in (3, 15, 24):
        result = drained(topic, offset, version)
        assert [r.offset for r in result] == list(range(offset, 25))
        assert [r.key for r in result] == [b"key-%d" % i for i in range(offset, 25)]
        assert {r.timestamp - r.offset for r in result} == ({NOW_MS} if magic else {-1 - r.offset for r in result})
        _, data, _ = read(topic, offset, version)
        assert data is not None and magics(data) == {magic}
        assert records_of(data)[0].offset == offset


def cut_or_filled(converted: bytes, size: int) -> bytes:
    if len(converted) >= size:
        return converted[:size]
    gap = size - len(converted)
    return converted + struct.pack(">qi", -1, max(gap + 1, 61)).ljust(gap, b"\0")[:gap]


@pytest.mark.needs(at_least={"fetch.max.bytes": FETCH_MAX_BYTES})
@pytest.mark.rule("F-35")
@pytest.mark.parametrize("value_bytes", [0, 60, 3000])
@pytest.mark.parametrize(("version", "magic"), OLD)
def test_down_converted_records_are_padded_or_cut_to_the_unconverted_size(
    subject: Subject, version: int, magic: int, value_bytes: int
) -> None:
    topic = new_topic(subject)
    topic.fill(numbered(0, 10, value_bytes, h=True), numbered(10, 15, value_bytes), numbered(25, 1, value_bytes))
    for offset in (0, 3, 9, 10, 24, 25):
        _, raw, _ = read(topic, offset, 4)
        _, data, _ = read(topic, offset, version)
        assert raw is not None and data is not None
        first_bytes = next(entries.batches(raw)).header.size
        first = down_convert(raw[:first_bytes], magic, offset)
        expected = cut_or_filled(down_convert(raw, magic, offset), max(len(raw), len(first)))
        assert data == expected


@pytest.mark.rule("F-31")
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("version", "magic"), OLD)
def test_compressed_batch_is_down_converted_into_a_single_wrapper_message(
    subject: Subject, version: int, magic: int, codec: Compression
) -> None:
    topic = new_topic(subject)
    topic.fill(numbered(0, 10, compression=codec), numbered(10, 5, compression=codec))
    _, data, _ = read(topic, 3, version)
    assert data is not None
    headers = [entry.header for entry in entries.batches(data[: whole(data)])]
    assert [(h.magic, h.compression) for h in headers[:1]] == [(magic, codec)]
    assert [r.offset for r in records_of(data)][:10] == list(range(10))
    assert [r.key for r in drained(topic, 12, version)] == [b"key-12", b"key-13", b"key-14"]


@pytest.mark.rule("F-33")
def test_fetch_v1_and_v3_return_batches_before_a_zstd_batch_but_not_the_zstd_batch(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(numbered(0, 1, compression=Compression.GZIP), numbered(1, 2, compression=Compression.ZSTD))
    for version in (1, 3):
        error, data, _ = read(topic, 0, version)
        assert error == 0 and data is not None and [r.offset for r in records_of(data)] == [0]
        error, data, _ = read(topic, 1, version)
        assert (error, data or b"") == (76, b"")
    for version in (4, 9, 10):
        error, data, _ = read(topic, 0, version)
        assert error == 0 and data is not None and [r.offset for r in records_of(data)] == [0, 1, 2]


@pytest.mark.rule("F-33")
def test_fetch_v3_returns_one_batch_per_response_if_a_zstd_batch_follows_in_the_log(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(numbered(0, 2), numbered(2, 2), numbered(4, 2, 60, compression=Compression.ZSTD))
    error, data, _ = read(topic, 0, 3)
    assert error == 0 and data is not None
    assert [r.offset for r in records_of(data)] == [0, 1]
    error, data, _ = read(topic, 2, 3)
    assert error == 0 and data is not None and [r.offset for r in records_of(data)] == [2, 3]


@pytest.mark.rule("F-33")
def test_before_4_0_fetch_below_v10_of_zstd_topic_gets_unsupported_compression_type(subject: Subject) -> None:
    topic = new_topic(subject, compression_type="zstd")
    wait_until(subject, lambda: read(topic, 0, 10)[0] == 0, f"a Fetch v10 request for {topic.name}-0 succeeds")
    for version in (0, 3, 4, 9):
        for offset in (0, 99):  # whether or not the offset is in range
            assert read(topic, offset, version)[0] == 76
    topic.fill(numbered(0, 3))
    for version in (0, 3, 4, 9, 10):
        assert read(topic, 0, version)[0] == (76 if version < 10 else 0)
    _, _, partition_response = read(topic, 0, 9)
    assert (
        partition_response.high_watermark,
        partition_response.log_start_offset,
        partition_response.records or b"",
    ) == (-1, -1, b"")


@pytest.mark.rule("F-32")
def test_consumer_fetch_before_v4_gets_unsupported_version_if_down_conversion_is_off(subject: Subject) -> None:
    topic = new_topic(subject, replication=2, message_downconversion_enable="false")
    wait_until(subject, lambda: read(topic, 0, 4)[0] == 0, f"a Fetch v4 request for {topic.name}-0 succeeds")
    assert read(topic, 0, 1)[0] == 35  # also if there is nothing to convert
    topic.fill(numbered(0, 3))
    for version, offset, error in ((0, 0, 35), (1, 0, 35), (3, 3, 35), (3, 99, 35), (4, 0, 0), (4, 99, 1)):
        assert read(topic, offset, version)[0] == error
    [replica] = topic.followers()
    error, data, _ = read(topic, 0, 1, replica_id=replica)
    assert error == 0 and data is not None and magics(data) == {0}


@pytest.mark.rule("F-12")
@pytest.mark.parametrize("version", [0, 1, 2])
def test_fetch_before_version_3_returns_no_batch_larger_than_the_partition_limit(
    subject: Subject, version: int
) -> None:
    topic = new_topic(subject)
    topic.fill(numbered(0, 3))
    size = len(numbered(0, 3))
    for limit in (0, 1, 30, 100, size - 1):
        assert read(topic, 0, version, limit)[:2] == (0, b""), limit
    for result in (read(topic, 0, version, size), read(topic, 0, 3, 1)):
        assert result[0] == 0 and result[1] is not None and [r.offset for r in records_of(result[1])][:1] == [0]


# ---- produce -----------------------------------------------------------------------------------------------------------------


def old_records(count: int, magic: int) -> list[NewRecord]:
    return [NewRecord(b"value-%d" % i, b"k%d" % i, NOW_MS + i if magic else -1) for i in range(count)]


def sent(topic: Topic, data: bytes | None, version: int = 2) -> tuple[int, int]:
    """Send a Produce request of this version, and return (error, base offset). data: the records of the request; None sends null."""
    connection = topic.connect()
    request = produce(topic.name, data)  # type: ignore[arg-type]

    def leader_response() -> Any:
        partition_response = produced(topic.subject.ask(connection, request, version))
        return None if partition_response.error_code == NOT_YET_LEADER else partition_response

    partition_response = wait_until(topic.subject, leader_response, f"the leader of {topic.name}-0 knows that it leads")
    return partition_response.error_code, partition_response.base_offset


def log_of(topic: Topic, offset: int = 0) -> bytes:
    error, data, _ = read(topic, offset, 4)
    assert error == 0 and data is not None
    return data


@pytest.mark.rule("P-4")
@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Compression.NONE, *CODECS])
def test_messages_of_old_produce_versions_are_stored_as_one_record_batch(
    subject: Subject, version: int, magic: int, codec: Compression
) -> None:
    topic = new_topic(subject)
    messages = old_records(5, magic)
    data = build_message_set(messages, magic=magic, compression=codec)
    assert sent(topic, data, version) == (0, 0)
    assert sent(topic, data, version) == (0, 5)
    stored = log_of(topic, 5)
    [entry] = entries.batches(stored)
    assert entry.header.compression == codec
    if not codec:
        assert stored == up_convert(data, base_offset=5, leader_epoch=0)
    expected = up_convert(data, base_offset=5, leader_epoch=0)
    assert list(entries.records(entry.view)) == list(entries.records(expected))
    header, expected_header = entry.header, entries.read_header(expected)
    assert isinstance(header, BatchHeader) and isinstance(expected_header, BatchHeader)
    assert header._replace(batch_length=0, crc=0) == expected_header._replace(batch_length=0, crc=0)


@pytest.mark.rule("P-4")
@pytest.mark.parametrize("magic", [0, 1])
def test_produced_messages_of_magic_0_and_1_are_stored_with_the_topic_compression(subject: Subject, magic: int) -> None:
    topic = new_topic(subject, compression_type="gzip", message_timestamp_type="LogAppendTime")
    data = build_message_set(old_records(5, magic), magic=magic)
    partition_response = produced(subject.ask(topic.connect(), produce(topic.name, data), 2))
    assert (partition_response.error_code, partition_response.base_offset) == (
        0,
        0,
    ) and partition_response.log_append_time_ms > 0
    [entry] = entries.batches(log_of(topic))
    assert entry.header.compression == Compression.GZIP and entry.header.is_log_append_time
    assert [r.value for r in entries.records(entry.view)] == [b"value-%d" % i for i in range(5)]
    assert {r.timestamp for r in entries.records(entry.view)} == {partition_response.log_append_time_ms}


def corrupted(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def with_right_crc(message: bytes) -> bytes:
    return message[:12] + struct.pack(">I", zlib.crc32(message[16:])) + message[16:]


def message_set(magic: int, codec: Compression = Compression.NONE, count: int = 1) -> bytes:
    return build_message_set(old_records(count, magic), magic=magic, compression=codec)


WRAPPER = message_set(1, Compression.GZIP, 3)
REFUSED = {
    "two wrappers": (WRAPPER + WRAPPER, 87),
    "a message and a wrapper": (message_set(1) + WRAPPER, 87),
    "a wrapper and a message": (WRAPPER + message_set(1), 87),
    "magic 0 and 1": (message_set(0) + message_set(1), 87),
    "magic 1 and 2": (message_set(1) + batch(b"v"), 87),
    "two batches of magic 2": (batch(b"v") + batch(b"v"), 87),
    "a wrong checksum": (corrupted(message_set(1), len(message_set(1)) - 1), 2),
    "a wrong checksum in the second": (message_set(1) + corrupted(message_set(1), len(message_set(1)) - 1), 2),
    "a length that cannot be": (b"\0" * 30, 2),
    "an unknown magic": (message_set(1)[:16] + b"\x03" + message_set(1)[17:], 2),
    "an offset in magic 2": (batch(b"v", base_offset=7), 87),
}
TAKEN = {
    "nothing": (b"", -1),
    "a part of a message": (message_set(1)[:-1], -1),
    "a message and a part of one": (message_set(1) + message_set(1)[:-1], 0),
    "offsets in magic 1": (build_message_set(old_records(3, 1), magic=1, base_offset=77), 0),
    "a batch of magic 2": (batch(b"v"), 0),
}


@pytest.mark.rule("P-4")
@pytest.mark.parametrize("what", REFUSED)
def test_old_produce_versions_reject_message_sets_with_a_bad_checksum_or_mixed_magic(
    subject: Subject, what: str
) -> None:
    topic = new_topic(subject)
    data, error = REFUSED[what]
    assert sent(topic, data) == (error, -1)
    assert log_of(topic) == b""


@pytest.mark.rule("P-4")
@pytest.mark.parametrize("what", TAKEN)
def test_old_produce_versions_accept_truncated_messages_and_nonzero_base_offsets(subject: Subject, what: str) -> None:
    topic = new_topic(subject)
    data, base_offset = TAKEN[what]
    assert sent(topic, data) == (0, base_offset)
    assert (log_of(topic) == b"") == (base_offset < 0)


def repacked(inside: bytes, codec: Compression, attributes: int | None = None, cut: int = 0) -> bytes:
    value = compress(codec, inside)
    value = value[: len(value) - cut]
    body = struct.pack(">bbqii", 1, codec if attributes is None else attributes, NOW_MS, -1, len(value)) + value
    return with_right_crc(struct.pack(">qiI", 0, len(body) + 4, 0) + body)


INSIDE = {
    "a wrong checksum": (repacked(corrupted(message_set(1), len(message_set(1)) - 1), Compression.GZIP), 2),
    "a wrapper": (repacked(WRAPPER, Compression.GZIP), 87),
    "another magic": (repacked(message_set(0), Compression.GZIP), 87),
    "nothing": (repacked(b"", Compression.GZIP), 87),
    "no gzip": (repacked(b"not compressed", Compression.NONE, attributes=1), -1),
    "no snappy": (repacked(b"not compressed", Compression.NONE, attributes=2), -1),
    "no lz4": (repacked(b"not compressed", Compression.NONE, attributes=3), -1),
    "half of gzip": (repacked(message_set(1, Compression.NONE, 20), Compression.GZIP, cut=9), -1),
    "an unknown codec": (repacked(b"not compressed", Compression.NONE, attributes=5), -1),
    "a part of a message": (repacked(message_set(1)[:-1], Compression.GZIP), 87),
    "a message and a part of one": (repacked(message_set(1) + message_set(1)[:-1], Compression.GZIP), 0),
    "a cut key": (repacked(with_right_crc(message_set(1)[:28] + b"\x7f" + message_set(1)[29:]), Compression.GZIP), -1),
    "zstd": (repacked(message_set(1), Compression.ZSTD), 87),
    "wrong offsets": (repacked(message_set(1) + message_set(1), Compression.GZIP), 0),
}


@pytest.mark.rule("P-4")
@pytest.mark.parametrize("what", INSIDE)
def test_compressed_wrapper_message_with_an_invalid_inner_message_is_rejected(subject: Subject, what: str) -> None:
    topic = new_topic(subject)
    data, error = INSIDE[what]
    assert sent(topic, data)[0] == error


@pytest.mark.rule("P-4", "P-8", "P-10")
def test_magic_1_messages_too_large_too_old_or_without_a_required_key_are_rejected(subject: Subject) -> None:
    cases: Sequence[tuple[dict[str, Any], bytes, int]] = [
        ({"max_message_bytes": "60"}, build_message_set([NewRecord(b"x" * 100)], magic=1), 10),
        ({"max_message_bytes": "75"}, message_set(1) + message_set(1), 10),  # the converted batch is too large
        ({"segment_bytes": "60", "max_message_bytes": "1000"}, message_set(1) + message_set(1), 18),
        ({"cleanup_policy": "compact"}, build_message_set([NewRecord(b"v", None, NOW_MS)], magic=1), 87),
        ({"message_timestamp_before_max_ms": "1000"}, build_message_set([NewRecord(b"v", b"k", 5)], magic=1), 32),
        ({"message_timestamp_before_max_ms": "1000"}, message_set(0), 0),  # magic 0 has no timestamp
    ]
    for configs, data, error in cases:
        topic = new_topic(subject, **configs)
        assert sent(topic, data)[0] == error, configs
