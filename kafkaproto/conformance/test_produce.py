"""Produce: what may be appended, in which order it is judged, what the answer tells, when it comes."""

from __future__ import annotations

import struct
from typing import Any

import pytest

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
HOUR_MS = 3_600_000


def write(topic: Topic, data: bytes, version: int = LATEST, connection: Connection | None = None, **more: Any) -> Any:
    """The answer for one partition."""
    asked = produce(topic.name, data, **more)
    return produced(topic.subject.ask(connection or topic.connect(), asked, version))


def told(answer: Any) -> tuple[int, int, int, int]:
    """(error, base offset, log append time, log start offset)"""
    return answer.error_code, answer.base_offset, answer.log_append_time_ms, answer.log_start_offset


def end(topic: Topic) -> int:
    return int(list_offsets(topic, -1, replica_id=-2).offset)


def patched(data: bytes, at: int, layout: str, value: int, sealed: bool = True) -> bytes:
    """The batch with one field changed, and with its checksum right again."""
    made = bytearray(data)
    struct.pack_into(layout, made, at, value)
    if sealed:
        struct.pack_into(">I", made, 17, checksum.crc32c(memoryview(made)[21:]))
    return bytes(made)


def corrupt(data: bytes) -> bytes:
    """Return the batch with its last bit flipped: the checksum is wrong."""
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.rule("P-1", "P-2")
@pytest.mark.parametrize("version", range(LATEST + 1))
def test_every_version_appends_and_answers_with_its_own_fields(subject: Subject, version: int) -> None:
    """ProduceRequestTest.testSimpleProduceRequest."""
    topic = new_topic(subject)
    start = 0 if version >= 5 else -1
    assert told(write(topic, batch(b"a"), version)) == (0, 0, -1, start)
    answer = write(topic, batch(b"b", b"c", compression=Compression.GZIP), version, acks=-1)
    assert told(answer) == (0, 1, -1, start)
    assert (answer.record_errors, answer.error_message, end(topic)) == ([], None, 3)


@pytest.mark.rule("P-2", "P-12")
def test_a_log_that_sets_the_time_tells_it(subject: Subject) -> None:
    topic = new_topic(subject, message_timestamp_type="LogAppendTime")
    answer = write(topic, batch(b"a", b"b", timestamp=5))
    assert (answer.error_code, answer.base_offset) == (0, 0) and answer.log_append_time_ms > 1_600_000_000_000
    assert write(topic, batch(b"a"), 1).log_append_time_ms == -1
    header = read_header(read(topic, 0).records)
    assert header.is_log_append_time and header.max_timestamp == answer.log_append_time_ms


@pytest.mark.rule("P-1", "P-3")
def test_results_of_partitions_that_are_elsewhere_stand_beside_the_others(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [0], 1: [1], 2: [0]})
    followed = new_topic(subject, assignment={0: [1, 0]})
    data = [PartitionProduceData(index, batch(b"v")) for index in (0, 1, 7)]
    data.append(PartitionProduceData(2, corrupt(batch(b"v"))))
    asked = ProduceRequest(
        None,
        1,
        1000,
        [
            TopicProduceData(name, partition_data=part)
            for name, part in ((topic.name, data), ("no-such-topic", data[:1]), (followed.name, data[:1]))
        ],
    )
    for version in (3, 9, 10, 11):
        answer = subject.ask(subject.connect(0), asked, version)
        found = {(t.name, p.index): p for t in answer.responses for p in t.partition_responses}
        errors = {key: p.error_code for key, p in found.items()}
        by_index = {index: errors.pop((topic.name, index)) for index in (0, 1, 2, 7)}
        assert (by_index, errors) == ({0: 0, 1: 6, 2: 2, 7: 3}, {("no-such-topic", 0): 3, (followed.name, 0): 6})
        assert {told(p)[1:] for p in found.values() if p.error_code} == {(-1, -1, -1)}
        leaders = [found[key].current_leader for key in ((topic.name, 0), (topic.name, 1), (followed.name, 0))]
        told_leaders = [(leader.leader_id, leader.leader_epoch) for leader in leaders]
        where = [(one.node_id, one.host, one.port) for one in answer.node_endpoints]
        if version >= 10:
            assert (told_leaders, where) == ([(-1, -1), (1, 0), (1, 0)], [(1, *subject.bootstrap[1])])
        else:
            assert (told_leaders, where) == ([(-1, -1)] * 3, [])


