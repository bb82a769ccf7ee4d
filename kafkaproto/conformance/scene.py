"""What conformance tests begin with: topics that are there on every broker, batches in them, the leader to talk to.

Beside it what several of them do: hold a follower and play it (N-12), make another replica lead, ask for offsets and epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import pytest

from kafkaproto.conformance.client import Connection
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import fetch, flat, produce, produced
from kafkaproto.error_codes import ErrorCode
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
from kafkaproto.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkaproto.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkaproto.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaproto.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

PRODUCE_VERSION = 9
ROUNDS = 400
PAUSE_MS = 25
APPEND_WITHIN_MS = 10_000
LATEST, EARLIEST = -1, -2
UNTIL_KNOWN_MS = 300
"""A changed quota holds when every broker has heard of it."""
Entity = dict[str, str | None]
"""Whose quota: "user", "client-id", "ip" to the name, None for the default."""


def wait_until(subject: Subject, condition: Callable[[], Any], what: str) -> Any:
    """What the condition says as soon as it is true."""
    for _ in range(ROUNDS):
        if found := condition():
            return found
        subject.pass_ms(PAUSE_MS)
    raise AssertionError(f"it did not come true: {what}")


def brokers_known(subject: Subject, broker_id: int) -> set[int]:
    """The brokers that one of them tells of. Raises OSError when nobody listens."""
    return {
        broker.node_id for broker in subject.ask_once(MetadataRequest([]), subject.metadata_version, broker_id).brokers
    }


class Topic:
    """A topic of one test. `leader` and `connect` ask the cluster anew, as leaders move."""

    def __init__(self, subject: Subject, name: str) -> None:
        self.subject = subject
        self.name = name

    def metadata(self, broker_id: int = 0) -> Any:
        """The topic's entry in one broker's Metadata response."""
        request = MetadataRequest([MetadataRequestTopic(name=self.name)], allow_auto_topic_creation=False)
        [topic] = self.subject.ask_once(request, self.subject.metadata_version, broker_id).topics
        return topic

    @property
    def topic_id(self) -> bytes:
        return bytes(self.metadata().topic_id)

    def partition(self, index: int = 0, broker_id: int = 0) -> Any:
        return next(p for p in self.metadata(broker_id).partitions if p.partition_index == index)

    def leader(self, index: int = 0) -> int:
        """The broker that leads a partition; waits for one."""
        for _ in range(ROUNDS):
            found = self.partition(index)
            if found.error_code == 0 and found.leader_id >= 0:
                return int(found.leader_id)
            self.subject.pass_ms(PAUSE_MS)
        raise AssertionError(f"{self.name}-{index} has no leader")

    def followers(self, index: int = 0) -> list[int]:
        leader = self.leader(index)
        return [replica for replica in self.partition(index).replica_nodes if replica != leader]

    def connect(self, index: int = 0, client_id: str | None = "conformance") -> Connection:
        """A connection to the leader of a partition."""
        return self.subject.connect(self.leader(index), client_id)

    def fill(self, *batches: bytes, index: int = 0, acks: int = -1, version: int = PRODUCE_VERSION) -> list[Any]:
        """Append batches, one request each, as a producer that waits; the answers.

        A leader of which another broker tells already may not know it yet itself: what it refuses then is sent again.
        """
        answers: list[Any] = []
        for _ in range(ROUNDS):
            with closing(self.subject.open(self.leader(index))) as connection:
                for data in batches[len(answers) :]:
                    request = produce(self.name, data, index, acks, APPEND_WITHIN_MS)
                    answer = produced(self.subject.ask(connection, request, version))
                    if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                        break
                    assert answer.error_code == 0, ErrorCode(answer.error_code).name
                    answers.append(answer)
            if len(answers) == len(batches):
                return answers
            self.subject.pass_ms(PAUSE_MS)
        raise AssertionError(f"{self.name}-{index}: its leader does not lead")


def new_topic(
    subject: Subject,
    partitions: int = 1,
    replication: int = 1,
    assignment: dict[int, list[int]] | None = None,
    **configs: str,
) -> Topic:
    """A new topic whose leaders every broker knows; dots of settings are written as underscores.

    assignment: partition to brokers, the leader first; by default broker 0 has everything, so that one connection is enough.
    """
    name = subject.new_name()
    if assignment is None:
        assignment = {i: list(range(subject.first_id, subject.first_id + replication)) for i in range(partitions)}
    _need(subject, assignment, configs)
    if subject.creates:
        _create(subject, name, assignment, configs)
    else:  # it is made for who asks
        subject.ask_once(MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=True), 4)
    topic = Topic(subject, name)
    _wait_until_known(topic, assignment)
    return topic


def _need(subject: Subject, assignment: dict[int, list[int]], configs: dict[str, str]) -> None:
    """Skips the test where the subject cannot make such a topic."""
    if not subject.assigns and {broker for brokers in assignment.values() for broker in brokers} != {subject.first_id}:
        pytest.skip("not prepared: needs more than one broker")
    if not subject.creates and configs:
        pytest.skip("not prepared: needs CreateTopics")


def _create(subject: Subject, name: str, assignment: dict[int, list[int]], configs: dict[str, str]) -> None:
    given = [CreatableReplicaAssignment(index, brokers) for index, brokers in assignment.items()]
    count, replication = (-1, -1) if subject.assigns else (len(assignment), 1)
    settings = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
    wanted = CreatableTopic(name, count, replication, given if subject.assigns else [], settings)
    for _ in range(ROUNDS):
        [made] = subject.ask_once(CreateTopicsRequest([wanted], 10_000), 5).topics
        if made.error_code != ErrorCode.NOT_CONTROLLER:
            break
        subject.pass_ms(PAUSE_MS)
    assert made.error_code == 0, (made.error_code, made.error_message)


def _wait_until_known(topic: Topic, assignment: dict[int, list[int]]) -> None:
    """Every broker tells the leaders, and the leaders answer as leaders (a broker knows of a topic before it opens its log)."""
    for _ in range(ROUNDS):
        seen = [topic.metadata(broker_id) for broker_id in range(len(topic.subject.bootstrap))]
        if all(
            {index: brokers[0] for index, brokers in assignment.items()}.items()
            <= {p.partition_index: p.leader_id for p in one.partitions if p.error_code == 0}.items()
            for one in seen
        ) and all(_leads(topic, leader, assignment) for leader in {brokers[0] for brokers in assignment.values()}):
            return
        topic.subject.pass_ms(PAUSE_MS)
    raise AssertionError(f"{topic.name} did not become known to every broker: {seen}")


def _leads(topic: Topic, broker_id: int, assignment: dict[int, list[int]]) -> bool:
    """Whether a broker answers as the leader of all that it should lead."""
    wanted = [ListOffsetsPartition(i, -1, EARLIEST) for i, brokers in assignment.items() if brokers[0] == broker_id]
    request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic(topic.name, wanted)])
    [answer] = topic.subject.ask_once(request, 5, broker_id).topics
    return all(found.error_code == 0 for found in answer.partitions)


# ---- followers that are held and played ------------------------------------------------------------------------------------------


@contextmanager
def held(subject: Subject, topic: Topic, broker_id: int, index: int = 0) -> Iterator[None]:
    """While it lasts this broker takes nothing from the partition's leader. A real one is stopped as a process: ask it nothing."""
    subject.hold_follower(topic.name, index, broker_id)
    try:
        yield
    finally:
        subject.release_follower(topic.name, index, broker_id)


