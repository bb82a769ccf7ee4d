"""Tests of Produce: valid and invalid appends, the order of checks, and the fields and the time of the response."""

from __future__ import annotations

import re
import struct
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.client import Connection
from kafkaproto.conformance.scene import Topic, follow, held, list_offsets, new_topic, read, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, batch_of_bytes, fetch, flat, produce, produced
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkaproto.records import checksum
from kafkaproto.records.batch import CONTROL, TRANSACTIONAL, NewRecord, build_batch, read_header, records
from kafkaproto.records.compression import Compression

LATEST = 11
BEFORE_4 = pytest.mark.releases(before="4.0")
"""Marks a test or parameter for releases before Kafka 4, which does not serve Produce versions before 3 (KIP-896)."""
HOUR_MS = 3_600_000


def write(topic: Topic, data: bytes, version: int = LATEST, connection: Connection | None = None, **more: Any) -> Any:
    """Send a Produce request for one partition and return the partition's response.

    connection: the connection to use; None for a new one to the leader of partition 0. more: further arguments of `wire.produce`.
    """
    requested = produce(topic.name, data, **more)
    return produced(topic.subject.ask(connection or topic.connect(), requested, version))


def summary(partition_response: Any) -> tuple[int, int, int, int]:
    """Return (error code, base offset, log append time in ms, log start offset) of one partition's entry in a Produce response."""
    return (
        partition_response.error_code,
        partition_response.base_offset,
        partition_response.log_append_time_ms,
        partition_response.log_start_offset,
    )


def end(topic: Topic) -> int:
    return int(list_offsets(topic, -1, replica_id=-2).offset)


def patched(data: bytes, at: int, layout: str, value: int, sealed: bool = True) -> bytes:
    """Return a batch with one field changed: `value`, in the struct format `layout`, at byte position `at`.

    sealed: whether to update the checksum.
    """
    patched_batch = bytearray(data)
    struct.pack_into(layout, patched_batch, at, value)
    if sealed:
        struct.pack_into(">I", patched_batch, 17, checksum.crc32c(memoryview(patched_batch)[21:]))
    return bytes(patched_batch)


def corrupt(data: bytes) -> bytes:
    """Return the batch with its last bit flipped, so that the checksum is wrong."""
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.rule("P-1", "P-2")
@pytest.mark.parametrize(
    "version",
    [
        *(pytest.param(version, marks=BEFORE_4) for version in range(3)),
        *range(3, LATEST + 1),
        pytest.param(12, marks=pytest.mark.releases(first="4.0")),
    ],
)
def test_produce_appends_records_and_returns_the_fields_of_the_request_version(subject: Subject, version: int) -> None:
    """Two Produce requests append records. The responses have the base offsets and, from version 5 on, the log start offset.

    Corresponds to Kafka's test `ProduceRequestTest.testSimpleProduceRequest`.
    """
    topic = new_topic(subject)
    start = 0 if version >= 5 else -1
    assert summary(write(topic, batch(b"a"), version)) == (0, 0, -1, start)
    partition_response = write(topic, batch(b"b", b"c", compression=Compression.GZIP), version, acks=-1)
    assert summary(partition_response) == (0, 1, -1, start)
    assert (partition_response.record_errors, partition_response.error_message, end(topic)) == ([], None, 3)


@pytest.mark.rule("P-2", "P-12")
def test_produce_to_a_log_append_time_topic_returns_the_append_time(subject: Subject) -> None:
    topic = new_topic(subject, message_timestamp_type="LogAppendTime")
    partition_response = write(topic, batch(b"a", b"b", timestamp=5))
    assert (partition_response.error_code, partition_response.base_offset) == (
        0,
        0,
    ) and partition_response.log_append_time_ms > 1_600_000_000_000
    if 1 in subject.served(ApiKey.PRODUCE, (1, LATEST)):  # the field came with version 2
        assert write(topic, batch(b"a"), 1).log_append_time_ms == -1
    header = read_header(read(topic, 0).records)
    assert header.is_log_append_time and header.max_timestamp == partition_response.log_append_time_ms