@pytest.mark.rule("P-4", "X-2")
def test_a_request_carries_one_batch_of_magic_2(subject: Subject) -> None:
    topic = new_topic(subject)
    good = batch(b"v")
    zstd = batch(b"v", compression=Compression.ZSTD)
    for version, data, error in [
        (LATEST, b"", 87),
        (LATEST, good[:40], 87),
        (3, good + good, 87),
        (LATEST, good + good, 87),
        (LATEST, good[:16] + b"\x01" + good[17:], 87),
        (LATEST, good[:16] + b"\x03" + good[17:], 2),
        (LATEST, good[:8] + (13).to_bytes(4, "big") + good[12:], 2),
        (6, zstd, 76),
        (3, zstd, 76),
    ]:
        answer = write(topic, data, version)
        assert told(answer) == (error, -1, -1, -1), (version, data)
        assert bool(answer.error_message) == (error == 2 and version >= 8)
    assert end(topic) == 0
    assert told(write(topic, zstd, 7))[:2] == (0, 0)
    assert told(write(topic, good + good[:30]))[:2] == (0, 1)  # what is no whole batch is left off
    assert len(read(topic, 1).records) == len(good)


@pytest.mark.rule("P-5", "P-6")
def test_acks_that_are_none_and_topics_that_are_the_brokers_own(subject: Subject) -> None:
    topic = new_topic(subject, 2)
    for acks in (2, -2, 3, 32767):
        request = produce(topic.name, batch(b"v"), acks=acks)
        request.topic_data += produce(topic.name, batch(b"v"), 1).topic_data
        answer = subject.ask(topic.connect(), request, LATEST)
        assert [told(p) for t in answer.responses for p in t.partition_responses] == [(21, -1, -1, -1)] * 2
    assert end(topic) == 0
    internal = Topic(subject, "__consumer_offsets")
    asked = FindCoordinatorRequest(key="g", key_type=0)
    wait_until(subject, lambda: subject.ask(subject.connect(), asked, 3).error_code == 0, "the topic is there")
    assert write(internal, batch(b"v"), connection=internal.connect(), partition=0).error_code == 17


@pytest.mark.rule("P-8", "X-2")
def test_base_offset_size_and_checksum(subject: Subject) -> None:
    topic = new_topic(subject, max_message_bytes="500")
    for data, error in [
        (patched(batch(b"v"), 0, ">q", 1, sealed=False), 87),
        (batch_of_bytes(501), 10),
        (patched(batch_of_bytes(501), 0, ">q", 1, sealed=False), 87),
        (batch(b"v")[:-1] + b"\x7f", 2),
        (batch_of_bytes(501)[:-1] + b"\x7f", 10),
        (patched(batch(b"v")[:60], 8, ">i", 48, sealed=False), 2),
    ]:
        answer = write(topic, data)
        assert told(answer) == (error, -1, -1, 0 if error == 87 else -1), data
        assert (answer.error_message, answer.record_errors) == (None, [])
    assert end(topic) == 0
    assert told(write(topic, batch_of_bytes(500))) == (0, 0, -1, 0)


