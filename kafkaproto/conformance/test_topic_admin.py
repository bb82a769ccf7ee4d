"""Tests of unusual CreateTopics and DeleteTopics requests, and of the errors for invalid topic settings."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from kafkaproto.conformance.scene import new_topic, read, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import PRODUCE_VERSION, batch, produce, produced
from kafkaproto.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

SET, DELETE, SUBTRACT = 0, 1, 3
TOPIC = 2


def requested(subject: Subject, *topics: CreatableTopic) -> list[tuple[str, int]]:
    results = subject.ask_once(CreateTopicsRequest(list(topics), 10_000), 5).topics
    return sorted((result.name, result.error_code) for result in results)


def changed(subject: Subject, topic: str, key: str, operation: int, value: str | None) -> int:
    resource = AlterConfigsResource(TOPIC, topic, [AlterableConfig(key, operation, value)])
    [result] = subject.ask_once(IncrementalAlterConfigsRequest([resource]), 1).responses
    return int(result.error_code)


def test_topic_names_that_differ_only_in_dots_and_underscores_collide(subject: Subject) -> None:
    name = subject.new_name()
    assert requested(subject, CreatableTopic(f"{name}.a_b", 1, 1)) == [(f"{name}.a_b", 0)]
    for other in (f"{name}.a.b", f"{name}_a_b", f"{name}_a.b"):
        assert requested(subject, CreatableTopic(other, 1, 1)) == [(other, 17)]
    assert requested(subject, CreatableTopic(f"{name}-a-b", 1, 1)) == [(f"{name}-a-b", 0)]


def test_create_topics_rejects_a_partition_assigned_twice(subject: Subject) -> None:
    twice = [CreatableReplicaAssignment(0, [0]), CreatableReplicaAssignment(0, [1])]
    name = subject.new_name()
    assert requested(subject, CreatableTopic(name, -1, -1, twice)) == [(name, 39)]


def test_topic_with_an_empty_cleanup_policy_keeps_its_records_forever(subject: Subject) -> None:
    name = subject.new_name()
    settings = [CreatableTopicConfig("cleanup.policy", "")]
    assert requested(subject, CreatableTopic(name, 1, 1, [], settings)) == [(name, 0)]
    topic = new_topic(subject, cleanup_policy="compact,delete")
    assert changed(subject, topic.name, "cleanup.policy", SUBTRACT, "compact,delete") == 0
    with closing(topic.connect()) as connection:
        request = produce(topic.name, batch(b"v"))
        # The partition's broker may learn of the change later than the broker that handled the request.
        wait_until(
            subject,
            lambda: produced(subject.ask(connection, request, PRODUCE_VERSION)).error_code == 0,
            f"topic {topic.name} accepts a record without a key",
        )


def test_unknown_topic_setting_cannot_be_set_but_can_be_deleted(subject: Subject) -> None:
    topic = new_topic(subject)
    assert changed(subject, topic.name, "no.such.setting", SET, "1") == 40
    assert changed(subject, topic.name, "no.such.setting", DELETE, None) == 0
    assert changed(subject, "", "retention.ms", SET, "1") == 42


def test_delete_topics_rejects_a_repeated_topic_name_and_does_not_delete_the_topic(subject: Subject) -> None:
    topic = new_topic(subject)
    request = DeleteTopicsRequest(topic_names=[topic.name, topic.name], timeout_ms=10_000)
    assert [(r.name, r.error_code) for r in subject.ask_once(request, 5).responses] == [(topic.name, 42)]
    topic.fill(batch(b"v"))


def elected(subject: Subject, kind: int, *partitions: tuple[str, list[int]]) -> tuple[int, list[tuple[str, Any]]]:
    request = ElectLeadersRequest(kind, [TopicPartitions(name, indexes) for name, indexes in partitions], 10_000)
    response = subject.ask_once(request, 2)
    entries = [
        (r.topic, [(p.partition_id, p.error_code) for p in r.partition_result])
        for r in response.replica_election_results
    ]
    return response.error_code, sorted(entries)


def test_elect_leaders_with_an_unknown_election_type_rejects_each_partition(subject: Subject) -> None:
    name = new_topic(subject, 2).name
    requested_topics = (name, [0, 1]), ("no-such-topic", [0])
    results = sorted([(name, [(0, 42), (1, 42)]), ("no-such-topic", [(0, 42)])])
    assert elected(subject, 2, *requested_topics) == (42, results)


@pytest.mark.rule("E-2", "L-4", "F-25")
def test_leader_epoch_of_minus_2_is_fenced_in_offset_lookups_but_not_in_fetches(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(batch(b"v"))
    epochs = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(topic.name, [OffsetForLeaderPartition(0, -2, 0)])])
    [topic_result] = subject.ask(topic.connect(), epochs, 4).topics
    assert topic_result.partitions[0].error_code == 74
    offsets = ListOffsetsRequest(-1, 0, [ListOffsetsTopic(topic.name, [ListOffsetsPartition(0, -2, -1)])])
    [topic_response] = subject.ask(topic.connect(), offsets, 7).topics
    assert topic_response.partitions[0].error_code == 74
    assert read(topic, 0, 11, epoch=-2).error_code == 0