@pytest.mark.rule("P-1", "P-3")
def test_produce_response_contains_the_leader_of_moved_partitions_from_v10_on(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [0], 1: [1], 2: [0]})
    followed = new_topic(subject, assignment={0: [1, 0]})
    data = [PartitionProduceData(index, batch(b"v")) for index in (0, 1, 7)]
    data.append(PartitionProduceData(2, corrupt(batch(b"v"))))
    requested = ProduceRequest(
        None,
        1,
        1000,
        [
            TopicProduceData(name, partition_data=part)
            for name, part in ((topic.name, data), ("no-such-topic", data[:1]), (followed.name, data[:1]))
        ],
    )
    for version in (3, 9, 10, 11):
        response = subject.ask(subject.connect(0), requested, version)
        result = {(t.name, p.index): p for t in response.responses for p in t.partition_responses}
        errors = {key: p.error_code for key, p in result.items()}
        by_index = {index: errors.pop((topic.name, index)) for index in (0, 1, 2, 7)}
        assert (by_index, errors) == ({0: 0, 1: 6, 2: 2, 7: 3}, {("no-such-topic", 0): 3, (followed.name, 0): 6})
        assert {summary(p)[1:] for p in result.values() if p.error_code} == {(-1, -1, -1)}
        leaders = [result[key].current_leader for key in ((topic.name, 0), (topic.name, 1), (followed.name, 0))]
        current_leaders = [(leader.leader_id, leader.leader_epoch) for leader in leaders]
        endpoints = [(node.node_id, node.host, node.port) for node in response.node_endpoints]
        if version >= 10:
            assert (current_leaders, endpoints) == ([(-1, -1), (1, 0), (1, 0)], [(1, *subject.bootstrap[1])])
        else:
            assert (current_leaders, endpoints) == ([(-1, -1)] * 3, [])


@pytest.mark.rule("P-4", "X-2")
def test_produce_accepts_exactly_one_batch_of_magic_2_per_partition(subject: Subject) -> None:
    topic = new_topic(subject)
    valid = batch(b"v")
    zstd = batch(b"v", compression=Compression.ZSTD)
    too_small = "Record size 13 is less than the minimum record overhead (14)"
    for version, data, error, text in [
        (LATEST, b"", 87, None),
        (LATEST, valid[:40], 87, None),
        (3, valid + valid, 87, None),
        (LATEST, valid + valid, 87, None),
        (LATEST, valid[:16] + b"\x01" + valid[17:], 87, None),
        (LATEST, valid[:16] + b"\x03" + valid[17:], 2, "Invalid magic found in record: 3"),
        (LATEST, valid[:16] + b"\xff" + valid[17:], 2, "Invalid magic found in record: -1"),
        (LATEST, valid[:8] + (13).to_bytes(4, "big") + valid[12:], 2, too_small),
        (7, valid[:8] + (13).to_bytes(4, "big") + valid[12:], 2, too_small),
        (6, zstd, 76, None),
        (3, zstd, 76, None),
    ]:
        partition_response = write(topic, data, version)
        assert summary(partition_response) == (error, -1, -1, -1), (version, data)
        assert partition_response.error_message == (text if version >= 8 else None)
    assert end(topic) == 0
    assert summary(write(topic, zstd, 7))[:2] == (0, 0)
    assert summary(write(topic, valid + valid[:30]))[:2] == (0, 1)  # an incomplete batch at the end is ignored
    assert len(read(topic, 1).records) == len(valid)


@pytest.mark.needs(offsets_topic=True)
@pytest.mark.rule("P-5", "P-6")
def test_produce_rejects_internal_topics_and_invalid_acks(subject: Subject) -> None:
    topic = new_topic(subject, 2)
    for acks in (2, -2, 3, 32767):
        request = produce(topic.name, batch(b"v"), acks=acks)
        request.topic_data += produce(topic.name, batch(b"v"), 1).topic_data
        response = subject.ask(topic.connect(), request, LATEST)
        assert [summary(p) for t in response.responses for p in t.partition_responses] == [(21, -1, -1, -1)] * 2
    assert end(topic) == 0
    internal = Topic(subject, "__consumer_offsets")
    requested = FindCoordinatorRequest(key="g", key_type=0)
    wait_until(
        subject,
        lambda: subject.ask(subject.connect(), requested, 3).error_code == 0,
        "FindCoordinator returns the coordinator of group g",
    )
    assert write(internal, batch(b"v"), connection=internal.connect(), partition=0).error_code == 17