@pytest.mark.rule("P-8", "X-2")
@pytest.mark.parametrize("codec", list(Compression))
def test_a_flipped_bit_is_error_2_and_nothing_is_appended(subject: Subject, codec: Compression) -> None:
    """ProduceRequestTest.testCorruptLz4ProduceRequest, and every other kind."""
    topic = new_topic(subject)
    data = batch(b"a" * 200, compression=codec)
    assert told(write(topic, corrupt(data))) == (2, -1, -1, -1)
    assert end(topic) == 0
    assert told(write(topic, data)) == (0, 0, -1, 0)


@pytest.mark.rule("P-9", "X-2")
def test_what_a_header_may_not_claim(subject: Subject) -> None:
    topic = new_topic(subject)
    for data in [
        patched(batch(b"a", b"b"), 23, ">i", 5),
        patched(batch(b"a", b"b"), 57, ">i", 3),
        patched(patched(batch(b"a"), 57, ">i", 0), 23, ">i", -1),
        batch(b"a", attributes=CONTROL),
        batch(b"a", producer_id=5, producer_epoch=0, base_sequence=-1),
    ]:
        answer = write(topic, data)
        assert (told(answer), answer.error_message) == ((87, -1, -1, 0), None), data
    assert end(topic) == 0


@pytest.mark.rule("P-2", "P-10", "X-2")
def test_each_bad_record_is_told_and_all_are_refused(subject: Subject) -> None:
    """ProduceRequestTest.testProduceWithInvalidTimestamp; which errors tell the log start."""
    now = int(write(new_topic(subject, message_timestamp_type="LogAppendTime"), batch(b"v")).log_append_time_ms)
    late = new_topic(subject, message_timestamp_before_max_ms="1000", message_timestamp_after_max_ms="1000")
    old = [now - 5 * HOUR_MS] * 3
    for timestamps, indices in ((old, [0, 1, 2]), ([now, now + 5 * HOUR_MS, now], [1])):
        made = build_batch([NewRecord(b"v", None, t) for t in timestamps], compression=Compression.GZIP)
        for version in (8, LATEST):
            answer = write(late, made, version)
            assert (told(answer), [e.batch_index for e in answer.record_errors]) == ((32, -1, -1, 0), indices)
            assert answer.error_message == "One or more records have been rejected due to invalid timestamp"
        answer = write(late, made, 7)
        assert (told(answer), answer.error_message) == ((32, -1, -1, 0), None)
    assert told(write(late, batch(b"v", timestamp=-1)))[:2] == (0, 0)  # no timestamp is no wrong one
    compacted = new_topic(subject, cleanup_policy="compact")
    made = build_batch([NewRecord(b"v", key, now) for key in (b"k", None, b"k", None)])
    answer = write(compacted, made)
    assert (told(answer), [e.batch_index for e in answer.record_errors]) == ((87, -1, -1, 0), [1, 3])
    assert answer.error_message and (end(late), end(compacted)) == (1, 0)


@pytest.mark.rule("P-11")
def test_a_batch_larger_than_a_segment(subject: Subject) -> None:
    topic = new_topic(subject, segment_bytes="300")
    answer = write(topic, batch_of_bytes(301))
    assert (told(answer), end(topic)) == ((18, -1, -1, -1), 0)
    assert told(write(topic, batch_of_bytes(300)))[:2] == (0, 0)


@pytest.mark.rule("P-12")
def test_what_the_leader_writes_into_a_batch(subject: Subject) -> None:
    topic = new_topic(subject)
    data = batch(b"a", b"b")
    write(topic, data)
    write(topic, data)
    second = bytes(read(topic, 2).records)[-len(data) :]
    assert second[:8] == (2).to_bytes(8, "big") and second[8:12] == data[8:12]
    assert second[12:16] == topic.partition().leader_epoch.to_bytes(4, "big") and second[16:] == data[16:]
    packed = new_topic(subject, compression_type="gzip")
    write(packed, batch(*[b"x" * 50] * 20, producer_id=3, producer_epoch=1, base_sequence=4))
    found = bytes(read(packed, 0).records)
    header = read_header(found)
    assert (header.compression, header.record_count, header.producer_id) == (Compression.GZIP, 20, 3)
    assert [record.value for record in records(found)] == [b"x" * 50] * 20
    unpacked = new_topic(subject, compression_type="uncompressed", max_message_bytes="300")
    assert write(unpacked, batch(b"x" * 1000, compression=Compression.GZIP)).error_code == 10  # too large when unpacked
    assert write(unpacked, batch(b"x", compression=Compression.GZIP)).error_code == 0
    assert read_header(read(unpacked, 0).records).compression == Compression.NONE


