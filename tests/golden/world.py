"""The prepared cluster of golden runs, and their common requests."""

from __future__ import annotations

from typing import Any

from kafkaproto.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkaproto.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.golden.batches import COMPRESSED, batch, message_set, values
from tests.golden.recording import UNKNOWN_ID, RecordedClient, RecordedCluster

FIRST_WITH_BATCHES = 3
"""The first version of Produce with record batches."""
FIRST_WITH_TOPIC_IDS = 13
"""The first version of Fetch that identifies topics by id."""


class World(RecordedCluster):
    """Three brokers in three racks.

    `orders` has three partitions on three brokers, `payments` one on two, and `table` is compacted. All have records, those of `payments`
    in batches of every codec. Before release 0.11 they are message sets without compression.
    """

    def prepare(self) -> World:
        self.topic("orders", 3, 3)
        self.topic("payments", 1, 2)
        self.topic("table", 1, 3, cleanup_policy="compact")
        for index in range(3):
            self.append("orders", self.records(*values(3 + index), keys=True), index)
            self.append("orders", self.records(*values(2, 100)), index)
        for data in COMPRESSED.values() if self.takes_batches else [self.records(b"a", b"b")]:
            self.append("payments", data)
        self.append("table", self.records(b"1", b"2", b"3", keys=True))
        self.advance(10)
        return self

    @property
    def takes_batches(self) -> bool:
        return self.highest("Produce") >= FIRST_WITH_BATCHES

    def records(self, *record_values: bytes | None, keys: bool = False) -> bytes:
        """Return a record batch, or a message set for releases without batches."""
        if self.takes_batches:
            return batch(*record_values, keys=keys)
        return message_set(*record_values, keys=keys, magic=1 if self.highest("Produce") == 2 else 0)

    def append(self, topic: str, data: bytes, index: int = 0, acks: int = -1, version: int | None = None) -> Any:
        writer = self.connect(self.leader(topic, index), "writer")
        response = self.send(writer, produce(topic, data, index, acks), version)
        writer.hang_up()
        return response

    def leader(self, topic: str, index: int = 0) -> int:
        broker_id, _ = self.state.controller.image.leader_of(topic, index)
        return int(broker_id)

    def topic_id(self, topic: str) -> bytes:
        existing_topic = self.state.controller.image.topics.get(topic)
        return UNKNOWN_ID if existing_topic is None else existing_topic.topic_id

    def coordinator(self, group: str) -> int:
        broker_id = self.state.coordinator_of(group)
        self.run()
        return broker_id

    def at_coordinator(self, group: str, client_id: str = "member") -> RecordedClient:
        return self.connect(self.coordinator(group), client_id)

    def fetch(self, *places: tuple[str, int, int], **options: Any) -> FetchRequest:
        return fetch(*places, ids={topic: self.topic_id(topic) for topic, _, _ in places}, **options)

    def join(
        self, client: RecordedClient, group: str, version: int | None = None, member_id: str = "", **options: Any
    ) -> str:
        """Send JoinGroup, again if the coordinator requires the member id first, and return the member id or "" if there is none yet."""
        count = len(client.answers)
        self.send(client, join(group, member_id, **options), version)
        if len(client.answers) == count:
            return member_id
        response = client.answers[-1].message
        if response.error_code == 79:
            count += 1
            member_id = response.member_id
            self.send(client, join(group, member_id, **options), version)
            if len(client.answers) == count:
                return member_id
            response = client.answers[-1].message
        return str(response.member_id)


def produce(
    topic: str, data: bytes | None, partition: int = 0, acks: int = 1, timeout_ms: int = 1000, **options: Any
) -> ProduceRequest:
    topics = [TopicProduceData(topic, partition_data=[PartitionProduceData(partition, data)])]
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topics, **options)


def fetch(
    *places: tuple[str, int, int],
    ids: dict[str, bytes] | None = None,
    partition_max: int = 1 << 20,
    max_bytes: int = 1 << 30,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    session: tuple[int, int] = (0, -1),
    forgotten: tuple[tuple[str, int], ...] = (),
    replica_id: int = -1,
    isolation: int = 0,
    rack: str = "",
    epoch: int = -1,
    last_epoch: int = -1,
    log_start: int = -1,
) -> FetchRequest:
    """Return a fetch of (topic, partition, offset) in this order, for any version."""
    ids = ids or {}
    return FetchRequest(
        replica_id=replica_id,
        replica_state=ReplicaState(replica_id),
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchTopic(
                topic,
                ids.get(topic, bytes(16)),
                [
                    FetchPartition(
                        partition=index,
                        current_leader_epoch=epoch,
                        fetch_offset=offset,
                        last_fetched_epoch=last_epoch,
                        log_start_offset=log_start,
                        partition_max_bytes=partition_max,
                    )
                ],
            )
            for topic, index, offset in places
        ],
        forgotten_topics_data=[ForgottenTopic(t, ids.get(t, bytes(16)), [index]) for t, index in forgotten],
        rack_id=rack,
    )


def metadata(
    *names: str, everything: bool = False, create: bool = False, ids: tuple[bytes, ...] = ()
) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    topics += [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids]
    return MetadataRequest(topics=None if everything else topics, allow_auto_topic_creation=create)


def subscription(*topics: str) -> bytes:
    """Return the subscription that consumers send in JoinGroup, including its version."""
    return b"\x00\x00" + ConsumerProtocolSubscription.layout(0).encode(ConsumerProtocolSubscription(list(topics)))


def join(
    group: str,
    member_id: str = "",
    *,
    instance: str | None = None,
    session_ms: int = 10_000,
    rebalance_ms: int = 5_000,
    protocols: tuple[str, ...] = ("range",),
    kind: str = "consumer",
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=kind,
        protocols=[JoinGroupRequestProtocol(name, subscription("orders")) for name in protocols],
        reason="golden",
    )


def sync(
    group: str, member_id: str, generation: int, assignments: dict[str, bytes] | None = None, **options: Any
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(name, data) for name, data in (assignments or {}).items()],
        **options,
    )


def commit(
    group: str, *places: tuple[str, int, int], member_id: str = "", generation: int = -1, **options: Any
) -> OffsetCommitRequest:
    """Return a commit of (topic, partition, offset)."""
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[
            OffsetCommitRequestTopic(
                topic,
                partitions=[OffsetCommitRequestPartition(index, offset, committed_metadata=f"at {offset}")],
            )
            for topic, index, offset in places
        ],
        **options,
    )


def find_coordinator(*keys: str, key_type: int = 0) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=keys[0], key_type=key_type, coordinator_keys=list(keys))