@pytest.mark.rule("P-8", "X-2")
def test_produce_rejects_batches_with_a_wrong_base_offset_or_size_or_checksum(subject: Subject) -> None:
    topic = new_topic(subject, max_message_bytes="500")
    for data, error in [
        (patched(batch(b"v"), 0, ">q", 1, sealed=False), 87),
        (batch_of_bytes(501), 10),
        (patched(batch_of_bytes(501), 0, ">q", 1, sealed=False), 87),
        (batch(b"v")[:-1] + b"\x7f", 2),
        (batch_of_bytes(501)[:-1] + b"\x7f", 10),
        (patched(batch(b"v")[:60], 8, ">i", 48, sealed=False), 2),
    ]:
        partition_response = write(topic, data)
        assert summary(partition_response) == (error, -1, -1, 0 if error == 87 else -1), data
        assert (partition_response.error_message, partition_response.record_errors) == (None, [])
    assert end(topic) == 0
    assert summary(write(topic, batch_of_bytes(500))) == (0, 0, -1, 0)


@pytest.mark.rule("P-8", "X-2")
@pytest.mark.parametrize("codec", list(Compression))
def test_produce_of_a_corrupt_batch_is_rejected_and_appends_nothing(subject: Subject, codec: Compression) -> None:
    """A batch with a wrong checksum gets CORRUPT_MESSAGE (2), with every compression.

    Corresponds to Kafka's test `ProduceRequestTest.testCorruptLz4ProduceRequest`.
    """
    topic = new_topic(subject)
    data = batch(b"a" * 200, compression=codec)
    assert summary(write(topic, corrupt(data))) == (2, -1, -1, -1)
    assert end(topic) == 0
    assert summary(write(topic, data)) == (0, 0, -1, 0)


@pytest.mark.rule("P-9", "X-2")
def test_produce_rejects_batches_whose_headers_contain_invalid_counts(subject: Subject) -> None:
    topic = new_topic(subject)
    for data in [
        patched(batch(b"a", b"b"), 23, ">i", 5),
        patched(batch(b"a", b"b"), 57, ">i", 3),
        patched(patched(batch(b"a"), 57, ">i", 0), 23, ">i", -1),
        batch(b"a", attributes=CONTROL),
        batch(b"a", producer_id=5, producer_epoch=0, base_sequence=-1),
    ]:
        partition_response = write(topic, data)
        assert (summary(partition_response), partition_response.error_message) == ((87, -1, -1, 0), None), data
    assert end(topic) == 0


@pytest.mark.rule("P-2", "P-10", "X-2")
def test_produce_with_invalid_records_returns_their_indexes_and_stores_no_record(subject: Subject) -> None:
    """Records with invalid timestamps, and records without a key in a compacted topic, are listed by their index in the batch.

    Also checks which errors include the log start offset. Corresponds to Kafka's test `ProduceRequestTest.testProduceWithInvalidTimestamp`.
    """
    now = int(write(new_topic(subject, message_timestamp_type="LogAppendTime"), batch(b"v")).log_append_time_ms)
    late = new_topic(subject, message_timestamp_before_max_ms="1000", message_timestamp_after_max_ms="1000")
    old_timestamps = [now - 5 * HOUR_MS] * 3
    for timestamps, indices in ((old_timestamps, [0, 1, 2]), ([now, now + 5 * HOUR_MS, now], [1])):
        new_batch = build_batch([NewRecord(b"v", None, t) for t in timestamps], compression=Compression.GZIP)
        for version in (8, LATEST):
            partition_response = write(late, new_batch, version)
            assert (summary(partition_response), [e.batch_index for e in partition_response.record_errors]) == (
                (32, -1, -1, 0),
                indices,
            )
            assert partition_response.error_message == "One or more records have been rejected due to invalid timestamp"
            [first, *_] = partition_response.record_errors
            assert re.fullmatch(
                rf"Timestamp {timestamps[first.batch_index]} of message with offset {first.batch_index} is out of range. "
                r"The timestamp should be within \[\d{13}, \d{13}\]",
                first.batch_index_error_message,
            )
        partition_response = write(late, new_batch, 7)
        assert (summary(partition_response), partition_response.error_message) == ((32, -1, -1, 0), None)
    assert summary(write(late, batch(b"v", timestamp=-1)))[:2] == (0, 0)  # a missing timestamp is not checked
    compacted = new_topic(subject, cleanup_policy="compact")
    new_batch = build_batch([NewRecord(b"v", key, now) for key in (b"k", None, b"k", None)])
    partition_response = write(compacted, new_batch)
    assert (summary(partition_response), [e.batch_index for e in partition_response.record_errors]) == (
        (87, -1, -1, 0),
        [1, 3],
    )
    no_key = f"Compacted topic cannot accept message without key in topic partition {compacted.name}-0"
    assert [e.batch_index_error_message for e in partition_response.record_errors] == [no_key] * 2
    assert partition_response.error_message == (
        "One or more records have been rejected due to 2 record errors in total, and only showing the first three errors at most: "
        f"[RecordError(batchIndex=1, message='{no_key}'), RecordError(batchIndex=3, message='{no_key}')]"
    )
    assert (end(late), end(compacted)) == (1, 0)


