"""Classic groups in virtual time, member by member, as a client of a recorded cluster sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkaproto.data.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafkaproto.data.consumer_protocol_assignment import TopicPartition as Assigned
from kafkaproto.data.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkaproto.trace.format import Entry
from tests.support.recording import Bench

VERSION = 1
"""Version of subscriptions; the first with owned partitions."""
Partitions = Mapping[str, Sequence[int]]


def subscription(*topics: str, owned: Partitions | None = None) -> bytes:
    listed = [TopicPartition(topic, list(indexes)) for topic, indexes in (owned or {}).items()]
    return VERSION.to_bytes(2, "big") + ConsumerProtocolSubscription(list(topics), None, listed).encode(VERSION)


def assignment(partitions: Partitions) -> bytes:
    listed = [Assigned(topic, list(indexes)) for topic, indexes in partitions.items()]
    return bytes(2) + ConsumerProtocolAssignment(listed).encode(0)


class ClassicGroup:
    """Group `g` of the classic protocol, whose members share one connection."""

    def __init__(self, bench: Bench, protocol_type: str = "consumer") -> None:
        self.bench = bench
        self.client = bench.cluster.connect()
        self.generation, self.member_id = 0, ""
        self._protocol_type = protocol_type

    def join(self, member_id: str, *, owned: Partitions | None = None, **more: Any) -> JoinGroupRequest:
        protocols = [JoinGroupRequestProtocol("range", subscription("t", owned=owned))]
        request = JoinGroupRequest("g", 10_000, 60_000, member_id, None, self._protocol_type, protocols)
        for name, value in more.items():
            setattr(request, name, value)
        return request

    def add(self, name: str, **more: Any) -> str:
        """Let the only member join, and return its id."""
        self.member_id = self.client.ask(self.join("", **more), 8).member_id
        self.client.send(self.join(self.member_id, **more), 8)
        self.bench.cluster.advance(3000)
        self.generation += 1
        return self.member_id

    def sync(self, assignments: Mapping[str, Partitions]) -> Any:
        """Let the only member sync as the leader."""
        listed = [
            SyncGroupRequestAssignment(member, assignment(partitions)) for member, partitions in assignments.items()
        ]
        request = SyncGroupRequest("g", self.generation, self.member_id, None, self._protocol_type, "range", listed)
        return self.client.ask(request, 5)

    def commit(self, partition: int, offset: int, generation: int | None = None) -> int:
        """Let the only member commit an offset of topic t, and return the error code."""
        topic = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(partition, offset)])
        epoch = self.generation if generation is None else generation
        response = self.client.ask(OffsetCommitRequest("g", epoch, self.member_id, topics=[topic]), 8)
        return int(response.topics[0].partitions[0].error_code)


def group_entries() -> list[Entry]:
    """Return the entries of a member that joins a group and commits an offset, and of a transactional producer that starts."""
    group = ClassicGroup(Bench())
    member_id = group.add("member")
    group.sync({member_id: {"t": [0, 1, 2]}})
    group.commit(0, 5)
    group.client.ask(InitProducerIdRequest("x", 1000), 4)
    return group.bench.entries
