"""Tests of the size limits of Fetch (KIP-74): how many bytes are returned, of which partitions, in which order."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kafkaproto.conformance.needs import FETCH_MAX_BYTES, SESSION_SLOTS
from kafkaproto.conformance.scene import new_topic, read
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, batch_of_bytes, errors, fetch, flat, sizes
from kafkaproto.records.batch import BatchHeader, batches
from kafkaproto.records.compression import Compression


@pytest.mark.rule("F-6", "F-7", "F-8", "F-11")
def test_fetch_reads_partitions_in_request_order_until_max_bytes_is_used_up(subject: Subject) -> None:
    topics = [new_topic(subject, 6) for _ in range(5)]
    for topic in topics:
        for index in range(6):
            topic.fill(*[batch(b"small")] * 9, index=index)
    requested = [(topic.name, index, 0) for topic in topics for index in range(6)]
    response = subject.ask(
        topics[0].connect(), fetch(*requested, partition_max=190, max_bytes=800, min_bytes=0, max_wait_ms=2**31 - 1), 11
    )
    assert [(name, data.partition_index, 0) for name, data in flat(response)] == requested
    assert sizes(response) == [190] * 4 + [0] * 26
    assert set(errors(response)) == {0} and all(data.high_watermark == 9 for _, data in flat(response))


@pytest.mark.rule("F-7", "F-10")
def test_first_batch_is_returned_complete_even_if_larger_than_every_limit(subject: Subject) -> None:
    topic = new_topic(subject, 2)
    topic.fill(batch_of_bytes(770))
    topic.fill(batch_of_bytes(770), index=1)
    connection = topic.connect()
    both = (topic.name, 0, 0), (topic.name, 1, 0)
    assert sizes(subject.ask(connection, fetch(*both, partition_max=190, max_bytes=300), 11)) == [770, 0]
    assert sizes(subject.ask(connection, fetch(*both, partition_max=0, max_bytes=0), 4)) == [770, 0]


@pytest.mark.rule("F-7", "F-8")
def test_fetch_returns_an_oversized_first_batch_after_empty_or_invalid_partitions(subject: Subject) -> None:
    topic = new_topic(subject, 3)
    topic.fill(batch_of_bytes(5000), index=1)
    topic.fill(batch_of_bytes(5000), index=2)
    requested = ("no-such-topic", 0, 0), (topic.name, 0, 0), (topic.name, 1, 0), (topic.name, 2, 0)
    response = subject.ask(topic.connect(), fetch(*requested, partition_max=100, max_bytes=100), 11)
    assert list(zip(errors(response), sizes(response), strict=True)) == [(0, 0), (0, 5000), (0, 0), (3, 0)]
    out_of_range = (topic.name, 0, 7), (topic.name, 1, 0), (topic.name, 2, 0)
    response = subject.ask(topic.connect(), fetch(*out_of_range, max_bytes=100), 11)
    assert (errors(response), sizes(response)) == ([1, 0, 0], [0, 5000, 0])


@pytest.mark.needs(at_least={"fetch.max.bytes": FETCH_MAX_BYTES})
@pytest.mark.rule("F-28", "F-30")
def test_fetch_that_cannot_reach_min_bytes_waits_its_max_wait(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(batch_of_bytes(5000))
    connection = topic.connect()
    subject.send(connection, fetch((topic.name, 0, 0), partition_max=1000, min_bytes=10_000, max_wait_ms=700), 11)
    response = subject.answer(connection)
    subject.assert_took(response, 700)
    assert sizes(response.message) == [5000]
    subject.send(connection, fetch((topic.name, 0, 1), min_bytes=0, max_wait_ms=700), 11)
    subject.assert_took(subject.answer(connection), 0)


@pytest.mark.releases(before="4.0")
@pytest.mark.rule("F-2", "F-12")
def test_fetch_v2_omits_a_first_batch_above_partition_max_bytes_and_v3_returns_it(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(batch_of_bytes(200))
    partition = read(topic, 0, 2, partition_max=50)
    assert (partition.error_code, len(partition.records)) == (0, 0)
    for version in (4, 11, 17):
        assert len(read(topic, 0, version, partition_max=50).records) == 200


@pytest.mark.needs(at_least={"max.incremental.fetch.session.cache.slots": SESSION_SLOTS})
@pytest.mark.rule("F-1")
@pytest.mark.parametrize(
    "version", [*range(4, 18), pytest.param(18, marks=pytest.mark.releases(first="4.2"), id="18-since_kafka_4_2")]
)
def test_fetch_returns_records_and_the_response_fields_of_the_request_version(subject: Subject, version: int) -> None:
    topic = new_topic(subject)
    data = batch(b"a", b"b")
    topic.fill(data)
    requested = fetch((topic.name, 0, 1), version=version, topic_ids={topic.name: topic.topic_id}, isolation=1)
    response = subject.ask(topic.connect(), requested, version)
    [entry] = response.responses
    [result] = entry.partitions
    assert (entry.topic, entry.topic_id) == ((topic.name, bytes(16)) if version < 13 else ("", topic.topic_id))
    assert (response.throttle_time_ms, response.error_code, response.session_id) == (0, 0, 0)
    assert (result.error_code, result.high_watermark, result.last_stable_offset) == (0, 2, 2)
    assert result.log_start_offset == (0 if version >= 5 else -1)
    assert (result.preferred_read_replica, result.aborted_transactions) == (-1, [])
    assert bytes(result.records)[16:] == data[16:] and bytes(result.records)[:8] == bytes(8)
    assert response.node_endpoints == []
    requested.session_epoch = 0 if version >= 7 else -1
    assert (subject.ask(topic.connect(), requested, version).session_id != 0) is (version >= 7)


@pytest.mark.rule("F-6")
def test_fetch_with_a_repeated_partition_uses_only_the_last_offset_of_that_partition(subject: Subject) -> None:
    topic = new_topic(subject, 2)
    for index in (0, 1):
        topic.fill(batch_of_bytes(100), batch_of_bytes(120), index=index)
    requested = (topic.name, 0, 0), (topic.name, 1, 0), (topic.name, 0, 1)
    response = subject.ask(topic.connect(), fetch(*requested), 11)
    assert [(data.partition_index, len(data.records)) for _, data in flat(response)] == [(0, 120), (1, 220)]


@pytest.mark.rule("F-8", "F-10")
def test_fetch_skips_a_partition_whose_batch_exceeds_what_is_left_of_max_bytes(subject: Subject) -> None:
    topic = new_topic(subject, 3)
    for index, size in enumerate((100, 770, 88)):
        topic.fill(batch_of_bytes(size), index=index)
    requested = [(topic.name, index, 0) for index in range(3)]
    response = subject.ask(topic.connect(), fetch(*requested, max_bytes=300), 11)
    assert (errors(response), sizes(response)) == ([0, 0, 0], [100, 0, 88])


@pytest.mark.rule("F-9")
def test_fetch_returns_the_log_from_the_batch_that_contains_the_fetch_offset(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(batch(*[b"v"] * 10), batch(*[b"v"] * 15))
    whole = bytes(read(topic, 0).records)
    second = whole.index(b"\0\0\0\0\0\0\0\x0a")
    for offset in (0, 3, 9):
        assert bytes(read(topic, offset, 4).records) == whole
    for offset in (10, 15, 24):
        assert bytes(read(topic, offset, 4).records) == whole[second:]
    assert (
        bytes(read(topic, 3, partition_max=second + 20).records) == whole[: second + 20]
    )  # the last batch is incomplete


@pytest.mark.rule("F-13")
def test_fetch_with_partition_max_bytes_zero_gets_a_batch_but_minus_1_gets_an_error(subject: Subject) -> None:
    topic = new_topic(subject, 2)
    topic.fill(batch_of_bytes(100), batch_of_bytes(100))
    topic.fill(batch_of_bytes(100), index=1)
    both = (topic.name, 0, 0), (topic.name, 1, 0)
    assert sizes(subject.ask(topic.connect(), fetch(*both, partition_max=0), 11)) == [100, 0]
    requested = fetch(*both)
    requested.topics[0].partitions[0].partition_max_bytes = -1
    response = subject.ask(topic.connect(), requested, 11)
    assert [(data.error_code, data.high_watermark) for _, data in flat(response)] == [(-1, -1), (0, 1)]
    assert read(topic, 2, partition_max=-1).error_code == 0  # nothing to read


@pytest.mark.rule("F-14")
@pytest.mark.parametrize("segment_bytes", [300, 350])
def test_fetch_returns_records_of_a_partition_only_up_to_a_segment_boundary(
    subject: Subject, segment_bytes: int
) -> None:
    topic = new_topic(subject, segment_bytes=str(segment_bytes))
    topic.fill(*[batch_of_bytes(100)] * 7)
    assert [len(read(topic, offset).records) for offset in range(7)] == [300, 200, 100, 300, 200, 100, 100]


@pytest.mark.needs(at_least={"fetch.max.bytes": FETCH_MAX_BYTES})
@pytest.mark.rule("X-3", "X-4", "F-6", "F-7", "F-8", "F-9", "F-10", "F-15")
def test_sizes_of_300_random_fetches_equal_sizes_computed_from_limits_and_batches(subject: Subject) -> None:
    """The test sends 300 fetches with random limits, offsets and orders of partitions.

    It computes the expected size of each response from these values and from the sizes of the batches.
    """
    random = Random(74)
    topic = new_topic(subject, 4)
    logs = [[random.randrange(70, 400) for _ in range(random.randrange(6))] for _ in range(4)]
    for index, log in enumerate(logs):
        topic.fill(*map(batch_of_bytes, log), index=index)
    connection = topic.connect()
    for _ in range(300):
        order = random.sample(range(4), random.randrange(1, 5))
        requested = [(topic.name, index, random.randrange(len(logs[index]) + 1)) for index in order]
        partition_max, max_bytes = random.randrange(0, 900), random.randrange(0, 1500)
        response = subject.ask(connection, fetch(*requested, partition_max=partition_max, max_bytes=max_bytes), 11)
        remaining, privileged, expected = max_bytes, True, []
        for _, index, offset in requested:
            batch_sizes = logs[index][offset:]
            limit = min(partition_max, remaining)
            if batch_sizes and privileged:
                limit = max(limit, batch_sizes[0])
            expected.append(min(limit, sum(batch_sizes)) if batch_sizes and limit >= batch_sizes[0] else 0)
            privileged = privileged and not expected[-1]
            remaining = max(0, remaining - expected[-1])
        assert sizes(response) == expected, (requested, partition_max, max_bytes, logs)
        assert [data.partition_index for _, data in flat(response)] == order


# ---- whole batches -----------------------------------------------------------------------------------------------------------


@pytest.mark.needs(at_least={"fetch.max.bytes": FETCH_MAX_BYTES})
@pytest.mark.rule("F-34")
def test_fetch_version_4_returns_whole_record_batches_without_down_conversion(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(batch(*[b"v"] * 10), batch(*[b"v"] * 15))
    for offset, bases in ((3, [0, 10]), (15, [10]), (10, [10])):
        assert [header.base_offset for header in headers(read(topic, offset, 4))] == bases


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("F-33")
def test_fetch_versions_below_10_also_get_records_of_a_zstd_topic_from_4_0_on(subject: Subject) -> None:
    topic = new_topic(subject, compression_type="zstd")
    topic.fill(batch(b"a", b"b"))
    for version in (4, 9, 10):
        response = read(topic, 0, version)
        assert (response.error_code, response.high_watermark) == (0, 2)
        assert [header.compression for header in headers(response)] == [Compression.ZSTD]
        assert read(topic, 9, version).error_code == 1


def headers(response: Any) -> list[BatchHeader]:
    """Return the headers of the batches in one partition's entry of a Fetch response."""
    return [header for entry in batches(response.records) if isinstance(header := entry.header, BatchHeader)]