@pytest.mark.rule("P-11")
def test_produce_of_a_batch_larger_than_segment_bytes_gets_record_list_too_large(subject: Subject) -> None:
    topic = new_topic(subject, segment_bytes="300")
    partition_response = write(topic, batch_of_bytes(301))
    assert (summary(partition_response), end(topic)) == ((18, -1, -1, -1), 0)
    assert summary(write(topic, batch_of_bytes(300)))[:2] == (0, 0)


@pytest.mark.rule("P-12")
def test_leader_stores_a_batch_with_the_assigned_offset_and_the_topic_compression(subject: Subject) -> None:
    topic = new_topic(subject)
    data = batch(b"a", b"b")
    write(topic, data)
    write(topic, data)
    second = bytes(read(topic, 2).records)[-len(data) :]
    assert second[:8] == (2).to_bytes(8, "big") and second[8:12] == data[8:12]
    assert second[12:16] == topic.leader_epoch.to_bytes(4, "big") and second[16:] == data[16:]
    packed = new_topic(subject, compression_type="gzip")
    write(packed, batch(*[b"x" * 50] * 20, producer_id=3, producer_epoch=1, base_sequence=4))
    result = bytes(read(packed, 0).records)
    header = read_header(result)
    assert (header.compression, header.record_count, header.producer_id) == (Compression.GZIP, 20, 3)
    assert [record.value for record in records(result)] == [b"x" * 50] * 20
    unpacked = new_topic(subject, compression_type="uncompressed", max_message_bytes="300")
    assert (
        write(unpacked, batch(b"x" * 1000, compression=Compression.GZIP)).error_code == 10
    )  # too large after decompression
    assert write(unpacked, batch(b"x", compression=Compression.GZIP)).error_code == 0
    assert read_header(read(unpacked, 0).records).compression == Compression.NONE


@pytest.mark.rule("P-12")
@pytest.mark.parametrize(("codec", "low", "high"), [("gzip", "1", "9"), ("lz4", "9", "17"), ("zstd", "-50", "19")])
def test_recompressed_batch_is_smaller_at_a_higher_topic_compression_level(
    subject: Subject, codec: str, low: str, high: str
) -> None:
    texts = [f"{number * number % 977} of {number % 31} words are {number:b}".encode() for number in range(2000)]
    sizes = []
    for level in (low, high):
        settings: dict[str, Any] = {"compression_type": codec, f"compression_{codec}_level": level}
        topic = new_topic(subject, **settings)
        assert write(topic, batch(*texts)).error_code == 0
        result = bytes(read(topic, 0).records)
        assert [record.value for record in records(result)] == texts
        sizes.append(len(result))
    assert sizes[1] < sizes[0]