def follow(topic: Topic, broker_id: int, offset: int, **more: Any) -> Any:
    """The leader's answer to a fetch that we send in the name of a replica (N-12): everything below `offset` is acknowledged."""
    request = fetch((topic.name, 0, offset), replica_id=broker_id, **more)
    [(_, data)] = flat(topic.subject.ask_once(request, 11, topic.leader()))
    return data


def read(topic: Topic, offset: int, version: int = 11, broker_id: int | None = None, **more: Any) -> Any:
    """What a consumer's fetch is told of the topic's first partition, by its leader unless another broker is named."""
    known = topic.metadata()
    request = fetch((topic.name, 0, offset), version=version, topic_ids={topic.name: known.topic_id}, **more)
    asked = topic.leader() if broker_id is None else broker_id
    [(_, data)] = flat(topic.subject.ask_once(request, version, asked))
    return data


# ---- leaders, offsets, epochs ----------------------------------------------------------------------------------------------------


def make_lead(topic: Topic, broker_id: int) -> int:
    """Make a replica in sync the preferred one and elect it; the new epoch, once the broker itself answers as leader."""
    subject = topic.subject
    replicas = [broker_id, *(r for r in topic.partition().replica_nodes if r != broker_id)]
    order = [ReassignableTopic(topic.name, [ReassignablePartition(0, replicas)])]
    answer = subject.ask_once(AlterPartitionReassignmentsRequest(APPEND_WITHIN_MS, topics=order), 0)
    assert answer.responses[0].partitions[0].error_code == 0
    wait_until(subject, lambda: topic.partition().replica_nodes == replicas, f"the order {replicas}")
    elect = ElectLeadersRequest(0, [TopicPartitions(topic.name, [0])], APPEND_WITHIN_MS)
    [result] = subject.ask_once(elect, 2).replica_election_results
    assert result.partition_result[0].error_code == 0, result.partition_result[0].error_message
    wait_until(subject, lambda: topic.partition().leader_id == broker_id, f"broker {broker_id} leads")
    epoch = int(topic.partition().leader_epoch)
    wait_until(
        subject, lambda: list_offsets(topic, EARLIEST, broker_id=broker_id, epoch=epoch).error_code == 0, "it knows"
    )
    return epoch


