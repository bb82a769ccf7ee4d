"""Tests of ListOffsets: log ends, timestamps, which brokers respond to which clients, and what each version supports."""

from __future__ import annotations

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.scene import Topic, follow, held, list_offsets, make_lead, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch
from kafkaproto.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.records.compression import Compression

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


def stamped(*timestamps: int, **options: Compression) -> bytes:
    return build_batch([NewRecord(b"v", None, timestamp) for timestamp in timestamps], **options)  # type: ignore[arg-type]


def summary(result: object) -> tuple[int, int, int, int]:
    """Return (error code, offset, timestamp in ms, leader epoch) of one partition's entry in a ListOffsets response."""
    return result.error_code, result.offset, result.timestamp, result.leader_epoch  # type: ignore[attr-defined]


@pytest.mark.rule("L-1", "L-2", "L-5", "L-9")
def test_list_offsets_supports_special_timestamps_only_in_versions_that_define_them(subject: Subject) -> None:
    """For special timestamps, such as the earliest, and for ordinary timestamps, the response has the expected offset, timestamp and leader epoch.

    A version that does not know a special timestamp returns an error. Corresponds to Kafka's test
    `ListOffsetsRequestTest.testResponseDefaultOffsetAndLeaderEpochForAllVersions`.
    """
    topic = new_topic(subject, replication=2)
    topic.fill(stamped(*range(100, 110)))
    old_epoch, new_epoch = topic.leader_epoch, make_lead(topic, 1)
    wait_until(
        subject,
        lambda: list_offsets(topic, LATEST).error_code == 0,
        f"the new leader of {topic.name}-0 knows the high watermark",
    )
    first_version = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, PENDING_UPLOAD: 11}
    first_version[-99] = 99
    expected = {
        LATEST: (10, -1, new_epoch),
        EARLIEST: (0, -1, old_epoch),
        MAX_TIMESTAMP: (9, 109, old_epoch),
        EARLIEST_LOCAL: (0, -1, old_epoch),
        LATEST_TIERED: (-1, -1, -1),
        PENDING_UPLOAD: (-1, -1, -1),
        104: (4, 104, old_epoch),
        200: (-1, -1, -1),
    }
    for version in range(1, subject.offered()[ApiKey.LIST_OFFSETS][1] + 1):
        for timestamp in (*first_version, 104, 200):
            result = list_offsets(topic, timestamp, version)
            if first_version.get(timestamp, 1) > version:
                assert summary(result) == (35, -1, -1, -1), (version, timestamp)
            else:
                offset, time, epoch = expected[timestamp]
                assert summary(result) == (0, offset, time, epoch if version >= 4 else -1), (version, timestamp)


@pytest.mark.releases(before="4.0")
@pytest.mark.rule("L-1", "L-2")
def test_list_offsets_v0_returns_log_end_and_segment_start_offsets(subject: Subject) -> None:
    topic = new_topic(subject, segment_bytes="200")
    assert list_offsets(topic, LATEST, 0).old_style_offsets == [0]
    topic.fill(*[stamped(5)] * 5)
    latest = list_offsets(topic, LATEST, 0)
    assert (latest.error_code, latest.old_style_offsets) == (0, [5, 4, 2, 0])
    assert list_offsets(topic, EARLIEST, 0).old_style_offsets == [0]
    assert list_offsets(topic, -3, 0).error_code == 35
    for count, offsets in ((0, []), (1, [5]), (2, [5, 4])):
        expected = [ListOffsetsTopic(topic.name, [ListOffsetsPartition(0, -1, LATEST, count)])]
        response = subject.ask(topic.connect(), ListOffsetsRequest(-1, 0, expected), 0)
        assert response.topics[0].partitions[0].old_style_offsets == offsets


@pytest.mark.releases(before="4.0")
@pytest.mark.rule("L-2")
def test_list_offsets_v0_returns_nothing_for_time_0_and_log_end_for_a_future_time(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(stamped(5))
    assert list_offsets(topic, 0, 0).old_style_offsets == []
    assert list_offsets(topic, 2**62, 0).old_style_offsets[:1] == [1]


@pytest.mark.rule("L-3", "L-10")
def test_list_offsets_returns_an_error_code_for_each_duplicate_or_unknown_partition(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [0], 1: [1]})
    partitions = [ListOffsetsPartition(index, -1, LATEST) for index in (0, 1, 9)]
    expected = [ListOffsetsTopic(topic.name, partitions), ListOffsetsTopic("no-such-topic", [partitions[0]])]
    response = subject.ask(subject.connect(0), ListOffsetsRequest(-1, 0, expected), 5)
    result = {(t.name, p.partition_index): summary(p) for t in response.topics for p in t.partitions}
    assert result == {
        (topic.name, 0): (0, 0, -1, 0),
        (topic.name, 1): (6, -1, -1, -1),
        (topic.name, 9): (3, -1, -1, -1),
        ("no-such-topic", 0): (3, -1, -1, -1),
    }
    twice = [ListOffsetsTopic(topic.name, [partitions[0]]), ListOffsetsTopic(topic.name, [partitions[0]])]
    in_one_entry = [ListOffsetsTopic(topic.name, [partitions[0], partitions[0]])]
    for topics in (twice, in_one_entry):
        response = subject.ask(subject.connect(0), ListOffsetsRequest(-1, 0, topics), 5)
        assert {summary(p) for t in response.topics for p in t.partitions} == {(42, -1, -1, -1)}


