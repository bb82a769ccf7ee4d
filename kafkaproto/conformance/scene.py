"""Helpers of the conformance tests: create topics that every broker knows, fill them, and connect to their leaders.

Other helpers stop a follower from fetching, send fetches with a follower's id (N-12), move leadership, and list offsets and epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.client import Connection
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import FETCH_VERSION, PRODUCE_VERSION, fetch, flat, produce, produced
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
from kafkaproto.records.compression import Compression
from kafkaproto.records.entries import read_header

RECORD_BATCH_VERSION, ZSTD_VERSION = 3, 7
"""The first Produce version with record batches of magic 2, and the first one with compression zstd."""
LEADER_EPOCH_VERSION, TOPIC_ID_VERSION = 7, 10
"""The first Metadata version with leader epochs, and the first one with topic ids."""
LOG_START_VERSION, FETCH_BY_ID_VERSION = 5, 13
"""The first Fetch version with the log start offset, and the first one with topic ids."""
FETCH_FIELDS = {"session": 7, "epoch": 9, "rack": 11, "last_epoch": 12}
"""Maps a parameter of `wire.fetch` to the first Fetch version whose requests have the corresponding field."""
ROUNDS = 400
PAUSE_MS = 25
APPEND_WITHIN_MS = 10_000
LATEST, EARLIEST = -1, -2
UNTIL_KNOWN_MS = 300
"""The time in ms after which every broker certainly applies a changed quota."""
Entity = dict[str, str | None]
"""The entity of a quota: maps "user", "client-id" or "ip" to a name, or to None for the default entity."""


def wait_until(subject: Subject, condition: Callable[[], Any], expected_event: str) -> Any:
    """Call `condition`, with pauses, until it returns a true value, and return this value. Raises AssertionError after 10 s of pauses.

    expected_event: the end of the error text "timed out waiting until ...", such as "broker 1 leads t-0".
    """
    for _ in range(ROUNDS):
        if value := condition():
            return value
        subject.pass_ms(PAUSE_MS)
    raise AssertionError(f"timed out waiting until {expected_event}")


def brokers_known(subject: Subject, broker_id: int) -> set[int]:
    """Return the ids of the brokers in one broker's Metadata response. Raises OSError if that broker is unreachable."""
    return {
        broker.node_id
        for broker in subject.ask_once(
            MetadataRequest([]), subject.version(ApiKey.METADATA, subject.metadata_version), broker_id
        ).brokers
    }


class Topic:
    """A topic that one test uses. `leader` and `connect` look up the leader on every call, because leaders move."""

    def __init__(self, subject: Subject, name: str) -> None:
        self.subject = subject
        self.name = name

    def metadata(self, broker_id: int = 0, lowest: int = 0) -> Any:
        """Return the topic's entry in one broker's Metadata response.

        lowest: the lowest version of Metadata whose response has the fields that the test needs.
        """
        version = self.subject.version(ApiKey.METADATA, self.subject.metadata_version, lowest)
        request = MetadataRequest([MetadataRequestTopic(name=self.name)], allow_auto_topic_creation=False)
        [topic] = self.subject.ask_once(request, version, broker_id).topics
        return topic

    @property
    def topic_id(self) -> bytes:
        return bytes(self.metadata(lowest=TOPIC_ID_VERSION).topic_id)

    @property
    def leader_epoch(self) -> int:
        """Return the leader epoch of the first partition."""
        [partition] = [p for p in self.metadata(lowest=LEADER_EPOCH_VERSION).partitions if p.partition_index == 0]
        return int(partition.leader_epoch)

    def partition(self, index: int = 0, broker_id: int = 0) -> Any:
        return next(p for p in self.metadata(broker_id).partitions if p.partition_index == index)

    def leader(self, index: int = 0) -> int:
        """Return the id of the broker that leads a partition. Waits until the partition has a leader."""
        for _ in range(ROUNDS):
            partition = self.partition(index)
            if partition.error_code == 0 and partition.leader_id >= 0:
                return int(partition.leader_id)
            self.subject.pass_ms(PAUSE_MS)
        raise AssertionError(
            f"partition {self.name}-{index} has no leader after {ROUNDS} checks; start a broker that has a replica of it"
        )

    def followers(self, index: int = 0) -> list[int]:
        leader = self.leader(index)
        return [replica for replica in self.partition(index).replica_nodes if replica != leader]

    def connect(self, index: int = 0, client_id: str | None = "conformance") -> Connection:
        """Return a new connection to the leader of a partition."""
        return self.subject.connect(self.leader(index), client_id)

    def fill(self, *batches: bytes, index: int = 0, acks: int = -1, client_id: str = "conformance") -> list[Any]:
        """Append batches to partition `index`, with one request after another. Returns the partition's response to the request of each batch.

        A request that gets NOT_LEADER_OR_FOLLOWER is sent again: a new leader may not know yet that it leads, although another broker reports it as
        the leader. acks: as in a Produce request. client_id: the client id in the headers of the requests.
        """
        partition_responses: list[Any] = []
        has_zstd = any(read_header(data).compression == Compression.ZSTD for data in batches)
        lowest = ZSTD_VERSION if has_zstd else RECORD_BATCH_VERSION
        version = self.subject.version(ApiKey.PRODUCE, PRODUCE_VERSION, lowest)
        for _ in range(ROUNDS):
            with closing(self.subject.open(self.leader(index), client_id)) as connection:
                for data in batches[len(partition_responses) :]:
                    request = produce(self.name, data, index, acks, APPEND_WITHIN_MS)
                    partition_response = produced(self.subject.ask(connection, request, version))
                    if partition_response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                        break
                    assert partition_response.error_code == 0, ErrorCode(partition_response.error_code).name
                    partition_responses.append(partition_response)
            if len(partition_responses) == len(batches):
                return partition_responses
            self.subject.pass_ms(PAUSE_MS)
        raise AssertionError(f"Produce to {self.name}-{index} failed {ROUNDS} times with NOT_LEADER_OR_FOLLOWER")


