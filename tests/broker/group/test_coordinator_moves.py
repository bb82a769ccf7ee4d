"""Groups in `__consumer_offsets`: what survives a coordinator that moves, restarts or loads, and what the topic then holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.broker.group.records import GroupRecord, OffsetRecord, parse
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.broker.testing.records import stored
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.describe_groups import DescribeGroupsRequest
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkaproto.partitioner import java_hash
from tests.support.broker.group_bench import subscription
from tests.support.broker.processes import Processes, commit, committed
from tests.support.scene import elect, hold, release

OFFSETS = "__consumer_offsets"
SESSION_MS = 10_000
NONE, UNKNOWN_TOPIC, LOADING, NOT_COORDINATOR, ILLEGAL_GENERATION, UNKNOWN_MEMBER = 0, 3, 14, 16, 22, 25
REBALANCING, NON_EMPTY, NOT_FOUND, FENCED, SUBSCRIBED, UNSTABLE = 27, 68, 69, 82, 86, 88


@pytest.fixture
def three() -> VirtualCluster:
    cluster = VirtualCluster(3)
    cluster.topic("t", 3, 3)
    return cluster


def place(cluster: VirtualCluster, group: str = "g") -> tuple[int, int]:
    """Return the group's partition of the offsets topic, and its leader."""
    broker_id = cluster.state.coordinator_of(group)
    return java_hash(group) % len(cluster.state.controller.image.topics[OFFSETS].partitions), broker_id


def logged(cluster: VirtualCluster) -> list[OffsetRecord | GroupRecord]:
    """Return the records of the offsets topic, partition by partition."""
    parsed = [parse(record.key or b"", record.value) for record in stored(cluster.state, OFFSETS, None)]
    return [record for record in parsed if record is not None]


def join(
    client: MemoryClient, member_id: str = "", *, instance: str | None = None, metadata: bytes = b"m", **more: Any
) -> Any:
    protocols = [JoinGroupRequestProtocol("range", metadata)]
    return client.ask(
        JoinGroupRequest("g", SESSION_MS, SESSION_MS, member_id, instance, more.get("kind", "consumer"), protocols),
        5 if instance is not None else 3,
    )


def sync(client: MemoryClient, member_id: str, generation: int, assignment: bytes | None) -> Any:
    assignments = [] if assignment is None else [SyncGroupRequestAssignment(member_id, assignment)]
    return client.ask(SyncGroupRequest("g", generation, member_id, assignments=assignments), 3)


def member(client: MemoryClient, **more: Any) -> str:
    """Make a stable group of one member, with assignment `mine`."""
    joined = join(client, **more)
    assert sync(client, joined.member_id, joined.generation_id, b"mine").error_code == NONE
    return str(joined.member_id)


def heartbeat(client: MemoryClient, member_id: str, generation: int = 1) -> int:
    return int(client.ask(HeartbeatRequest("g", generation, member_id), 3).error_code)


def state(client: MemoryClient) -> str:
    [group] = client.ask(DescribeGroupsRequest(["g"]), 3).groups
    return str(group.group_state) if not group.error_code else f"error {group.error_code}"


@pytest.mark.rule("GO-5", "GO-6")
def test_committed_offset_is_a_record_on_every_replica_of_the_groups_partition(three: VirtualCluster) -> None:
    index, _ = place(three)
    assert commit(three, "g", "t", 7) == NONE and commit(three, "g", "t", 8, 2) == NONE
    records = stored(three.state, OFFSETS, index)
    assert [parse(r.key or b"", r.value) for r in records] == logged(three)
    assert [
        (r.group_id, r.key, r.committed.offset) for r in logged(three) if isinstance(r, OffsetRecord) and r.committed
    ] == [
        ("g", ("t", 0), 7),
        ("g", ("t", 2), 8),
    ]
    for node in three.state.nodes:  # every replica has them
        assert node.replicas.partitions[(OFFSETS, index)].log.log_end_offset == 2


@pytest.mark.rule("GO-1")
def test_segment_size_of_the_consumer_offsets_topic_is_offsets_topic_segment_bytes() -> None:
    cluster = VirtualCluster(config={"offsets.topic.segment.bytes": "7340032"})
    topic = cluster.state.controller.ensure_internal(OFFSETS)
    assert dict(topic.configs) == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "7340032",
    }