@pytest.mark.releases(before="4.0")
@pytest.mark.rule("L-3", "L-10")
def test_list_offsets_v0_returns_a_result_for_each_repetition_of_a_partition(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(batch(b"a"))
    latest, earliest = (ListOffsetsPartition(0, -1, timestamp, 1) for timestamp in (LATEST, EARLIEST))
    requested = [ListOffsetsTopic(topic.name, [latest, earliest]), ListOffsetsTopic(topic.name, [latest])]
    response = subject.ask(topic.connect(), ListOffsetsRequest(-1, 0, requested), 0)
    results = [[(p.error_code, p.old_style_offsets) for p in t.partitions] for t in response.topics]
    assert results == [[(0, [1]), (0, [0])], [(0, [1])]]


def entries_of(subject: Subject, *named: tuple[Topic, int]) -> list[tuple[str, list[int]]]:
    """Request the end offsets of partitions, each in a topic entry of its own. Returns (topic name, partitions) of each entry in the response.

    named: (topic, partition) of each entry in the request.
    """
    topics = [ListOffsetsTopic(topic.name, [ListOffsetsPartition(index, -1, LATEST)]) for topic, index in named]
    response = subject.ask(subject.connect(0), ListOffsetsRequest(-1, 0, topics), 5)
    return [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics]


@pytest.mark.releases(before="4.0")
@pytest.mark.rule("L-10")
def test_list_offsets_response_repeats_duplicate_topics_of_the_request_before_4_0(subject: Subject) -> None:
    a, b = new_topic(subject, 2), new_topic(subject)
    assert entries_of(subject, (a, 0), (b, 0), (a, 1)) == [(a.name, [0]), (b.name, [0]), (a.name, [1])]
    assert entries_of(subject, (b, 0), (a, 0), (b, 0)) == [(b.name, [0]), (a.name, [0]), (b.name, [0])]


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("L-10")
def test_list_offsets_merges_repeated_topics_of_a_request_from_release_4_0_on(subject: Subject) -> None:
    """The request has two entries for one topic, the response has one. The test ignores the order of the topics, which a hash table determines."""
    a, b = new_topic(subject, 2), new_topic(subject)
    assert sorted((name, sorted(i)) for name, i in entries_of(subject, (a, 0), (b, 0), (a, 1))) == [
        (a.name, [0, 1]),
        (b.name, [0]),
    ]
    assert sorted(entries_of(subject, (b, 0), (a, 0), (b, 0))) == [(a.name, [0]), (b.name, [0])]


def entries_without_partitions(subject: Subject) -> list[tuple[str, int]]:
    """Send ListOffsets for two topics without partitions (an existing and an unknown topic), and for one partition of a third topic.

    Returns (label, number of partitions) of each topic in the response. The labels of the three topics are "existing", "unknown" and "other".
    """
    existing, other, unknown = new_topic(subject), new_topic(subject), subject.new_name("unknown")
    labels = {existing.name: "existing", unknown: "unknown", other.name: "other"}
    topics = [ListOffsetsTopic(name, []) for name in (existing.name, unknown)]
    topics.append(ListOffsetsTopic(other.name, [ListOffsetsPartition(0, -1, LATEST)]))
    response = subject.ask(subject.connect(0), ListOffsetsRequest(-1, 0, topics), 5)
    return [(labels[t.name], len(t.partitions)) for t in response.topics]


@pytest.mark.releases(before="4.0")
@pytest.mark.rule("L-12")
def test_list_offsets_response_includes_topics_without_partitions_before_4_0(subject: Subject) -> None:
    assert entries_without_partitions(subject) == [("existing", 0), ("unknown", 0), ("other", 1)]


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("L-12")
def test_list_offsets_response_omits_topics_without_partitions_from_4_0_on(subject: Subject) -> None:
    assert entries_without_partitions(subject) == [("other", 1)]


@pytest.mark.rule("L-4")
def test_list_offsets_of_a_consumer_fails_at_followers_and_with_a_wrong_leader_epoch(subject: Subject) -> None:
    """Only the leader serves consumers and followers; other brokers return NOT_LEADER_OR_FOLLOWER (6). A wrong epoch gets an error.

    Every replica serves requests with replica id -2, which debugging tools send.
    Corresponds to Kafka's tests `ListOffsetsRequestTest.testListOffsetsErrorCodes`, `testCurrentEpochValidation`.
    """
    topic = new_topic(subject, replication=2)
    epoch = make_lead(topic, 1)
    topic.fill(batch(b"a"))
    for replica_id, expected in ((-1, [6, 0, 6]), (0, [6, 0, 6]), (-2, [0, 0, 6])):
        assert [
            list_offsets(topic, EARLIEST, broker_id=b, replica_id=replica_id).error_code for b in range(3)
        ] == expected
    for broker_id, same in ((1, 0), (0, 6)):
        result = [list_offsets(topic, LATEST, broker_id=broker_id, epoch=epoch + s).error_code for s in (-1, 0, 1)]
        assert result == [74, same, 75]


@pytest.mark.rule("L-4", "L-5", "L-6")
def test_list_offsets_hides_unreplicated_records_from_clients_but_not_followers(subject: Subject) -> None:
    topic = new_topic(subject, replication=2)
    topic.fill(stamped(100), stamped(200))
    with held(subject, topic, 1):
        follow(topic, 1, 2)
        topic.fill(stamped(300), acks=1)
        for isolation in (0, 1):
            assert summary(list_offsets(topic, LATEST, isolation=isolation))[1] == 2
            assert summary(list_offsets(topic, 250, isolation=isolation))[:3] == (0, -1, -1)
            assert summary(list_offsets(topic, MAX_TIMESTAMP, 7, isolation=isolation))[:3] == (0, -1, -1)
        for replica_id in (1, -2):
            assert summary(list_offsets(topic, LATEST, replica_id=replica_id))[1] == 3
            assert summary(list_offsets(topic, 250, replica_id=replica_id))[:3] == (0, 2, 300)
    wait_until(
        subject,
        lambda: list_offsets(topic, LATEST).offset == 3,
        f"the follower has replicated all three records of {topic.name}-0",
    )


@pytest.mark.rule("L-6", "L-7")
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_list_offsets_finds_the_first_record_at_or_after_a_timestamp(subject: Subject, codec: Compression) -> None:
    """ListOffsets finds the first record at or after a timestamp, and the first record with the largest timestamp, with every compression.

    Corresponds to Kafka's tests `ListOffsetsIntegrationTest`, `LogOffsetTest`.
    """
    single_batch, batch_per_record, out_of_order = (new_topic(subject) for _ in range(3))
    single_batch.fill(stamped(100, 999, 200, compression=codec))
    batch_per_record.fill(*[stamped(timestamp, compression=codec) for timestamp in (100, 999, 200)])
    out_of_order.fill(*[stamped(timestamp, compression=codec) for timestamp in (0, 1, 2, 3, 4, 6, 5)])
    for topic in (single_batch, batch_per_record):
        assert summary(list_offsets(topic, MAX_TIMESTAMP, 7)) == (0, 1, 999, 0)
        requested = [summary(list_offsets(topic, timestamp))[1:3] for timestamp in (0, 100, 101, 999, 1000)]
        assert requested == [(0, 100), (0, 100), (1, 999), (1, 999), (-1, -1)]
    assert summary(list_offsets(out_of_order, MAX_TIMESTAMP, 7)) == (0, 5, 6, 0)
    assert summary(list_offsets(out_of_order, 5))[1:3] == (5, 6)
    out_of_order.fill(stamped(6, compression=codec))
    assert summary(list_offsets(out_of_order, MAX_TIMESTAMP, 7)) == (0, 5, 6, 0)  # the first of equal timestamps
    empty = new_topic(subject)
    assert summary(list_offsets(empty, MAX_TIMESTAMP, 7)) == (0, -1, -1, -1)
    assert summary(list_offsets(empty, 0)) == (0, -1, -1, -1)


@pytest.mark.rule("L-7")
def test_list_offsets_finds_records_by_their_log_append_time(subject: Subject) -> None:
    single_batch, batch_per_record = (new_topic(subject, message_timestamp_type="LogAppendTime") for _ in range(2))
    single_batch.fill(stamped(100, 999, 200))
    for timestamp in (100, 999, 200):
        batch_per_record.fill(stamped(timestamp))
        subject.pass_ms(5)
    assert summary(list_offsets(single_batch, MAX_TIMESTAMP, 7))[:2] == (0, 0)
    assert summary(list_offsets(batch_per_record, MAX_TIMESTAMP, 7))[:2] == (0, 2)


@pytest.mark.rule("L-5", "L-6")
def test_list_offsets_by_timestamp_ignores_records_below_the_log_start(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(*[stamped(timestamp) for timestamp in (100, 200, 300)])
    records = [DeleteRecordsTopic(topic.name, [DeleteRecordsPartition(0, 2)])]
    assert subject.ask(topic.connect(), DeleteRecordsRequest(records, 5000), 2).topics[0].partitions[0].error_code == 0
    wait_until(
        subject, lambda: list_offsets(topic, EARLIEST).offset == 2, f"the log of {topic.name}-0 starts at offset 2"
    )
    assert summary(list_offsets(topic, 100)) == (0, 2, 300, 0)
