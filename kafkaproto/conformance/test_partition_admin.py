"""Tests of CreatePartitions, partition reassignments, ElectLeaders, DeleteRecords and DescribeLogDirs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkaproto.conformance.scene import EARLIEST, Topic, created, list_offsets, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, errors, fetch, flat
from kafkaproto.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkaproto.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from kafkaproto.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafkaproto.messages.describe_log_dirs import DescribeLogDirsRequest
from kafkaproto.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafkaproto.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


@pytest.mark.rule("AD-49")
def test_describe_log_dirs_returns_the_total_and_usable_bytes_of_the_volume(subject: Subject) -> None:
    [directory] = subject.ask_once(DescribeLogDirsRequest([]), 4).results
    assert 0 < directory.usable_bytes <= directory.total_bytes
    [directory] = subject.ask_once(DescribeLogDirsRequest([]), 3).results
    assert (directory.total_bytes, directory.usable_bytes) == (-1, -1)


@pytest.mark.needs(brokers=3)
def test_create_partitions_adds_partitions_and_rejects_counts_that_are_not_higher(subject: Subject) -> None:
    topic = new_topic(subject, 2)
    name = topic.name
    assert created(subject, CreatePartitionsTopic(name, 3, None), validate_only=True) == [(name, 0)]
    assert len(topic.metadata().partitions) == 2
    for count in (2, 1, 0, -1):
        assert created(subject, CreatePartitionsTopic(name, count, None)) == [(name, 37)]
    assert created(subject, CreatePartitionsTopic("no-such-topic", 3, None)) == [("no-such-topic", 3)]
    twice = CreatePartitionsTopic(name, 3, None), CreatePartitionsTopic(name, 4, None)
    assert created(subject, *twice) == [(name, 42)]
    arguments = [CreatePartitionsAssignment([2]), CreatePartitionsAssignment([1])]
    assert created(subject, CreatePartitionsTopic(name, 4, arguments)) == [(name, 0)]
    wait_until(subject, lambda: len(topic.metadata().partitions) == 4, f"topic {name} has four partitions")
    assert (topic.leader(2), topic.leader(3)) == (2, 1)
    topic.fill(batch(b"v"), index=3)


def test_create_partitions_rejects_invalid_replica_assignments(subject: Subject) -> None:
    topic = new_topic(subject)
    impossible: list[list[list[int]]] = [[[7]], [[1, 1]], [[]], [[1, 2]], [[1], [2]]]
    for arguments in impossible:
        assignments = [CreatePartitionsAssignment(brokers) for brokers in arguments]
        assert created(subject, CreatePartitionsTopic(topic.name, 2, assignments)) == [(topic.name, 39)], arguments
    assert len(topic.metadata().partitions) == 1


def reassigned(subject: Subject, topic: Topic, target: list[int] | None, index: int = 0) -> int:
    requested = [ReassignableTopic(topic.name, [ReassignablePartition(index, target)])]
    response = subject.ask(subject.connect(), AlterPartitionReassignmentsRequest(10_000, topics=requested), 0)
    assert response.error_code == 0
    [result] = response.responses[0].partitions
    return int(result.error_code)


def ongoing(subject: Subject, topic: Topic) -> list[tuple[int, list[int], list[int], list[int]]]:
    requested = [ListPartitionReassignmentsTopics(topic.name, [0, 1, 99])]
    response = subject.ask(subject.connect(), ListPartitionReassignmentsRequest(10_000, requested), 0)
    return [
        (p.partition_index, p.replicas, sorted(p.adding_replicas), sorted(p.removing_replicas))
        for t in response.topics
        for p in t.partitions
    ]


def has_moved(subject: Subject, topic: Topic, replicas: list[int], isr: set[int] | None = None) -> Callable[[], bool]:
    def look() -> bool:
        results = topic.partition()
        return results.replica_nodes == replicas and set(results.isr_nodes) == (isr or set(replicas))

    return look


def test_reassignment_moves_the_records_of_a_partition_and_then_its_leader(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [0, 1]})
    topic.fill(*[batch(b"moved")] * 10)
    before = topic.leader_epoch
    assert reassigned(subject, topic, [2, 1]) == 0
    wait_until(subject, has_moved(subject, topic, [2, 1]), f"the replicas of {topic.name}-0 are [2, 1], all in sync")
    assert ongoing(subject, topic) == []
    leader = topic.leader()
    assert leader in (1, 2) and topic.leader_epoch > before
    [(_, data)] = flat(subject.ask(topic.connect(), fetch((topic.name, 0, 0)), 11))
    assert data.high_watermark == 10 and data.records
    response = subject.ask(subject.connect(0), fetch((topic.name, 0, 0)), 11)
    assert errors(response) == [6]


def test_reassignment_to_a_stopped_broker_is_listed_until_it_is_cancelled(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [0, 1]})
    topic.fill(batch(b"v"))
    subject.stop_broker(2)
    try:
        assert reassigned(subject, topic, [2, 0]) == 0
        assert ongoing(subject, topic) == [(0, [2, 0, 1], [2], [1])]
        assert reassigned(subject, topic, [1, 2]) == 0  # a different target
        assert ongoing(subject, topic) == [(0, [1, 2, 0], [2], [0])]
        assert reassigned(subject, topic, None) == 0
        assert ongoing(subject, topic) == []
        wait_until(
            subject, has_moved(subject, topic, [1, 0]), f"the replicas of {topic.name}-0 are [1, 0], all in sync"
        )
        assert reassigned(subject, topic, None) == 85
    finally:
        subject.start_broker(2)


@pytest.mark.rule("AD-47")
def test_list_partition_reassignments_repeats_a_partition_that_the_request_repeats(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [0, 1], 1: [0, 1]})
    subject.stop_broker(2)

    def listed(*entries: list[int]) -> list[tuple[str, list[int]]]:
        requested = [ListPartitionReassignmentsTopics(topic.name, indexes) for indexes in entries]
        response = subject.ask_once(ListPartitionReassignmentsRequest(10_000, requested), 0)
        return [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics]

    try:
        assert reassigned(subject, topic, [2, 0]) == 0
        assert listed([0], [1]) == listed([1], [0]) == [(topic.name, [0])]
        assert listed([0], [1, 0]) == [(topic.name, [0])] * 2
        assert listed([0, 0]) == [(topic.name, [0, 0])]
        assert listed([1], []) == []
        assert reassigned(subject, topic, None) == 0
    finally:
        subject.start_broker(2)


def test_reassignment_to_duplicate_or_unknown_brokers_is_rejected(subject: Subject) -> None:
    topic = new_topic(subject)
    for target in ([], [0, 0], [7], [-1]):
        assert reassigned(subject, topic, target) == 39, target
    assert reassigned(subject, topic, [1], index=99) == 3
    assert reassigned(subject, Topic(subject, "no-such-topic"), [1]) == 3
    assert topic.partition().replica_nodes == [0]


@pytest.mark.needs(brokers=3)
@pytest.mark.releases("4.1")
def test_reassignment_fails_if_it_makes_a_forbidden_change_of_the_replication_factor(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [0, 1]})

    def requested(target: list[int], *, allows_change: bool) -> tuple[int, str | None]:
        partitions = [ReassignablePartition(0, target)]
        request = AlterPartitionReassignmentsRequest(10_000, allows_change, [ReassignableTopic(topic.name, partitions)])
        response = subject.ask_once(request, 1)
        assert (response.error_code, response.allow_replication_factor_change) == (0, allows_change)
        [result] = response.responses[0].partitions
        return result.error_code, result.error_message

    assert requested([0], allows_change=False) == (38, "The replication factor is changed from 2 to 1")
    assert requested([0, 1, 2], allows_change=False) == (38, "The replication factor is changed from 2 to 3")
    assert requested([0, 7, 8], allows_change=False)[0] == 39
    assert requested([2, 0], allows_change=False) == (0, None)
    wait_until(subject, has_moved(subject, topic, [2, 0]), f"the replicas of {topic.name}-0 are [2, 0], all in sync")
    assert requested([0, 1, 2], allows_change=True) == (0, None)
    wait_until(
        subject, has_moved(subject, topic, [0, 1, 2]), f"the replicas of {topic.name}-0 are [0, 1, 2], all in sync"
    )


def elected(subject: Subject, topic: Topic, *indexes: int, unclean: bool = False) -> list[tuple[int, int]]:
    request = ElectLeadersRequest(int(unclean), [TopicPartitions(topic.name, list(indexes))], 10_000)
    response = subject.ask(subject.connect(), request, 2)
    assert response.error_code == 0
    return [(p.partition_id, p.error_code) for t in response.replica_election_results for p in t.partition_result]


def test_preferred_leader_election_gives_leadership_back_to_the_preferred_replica(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [1, 0], 1: [0, 1]})
    subject.stop_broker(1)
    wait_until(subject, lambda: topic.partition().leader_id == 0, f"broker 0 leads {topic.name}-0")
    assert elected(subject, topic, 0, 1, 99) == [(0, 80), (1, 84), (99, 3)]
    subject.start_broker(1)
    topic.fill(batch(b"v"))
    wait_until(subject, has_moved(subject, topic, [1, 0]), f"the replicas of {topic.name}-0 are [1, 0], all in sync")
    assert topic.leader() == 0
    assert elected(subject, topic, 0, 1) == [(0, 0), (1, 84)]
    wait_until(subject, lambda: topic.partition().leader_id == 1, f"broker 1 leads {topic.name}-0")


@pytest.mark.rule("AD-47")
def test_elect_leaders_omits_partitions_that_need_no_election_but_keeps_their_topics(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [1, 0], 1: [0, 1]})

    def listed(kind: int, topics: list[TopicPartitions] | None) -> dict[str, list[tuple[int, int, str | None]]]:
        response = subject.ask_once(ElectLeadersRequest(kind, topics, 10_000), 2)
        assert response.error_code == 0
        return {
            t.topic: [(p.partition_id, p.error_code, p.error_message) for p in t.partition_result]
            for t in response.replica_election_results
        }

    for kind in (0, 1):
        assert listed(kind, None)[topic.name] == []
        assert listed(kind, [TopicPartitions(topic.name, [])]) == {topic.name: []}
    assert listed(7, []) == {}
    subject.stop_broker(1)
    wait_until(subject, lambda: topic.partition().leader_id == 0, f"broker 0 leads {topic.name}-0")
    unavailable = [(0, 80, "The preferred leader was not available.")]
    assert listed(0, None)[topic.name] == listed(0, [TopicPartitions(topic.name, [0])])[topic.name] == unavailable


@pytest.mark.rule("AD-47")
def test_leader_election_fails_if_the_only_replica_of_a_partition_is_stopped(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [2]})
    subject.stop_broker(2)
    wait_until(subject, lambda: topic.partition().leader_id == -1, f"{topic.name}-0 has no leader")
    for kind, code, message in (
        (0, 80, "The preferred leader was not available."),
        (1, 83, "Eligible topic partition leaders are not available."),
    ):
        [result] = subject.ask_once(
            ElectLeadersRequest(kind, [TopicPartitions(topic.name, [0])], 10_000), 2
        ).replica_election_results
        [partition] = result.partition_result
        assert (partition.error_code, partition.error_message) == (code, message)


@pytest.mark.needs("unclean.leader.election.enable")
def test_unclean_leader_election_elects_a_running_replica(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [1, 2]})
    topic.fill(batch(b"kept"))
    subject.stop_broker(2)
    wait_until(
        subject, lambda: topic.partition().isr_nodes == [1], f"broker 1 is the only in-sync replica of {topic.name}-0"
    )
    topic.fill(batch(b"lost"))
    assert elected(subject, topic, 0, unclean=True) == [(0, 84)]
    subject.stop_broker(1)
    subject.start_broker(2)
    wait_until(subject, lambda: topic.partition().leader_id == -1, f"{topic.name}-0 has no leader")
    assert elected(subject, topic, 0) == [(0, 80)]
    assert elected(subject, topic, 0, unclean=True) == [(0, 0)]
    wait_until(subject, lambda: topic.partition().leader_id == 2, f"broker 2 leads {topic.name}-0")
    subject.start_broker(1)
    topic.fill(batch(b"after"))
    [(_, data)] = flat(subject.ask(topic.connect(), fetch((topic.name, 0, 0)), 11))
    assert data.high_watermark == 2  # records that only broker 1 had are lost


def deleted(subject: Subject, topic: Topic, offset: int, timeout_ms: int = 10_000) -> tuple[int, int]:
    """Delete the records of partition 0 below `offset` with DeleteRecords, and return (error, low watermark)."""
    requested = [DeleteRecordsTopic(topic.name, [DeleteRecordsPartition(0, offset)])]
    [result] = subject.ask(topic.connect(), DeleteRecordsRequest(requested, timeout_ms), 2).topics[0].partitions
    return result.error_code, result.low_watermark


def earliest(topic: Topic) -> int:
    return int(list_offsets(topic, EARLIEST).offset)


@pytest.mark.rule("E-4", "L-11")
def test_delete_records_raises_the_log_start_on_every_replica(subject: Subject) -> None:
    topic = new_topic(subject, replication=3)
    topic.fill(*[batch(b"a", b"b", b"c")] * 4)
    assert deleted(subject, topic, 4) == (0, 4)
    assert earliest(topic) == 4
    response = subject.ask(topic.connect(), fetch((topic.name, 0, 3)), 11)
    assert errors(response) == [1]
    [(_, data)] = flat(subject.ask(topic.connect(), fetch((topic.name, 0, 4)), 11))
    assert (data.log_start_offset, data.high_watermark) == (4, 12) and data.records
    assert deleted(subject, topic, 2) == (0, 4)  # the log start never decreases
    assert deleted(subject, topic, -1) == (0, 12)
    assert earliest(topic) == 12


@pytest.mark.rule("L-11")
def test_invalid_delete_records_requests_are_rejected(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(batch(b"a", b"b"))
    assert deleted(subject, topic, 3) == (1, -1)
    assert deleted(subject, topic, -2) == (1, -1)
    compacted = new_topic(subject, cleanup_policy="compact")
    assert deleted(subject, compacted, -1) == (44, -1)
    both = new_topic(subject, cleanup_policy="compact,delete")
    assert deleted(subject, both, -1) == (0, 0)
    elsewhere = new_topic(subject, assignment={0: [1]})
    requested = [DeleteRecordsTopic(name, [DeleteRecordsPartition(0, 0)]) for name in (elsewhere.name, "no-such-topic")]
    response = subject.ask(subject.connect(0), DeleteRecordsRequest(requested, 1000), 2)
    results = {t.name: (t.partitions[0].error_code, t.partitions[0].low_watermark) for t in response.topics}
    assert results == {elsewhere.name: (6, -1), "no-such-topic": (3, -1)}


@pytest.mark.rule("L-11")
@pytest.mark.releases("4.2")
def test_records_of_a_topic_without_a_cleanup_policy_can_be_deleted(subject: Subject) -> None:
    topic = new_topic(subject, cleanup_policy="")
    topic.fill(batch(b"a", b"b"))
    assert deleted(subject, topic, 1) == (0, 1)


@pytest.mark.rule("L-11")
def test_delete_records_with_a_repeated_partition_uses_the_last_offset(subject: Subject) -> None:
    topic = new_topic(subject, 2)
    topic.fill(*[batch(b"a")] * 3)
    requested = [
        DeleteRecordsTopic(topic.name, [DeleteRecordsPartition(index, offset)])
        for index, offset in ((0, 2), (1, 0), (0, 1))
    ]
    [topic_result] = subject.ask(topic.connect(), DeleteRecordsRequest(requested, 10_000), 2).topics
    results = sorted((p.partition_index, p.error_code, p.low_watermark) for p in topic_result.partitions)
    assert results == [(0, 0, 1), (1, 0, 0)]


@pytest.mark.rule("L-11")
def test_delete_records_waits_for_lagging_replicas_until_its_timeout(subject: Subject) -> None:
    topic = new_topic(subject, replication=2)
    topic.fill(*[batch(b"a")] * 4)
    wait_until(
        subject,
        lambda: deleted(subject, topic, 1) == (0, 1),
        f"both replicas of {topic.name}-0 have the log start offset 1",
    )
    subject.hold_follower(topic.name, 0, 1)
    try:
        assert deleted(subject, topic, 2, timeout_ms=300) == (7, 1)
        assert earliest(topic) == 2
    finally:
        subject.release_follower(topic.name, 0, 1)
    assert deleted(subject, topic, 2) == (0, 2)
