"""Tests of requests to the controller with a timeout that has passed when the controller handles them."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.scene import Topic, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkaproto.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkaproto.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkaproto.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafkaproto.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kafkaproto.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

TIMED_OUT, INVALID_REQUEST, UNKNOWN_PARTITION = 7, 42, 3
SETTLED_MS = 500
"""The time in ms after which every broker knows that the controller has created or deleted a topic."""
Result = tuple[str | None, int, str | None]
"""The result for a topic in a response: (name, error code, error message). Name and message are None if the response has null."""


def created(
    subject: Subject, topics: list[CreatableTopic], timeout_ms: int, validate_only: bool = False
) -> list[Result]:
    results = subject.ask_once(CreateTopicsRequest(topics, timeout_ms, validate_only), 5).topics
    return [(r.name, r.error_code, r.error_message) for r in results]


def deleted(subject: Subject, states: list[DeleteTopicState], timeout_ms: int) -> list[Result]:
    results = subject.ask_once(DeleteTopicsRequest(states, timeout_ms=timeout_ms), 6).responses
    return [(r.name, r.error_code, r.error_message) for r in results]


def enlarged(subject: Subject, topics: list[CreatePartitionsTopic], timeout_ms: int) -> list[Result]:
    results = subject.ask_once(CreatePartitionsRequest(topics, timeout_ms), 3).results
    return [(r.name, r.error_code, r.error_message) for r in results]


def elected(subject: Subject, topics: list[TopicPartitions] | None, timeout_ms: int, kind: int = 0) -> Any:
    response = subject.ask_once(ElectLeadersRequest(kind, topics, timeout_ms), 2)
    return response.error_code, [
        (t.topic, p.partition_id, p.error_code, p.error_message)
        for t in response.replica_election_results
        for p in t.partition_result
    ]


def reassigned(subject: Subject, topics: list[ReassignableTopic], timeout_ms: int) -> Any:
    response = subject.ask_once(AlterPartitionReassignmentsRequest(timeout_ms, topics=topics), 0)
    return (
        response.error_code,
        response.error_message,
        [(t.name, p.partition_index, p.error_code, p.error_message) for t in response.responses for p in t.partitions],
    )


@pytest.mark.rule("AD-43")
@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_topics_are_not_created_or_deleted_if_the_timeout_is_not_positive(subject: Subject, timeout_ms: int) -> None:
    name, topic = subject.new_name(), new_topic(subject)
    for validate_only in (False, True):
        results = created(subject, [CreatableTopic(name, 1, 1), CreatableTopic("a b", 1, 1)], timeout_ms, validate_only)
        assert results == [(name, TIMED_OUT, None), ("a b", TIMED_OUT, None)]
    states = [DeleteTopicState(topic.name), DeleteTopicState("no-such-topic"), DeleteTopicState()]
    assert deleted(subject, states, timeout_ms) == [
        (topic.name, TIMED_OUT, None),
        ("no-such-topic", TIMED_OUT, None),
        (None, TIMED_OUT, None),
    ]
    assert deleted(subject, [DeleteTopicState(None, topic.topic_id)], timeout_ms) == [(None, TIMED_OUT, None)]
    assert enlarged(subject, [CreatePartitionsTopic(topic.name, 2, None)], timeout_ms) == [
        (topic.name, TIMED_OUT, None)
    ]
    subject.pass_ms(SETTLED_MS)
    assert Topic(subject, name).metadata().error_code == UNKNOWN_PARTITION
    assert (topic.metadata().error_code, len(topic.metadata().partitions)) == (0, 1)


@pytest.mark.rule("AD-43")
@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_reassignments_and_elections_fail_if_the_timeout_is_not_positive(subject: Subject, timeout_ms: int) -> None:
    topic = new_topic(subject, 2)
    partitions = [TopicPartitions(topic.name, [0, 9])]
    timed_out = [(topic.name, 0, TIMED_OUT, None), (topic.name, 9, TIMED_OUT, None)]
    for kind in (0, 1, 7):
        assert elected(subject, partitions, timeout_ms, kind) == (TIMED_OUT, timed_out)
        assert elected(subject, None, timeout_ms, kind) == (TIMED_OUT, [])
    moves = [ReassignableTopic(topic.name, [ReassignablePartition(0, [1]), ReassignablePartition(9, None)])]
    assert reassigned(subject, moves, timeout_ms) == (TIMED_OUT, None, timed_out)
    subject.pass_ms(SETTLED_MS)
    assert topic.partition().replica_nodes == [0]


@pytest.mark.rule("AD-43")
def test_admin_request_that_changes_nothing_does_not_time_out_at_a_timeout_of_0_ms(subject: Subject) -> None:
    twice, topic = subject.new_name(), new_topic(subject).name
    repeated = [(twice, INVALID_REQUEST, "Duplicate topic name.")]
    assert created(subject, [CreatableTopic(twice, 1, 1)] * 2, 0) == repeated
    assert deleted(subject, [DeleteTopicState(twice)] * 2, 0) == repeated
    assert enlarged(subject, [CreatePartitionsTopic(twice, 2, None)] * 2, 0) == repeated
    assert (created(subject, [], 0), deleted(subject, [], 0), enlarged(subject, [], 0)) == ([], [], [])
    assert elected(subject, [], 0) == (0, [])
    assert reassigned(subject, [], 0) == (0, "", [])
    request = ListPartitionReassignmentsRequest(0, [ListPartitionReassignmentsTopics(topic, [0])])
    assert subject.ask_once(request, 0).error_code == 0
    features = UpdateFeaturesRequest(0, [FeatureUpdateKey("no-such-feature", 1, False, 1)], True)
    assert subject.ask_once(features, 1).error_code != TIMED_OUT