@pytest.mark.rule("P-13")
def test_acks_of_all_wait_for_all_in_sync_or_for_their_time(subject: Subject) -> None:
    topic = new_topic(subject, replication=2)
    follow(topic, 1, 0)
    with held(subject, topic, 1):
        writer = topic.connect()
        subject.send(writer, produce(topic.name, batch(b"a", b"b"), acks=-1, timeout_ms=300), LATEST)
        late = subject.answer(writer)
        subject.assert_took(late, 300)
        assert told(produced(late.message)) == (7, 0, -1, 0)
        assert (end(topic), list_offsets(topic, -1).offset) == (2, 0)  # it stays in the log
        subject.send(writer, produce(topic.name, batch(b"c"), acks=-1, timeout_ms=20_000), LATEST)
        assert subject.answer_or_none(writer, 100) is None
        follow(topic, 1, 2)
        assert subject.answer_or_none(writer, 100) is None
        follow(topic, 1, 3)
        assert told(produced(subject.answer(writer, 1000).message)) == (0, 2, -1, 0)
        both = ProduceRequest(
            None, -1, 20_000, [TopicProduceData(topic.name, partition_data=[PartitionProduceData(0, b"")])]
        )
        subject.send(writer, both, LATEST)  # with nothing appended there is nothing to wait for
        answer = subject.answer(writer)
        assert produced(answer.message).error_code == 87
        subject.assert_took(answer, 0)


@pytest.mark.rule("P-14", "W-9")
def test_acks_of_none_are_never_answered_and_an_error_closes(subject: Subject) -> None:
    topic = new_topic(subject)
    writer = topic.connect()
    for _ in range(3):
        writer.send_bytes(writer.frame(produce(topic.name, batch(b"v"), acks=0), LATEST))
    asked = subject.send(writer, fetch((topic.name, 0, 0)), 11)
    answer = subject.answer(writer)
    assert (answer.correlation_id, flat(answer.message)[0][1].high_watermark) == (asked, 3)
    for name, data in (("no-such-topic", batch(b"v")), (topic.name, b""), (topic.name, batch(b"v")[:-1] + b"\x7f")):
        failing = topic.connect()
        failing.send_bytes(failing.frame(produce(name, data, acks=0), LATEST))
        assert subject.closed(failing), name
    assert end(topic) == 3


@pytest.mark.rule("P-23", "X-2")
def test_transactional_batches_without_a_transaction(subject: Subject) -> None:
    topic = new_topic(subject)
    asked = FindCoordinatorRequest(key="tx", key_type=1)
    wait_until(subject, lambda: subject.ask_once(asked, 3).error_code != 15, "there is a coordinator, or never one")
    data = batch(b"v", producer_id=5, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
    request = produce(topic.name, data)
    for version in (3, 9, 11):
        answer = produced(subject.ask(topic.connect(), request, version))
        assert told(answer) == (53, -1, -1, -1)
    request.transactional_id = "tx"
    answers = [produced(subject.ask(topic.connect(), request, version)) for version in (9, 11)]
    assert all(told(answer)[1:] == (-1, -1, -1) for answer in answers)
    assert [answer.error_code for answer in answers] == [49, 49] and end(topic) == 0
    plain = produce(topic.name, batch(b"v"))
    plain.transactional_id = "tx"
    assert told(produced(subject.ask(topic.connect(), plain, 9)))[:2] == (0, 0)  # the id alone means nothing