def new_topic(
    subject: Subject,
    partitions: int = 1,
    replication: int = 1,
    assignment: dict[int, list[int]] | None = None,
    name: str | None = None,
    **configs: str,
) -> Topic:
    """Create a topic and wait until every broker knows its leaders. configs: topic settings, with underscores for the dots in their names.

    name: by default a new one. assignment: maps each partition to broker ids, the leader first. By default, the topic has `partitions` partitions
    with `replication` replicas each, and the cluster's first broker leads all partitions, so that one connection is enough.
    """
    name = name or subject.new_name()
    if assignment is None:
        assignment = {i: list(range(subject.first_id, subject.first_id + replication)) for i in range(partitions)}
    _need(subject, assignment, configs)
    if subject.creates:
        _create(subject, name, assignment, configs)
    else:  # a Metadata request creates the topic
        subject.ask_once(MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=True), 4)
    topic = Topic(subject, name)
    _wait_until_known(topic, assignment)
    return topic


def _need(subject: Subject, assignment: dict[int, list[int]], configs: dict[str, str]) -> None:
    """Skip the current test if the cluster cannot create a topic with this assignment and these settings, or lacks one of the brokers.

    assignment: maps partitions to broker ids, the leader first. configs: maps names of settings to values.
    """
    for brokers in assignment.values():
        for broker_id in brokers:
            subject.need_broker(broker_id)
    if not subject.assigns and {broker for brokers in assignment.values() for broker in brokers} != {subject.first_id}:
        pytest.skip("not prepared: needs more than one broker")
    if not subject.creates and configs:
        pytest.skip("not prepared: needs CreateTopics")


def _create(subject: Subject, name: str, assignment: dict[int, list[int]], configs: dict[str, str]) -> None:
    assignments = [CreatableReplicaAssignment(index, brokers) for index, brokers in assignment.items()]
    count, replication = (-1, -1) if subject.assigns else (len(assignment), 1)
    values = {
        "retention_ms": "-1",
        **configs,
    }  # test records have old timestamps: brokers with frequent retention checks would delete them
    texts = subject.topic_settings({key.replace("_", "."): value for key, value in values.items()})
    settings = [CreatableTopicConfig(name, value) for name, value in texts.items()]
    topic = CreatableTopic(name, count, replication, assignments if subject.assigns else [], settings)
    version = subject.version(ApiKey.CREATE_TOPICS, 5)
    for _ in range(ROUNDS):
        [result] = subject.ask_once(CreateTopicsRequest([topic], 10_000), version).topics
        if result.error_code != ErrorCode.NOT_CONTROLLER:
            break
        subject.pass_ms(PAUSE_MS)
    if result.error_code == ErrorCode.INVALID_CONFIG:
        subject.need_topic_settings({setting.name: setting.value or "" for setting in settings})
    assert result.error_code == 0, (result.error_code, result.error_message)


