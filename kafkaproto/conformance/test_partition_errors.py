"""Tests of the messages with which requests about partitions, replicas, leaders and quotas are rejected."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from kafkaproto.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkaproto.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkaproto.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

UNKNOWN_PARTITION, BAD_PARTITIONS, BAD_FACTOR, BAD_ASSIGNMENT, INVALID_REQUEST = 3, 37, 38, 39, 42
ELECTION_NOT_NEEDED, NO_REASSIGNMENT = 84, 85
Error = tuple[int, str | None]


def created(subject: Subject, count: int, factor: int, assignment: Sequence[tuple[int, Sequence[int]]] = ()) -> Error:
    """Validate a new topic with CreateTopics and validate_only, so that no topic is created. Returns (error code, message).

    count: the number of partitions. factor: the replication factor. assignment: (partition, broker ids) of each partition; if it is empty, the broker
    chooses the replicas. The message is None if there is no error.
    """
    assignments = [CreatableReplicaAssignment(index, list(replicas)) for index, replicas in assignment]
    topic = CreatableTopic(subject.new_name(), count, factor, assignments)
    [result] = subject.ask_once(CreateTopicsRequest([topic], 5_000, True), 5).topics
    return result.error_code, result.error_message


def enlarged(subject: Subject, topic: str, count: int, assignment: Sequence[Sequence[int]] | None = None) -> Error:
    """Send CreatePartitions for a topic with validate_only, and return (error code, message).

    count: the new number of partitions. assignment: the broker ids of each added partition; None lets the broker choose. The message is None if there
    is no error.
    """
    entries = None if assignment is None else [CreatePartitionsAssignment(list(replicas)) for replicas in assignment]
    request = CreatePartitionsRequest([CreatePartitionsTopic(topic, count, entries)], 5_000, True)
    [result] = subject.ask_once(request, 3).results
    return result.error_code, result.error_message


def reassigned(subject: Subject, topic: str, index: int, replicas: Sequence[int] | None) -> Error:
    """Reassign partition `index` of a topic, and return (error code, message).

    replicas: the broker ids of its new replicas; None cancels a reassignment. The message is None if there is no error.
    """
    partition = ReassignablePartition(index, None if replicas is None else list(replicas))
    request = AlterPartitionReassignmentsRequest(5_000, topics=[ReassignableTopic(topic, [partition])])
    [result] = subject.ask_once(request, 0).responses
    return result.partitions[0].error_code, result.partitions[0].error_message


def elected(subject: Subject, kind: int, topic: str, index: int) -> Error:
    """Elect a leader of partition `index`, and return (error code, message). kind: 0 for the preferred replica, 1 for any replica."""
    request = ElectLeadersRequest(kind, [TopicPartitions(topic, [index])], 5_000)
    [result] = subject.ask_once(request, 2).replica_election_results
    return result.partition_result[0].error_code, result.partition_result[0].error_message


def manual(text: str) -> Error:
    return BAD_ASSIGNMENT, f"The manual partition assignment includes {text}"


@pytest.mark.rule("AD-39")
def test_create_topics_error_names_the_invalid_count_or_replica_assignment(subject: Subject) -> None:
    brokers = len(subject.bootstrap)
    too_many = f"The target replication factor of {brokers + 1} cannot be reached because only {brokers} broker(s) are registered."
    assert created(subject, 1, brokers + 1) == (
        BAD_FACTOR,
        f"Unable to replicate the partition {brokers + 1} time(s): {too_many}",
    )
    assert created(subject, 0, 1) == (BAD_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    assert created(subject, 1, 0) == (
        BAD_FACTOR,
        "Replication factor must be larger than 0, or -1 to use the default value.",
    )
    assert created(subject, -1, -1, [(0, [0]), (2, [0])]) == (
        BAD_ASSIGNMENT,
        "partitions should be a consecutive 0-based integer sequence",
    )
    assert created(subject, -1, -1, [(0, [0, 0])]) == manual("the broker 0 more than once.")
    assert created(subject, -1, -1, [(0, [9])]) == manual("broker 9, but no such broker is registered.")
    assert created(subject, -1, -1, [(0, [])]) == manual("an empty replica list.")
    assert created(subject, -1, -1, [(0, [0]), (1, [0, 1])]) == manual(
        "a partition with 2 replica(s), but this is not consistent with previous partitions, which have 1 replica(s)."
    )
    assert created(subject, 3, -1, [(0, [0])]) == (
        INVALID_REQUEST,
        "A manual partition assignment was specified, but numPartitions was not set to -1.",
    )
    assert created(subject, -1, 1, [(0, [0])]) == (
        INVALID_REQUEST,
        "A manual partition assignment was specified, but replication factor was not set to -1.",
    )


@pytest.mark.rule("AD-39")
def test_create_partitions_error_names_the_invalid_count_or_replica_assignment(subject: Subject) -> None:
    topic = new_topic(subject, partitions=2).name
    assert enlarged(subject, topic, 2) == (BAD_PARTITIONS, "Topic already has 2 partition(s).")
    assert enlarged(subject, topic, 1) == (
        BAD_PARTITIONS,
        f"The topic {topic} currently has 2 partition(s); 1 would not be an increase.",
    )
    assert enlarged(subject, subject.new_name("missing"), 3) == (UNKNOWN_PARTITION, None)
    assert enlarged(subject, topic, 4, [[0]]) == (
        BAD_ASSIGNMENT,
        "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
    )
    assert enlarged(subject, topic, 3, [[9]]) == manual("broker 9, but no such broker is registered.")
    assert enlarged(subject, topic, 3, [[0, 0]]) == manual("the broker 0 more than once.")


@pytest.mark.rule("AD-39")
def test_reassignments_and_elections_of_missing_partitions_get_kafkas_error_messages(subject: Subject) -> None:
    topic, missing = new_topic(subject).name, subject.new_name("missing")
    assert reassigned(subject, topic, 0, None) == (NO_REASSIGNMENT, None)
    assert reassigned(subject, missing, 0, [0]) == (UNKNOWN_PARTITION, f"Unable to find a topic named {missing}.")
    assert reassigned(subject, topic, 9, [0]) == (UNKNOWN_PARTITION, f"Unable to find partition {topic}:9.")
    assert reassigned(subject, topic, 0, [9]) == manual("broker 9, but no such broker is registered.")
    assert reassigned(subject, topic, 0, [0, 0]) == manual("the broker 0 more than once.")
    assert reassigned(subject, topic, 0, []) == manual("an empty replica list.")
    for kind in (0, 1):
        assert elected(subject, kind, topic, 0) == (
            ELECTION_NOT_NEEDED,
            "Leader election not needed for topic partition.",
        )
        assert elected(subject, kind, missing, 0) == (UNKNOWN_PARTITION, f"No such topic as {missing}")
        assert elected(subject, kind, topic, 9) == (UNKNOWN_PARTITION, f"No such partition as {topic}-9")


@pytest.mark.rule("AD-39")
def test_invalid_quotas_are_rejected_with_the_message_of_kafka(subject: Subject) -> None:
    def error(key: str, value: float, *entity: tuple[str, str | None]) -> Error:
        entities = [AlterClientQuotasRequestEntityData(*part) for part in entity or (("client-id", "c"),)]
        request = AlterClientQuotasRequest(
            [AlterClientQuotasRequestEntryData(entities, [OpData(key, value, False)])], True
        )
        [result] = subject.ask_once(request, 1).entries
        return result.error_code, result.error_message

    rate = "producer_byte_rate"
    assert error("nope", 1) == (INVALID_REQUEST, "Invalid configuration key nope")
    assert error(rate, 5000.5) == (INVALID_REQUEST, f"{rate} cannot be a fractional value.")
    assert error(rate, 0) == (INVALID_REQUEST, f"Quota {rate} must be greater than 0")
    assert error(rate, -1) == (INVALID_REQUEST, f"Quota {rate} must be greater than 0")
    assert error(rate, 2.0**64) == (INVALID_REQUEST, f"Proposed value for {rate} is too large for a LONG.")
    assert error("connection_creation_rate", 2.0**40, ("ip", "10.0.0.1")) == (
        INVALID_REQUEST,
        "Proposed value for connection_creation_rate is too large for an INT.",
    )
    assert error("connection_creation_rate", 2.0**31 + 0.5, ("ip", "10.0.0.1")) == (
        INVALID_REQUEST,
        "Proposed value for connection_creation_rate is too large for an INT.",
    )
    assert error(rate, 1, ("nope", "x")) == (INVALID_REQUEST, "Unhandled client quota entity type: nope")
    assert error(rate, 1, ("ip", "10.0.0.1")) == (INVALID_REQUEST, f"Invalid configuration key {rate}")
    assert error("connection_creation_rate", 1, ("ip", "10.0.0.1"), ("user", "u")) == (
        INVALID_REQUEST,
        "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
    )
    assert error("connection_creation_rate", 1, ("ip", "no-address.invalid")) == (
        INVALID_REQUEST,
        "no-address.invalid is not a valid IP or resolvable host.",
    )
    assert error(rate, 1, ("user", "")) == (INVALID_REQUEST, "Empty user not supported")