@pytest.mark.rule("GO-11", "GO-12", "SN-20")
def test_group_and_its_offsets_move_with_the_leader_of_the_offsets_partition(
    three: VirtualCluster,
) -> None:
    index, before = place(three)
    old = three.connect(before)
    member_id = member(old)
    assert commit(three, "g", "t", 7) == UNKNOWN_MEMBER  # only the member may commit
    assert old.ask(_commit("g", 7, member_id, 1), 7).topics[0].partitions[0].error_code == NONE
    after = (before + 1) % 3
    elect(three, after, OFFSETS, index)
    assert heartbeat(old, member_id) == NOT_COORDINATOR and state(old) == f"error {NOT_COORDINATOR}"
    assert old.ask(ListGroupsRequest(), 3).groups == []
    new = three.connect(after)
    assert heartbeat(new, member_id) == NONE
    [described] = new.ask(DescribeGroupsRequest(["g"]), 3).groups
    [described_member] = described.members
    assert (described.group_state, described_member.member_id, described_member.member_assignment) == (
        "Stable",
        member_id,
        b"mine",
    )
    assert committed(three, "g", "t") == 7
    three.advance(SESSION_MS)  # its session timeout restarted when the group was loaded
    assert heartbeat(new, member_id) == UNKNOWN_MEMBER


@pytest.mark.rule("SN-20")
def test_parked_join_gets_error_not_coordinator_when_the_coordinator_moves(three: VirtualCluster) -> None:
    index, before = place(three)
    clients = [three.connect(before) for _ in range(2)]
    member_id = member(clients[0])
    clients[1].send(
        JoinGroupRequest("g", SESSION_MS, SESSION_MS, "", None, "consumer", [JoinGroupRequestProtocol("range", b"m")]),
        3,
    )
    three.run()
    assert clients[1].answers == []
    elect(three, (before + 1) % 3, OFFSETS, index)
    assert clients[1].latest.error_code == NOT_COORDINATOR
    assert heartbeat(clients[0], member_id) == NOT_COORDINATOR


IN_JAVA = {"group.coordinator.rebalance.protocols": "classic,consumer"}
"""The settings with which Kafka 3.9 has the group coordinator in Java."""


@pytest.mark.rule("GC-9", "SN-20")
@pytest.mark.parametrize(
    ("release", "settings", "sync_error"), [("3.9", {}, REBALANCING), ("3.9", IN_JAVA, LOADING), ("4.2", {}, LOADING)]
)
def test_coordinator_that_is_loading_accepts_heartbeats_and_rejects_other_requests(
    release: str, settings: dict[str, str], sync_error: int
) -> None:
    cluster = VirtualCluster(config={"kafkaproto.group.load.ms": "500"} | settings, release_name=release)
    cluster.topic("t")
    client = cluster.connect()
    assert join(client).error_code == LOADING
    assert heartbeat(client, "m") == NONE
    assert client.ask(SyncGroupRequest("g", 1, "m"), 3).error_code == sync_error
    assert commit(cluster, "g", "t", 1) == LOADING and state(client) == f"error {LOADING}"
    assert client.ask(OffsetFetchRequest("g", None), 7).error_code == LOADING
    assert client.ask(ListGroupsRequest(), 3).error_code == LOADING
    assert client.ask(LeaveGroupRequest("g", "m"), 1).error_code == LOADING
    assert client.ask(DeleteGroupsRequest(["g"]), 1).results[0].error_code == LOADING
    cluster.advance(500)
    assert commit(cluster, "g", "t", 1) == NONE
    assert client.ask(ListGroupsRequest(), 3).error_code == NONE