@pytest.mark.rule("P-13")
def test_acks_all_produce_waits_for_the_in_sync_replicas_or_its_timeout(subject: Subject) -> None:
    topic = new_topic(subject, replication=2)
    follow(topic, 1, 0)
    with held(subject, topic, 1):
        writer = topic.connect()
        subject.send(writer, produce(topic.name, batch(b"a", b"b"), acks=-1, timeout_ms=300), LATEST)
        late = subject.answer(writer)
        subject.assert_took(late, 300)
        assert summary(produced(late.message)) == (7, 0, -1, 0)
        assert (end(topic), list_offsets(topic, -1).offset) == (2, 0)  # the batch stays in the log
        subject.send(writer, produce(topic.name, batch(b"c"), acks=-1, timeout_ms=20_000), LATEST)
        assert subject.answer_or_none(writer, 100) is None
        follow(topic, 1, 2)
        assert subject.answer_or_none(writer, 100) is None
        follow(topic, 1, 3)
        assert summary(produced(subject.answer(writer, 1000).message)) == (0, 2, -1, 0)
        both = ProduceRequest(
            None, -1, 20_000, [TopicProduceData(topic.name, partition_data=[PartitionProduceData(0, b"")])]
        )
        subject.send(writer, both, LATEST)  # nothing is appended, so the response does not wait
        response = subject.answer(writer)
        assert produced(response.message).error_code == 87
        subject.assert_took(response, 0)


@pytest.mark.rule("P-14", "W-9")
def test_acks_0_produce_gets_no_response_and_an_error_closes_its_connection(subject: Subject) -> None:
    topic = new_topic(subject)
    writer = topic.connect()
    for _ in range(3):
        writer.send_bytes(writer.frame(produce(topic.name, batch(b"v"), acks=0), LATEST))
    requested = subject.send(writer, fetch((topic.name, 0, 0)), 11)
    response = subject.answer(writer)
    assert (response.correlation_id, flat(response.message)[0][1].high_watermark) == (requested, 3)
    for name, data in (("no-such-topic", batch(b"v")), (topic.name, b""), (topic.name, batch(b"v")[:-1] + b"\x7f")):
        failing = topic.connect()
        failing.send_bytes(failing.frame(produce(name, data, acks=0), LATEST))
        assert subject.closed(failing), name
    assert end(topic) == 3


@pytest.mark.rule("P-23", "X-2")
def test_transactional_batch_of_a_producer_that_began_no_transaction_is_rejected(subject: Subject) -> None:
    topic = new_topic(subject, 2)
    requested = FindCoordinatorRequest(key="tx", key_type=1)
    wait_until(
        subject,
        lambda: subject.ask_once(requested, 3).error_code != 15,
        "FindCoordinator stops returning COORDINATOR_NOT_AVAILABLE (15) for transactional id tx",
    )
    data = batch(b"v", producer_id=5, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
    request = produce(topic.name, data)
    for version in (3, 9, 11):
        partition_response = produced(subject.ask(topic.connect(), request, version))
        assert (summary(partition_response), partition_response.error_message) == ((53, -1, -1, -1), None)
    request.transactional_id = "tx"
    # A new topic of transactions has no leader for a moment, which is NOT_ENOUGH_REPLICAS (19) for a batch that the broker has to verify.
    verified = (
        f"the leader of {topic.name}-0 can verify whether the batch belongs to a transaction of transactional id tx"
    )
    wait_until(subject, lambda: produced(subject.ask(topic.connect(), request, 11)).error_code != 19, verified)
    partition_responses = [produced(subject.ask(topic.connect(), request, version)) for version in (9, 11)]
    assert all(summary(partition_response)[1:] == (-1, -1, -1) for partition_response in partition_responses)
    assert [partition_response.error_code for partition_response in partition_responses] == [49, 49] and end(topic) == 0
    request.topic_data[0].partition_data.append(
        PartitionProduceData(1, batch(b"v", producer_id=6, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL))
    )
    [both] = subject.ask(topic.connect(), request, 11).responses
    several = "Transactional records contained more than one producer ID"
    assert [(p.error_code, p.error_message) for p in both.partition_responses] == [(49, several)] * 2
    plain = produce(topic.name, batch(b"v"))
    plain.transactional_id = "tx"
    assert summary(produced(subject.ask(topic.connect(), plain, 9)))[:2] == (0, 0)  # the id alone has no effect