def _wait_until_known(topic: Topic, assignment: dict[int, list[int]]) -> None:
    """Wait until every broker reports the leaders in `assignment`, and each leader accepts requests for its partitions.

    A broker may report a new topic in Metadata before it has opened the topic's logs. assignment: maps each partition to broker ids, the leader
    first.
    """
    for _ in range(ROUNDS):
        entries = [topic.metadata(broker_id) for broker_id in range(len(topic.subject.bootstrap))]
        if all(
            {index: brokers[0] for index, brokers in assignment.items()}.items()
            <= {p.partition_index: p.leader_id for p in entry.partitions if p.error_code == 0}.items()
            for entry in entries
        ) and all(_leads(topic, leader, assignment) for leader in {brokers[0] for brokers in assignment.values()}):
            return
        topic.subject.pass_ms(PAUSE_MS)
    raise AssertionError(
        f"not every broker reported the leaders of topic {topic.name} in time; the Metadata entries are {entries}"
    )


def _leads(topic: Topic, broker_id: int, assignment: dict[int, list[int]]) -> bool:
    """Return whether a broker accepts ListOffsets requests, as only a leader does, for all partitions that it should lead.

    assignment: maps partitions of the topic to the broker ids of their replicas. The first of these brokers should lead the partition.
    """
    partitions = [ListOffsetsPartition(i, -1, EARLIEST) for i, brokers in assignment.items() if brokers[0] == broker_id]
    request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic(topic.name, partitions)])
    version = topic.subject.version(ApiKey.LIST_OFFSETS, 5, lowest=1)
    [result] = topic.subject.ask_once(request, version, broker_id).topics
    return all(partition.error_code == 0 for partition in result.partitions)


# ---- fetches in the name of a held follower --------------------------------------------------------------------------------------


@contextmanager
def held(subject: Subject, topic: Topic, broker_id: int, index: int = 0) -> Iterator[None]:
    """Stop a broker from fetching partition `index` of a topic from its leader until the end of the `with` block.

    The test must not send requests to this broker in the block: if it is a Kafka broker, its whole process is suspended, so it does not respond.
    """
    subject.hold_follower(topic.name, index, broker_id)
    try:
        yield
    finally:
        subject.release_follower(topic.name, index, broker_id)


def follow(topic: Topic, broker_id: int, offset: int, **more: Any) -> Any:
    """Send the leader a Fetch like that of the follower on broker `broker_id`. Returns the response for the first partition (N-12).

    The fetch tells the leader that this follower has all records below `offset`. more: further arguments of `wire.fetch`.
    """
    request = fetch((topic.name, 0, offset), replica_id=broker_id, **more)
    [(_, data)] = flat(topic.subject.ask_once(request, 11, topic.leader()))
    return data


def read(topic: Topic, offset: int, version: int | None = None, broker_id: int | None = None, **more: Any) -> Any:
    """Fetch the topic's first partition as a consumer, and return the partition's response.

    broker_id: the broker to fetch from, by default the leader. more: further arguments of `wire.fetch`. version: the version of Fetch. The default is
    the version closest to 11 that meets three conditions: the cluster serves it, it is not below 5, and it has fields for all arguments in `more`.
    """
    if version is None:
        lowest = max((FETCH_FIELDS.get(name, 0) for name in more), default=0)
        version = topic.subject.version(ApiKey.FETCH, FETCH_VERSION, max(lowest, LOG_START_VERSION))
    known = topic.metadata(lowest=TOPIC_ID_VERSION if version >= FETCH_BY_ID_VERSION else 0)
    request = fetch((topic.name, 0, offset), version=version, topic_ids={topic.name: known.topic_id}, **more)
    target = topic.leader() if broker_id is None else broker_id
    [(_, data)] = flat(topic.subject.ask_once(request, version, target))
    return data


# ---- leaders, offsets, epochs ----------------------------------------------------------------------------------------------------