@pytest.mark.rule("GC-7")
@pytest.mark.parametrize(("release", "settings", "error"), [("3.9", {}, 14), ("3.9", IN_JAVA, 26), ("4.2", {}, 26)])
def test_only_kip_848_coordinators_reject_invalid_session_timeouts_while_loading(
    release: str, settings: dict[str, str], error: int
) -> None:
    cluster = VirtualCluster(config={"kafkaproto.group.load.ms": "500"} | settings, release_name=release)
    request = JoinGroupRequest("g", 1, SESSION_MS, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")])
    assert cluster.connect().ask(request, 3).error_code == error


@pytest.mark.rule("GC-57")
@pytest.mark.parametrize(("release", "settings", "listed"), [("3.9", {}, 1), ("3.9", IN_JAVA, 0), ("4.2", {}, 0)])
def test_kip_848_coordinator_lists_no_groups_while_it_loads_an_offsets_partition(
    release: str, settings: dict[str, str], listed: int
) -> None:
    """A broker has one group when it becomes the coordinator of another partition, too. listed: the expected number of groups while it loads."""
    config = {"kafkaproto.group.load.ms": "500", "offsets.topic.num.partitions": "2"}
    cluster = VirtualCluster(2, config | settings, release_name=release)
    index, broker_id = place(cluster)
    cluster.advance(500)
    client = cluster.connect(broker_id)
    member(client)
    elect(cluster, broker_id, OFFSETS, 1 - index)
    response = client.ask(ListGroupsRequest(), 3)
    assert (response.error_code, len(response.groups)) == (LOADING, listed)
    cluster.advance(500)
    response = client.ask(ListGroupsRequest(), 3)
    assert (response.error_code, [group.group_id for group in response.groups]) == (NONE, ["g"])


def test_broker_that_loses_leadership_while_loading_a_group_never_serves_the_group(three: VirtualCluster) -> None:
    cluster = VirtualCluster(3, {"kafkaproto.group.load.ms": "500"})
    index, before = place(cluster)
    cluster.advance(499)
    elect(cluster, (before + 1) % 3, OFFSETS, index)
    cluster.advance(1)
    assert heartbeat(cluster.connect(before), "m") == NOT_COORDINATOR
    assert state(cluster.connect((before + 1) % 3)) == f"error {LOADING}"
    cluster.advance(499)
    assert state(cluster.connect((before + 1) % 3)) == "Dead"


@pytest.mark.rule("GO-12")
def test_group_member_and_committed_offset_survive_a_restart_of_the_coordinator() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    client = cluster.connect()
    member_id = member(client)
    assert client.ask(_commit("g", 3, member_id, 1), 7).topics[0].partitions[0].error_code == NONE
    cluster.state.stop_broker(0)
    assert cluster.state.groups.list_groups() == []
    cluster.state.start_broker(0)
    client = cluster.connect()
    assert heartbeat(client, member_id) == NONE and committed(cluster, "g", "t") == 3


def test_new_coordinator_does_not_know_a_classic_member_that_joined_but_did_not_sync(three: VirtualCluster) -> None:
    """The generation is stored when the leader has assigned (GC-38): before, the next coordinator knows nothing of it."""
    index, before = place(three)
    joined = join(three.connect(before))
    after = (before + 1) % 3
    elect(three, after, OFFSETS, index)
    assert heartbeat(three.connect(after), joined.member_id) == UNKNOWN_MEMBER


def test_offset_commit_is_answered_only_after_replication(three: VirtualCluster) -> None:
    index, broker_id = place(three)
    followers = [n for n in range(3) if n != broker_id]
    hold(three, *followers, topic=OFFSETS, index=index)
    client = three.connect(broker_id)
    client.send(_commit("g", 7), 7)
    three.run()
    assert client.answers == []
    reader = three.connect(broker_id)
    for stable, error in ((False, NONE), (True, UNSTABLE)):
        response = reader.ask(OffsetFetchRequest("g", [OffsetFetchRequestTopic("t", [0])], require_stable=stable), 7)
        [partition] = response.topics[0].partitions
        assert (partition.committed_offset, partition.error_code) == (-1, error)
    release(three, *followers, topic=OFFSETS, index=index)
    assert client.latest.topics[0].partitions[0].error_code == NONE
    assert committed(three, "g", "t") == 7


@pytest.mark.rule("GO-23")
def test_offset_commit_that_is_not_replicated_fails_and_cannot_be_fetched(three: VirtualCluster) -> None:
    index, broker_id = place(three)
    followers = [n for n in range(3) if n != broker_id]
    hold(three, *followers, topic=OFFSETS, index=index)
    client = three.connect(broker_id)
    client.send(_commit("g", 7), 7)
    three.advance(5_000)
    assert client.latest.topics[0].partitions[0].error_code == 7
    assert committed(three, "g", "t") == -1
    client.send(_commit("g", 8), 7)
    elect(three, followers[0], OFFSETS, index)
    assert client.latest.topics[0].partitions[0].error_code == NOT_COORDINATOR


@pytest.mark.rule("GC-38", "GC-39")
def test_sync_group_returns_an_assignment_only_after_the_assignment_is_replicated(three: VirtualCluster) -> None:
    index, broker_id = place(three)
    followers = [n for n in range(3) if n != broker_id]
    client = three.connect(broker_id)
    joined = join(client)
    hold(three, *followers, topic=OFFSETS, index=index)
    request = SyncGroupRequest(
        "g", 1, joined.member_id, assignments=[SyncGroupRequestAssignment(joined.member_id, b"a")]
    )
    client.send(request, 3)
    three.run()
    assert state(three.connect(broker_id)) == "CompletingRebalance"
    release(three, *followers, topic=OFFSETS, index=index)
    assert (client.latest.error_code, client.latest.assignment) == (NONE, b"a")
    hold(three, *followers, topic=OFFSETS, index=index)
    joined = join(client, joined.member_id)
    assert joined.generation_id == 2
    client.send(SyncGroupRequest("g", 2, joined.member_id), 3)
    three.advance(5_000)
    assert client.latest.error_code == REBALANCING  # it was not stored in time
    assert state(three.connect(broker_id)) == "PreparingRebalance"


@pytest.mark.rule("GC-34")
def test_new_member_id_of_a_static_member_is_stored_before_the_join_response(three: VirtualCluster) -> None:
    index, broker_id = place(three)
    followers = [n for n in range(3) if n != broker_id]
    first = member(three.connect(broker_id), instance="i")
    hold(three, *followers, topic=OFFSETS, index=index)
    client = three.connect(broker_id)
    request = JoinGroupRequest(
        "g", SESSION_MS, SESSION_MS, "", "i", "consumer", [JoinGroupRequestProtocol("range", b"m")]
    )
    client.send(request, 5)
    three.run()
    assert client.answers == []
    release(three, *followers, topic=OFFSETS, index=index)
    assert client.latest.error_code == NONE and client.latest.generation_id == 1
    second = client.latest.member_id
    assert [
        record.group.members[0].member_id
        for record in logged(three)
        if isinstance(record, GroupRecord) and record.group
    ] == [first, second]
    # One that cannot be stored is undone: the process before it goes on.
    hold(three, *followers, topic=OFFSETS, index=index)
    client.send(request, 5)
    three.advance(5_000)
    assert (client.latest.error_code, client.latest.member_id) == (REBALANCING, "")
    [described] = three.connect(broker_id).ask(DescribeGroupsRequest(["g"]), 3).groups
    assert (described.group_state, [m.member_id for m in described.members]) == ("Stable", [second])


def test_empty_group_keeps_its_generation_after_a_coordinator_move(three: VirtualCluster) -> None:
    index, before = place(three)
    client = three.connect(before)
    member_id = member(client)
    client.ask(LeaveGroupRequest("g", members=[MemberIdentity(member_id)]), 3)
    after = (before + 1) % 3
    elect(three, after, OFFSETS, index)
    new = three.connect(after)
    [described] = new.ask(DescribeGroupsRequest(["g"]), 3).groups
    assert (described.group_state, described.protocol_type) == ("Empty", "consumer")
    assert join(new).generation_id == 3


@pytest.mark.rule("GC-30")
def test_loaded_group_with_more_members_than_group_max_size_rebalances() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    clients = [cluster.connect() for _ in range(2)]
    for client in clients:
        client.send(
            JoinGroupRequest(
                "g", SESSION_MS, SESSION_MS, "", None, "consumer", [JoinGroupRequestProtocol("range", b"m")]
            ),
            3,
        )
    cluster.run()
    first = clients[0].latest.member_id
    joined = join(clients[0], first)
    ids = [first, clients[1].latest.member_id]
    for client, member_id in reversed(list(zip(clients, ids, strict=True))):
        client.send(
            SyncGroupRequest(
                "g", joined.generation_id, member_id, assignments=[SyncGroupRequestAssignment(i, b"a") for i in ids]
            ),
            3,
        )
    cluster.run()
    assert state(cluster.connect()) == "Stable"
    cluster.state.nodes[0].groups.settings = _with_max_size(cluster, 1)
    cluster.state.stop_broker(0)
    cluster.state.start_broker(0)
    assert state(cluster.connect()) == "PreparingRebalance"


def _with_max_size(cluster: VirtualCluster, size: int) -> Any:
    return replace(cluster.state.nodes[0].groups.settings, group_max_size=size)


def _commit(group: str, offset: int, member_id: str = "", generation: int = -1) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(0, committed_offset=offset)
    return OffsetCommitRequest(
        group, generation, member_id, topics=[OffsetCommitRequestTopic("t", partitions=[partition])]
    )


# ---- deleting ----------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("GC-59", "GO-9", "SN-17")
@pytest.mark.parametrize("version", range(3))
def test_delete_groups_writes_tombstones_to_the_offsets_topic(three: VirtualCluster, version: int) -> None:
    _, broker_id = place(three)
    client = three.connect(broker_id)
    member_id = member(client)
    assert client.ask(_commit("g", 3, member_id, 1), 7).topics[0].partitions[0].error_code == NONE

    def delete(*groups: str) -> list[tuple[str, int]]:
        response = client.ask(DeleteGroupsRequest(list(groups)), version)
        return [(result.group_id, result.error_code) for result in response.results]

    assert delete("g") == [("g", NON_EMPTY)]
    client.ask(LeaveGroupRequest("g", members=[MemberIdentity(member_id)]), 3)
    other = next(name for name in map(str, range(99)) if place(three, name)[1] != broker_id)
    own = next(name for name in map(str, range(99)) if place(three, name)[1] == broker_id)
    assert sorted(delete("g", own, "g", other)) == sorted([("g", NONE), (own, NOT_FOUND), (other, NOT_COORDINATOR)])
    assert logged(three)[-2:] == [OffsetRecord("g", ("t", 0), None), GroupRecord("g", None)]
    assert state(client) == "Dead" and committed(three, "g", "t") == -1


@pytest.mark.rule("GC-60", "GC-61", "GC-64", "SN-18")
def test_offset_delete_rejects_topics_that_members_subscribe_to() -> None:
    cluster = VirtualCluster()
    for name in ("t", "u"):
        cluster.topic(name)
    client = cluster.connect()

    def delete(*topics: str) -> tuple[int, list[tuple[str, int]]]:
        response = client.ask(
            OffsetDeleteRequest("g", [OffsetDeleteRequestTopic(t, [OffsetDeleteRequestPartition(0)]) for t in topics]),
            0,
        )
        return response.error_code, [(t.name, p.error_code) for t in response.topics for p in t.partitions]

    assert delete("t") == (NOT_FOUND, [])
    member_id = member(client, metadata=subscription("t"))
    for topic in ("t", "u"):
        request = _commit("g", 3, member_id, 1)
        request.topics[0].name = topic
        assert client.ask(request, 7).topics[0].partitions[0].error_code == NONE
    assert delete("t", "u", "zz") == (NONE, [("zz", UNKNOWN_TOPIC), ("t", SUBSCRIBED), ("u", NONE)])
    assert (committed(cluster, "g", "t"), committed(cluster, "g", "u")) == (3, -1)
    client.ask(LeaveGroupRequest("g", members=[MemberIdentity(member_id)]), 3)
    assert delete("t") == (NONE, [("t", NONE)])
    assert logged(cluster)[-2:] == [OffsetRecord("g", ("t", 0), None), GroupRecord("g", None)]
    assert delete("t") == (NOT_FOUND, [])  # the last offset took the empty group with it


def test_offset_delete_of_a_kafka_connect_group_with_members_is_rejected() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    client = cluster.connect()
    member(client, kind="connect")
    request = OffsetDeleteRequest("g", [OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(0)])])
    assert client.ask(request, 0).error_code == NON_EMPTY
    assert client.ask(OffsetDeleteRequest(""), 0).error_code == 24


