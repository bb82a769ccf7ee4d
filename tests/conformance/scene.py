"""What conformance tests begin with: topics that are there on every broker, batches in them, the leader to talk to."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.wire import produce, produced
from tests.conformance.client import Connection
from tests.conformance.subjects import Subject

METADATA_VERSION = 12
PRODUCE_VERSION = 9
ROUNDS = 200
PAUSE_MS = 50


def brokers_known(subject: Subject, broker_id: int) -> set[int]:
    """The brokers that one of them tells of. Raises OSError when nobody listens."""
    with closing(Connection(*subject.bootstrap[broker_id], "conformance")) as connection:
        return {broker.node_id for broker in subject.ask(connection, MetadataRequest(None), METADATA_VERSION).brokers}


class Topic:
    """A topic of one test. `leader` and `connect` ask the cluster anew, as leaders move."""

    def __init__(self, subject: Subject, name: str) -> None:
        self.subject = subject
        self.name = name

    def metadata(self, broker_id: int = 0) -> Any:
        """The topic's entry in one broker's Metadata response."""
        connection = self.subject.connect(broker_id)
        request = MetadataRequest([MetadataRequestTopic(name=self.name)], allow_auto_topic_creation=False)
        [topic] = self.subject.ask(connection, request, METADATA_VERSION).topics
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
        """Append batches, one request each, as a producer that waits; the answers."""
        connection = self.connect(index)
        answers = []
        for data in batches:
            answer = produced(self.subject.ask(connection, produce(self.name, data, index, acks), version))
            assert answer.error_code == 0, ErrorCode(answer.error_code).name
            answers.append(answer)
        return answers


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
        assignment = {i: list(range(replication)) for i in range(partitions)}
    wanted = CreatableTopic(
        name,
        -1,
        -1,
        [CreatableReplicaAssignment(index, brokers) for index, brokers in assignment.items()],
        [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()],
    )
    for _ in range(ROUNDS):
        [made] = subject.ask(subject.connect(), CreateTopicsRequest([wanted], 10_000), 5).topics
        if made.error_code != ErrorCode.NOT_CONTROLLER:
            break
        subject.pass_ms(PAUSE_MS)
    assert made.error_code == 0, (made.error_code, made.error_message)
    topic = Topic(subject, name)
    _wait_until_known(topic, assignment)
    return topic


def _wait_until_known(topic: Topic, assignment: dict[int, list[int]]) -> None:
    """Every broker tells the leaders, and the leaders answer as leaders (a broker knows of a topic before it opens its log)."""
    for _ in range(ROUNDS):
        seen = [topic.metadata(broker_id) for broker_id in range(len(topic.subject.bootstrap))]
        if all(
            {p.partition_index: p.leader_id for p in one.partitions if p.error_code == 0}
            == {index: brokers[0] for index, brokers in assignment.items()}
            for one in seen
        ):
            return
        topic.subject.pass_ms(PAUSE_MS)
    raise AssertionError(f"{topic.name} did not become known to every broker: {seen}")