def make_lead(topic: Topic, broker_id: int) -> int:
    """Make a broker's in-sync replica the preferred leader, and elect it. Returns the new leader epoch once the broker responds as leader."""
    subject = topic.subject
    replicas = [broker_id, *(r for r in topic.partition().replica_nodes if r != broker_id)]
    order = [ReassignableTopic(topic.name, [ReassignablePartition(0, replicas)])]
    response = subject.ask_once(AlterPartitionReassignmentsRequest(APPEND_WITHIN_MS, topics=order), 0)
    assert response.responses[0].partitions[0].error_code == 0
    wait_until(subject, lambda: topic.partition().replica_nodes == replicas, f"{topic.name}-0 has replicas {replicas}")
    elect = ElectLeadersRequest(0, [TopicPartitions(topic.name, [0])], APPEND_WITHIN_MS)
    [result] = subject.ask_once(elect, 2).replica_election_results
    assert result.partition_result[0].error_code == 0, result.partition_result[0].error_message
    wait_until(subject, lambda: topic.partition().leader_id == broker_id, f"broker {broker_id} leads {topic.name}-0")
    epoch = topic.leader_epoch
    wait_until(
        subject,
        lambda: list_offsets(topic, EARLIEST, broker_id=broker_id, epoch=epoch).error_code == 0,
        f"broker {broker_id} knows that it leads {topic.name}-0",
    )
    return epoch


def list_offsets(
    topic: Topic,
    timestamp: int,
    version: int | None = None,
    *,
    broker_id: int | None = None,
    replica_id: int = -1,
    epoch: int = -1,
    isolation: int = 0,
    index: int = 0,
) -> Any:
    """Return the response for one partition to a ListOffsets request.

    timestamp: a time in ms, or a special value such as -1 for the latest offset. version: by default, the served version closest to 5 that supports
    the arguments. broker_id: the broker that gets the request, by default the leader. replica_id: the broker id of a follower, -1 for a consumer.
    epoch: the leader epoch that the client believes to be current, -1 for none. isolation: 1 for read_committed, 0 for read_uncommitted. index: the
    partition.
    """
    if version is None:
        lowest = 4 if epoch >= 0 else 2 if isolation else 1
        version = topic.subject.version(ApiKey.LIST_OFFSETS, 5, lowest)
    requested = ListOffsetsTopic(topic.name, [ListOffsetsPartition(index, epoch, timestamp, 10 if version == 0 else 1)])
    target = topic.leader(index) if broker_id is None else broker_id
    response = topic.subject.ask_once(ListOffsetsRequest(replica_id, isolation, [requested], 1000), version, target)
    return response.topics[0].partitions[0]


def end_of_epoch(
    topic: Topic, epoch: int, version: int = 3, *, broker_id: int | None = None, replica_id: int = -1, current: int = -1
) -> tuple[int, int, int]:
    """Return (error, epoch, end offset) of the OffsetForLeaderEpoch response for the first partition.

    epoch: the epoch whose end offset is requested. broker_id: the broker that gets the request, by default the leader. replica_id: the broker id of a
    follower, -1 for a consumer. current: the leader epoch that the client believes to be current, -1 for none.
    """
    requested = OffsetForLeaderTopic(topic.name, [OffsetForLeaderPartition(0, current, epoch)])
    target = topic.leader() if broker_id is None else broker_id
    [result] = topic.subject.ask_once(OffsetForLeaderEpochRequest(replica_id, [requested]), version, target).topics
    [partition] = result.partitions
    return partition.error_code, partition.leader_epoch, partition.end_offset


def alter_quotas(
    subject: Subject, *changes: tuple[Entity, Mapping[str, float | None]], validate_only: bool = False
) -> list[Any]:
    """Change quotas, and return the entries of the response.

    changes: (entity, dict of quota names to values); the value None removes a quota. An entity maps "user", "client-id" or "ip" to a name, or to None
    for the default entity. validate_only: whether the broker only checks the changes.
    """
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
    """Return a context in which client quotas are set. At the end of the context, the quotas are removed.

    changes: (entity, dict of quota names to values). An entity maps "user", "client-id" or "ip" to a name, or to None for the default entity.
    """
    for result in alter_quotas(subject, *changes):
        assert result.error_code == 0, result
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