@pytest.mark.rule("GO-25")
def test_deleting_a_topic_writes_tombstones_for_its_committed_offsets(three: VirtualCluster) -> None:
    assert commit(three, "g", "t", 7) == NONE
    three.state.controller.delete_topic("t")
    three.run()
    assert logged(three)[-1] == OffsetRecord("g", ("t", 0), None)


@pytest.mark.rule("GO-24", "SN-26")
def test_expired_offset_gets_a_tombstone_and_its_empty_group_is_deleted() -> None:
    cluster = VirtualCluster(config={"offsets.retention.minutes": "60"})
    cluster.topic("t")
    assert commit(cluster, "g", "t", 7) == NONE
    cluster.advance(3_600_000 - 1)
    assert committed(cluster, "g", "t") == 7
    cluster.advance(600_001)
    assert logged(cluster)[-1] == OffsetRecord("g", ("t", 0), None)
    assert cluster.state.groups.list_groups() == []


# ---- the next process --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SN-27")
def test_group_members_and_committed_offsets_are_restored_after_a_broker_is_killed(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t")
    client = processes.cluster.connect()
    member_id = member(client)
    assert client.ask(_commit("g", 3, member_id, 1), 7).topics[0].partitions[0].error_code == NONE
    after = processes.crash_and_restart()
    client = after.connect()
    assert heartbeat(client, member_id) == NONE and heartbeat(client, member_id, 2) == ILLEGAL_GENERATION
    assert committed(after, "g", "t") == 3
    after.advance(SESSION_MS)
    assert state(client) == "Empty"
    assert state(processes.crash_and_restart().connect()) == "Empty"
