"""Golden runs of each API: every version that a broker offers, with requests that succeed and requests that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kafkaproto.broker.config.release import ranges_of
from kafkaproto.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from kafkaproto.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kafkaproto.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkaproto.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkaproto.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kafkaproto.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkaproto.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafkaproto.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkaproto.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from kafkaproto.messages.describe_cluster import DescribeClusterRequest
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.describe_groups import DescribeGroupsRequest
from kafkaproto.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kafkaproto.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from kafkaproto.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.incremental_alter_configs import AlterableConfig as IncrementalConfig
from kafkaproto.messages.incremental_alter_configs import AlterConfigsResource as IncrementalResource
from kafkaproto.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkaproto.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafkaproto.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.golden.batches import COMPRESSED, TIMESTAMP_MS, batch, message_set, values
from tests.golden.fitting import KEYS
from tests.golden.recording import UNKNOWN_ID, RecordedClient
from tests.golden.world import World, commit, find_coordinator, join, metadata, produce, sync

TOPIC, BROKER = 2, 4
Case = Callable[[World, RecordedClient, int], None]
CASES: dict[str, Case] = {}
"""By API: the requests of one version. The client is connected to broker 0."""


OF_KAFKA_4 = ("ConsumerGroupDescribe", "ConsumerGroupHeartbeat")
"""APIs whose runs emulate Kafka 4.2; the others emulate the default release."""


WITH_NEWER_VERSIONS = (
    "Produce",
    "Fetch",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "OffsetFetch",
    "EndTxn",
    "TxnOffsetCommit",
    "WriteTxnMarkers",
    "ListTransactions",
    "UpdateFeatures",
    "ListConfigResources",
    "AddRaftVoter",
    "DescribeCluster",
    "AlterPartitionReassignments",
)
"""APIs of which Kafka 4.2 has versions that the default release lacks."""


def api(name: str) -> Callable[[Case], Case]:
    def note(case: Case) -> Case:
        CASES[name] = case
        return case

    return note


def requests_of(name: str) -> Callable[[Callable[[World, int], Iterator[Any]]], Callable[[World, int], Iterator[Any]]]:
    """Register a case whose requests do not depend on earlier responses."""

    def note(requests: Callable[[World, int], Iterator[Any]]) -> Callable[[World, int], Iterator[Any]]:
        def case(world: World, client: RecordedClient, version: int) -> None:
            for request in requests(world, version):
                world.send(client, request, version)

        CASES[name] = case
        return requests

    return note


@api("Produce")
def produce_case(world: World, client: RecordedClient, version: int) -> None:
    topic = f"made-{version}"
    world.topic(topic, 2, 3)
    world.topic(f"logged-{version}", 1, 1, message_timestamp_type="LogAppendTime")
    good = batch(*values(3), keys=True, headers=True) if version >= 3 else message_set(b"a", b"b", magic=version // 2)
    leader = world.connect(world.leader(topic))
    for acks in (1, -1, 0, 2):
        world.send(leader, produce(topic, good, acks=acks), version)
    world.advance(20)
    other = world.connect((world.leader(topic) + 1) % 3)
    world.send(other, produce(topic, good), version)
    world.send(world.connect(world.leader(f"logged-{version}")), produce(f"logged-{version}", good), version)
    for data in COMPRESSED.values():
        world.send(leader, produce(topic, data), version)
    for data in (None, b"", b"\x00" * 70, good[:-1], good[:20] + b"\xff" + good[21:], good + good):
        world.send(leader, produce(topic, data), version)
    world.send(client, produce("missing", good), version)
    world.send(client, produce(topic, good, partition=9), version)
    world.send(leader, produce(topic, good, transactional_id="t"), max(version, 3))
    failing = world.connect(world.leader(topic))
    world.send(failing, produce(topic, b"\x00" * 70, acks=0), version)


@api("Fetch")
def fetch_case(world: World, client: RecordedClient, version: int) -> None:
    def ask(*places: tuple[str, int, int], at: RecordedClient = client, **options: Any) -> None:
        world.send(at, world.fetch(*places, **options), version)
        world.advance(50)

    reader = world.connect(world.leader("payments"))
    ask(("payments", 0, 0), at=reader)
    ask(("payments", 0, 13), at=reader)
    ask(("payments", 0, 0), at=reader, partition_max=100)
    for index in range(3):
        at = world.connect(world.leader("orders", index))
        ask(("orders", index, 0), at=at, isolation=1)
        ask(("orders", index, 1), ("orders", index, 0), at=at)
        ask(*((("orders", i, 0)) for i in range(3)), at=at, max_bytes=200)
        ask(("orders", index, 0), at=at, epoch=0)
        ask(("orders", index, 0), at=at, epoch=7)
        ask(("orders", index, 99), at=at)
        ask(("orders", index, 0), at=at, session=(0, 0))
        ask(("orders", index, 0), at=at, last_epoch=3)
    ask(("missing", 0, 0), ("orders", 9, 0))
    ask(("orders", 0, 0), session=(1234, 5))
    ask(("orders", 0, 0), replica_id=1)
    ask(("orders", 0, 0), isolation=2)
    waiting = world.connect(world.leader("payments"))
    ask(("payments", 0, 48), at=waiting, max_wait_ms=100, min_bytes=10)
    world.advance(100)


@requests_of("ListOffsets")
def list_offsets(world: World, version: int) -> Iterator[Any]:
    for timestamp in (-1, -2, -3, -4, -5, TIMESTAMP_MS, TIMESTAMP_MS + 15, TIMESTAMP_MS + 10**9):
        topics = [
            ListOffsetsTopic(topic, [ListOffsetsPartition(i, -1, timestamp, 5) for i in indexes])
            for topic, indexes in (("orders", (0, 1, 2)), ("payments", (0,)), ("missing", (0,)))
        ]
        yield ListOffsetsRequest(-1, 0, topics)
    topic_requests = [ListOffsetsTopic("orders", [ListOffsetsPartition(0, 7, -1, 1)])]
    yield ListOffsetsRequest(-1, 1, topic_requests)
    yield ListOffsetsRequest(1, 0, topic_requests)
    yield ListOffsetsRequest(-1, 2 if version >= 2 else 0, topic_requests)


@requests_of("Metadata")
def metadata_requests(world: World, version: int) -> Iterator[Any]:
    if version > 0:
        yield metadata(everything=True)
    yield metadata()
    yield metadata("orders", "missing", "bad/name")
    yield metadata(f"created-{version}", create=version >= 4)
    yield metadata("payments", "payments")
    if version >= 8:
        extra = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": version <= 10}
        yield MetadataRequest(topics=metadata("orders").topics, **extra)
    if version >= 10:
        yield metadata(ids=(world.topic_id("orders"), UNKNOWN_ID))


@api("OffsetCommit")
def offset_commit_case(world: World, client: RecordedClient, version: int) -> None:
    group = f"g-{version}"
    member = world.at_coordinator(group)
    world.send(member, commit(group, ("orders", 0, 2), ("orders", 1, 3), ("missing", 0, 1)), version)
    world.send(member, commit(group, ("orders", 0, 2), generation=4, member_id="nobody"), version)
    member_id = world.join(member, group)
    world.send(member, sync(group, member_id, 1, {member_id: b"all"}))
    world.send(member, commit(group, ("orders", 2, 4), generation=1, member_id=member_id), version)
    world.send(member, commit(group, ("orders", 2, 4), generation=2, member_id=member_id), version)
    world.send(member, commit(""), version)
    elsewhere = world.connect((world.coordinator(group) + 1) % 3)
    world.send(elsewhere, commit(group, ("orders", 0, 2)), version)


@api("OffsetFetch")
def offset_fetch_case(world: World, client: RecordedClient, version: int) -> None:
    group = f"g-{version}"
    member = world.at_coordinator(group)
    world.send(member, commit(group, ("orders", 0, 2), ("orders", 1, 3)))

    def ask(names: dict[str, list[int]] | None, at: RecordedClient = member, **options: Any) -> None:
        topics = None if names is None else [OffsetFetchRequestTopic(n, i) for n, i in names.items()]
        many = None if names is None else [OffsetFetchRequestTopics(n, partition_indexes=i) for n, i in names.items()]
        groups = [OffsetFetchRequestGroup(group, topics=many), OffsetFetchRequestGroup("other", topics=many)]
        world.send(at, OffsetFetchRequest(group, topics, groups, **options), version)

    ask({"orders": [0, 1, 2], "missing": [0]})
    if version >= 2:
        ask(None)
    if version >= 7:
        ask({"orders": [0]}, require_stable=True)
    ask({"orders": [0]}, world.connect((world.coordinator(group) + 1) % 3))


@api("DeleteGroups")
def delete_groups_case(world: World, client: RecordedClient, version: int) -> None:
    group, other = f"g-{version}", f"other-{version}"
    member = world.at_coordinator(group)
    member_id = world.join(member, group)
    world.send(member, sync(group, member_id, 1, {member_id: b"all"}))
    world.send(world.at_coordinator(other), commit(other, ("orders", 0, 2)))
    world.send(member, DeleteGroupsRequest([group, "unknown", group]), version)
    world.send(world.at_coordinator(other), DeleteGroupsRequest([other]), version)
    world.send(member, LeaveGroupRequest(group, member_id), 1)
    world.send(member, DeleteGroupsRequest([group]), version)
    world.send(world.connect((world.coordinator(group) + 1) % 3), DeleteGroupsRequest([group]), version)


@api("OffsetDelete")
def offset_delete_case(world: World, client: RecordedClient, version: int) -> None:
    group = f"g-{version}"
    member = world.at_coordinator(group)

    def delete(name: str, *indexes: int) -> OffsetDeleteRequest:
        partitions = [OffsetDeleteRequestPartition(index) for index in indexes]
        return OffsetDeleteRequest(name, [OffsetDeleteRequestTopic("orders", partitions)])

    world.send(member, delete(group, 0), version)
    world.send(member, commit(group, ("orders", 0, 2), ("orders", 1, 3)))
    world.send(member, delete(group, 0, 99), version)
    world.send(member, delete("", 0), version)
    world.send(world.connect((world.coordinator(group) + 1) % 3), delete(group, 1), version)
    world.send(member, delete(group, 1), version)


@api("ConsumerGroupHeartbeat")
def consumer_group_heartbeat_case(world: World, client: RecordedClient, version: int) -> None:
    group = f"new-{version}"
    member = world.at_coordinator(group)
    for member_id in "ab":
        world.send(member, consumer_heartbeat(group, member_id, 0, owned=[], names=["orders", "missing"]), version)
    world.send(member, consumer_heartbeat(group, "a", 1), version)
    world.send(member, consumer_heartbeat(group, "a", 1, owned=[(world.topic_id("orders"), [0, 1])]), version)
    world.send(member, consumer_heartbeat(group, "b", 2, owned=[]), version)
    for member_id, epoch in (("a", 9), ("nobody", 1), ("a", -3), ("b", -1)):
        world.send(member, consumer_heartbeat(group, member_id, epoch), version)
    world.send(member, consumer_heartbeat("", "a", 1), version)
    world.send(world.connect((world.coordinator(group) + 1) % 3), consumer_heartbeat(group, "a", 1), version)


def consumer_heartbeat(
    group: str,
    member_id: str,
    epoch: int,
    *,
    owned: list[tuple[bytes, list[int]]] | None = None,
    names: list[str] | None = None,
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group,
        member_id,
        epoch,
        rebalance_timeout_ms=-1 if names is None else 60_000,
        subscribed_topic_names=names,
        topic_partitions=None
        if owned is None
        else [ConsumerGroupHeartbeatRequestTopicPartitions(*places) for places in owned],
    )


@api("ConsumerGroupDescribe")
def consumer_group_describe_case(world: World, client: RecordedClient, version: int) -> None:
    group = f"described-{version}"
    member = world.at_coordinator(group)
    world.send(member, consumer_heartbeat(group, "a", 0, owned=[], names=["orders"]))
    world.send(member, ConsumerGroupDescribeRequest([group, "unknown"], True), version)
    world.send(member, ConsumerGroupDescribeRequest([group]), version)
    if version == 1:
        world.send(member, DescribeGroupsRequest([group, "unknown"], True), 6)


@requests_of("FindCoordinator")
def find_coordinator_requests(world: World, version: int) -> Iterator[Any]:
    yield find_coordinator("group", "another")
    yield find_coordinator("")
    if version >= 1:
        for key_type in (1, 2, 9):
            yield find_coordinator("key", key_type=key_type)


@api("JoinGroup")
def join_group_case(world: World, client: RecordedClient, version: int) -> None:
    group = f"g-{version}"
    first, second = world.at_coordinator(group, "first"), world.at_coordinator(group, "second")
    first_id = world.join(first, group, version)
    two = world.join(second, group, version, instance="static" if version >= 5 else None)
    world.advance(100)
    world.send(first, join(group, first_id), version)
    world.advance(100)
    world.send(first, sync(group, first_id, 2, {first_id: b"1", two: b"2"}))
    for wrong in (
        join(group, "nobody"),
        join("", ""),
        join(group, first_id, kind="connect"),
        join(group, first_id, protocols=()),
        join(group, first_id, protocols=("other",)),
        join(group, first_id, session_ms=1),
    ):
        world.send(world.at_coordinator(group), wrong, version)
    world.send(world.connect((world.coordinator(group) + 1) % 3), join(group), version)
    world.advance(30_000)


def member_of(world: World, group: str) -> tuple[RecordedClient, str]:
    """Return a group with one member after its first rebalance."""
    member = world.at_coordinator(group)
    member_id = world.join(member, group)
    world.send(member, sync(group, member_id, 1, {member_id: b"all"}))
    return member, member_id


@api("Heartbeat")
def heartbeat_case(world: World, client: RecordedClient, version: int) -> None:
    group = f"g-{version}"
    member, member_id = member_of(world, group)
    for topics in (
        (group, 1, member_id),
        (group, 2, member_id),
        (group, 1, "nobody"),
        ("", 1, member_id),
        ("x", 1, "y"),
    ):
        world.send(member, HeartbeatRequest(*topics), version)
    if version >= 3:
        world.send(member, HeartbeatRequest(group, 1, member_id, "instance"), version)
    world.send(world.connect((world.coordinator(group) + 1) % 3), HeartbeatRequest(group, 1, member_id), version)


@api("LeaveGroup")
def leave_group_case(world: World, client: RecordedClient, version: int) -> None:
    group = f"g-{version}"
    member, member_id = member_of(world, group)
    for name, leaving_id in ((group, "nobody"), ("", member_id), (group, member_id), (group, member_id)):
        identities = [MemberIdentity(leaving_id, reason="done"), MemberIdentity("", "instance")]
        world.send(member, LeaveGroupRequest(name, leaving_id, identities), version)
    elsewhere = world.connect((world.coordinator(group) + 1) % 3)
    world.send(elsewhere, LeaveGroupRequest(group, member_id, [MemberIdentity(member_id)]), version)


@api("SyncGroup")
def sync_group_case(world: World, client: RecordedClient, version: int) -> None:
    group = f"g-{version}"
    member = world.at_coordinator(group)
    member_id = world.join(member, group)
    world.send(member, sync(group, member_id, 5), version)
    world.send(member, sync(group, "nobody", 1), version)
    world.send(member, sync("", member_id, 1), version)
    world.send(member, sync(group, member_id, 1, {member_id: b"all"}), version)
    world.send(member, sync(group, member_id, 1), version)
    if version >= 5:
        odd = sync(group, member_id, 1)
        odd.protocol_name = "other"
        world.send(member, odd, version)
        odd.protocol_name = None
        world.send(member, odd, version)
    world.send(world.connect((world.coordinator(group) + 1) % 3), sync(group, member_id, 1), version)


@api("DescribeGroups")
def describe_groups_case(world: World, client: RecordedClient, version: int) -> None:
    group = f"g-{version}"
    member, _ = member_of(world, group)
    world.send(member, DescribeGroupsRequest([group, "missing", ""], version >= 3), version)
    world.send(world.connect((world.coordinator(group) + 1) % 3), DescribeGroupsRequest([group]), version)


@api("ListGroups")
def list_groups_case(world: World, client: RecordedClient, version: int) -> None:
    for broker_id in range(3):
        member_of(world, f"g-{version}-{broker_id}")
    for broker_id in range(3):
        at = world.connect(broker_id)
        world.send(at, ListGroupsRequest(), version)
        if version >= 4:
            world.send(at, ListGroupsRequest(["Stable"]), version)
            world.send(at, ListGroupsRequest(["stable", "Unheard-of"]), version)
        if version >= 5:
            world.send(at, ListGroupsRequest([], ["classic"]), version)
            world.send(at, ListGroupsRequest([], ["consumer"]), version)


@requests_of("ApiVersions")
def api_versions_requests(world: World, version: int) -> Iterator[Any]:
    yield ApiVersionsRequest("golden", "1.0")
    yield ApiVersionsRequest("bad name!", "")


@requests_of("CreateTopics")
def create_topics_requests(world: World, version: int) -> Iterator[Any]:
    topics = [
        CreatableTopic(f"plain-{version}", 2, 2),
        CreatableTopic(
            f"placed-{version}", -1, -1, [CreatableReplicaAssignment(0, [2, 0]), CreatableReplicaAssignment(1, [1, 2])]
        ),
        CreatableTopic(f"set-{version}", 1, 3, configs=[CreatableTopicConfig("retention.ms", "60000")]),
        CreatableTopic(f"bad-{version}", 1, 3, configs=[CreatableTopicConfig("retention.ms", "soon")]),
        CreatableTopic(f"unknown-{version}", 1, 3, configs=[CreatableTopicConfig("no.such.setting", "1")]),
        CreatableTopic("orders", 1, 1),
        CreatableTopic("bad/name", 1, 1),
        CreatableTopic(f"none-{version}", 0, 1),
        CreatableTopic(f"wide-{version}", 1, 9),
        CreatableTopic(f"defaults-{version}", -1, -1),
    ]
    yield CreateTopicsRequest(topics, 1000)
    yield CreateTopicsRequest([CreatableTopic(f"twice-{version}", 1, 1)] * 2, 1000)
    if version >= 1:
        yield CreateTopicsRequest([CreatableTopic(f"tried-{version}", 1, 1)], 1000, validate_only=True)


@api("DeleteTopics")
def delete_topics_case(world: World, client: RecordedClient, version: int) -> None:
    for name in ("one", "two", "three"):
        world.topic(f"{name}-{version}", 2, 2)
    names = [f"one-{version}", "missing", f"two-{version}", f"two-{version}"]
    states = [DeleteTopicState(name) for name in names]
    states += [DeleteTopicState(None, UNKNOWN_ID), DeleteTopicState(None, world.topic_id(f"three-{version}"))]
    world.send(client, DeleteTopicsRequest(states, names, 1000), version)
    world.send(client, metadata())


@api("DeleteRecords")
def delete_records_case(world: World, client: RecordedClient, version: int) -> None:
    topic = f"made-{version}"
    world.topic(topic, 1, 3)
    world.append(topic, batch(*values(5)))
    at = world.connect(world.leader(topic))
    for offset in (2, 1, -1, 99, -7):
        partitions = [DeleteRecordsPartition(0, offset), DeleteRecordsPartition(5, 0)]
        topics = [DeleteRecordsTopic(topic, partitions), DeleteRecordsTopic("missing", [DeleteRecordsPartition(0, 0)])]
        world.send(at, DeleteRecordsRequest(topics, 500), version)
        world.advance(600)
    elsewhere = world.connect((world.leader(topic) + 1) % 3)
    world.send(
        elsewhere, DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, 3)])], 500), version
    )


@requests_of("InitProducerId")
def init_producer_id_requests(world: World, version: int) -> Iterator[Any]:
    yield InitProducerIdRequest(None, 1000)
    yield InitProducerIdRequest("", 1000)
    yield InitProducerIdRequest("transaction", 1000)
    if version >= 3:
        yield InitProducerIdRequest(None, 1000, 5, 1)
        yield InitProducerIdRequest(None, 1000, 5, -1)


@requests_of("OffsetForLeaderEpoch")
def offset_for_leader_epoch_requests(world: World, version: int) -> Iterator[Any]:
    for replica_id in (-1, 1, -2):
        for epoch, current in ((0, -1), (0, 0), (1, -1), (0, 5), (-1, -1)):
            topics = [
                OffsetForLeaderTopic("orders", [OffsetForLeaderPartition(i, current, epoch) for i in range(4)]),
                OffsetForLeaderTopic("missing", [OffsetForLeaderPartition(0, current, epoch)]),
            ]
            yield OffsetForLeaderEpochRequest(replica_id, topics)


@requests_of("DescribeConfigs")
def describe_configs_requests(world: World, version: int) -> Iterator[Any]:
    named = DescribeConfigsResource(TOPIC, "table", ["cleanup.policy", "retention.ms", "no.such.setting"])
    yield DescribeConfigsRequest([named, DescribeConfigsResource(TOPIC, "missing", None)])
    yield DescribeConfigsRequest([DescribeConfigsResource(TOPIC, "table", None)], include_synonyms=version >= 1)
    yield DescribeConfigsRequest(
        [DescribeConfigsResource(BROKER, "0", ["message.max.bytes", "broker.rack"])],
        include_synonyms=version >= 1,
        include_documentation=version >= 3,
    )
    yield DescribeConfigsRequest(
        [DescribeConfigsResource(kind, name, None) for kind, name in ((BROKER, "9"), (77, ""))]
    )
    if version == world.highest("DescribeConfigs"):
        yield DescribeConfigsRequest([DescribeConfigsResource(BROKER, name, None) for name in ("0", "")], True, True)


@requests_of("AlterConfigs")
def alter_configs_requests(world: World, version: int) -> Iterator[Any]:
    topic = AlterConfigsResource(TOPIC, "table", [AlterableConfig("retention.ms", f"{1000 + version}")])
    wrong = AlterConfigsResource(TOPIC, "missing", [AlterableConfig("retention.ms", "1")])
    bad = AlterConfigsResource(TOPIC, "orders", [AlterableConfig("retention.ms", "soon")])
    broker = AlterConfigsResource(BROKER, "1", [AlterableConfig("log.retention.ms", "77000")])
    yield AlterConfigsRequest([topic], validate_only=True)
    yield AlterConfigsRequest([topic, wrong, bad, broker, AlterConfigsResource(77, "x", [])])
    yield DescribeConfigsRequest([DescribeConfigsResource(TOPIC, "table", None)])


@requests_of("AlterReplicaLogDirs")
def alter_replica_log_dirs_requests(world: World, version: int) -> Iterator[Any]:
    topics = [AlterReplicaLogDirTopic("orders", [0, 1, 9]), AlterReplicaLogDirTopic("missing", [0])]
    yield AlterReplicaLogDirsRequest([AlterReplicaLogDir("/elsewhere", topics)])
    yield AlterReplicaLogDirsRequest([AlterReplicaLogDir("/kafkaproto/broker-0", topics)])


@requests_of("DescribeLogDirs")
def describe_log_dirs_requests(world: World, version: int) -> Iterator[Any]:
    yield DescribeLogDirsRequest(None)
    yield DescribeLogDirsRequest([DescribableLogDirTopic("orders", [0, 9]), DescribableLogDirTopic("missing", [0])])


@api("CreatePartitions")
def create_partitions_case(world: World, client: RecordedClient, version: int) -> None:
    for name in ("one", "two"):
        world.topic(f"{name}-{version}", 1, 2)
    placed = [CreatePartitionsAssignment([2, 1])]
    topics = [
        CreatePartitionsTopic(f"one-{version}", 3, None),
        CreatePartitionsTopic(f"two-{version}", 2, placed),
        CreatePartitionsTopic("orders", 2, None),
        CreatePartitionsTopic("payments", 3, placed),
        CreatePartitionsTopic("missing", 2, None),
    ]
    world.send(client, CreatePartitionsRequest(topics, 1000, validate_only=True), version)
    world.send(client, CreatePartitionsRequest(topics, 1000), version)
    world.send(client, metadata(f"one-{version}", f"two-{version}"))


@api("ElectLeaders")
def elect_leaders_case(world: World, client: RecordedClient, version: int) -> None:
    topics = [TopicPartitions("orders", [0, 1, 9]), TopicPartitions("missing", [0])]
    world.state.controller.elect("orders", 0, (world.leader("orders") + 1) % 3)
    world.run()
    for request in (ElectLeadersRequest(0, topics), ElectLeadersRequest(0, topics), ElectLeadersRequest(0, None)):
        world.send(client, request, version)
    world.state.controller.elect("orders", 0, (world.leader("orders") + 1) % 3)
    world.run()
    world.send(client, ElectLeadersRequest(0, None), version)
    if version >= 1:
        for kind in (1, 5):
            world.send(client, ElectLeadersRequest(kind, topics), version)


@requests_of("IncrementalAlterConfigs")
def incremental_alter_configs_requests(world: World, version: int) -> Iterator[Any]:
    def change(kind: int, name: str, *configs: tuple[str, int, str | None]) -> IncrementalResource:
        return IncrementalResource(kind, name, [IncrementalConfig(*config) for config in configs])

    good = change(TOPIC, "table", ("retention.ms", 0, "5000"), ("cleanup.policy", 2, "delete"))
    yield IncrementalAlterConfigsRequest([good], validate_only=True)
    yield IncrementalAlterConfigsRequest([good, change(BROKER, "0", ("message.max.bytes", 0, "2000000"))])
    yield IncrementalAlterConfigsRequest(
        [change(TOPIC, "table", ("retention.ms", 1, None), ("cleanup.policy", 3, "delete"))]
    )
    yield IncrementalAlterConfigsRequest(
        [
            change(TOPIC, "missing", ("retention.ms", 0, "1")),
            change(TOPIC, "orders", ("retention.ms", 0, "soon")),
            change(TOPIC, "payments", ("retention.ms", 2, "1")),
            change(BROKER, "0", ("broker.rack", 0, "z")),
            change(BROKER, "", ("log.retention.ms", 0, "88000")),
            change(77, "x"),
        ]
    )
    yield DescribeConfigsRequest([DescribeConfigsResource(TOPIC, "table", None)])


@api("AlterPartitionReassignments")
def alter_partition_reassignments_case(world: World, client: RecordedClient, version: int) -> None:
    def ask(*changes: tuple[str, int, list[int] | None]) -> None:
        topics = [ReassignableTopic(topic, [ReassignablePartition(i, replicas)]) for topic, i, replicas in changes]
        world.send(client, AlterPartitionReassignmentsRequest(1000, True, topics), version)
        world.send(client, ListPartitionReassignmentsRequest(1000, None))
        world.advance(1000)
        world.send(client, ListPartitionReassignmentsRequest(1000, None))

    ask(("payments", 0, [2, 1, 0]))
    ask(("orders", 0, [1]), ("orders", 1, [0, 0]), ("orders", 2, []), ("orders", 9, [0]), ("missing", 0, [0]))
    ask(("orders", 1, None), ("orders", 2, [9]))


@requests_of("ListPartitionReassignments")
def list_partition_reassignments_requests(world: World, version: int) -> Iterator[Any]:
    topics = [ReassignableTopic("payments", [ReassignablePartition(0, [2, 1])])]
    yield ListPartitionReassignmentsRequest(1000, None)
    yield AlterPartitionReassignmentsRequest(1000, True, topics)
    topic_requests = [
        ListPartitionReassignmentsTopics("payments", [0, 4]),
        ListPartitionReassignmentsTopics("missing", [0]),
    ]
    yield ListPartitionReassignmentsRequest(1000, topic_requests)


def alter_quotas(
    *changes: tuple[dict[str, str | None], str, float | None], validate_only: bool = False
) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(
        [
            AlterClientQuotasRequestEntryData(
                [AlterClientQuotasRequestEntityData(kind, name) for kind, name in entity.items()],
                [OpData(key, value or 0.0, value is None)],
            )
            for entity, key, value in changes
        ],
        validate_only,
    )


@requests_of("DescribeClientQuotas")
def describe_client_quotas_requests(world: World, version: int) -> Iterator[Any]:
    yield alter_quotas(
        ({"client-id": "a"}, "producer_byte_rate", 1000.0),
        ({"client-id": None}, "consumer_byte_rate", 2000.0),
        ({"user": "u", "client-id": "a"}, "request_percentage", 50.0),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", 5.0),
    )
    for components in (
        [],
        [ComponentData("client-id", 0, "a")],
        [ComponentData("client-id", 1, None)],
        [ComponentData("client-id", 2, None)],
        [ComponentData("ip", 2, None)],
        [ComponentData("planet", 2, None)],
        [ComponentData("client-id", 7, None)],
    ):
        for strict in (False, True):
            yield DescribeClientQuotasRequest(components, strict)


@requests_of("AlterClientQuotas")
def alter_client_quotas_requests(world: World, version: int) -> Iterator[Any]:
    yield alter_quotas(({"client-id": "a"}, "producer_byte_rate", 1000.0), validate_only=True)
    yield alter_quotas(
        ({"client-id": "a"}, "producer_byte_rate", 1000.0),
        ({"client-id": "a"}, "no_such_quota", 1.0),
        ({"user": None}, "request_percentage", 0.0),
        ({"user": "u"}, "controller_mutation_rate", 2.5),
        ({"planet": "mars"}, "producer_byte_rate", 1.0),
        ({}, "producer_byte_rate", 1.0),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", 5.0),
        ({"ip": "not an address"}, "connection_creation_rate", 5.0),
    )
    yield alter_quotas(({"client-id": "a"}, "producer_byte_rate", None))
    yield DescribeClientQuotasRequest([], False)


@requests_of("DescribeUserScramCredentials")
def describe_user_scram_credentials_requests(world: World, version: int) -> Iterator[Any]:
    yield DescribeUserScramCredentialsRequest(None)
    yield DescribeUserScramCredentialsRequest([UserName("a"), UserName("b"), UserName("b")])


@requests_of("DescribeCluster")
def describe_cluster_requests(world: World, version: int) -> Iterator[Any]:
    yield DescribeClusterRequest(True, 1)
    if version >= 1:
        yield DescribeClusterRequest(False, 2)
        yield DescribeClusterRequest(False, 3)
    if version >= 2:
        yield DescribeClusterRequest(False, 1, True)


def run_api(semantics: str, name: str) -> list[str]:
    """Run every version of one API that the default release offers, and those that only Kafka 4.2 offers."""
    if name in OF_KAFKA_4:
        return _run_versions(semantics, name, "4.2", -1)
    highest_version = next((high for key, (_, high) in ranges_of("3.9").items() if key == KEYS[name]), -1)
    lines = _run_versions(semantics, name, "3.9", -1)
    return lines + _run_versions(semantics, name, "4.2", highest_version) if name in WITH_NEWER_VERSIONS else lines


def _run_versions(semantics: str, name: str, release: str, above: int) -> list[str]:
    """Run the versions of an API above `above` that a release offers."""
    world = World(semantics=semantics, release=release).prepare()
    offered = next(api_range for api_range in world.state.apis.values() if KEYS[name] == api_range.api_key)
    for version in range(max(offered.min_version, above + 1), offered.max_version + 1):
        CASES[name](world, world.connect(), version)
        world.advance(100)
    return world.finish()