def list_offsets(
    topic: Topic,
    timestamp: int,
    version: int = 5,
    *,
    broker_id: int | None = None,
    replica_id: int = -1,
    epoch: int = -1,
    isolation: int = 0,
    index: int = 0,
) -> Any:
    """What ListOffsets tells of one partition."""
    wanted = ListOffsetsTopic(topic.name, [ListOffsetsPartition(index, epoch, timestamp, 10 if version == 0 else 1)])
    asked = topic.leader(index) if broker_id is None else broker_id
    answer = topic.subject.ask_once(ListOffsetsRequest(replica_id, isolation, [wanted], 1000), version, asked)
    return answer.topics[0].partitions[0]


def end_of_epoch(
    topic: Topic, epoch: int, version: int = 3, *, broker_id: int | None = None, replica_id: int = -1, current: int = -1
) -> tuple[int, int, int]:
    """(error, epoch, end offset) as OffsetForLeaderEpoch tells."""
    wanted = OffsetForLeaderTopic(topic.name, [OffsetForLeaderPartition(0, current, epoch)])
    asked = topic.leader() if broker_id is None else broker_id
    [answer] = topic.subject.ask_once(OffsetForLeaderEpochRequest(replica_id, [wanted]), version, asked).topics
    [found] = answer.partitions
    return found.error_code, found.leader_epoch, found.end_offset


def alter_quotas(
    subject: Subject, *changes: tuple[Entity, Mapping[str, float | None]], validate_only: bool = False
) -> list[Any]:
    """One entry per change: entity to values, None removes one; the entries of the answer."""
    entries = [
        AlterClientQuotasRequestEntryData(
            [AlterClientQuotasRequestEntityData(kind, name) for kind, name in entity.items()],
            [OpData(key, value or 0.0, value is None) for key, value in values.items()],
        )
        for entity, values in changes
    ]
    return list(subject.ask_once(AlterClientQuotasRequest(entries, validate_only), 1).entries)


@contextmanager
def limited(subject: Subject, *changes: tuple[Entity, dict[str, float]]) -> Iterator[None]:
    """These quotas hold; afterwards none of them does."""
    for answer in alter_quotas(subject, *changes):
        assert answer.error_code == 0, answer
    subject.pass_ms(UNTIL_KNOWN_MS)
    try:
        yield
    finally:
        for entity, values in changes:
            alter_quotas(subject, (entity, dict.fromkeys(values)))


def created(subject: Subject, *topics: CreatePartitionsTopic, validate_only: bool = False) -> list[tuple[str, int]]:
    request = CreatePartitionsRequest(list(topics), 10_000, validate_only)
    results = subject.ask(subject.connect(), request, 3).results
    return sorted((result.name, result.error_code) for result in results)
