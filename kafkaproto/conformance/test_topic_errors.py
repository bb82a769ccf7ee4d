"""Tests of CreateTopics, DeleteTopics and CreatePartitions requests with several errors: the order of the checks, the results and the limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pytest

from kafkaproto.conformance.scene import Topic, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkaproto.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkaproto.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic

FAILED, UNKNOWN_PARTITION, ILLEGAL_TOPIC, TOPIC_EXISTS, BAD_FACTOR = -1, 3, 17, 36, 38
BAD_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST, FORBIDDEN, UNKNOWN_ID = 39, 40, 42, 44, 100
NOT_HOSTED = "This server does not host this topic-partition."
METADATA_LOG = "__cluster_metadata"
TOO_MANY = "Excessively large number of partitions per request."
Result = tuple[int, str | None]
"""The result for a topic in a response: (error code, error message). The message is None if there is no error."""


def topic_request(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    assignment: Sequence[tuple[int, Sequence[int]]] = (),
    configs: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    """Return a topic for a CreateTopics request.

    partitions: the number of partitions. factor: the replication factor. assignment: (partition, broker ids) of each partition; if it is given,
    `partitions` and `factor` must be -1. configs: maps names of settings to values, None for null; without `configs`, the topic has no settings.
    """
    replicas = [CreatableReplicaAssignment(index, list(brokers)) for index, brokers in assignment]
    return CreatableTopic(
        name, partitions, factor, replicas, [CreatableTopicConfig(*setting) for setting in (configs or {}).items()]
    )


def created(subject: Subject, *topics: CreatableTopic, validate_only: bool = True) -> dict[str, Result]:
    """Send CreateTopics, by default with validate_only, and return {name of the topic: (error code, message)}."""
    results = subject.ask_once(CreateTopicsRequest(list(topics), 10_000, validate_only), 5).topics
    return {r.name: (r.error_code, r.error_message) for r in results}


def deleted(subject: Subject, *states: DeleteTopicState) -> list[tuple[str | None, bytes, int, str | None]]:
    """Send DeleteTopics, and return (name, id, error code, message) of each result, sorted, because a broker may send them in any order."""
    results = subject.ask_once(DeleteTopicsRequest(list(states), timeout_ms=10_000), 6).responses
    return sorted(((r.name, r.topic_id, r.error_code, r.error_message) for r in results), key=repr)


def enlarged(subject: Subject, *topics: tuple[str, int]) -> dict[str, Result]:
    """Validate CreatePartitions for (topic, new number of partitions), and return {name of the topic: (error code, message)}."""
    requests = [CreatePartitionsTopic(name, count, None) for name, count in topics]
    results = subject.ask_once(CreatePartitionsRequest(requests, 10_000, True), 3).results
    return {r.name: (r.error_code, r.error_message) for r in results}


@pytest.mark.rule("AD-44")
def test_delete_topics_rejects_a_topic_listed_once_by_name_and_once_by_topic_id(subject: Subject) -> None:
    topic = new_topic(subject)
    by_name, by_id = DeleteTopicState(topic.name), DeleteTopicState(None, topic.topic_id)
    message = "The provided topic name maps to an ID that was already supplied."
    invalid_id = (topic.name, topic.topic_id, INVALID_REQUEST, message)
    assert deleted(subject, by_name, by_id) == deleted(subject, by_id, by_name) == [invalid_id]
    repeated_id = (None, topic.topic_id, INVALID_REQUEST, "Duplicate topic id.")
    assert deleted(subject, by_id, by_id) == [repeated_id]
    assert deleted(subject, by_id, by_name, by_id) == sorted([invalid_id, repeated_id], key=repr)
    assert topic.metadata().error_code == 0
    topic_id = topic.topic_id
    assert deleted(subject, by_name, by_id, by_name) == sorted(
        [(topic.name, bytes(16), INVALID_REQUEST, "Duplicate topic name."), (topic.name, topic_id, 0, None)], key=repr
    )
    wait_until(subject, lambda: topic.metadata().error_code == UNKNOWN_PARTITION, f"topic {topic.name} is deleted")


@pytest.mark.rule("AD-44")
def test_delete_topics_rejects_each_entry_with_both_or_neither_of_name_and_id(subject: Subject) -> None:
    topic = new_topic(subject)
    neither = (None, bytes(16), INVALID_REQUEST, "Neither topic name nor id were specified.")
    assert deleted(subject, DeleteTopicState(), DeleteTopicState()) == [neither] * 2
    both = DeleteTopicState(topic.name, topic.topic_id)
    invalid_entry = (topic.name, topic.topic_id, INVALID_REQUEST, "You may not specify both topic name and topic id.")
    assert deleted(subject, both, both) == [invalid_entry] * 2
    assert topic.metadata().error_code == 0


@pytest.mark.rule("AD-44")
def test_delete_topics_rejects_unknown_topics_with_the_messages_of_kafka(subject: Subject) -> None:
    unknown = bytes(15) + b"\7"
    assert deleted(subject, DeleteTopicState("no-such-topic")) == [
        ("no-such-topic", bytes(16), UNKNOWN_PARTITION, NOT_HOSTED)
    ]
    assert deleted(subject, DeleteTopicState(None, unknown)) == [
        (None, unknown, UNKNOWN_ID, "This server does not host this topic ID.")
    ]


@pytest.mark.rule("AD-45")
def test_cluster_metadata_topic_cannot_be_created(subject: Subject) -> None:
    name = subject.new_name()
    for validate_only in (True, False):
        assert created(subject, topic_request(METADATA_LOG), topic_request(name), validate_only=validate_only) == {
            METADATA_LOG: (INVALID_REQUEST, "Creation of internal topic __cluster_metadata is prohibited."),
            name: (0, None),
        }
    request = MetadataRequest([MetadataRequestTopic(name=METADATA_LOG)], allow_auto_topic_creation=True)
    for _ in range(2):
        [topic] = subject.ask_once(request, 9).topics
        assert (topic.error_code, topic.is_internal) == (UNKNOWN_PARTITION, False)
        subject.pass_ms(500)


@pytest.mark.rule("AD-45")
def test_create_topics_checks_topic_names_then_settings_then_replica_assignments(subject: Subject) -> None:
    existing, name = new_topic(subject, name=subject.new_name("a.b")).name, subject.new_name()
    colliding = existing.replace("a.b", "a_b")
    null: dict[str, str | None] = {"no.such.setting": None}
    unknown: dict[str, str | None] = {"no.such.setting": "1"}
    twice = [(0, [0]), (0, [1])]

    def code(topic: CreatableTopic) -> int:
        return created(subject, topic)[topic.name][0]

    assert code(topic_request("a b", 0, 0, configs=null)) == ILLEGAL_TOPIC
    assert code(topic_request(existing, 0, 0, configs=null)) == TOPIC_EXISTS
    assert created(subject, topic_request(colliding, 0, 0, configs=null)) == {
        colliding: (ILLEGAL_TOPIC, f"Topic '{colliding}' collides with existing topic: {existing}")
    }
    assert created(subject, topic_request(name, 0, 0, twice, {**unknown, "retention.ms": None})) == {
        name: (INVALID_CONFIG, "Null value not supported for topic configs: retention.ms")
    }
    assert code(topic_request(name, 0, 0, twice, unknown)) == INVALID_CONFIG
    assert code(topic_request(name, 0, 0, twice)) == INVALID_REQUEST
    assert code(topic_request(name, 0, 0)) == BAD_FACTOR


@pytest.mark.rule("AD-45")
def test_create_topics_reports_a_repeated_partition_before_an_unknown_broker(subject: Subject) -> None:
    name = subject.new_name()

    def message(*assignment: tuple[int, Sequence[int]]) -> str | None:
        code, text = created(subject, topic_request(name, -1, -1, assignment))[name]
        assert code == BAD_ASSIGNMENT
        return text

    included = "The manual partition assignment includes"
    assert message((0, [9, 9])) == f"{included} broker 9, but no such broker is registered."
    assert message((0, [9, 8, 0, 0])) == f"{included} the broker 0 more than once."
    assert message((0, [0]), (0, [9])) == "Found multiple manual partition assignments for partition 0"
    assert message((1, [0]), (5, [9])) == f"{included} broker 9, but no such broker is registered."
    assert message((1, [0]), (5, [0])) == "partitions should be a consecutive 0-based integer sequence"


@pytest.mark.rule("AD-45")
def test_create_topics_accepts_two_new_names_that_differ_only_in_dot_and_underscore(subject: Subject) -> None:
    name = subject.new_name()
    for validate_only in (True, False):
        topics = topic_request(f"{name}.a"), topic_request(f"{name}_a")
        assert created(subject, *topics, validate_only=validate_only) == {
            f"{name}.a": (0, None),
            f"{name}_a": (0, None),
        }
    for topic in (Topic(subject, f"{name}.a"), Topic(subject, f"{name}_a")):
        wait_until(subject, partial(_exists, topic), f"topic {topic.name} exists")


def _exists(topic: Topic) -> bool:
    return bool(topic.metadata().error_code == 0)


@pytest.mark.needs(brokers=3)
@pytest.mark.rule("AD-45")
def test_topic_with_a_partition_assigned_only_to_stopped_brokers_is_rejected(subject: Subject) -> None:
    name = subject.new_name()
    subject.stop_broker(2)
    message = "All brokers specified in the manual partition assignment for partition {} are fenced or in controlled shutdown."
    request = topic_request(name, -1, -1, [(0, [0]), (1, [2])])
    wait_until(
        subject,
        lambda: created(subject, request)[name] == (BAD_ASSIGNMENT, message.format(1)),
        "CreateTopics rejects a partition whose only replica is on broker 2, because this broker is fenced",
    )


@pytest.mark.rule("AD-46")
def test_create_topics_request_with_more_than_10000_partitions_is_rejected(subject: Subject) -> None:
    first, twice = subject.new_name(), subject.new_name()
    too_many = (FORBIDDEN, TOO_MANY)
    repeated = [topic_request(twice, 10_000)] * 2
    assert created(subject, topic_request(first, 10_001)) == {first: too_many}
    assert created(subject, topic_request(first, 10_000), topic_request("a b"), *repeated) == {
        first: too_many,
        "a b": too_many,
        twice: too_many,
    }
    assert created(subject, topic_request(first), *repeated)[first] == (0, None)


@pytest.mark.rule("AD-46")
def test_create_topics_that_needs_more_than_10000_metadata_records_is_rejected(subject: Subject) -> None:
    first, second, twice = (subject.new_name() for _ in range(3))
    too_large = (FORBIDDEN, "Unable to perform excessively large batch operation.")
    settings = {"retention.ms": "1", "segment.ms": "1"}
    assert created(subject, topic_request(first, 9_999)) == {first: (0, None)}
    assert created(subject, topic_request(first, 10_000)) == {first: too_large}
    assert created(subject, topic_request(first, 9_997, configs=settings)) == {first: (0, None)}
    assert created(subject, topic_request(first, 9_998, configs=settings)) == {first: too_large}
    assert created(subject, topic_request(first, 5_000), topic_request(second, 4_998)) == {
        first: (0, None),
        second: (0, None),
    }
    repeated = [topic_request(twice)] * 2
    assert created(
        subject, topic_request(first, 5_000), topic_request(second, 4_999), topic_request("a b"), *repeated
    ) == dict.fromkeys((first, second, "a b", twice), too_large)


@pytest.mark.rule("AD-46")
def test_create_partitions_rejects_the_topic_that_exceeds_10000_new_partitions(subject: Subject) -> None:
    first, second = new_topic(subject).name, new_topic(subject).name
    assert enlarged(subject, (first, 10_002)) == {first: (FAILED, None)}
    assert enlarged(subject, (first, 6001), (second, 3001)) == {first: (0, None), second: (0, None)}
    # Kafka handles the topics in the order of a hash set.
    assert sorted(code for code, _ in enlarged(subject, (first, 6001), (second, 4002)).values()) == [FAILED, 0]


@pytest.mark.rule("AD-46")
def test_create_partitions_that_lists_a_topic_twice_gets_the_duplicate_topic_error(subject: Subject) -> None:
    assert enlarged(subject, ("no-such-topic", 2), ("no-such-topic", 3)) == {
        "no-such-topic": (INVALID_REQUEST, "Duplicate topic name.")
    }
