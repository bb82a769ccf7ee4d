"""The group APIs of a broker in every version, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.describe_groups import DescribeGroupsRequest
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkaproto.partitioner import java_hash

UNKNOWN_TOPIC, NOT_AVAILABLE, NOT_COORDINATOR, INCONSISTENT, INVALID_GROUP, UNKNOWN_MEMBER = 3, 15, 16, 23, 24, 25
UNSUPPORTED, INVALID_REQUEST, MEMBER_ID_REQUIRED = 35, 42, 79
MESSAGES = {0: "NONE", NOT_AVAILABLE: "The coordinator is not available."}
"""The messages in FindCoordinator responses of versions 1 to 3."""
DELAY_MS = 3_000


@pytest.fixture
def cluster() -> VirtualCluster:
    virtual_cluster = VirtualCluster(config={"group.initial.rebalance.delay.ms": str(DELAY_MS)})
    virtual_cluster.topic("t", 2)
    virtual_cluster.state.controller.ensure_internal("__consumer_offsets")
    return virtual_cluster


def join(group: str = "g", member_id: str = "", instance: str | None = None, **more: Any) -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol("range", b"mine")]
    return JoinGroupRequest(group, 10_000, 60_000, member_id, instance, "consumer", protocols, **more)


def old_join(version: int, **named: Any) -> JoinGroupRequest:
    """Return a JoinGroup request without the fields of later versions."""
    request = join(**named)
    if version < 1:
        request.rebalance_timeout_ms = -1
    return request


def joined(cluster: VirtualCluster, client: MemoryClient, version: int) -> Any:
    request = old_join(version)
    if version >= 4:
        first_response = client.ask(request, version)
        assert (first_response.error_code, first_response.generation_id) == (MEMBER_ID_REQUIRED, -1)
        request = old_join(version, member_id=first_response.member_id)
    client.send(request, version)
    cluster.advance(DELAY_MS)
    assert client.latest.error_code == 0
    return client.latest


@pytest.mark.parametrize("version", range(10))
def test_join_group_response_contains_the_protocol_type_only_since_version_7(
    cluster: VirtualCluster, version: int
) -> None:
    client = cluster.connect(client_id="me")
    before_ms = cluster.now_ms
    response = joined(cluster, client, version)
    assert client.answers[-1].at_ms == before_ms + DELAY_MS
    assert response.member_id == response.leader and response.member_id.startswith("me-")
    assert (response.generation_id, response.protocol_name) == (1, "range")
    assert response.protocol_type == ("consumer" if version >= 7 else None)
    assert [(m.member_id, m.metadata) for m in response.members] == [(response.member_id, b"mine")]
    refused = client.ask(old_join(version, group=""), version)
    assert (refused.error_code, refused.protocol_name) == (INVALID_GROUP, None if version >= 7 else "")


@pytest.mark.rule("GC-22")
def test_join_group_v0_without_rebalance_timeout_uses_the_session_timeout_instead(cluster: VirtualCluster) -> None:
    """A member that does not rejoin is removed after its session timeout of 10 s."""
    client, other = cluster.connect(), cluster.connect()
    response = joined(cluster, client, 0)
    other.send(old_join(0), 0)
    cluster.advance(5000)
    client.ask(HeartbeatRequest("g", 1, response.member_id), 0)
    cluster.advance(4999)
    assert other.answers == []
    cluster.advance(1)
    assert [member.member_id for member in other.latest.members] == [other.latest.member_id]


def sync(member_id: str, version: int, generation: int = 1, **assigned: bytes) -> SyncGroupRequest:
    named = ("consumer", "range") if version >= 5 else (None, None)
    assignments = [SyncGroupRequestAssignment(name, data) for name, data in assigned.items()]
    return SyncGroupRequest("g", generation, member_id, None, *named, assignments)


@pytest.mark.parametrize("version", range(6))
def test_sync_group_response_has_the_fields_of_the_request_version(cluster: VirtualCluster, version: int) -> None:
    client = cluster.connect()
    member_id = joined(cluster, client, 3).member_id
    response = client.ask(sync(member_id, version, **{member_id: b"all"}), version)
    assert (response.error_code, response.assignment) == (0, b"all")
    assert (response.protocol_type, response.protocol_name) == (("consumer", "range") if version >= 5 else (None, None))
    assert client.ask(sync("nobody", version), version).error_code == UNKNOWN_MEMBER


@pytest.mark.rule("GC-36")
def test_sync_group_v5_requires_protocol_type_and_name(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    member_id = joined(cluster, client, 3).member_id
    assert client.ask(SyncGroupRequest("g", 1, member_id), 5).error_code == INCONSISTENT


def test_sync_of_group_leader_completes_parked_syncs_despite_a_disconnected_member(cluster: VirtualCluster) -> None:
    clients = [cluster.connect() for _ in range(3)]
    for client in clients:
        client.send(join(), 3)
    cluster.advance(3 * DELAY_MS)
    leader, follower, disconnected = (client.latest.member_id for client in clients)
    clients[1].send(sync(follower, 3), 3)
    clients[2].send(sync(disconnected, 3), 3)
    clients[2].connection.close()
    assert len(clients[1].answers) == 1
    assignments = {leader: b"1", follower: b"2", disconnected: b"3"}
    assert clients[0].ask(sync(leader, 3, **assignments), 3).assignment == b"1"
    assert clients[1].latest.assignment == b"2" and len(clients[2].answers) == 1


@pytest.mark.parametrize("version", range(5))
def test_every_heartbeat_version_rejects_unknown_member_ids_and_empty_group_ids(
    cluster: VirtualCluster, version: int
) -> None:
    client = cluster.connect()
    member_id = joined(cluster, client, 3).member_id
    assert client.ask(HeartbeatRequest("g", 1, member_id), version).error_code == 0
    assert client.ask(HeartbeatRequest("g", 1, "nobody"), version).error_code == UNKNOWN_MEMBER
    assert client.ask(HeartbeatRequest("", 1, member_id), version).error_code == INVALID_GROUP


@pytest.mark.parametrize("version", range(6))
def test_leave_group_response_has_a_result_for_each_member_since_version_3(
    cluster: VirtualCluster, version: int
) -> None:
    client = cluster.connect()
    member_id = joined(cluster, client, 3).member_id
    if version < 3:
        assert client.ask(LeaveGroupRequest("g", "nobody"), version).error_code == UNKNOWN_MEMBER
        assert client.ask(LeaveGroupRequest("g", member_id), version).error_code == 0
    else:
        leaving = [MemberIdentity("nobody"), MemberIdentity(member_id)]
        response = client.ask(LeaveGroupRequest("g", members=leaving), version)
        assert response.error_code == 0
        results = [(m.member_id, m.group_instance_id, m.error_code) for m in response.members]
        assert results == [("nobody", None, UNKNOWN_MEMBER), (member_id, None, 0)]
    assert client.ask(LeaveGroupRequest(""), version).error_code == INVALID_GROUP
    assert client.ask(DescribeGroupsRequest(["g"]), 0).groups[0].group_state == "Empty"


def commit(version: int, *partitions: tuple[str, int, int], group: str = "g", **more: Any) -> OffsetCommitRequest:
    topics = [
        OffsetCommitRequestTopic(
            topic, partitions=[OffsetCommitRequestPartition(index, offset, committed_metadata="note")]
        )
        for topic, index, offset in partitions
    ]
    return OffsetCommitRequest(group, topics=topics, **more)


def codes(answer: Any) -> list[tuple[str, int, int]]:
    return [(t.name, p.partition_index, p.error_code) for t in answer.topics for p in t.partitions]


def fetched(client: MemoryClient, version: int, *indexes: int, group: str = "g") -> list[tuple[int, int, int, Any]]:
    if version >= 8:
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics("t", partition_indexes=list(indexes))])
            ]
        )
    else:
        request = OffsetFetchRequest(group, [OffsetFetchRequestTopic("t", list(indexes))])
    response = client.ask(request, version)
    group_response = response.groups[0] if version >= 8 else response
    assert group_response.error_code == 0
    return [
        (p.partition_index, p.committed_offset, p.error_code, p.metadata)
        for t in group_response.topics
        for p in t.partitions
    ]


@pytest.mark.parametrize("version", range(1, 10))
def test_every_offset_fetch_version_returns_the_committed_offsets(cluster: VirtualCluster, version: int) -> None:
    client = cluster.connect()
    response = client.ask(commit(version, ("t", 0, 42), ("t", 7, 1), ("nope", 0, 1)), version)
    assert codes(response) == [("t", 7, UNKNOWN_TOPIC), ("t", 0, 0), ("nope", 0, UNKNOWN_TOPIC)]
    assert fetched(client, version, 0, 1) == [(0, 42, 0, "note"), (1, -1, 0, "")]
    assert fetched(client, version, 1, group="other") == [(1, -1, 0, "")]


def test_offset_commit_to_a_group_with_members_requires_member_id_and_generation(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    member_id = joined(cluster, client, 3).member_id
    client.ask(sync(member_id, 3), 3)
    good = commit(5, ("t", 1, 5), generation_id_or_member_epoch=1, member_id=member_id)
    assert codes(client.ask(good, 5)) == [("t", 1, 0)]
    assert codes(client.ask(commit(5, ("t", 1, 6)), 5)) == [("t", 1, UNKNOWN_MEMBER)]
    assert fetched(client, 5, 1) == [(1, 5, 0, "note")]


def test_offset_commit_retention_time_sets_when_the_offset_expires(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    client.ask(commit(3, ("t", 0, 5), retention_time_ms=500_000), 3)
    client.ask(commit(5, ("t", 1, 6)), 5)
    cluster.advance(600_000)
    assert fetched(cluster.connect(), 5, 0, 1) == [(0, -1, 0, ""), (1, 6, 0, "note")]


def test_zookeeper_based_version_0_of_offset_commit_and_offset_fetch_is_unsupported(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    assert codes(client.ask(commit(0, ("t", 0, 1)), 0)) == [("t", 0, UNSUPPORTED)]
    response = client.ask(OffsetFetchRequest("g", [OffsetFetchRequestTopic("t", [0, 1])]), 0)
    assert codes(response) == [("t", 1, UNSUPPORTED), ("t", 0, UNSUPPORTED)]  # in the order of a hash table


def test_offset_fetch_can_request_all_topics_of_a_group_or_several_groups(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    client.ask(commit(8, ("t", 1, 5), ("t", 0, 6), group="a"), 8)
    client.ask(commit(8, ("t", 1, 7), group="b"), 8)
    response = client.ask(OffsetFetchRequest("a", None), 2)
    assert sorted((p.partition_index, p.committed_offset) for t in response.topics for p in t.partitions) == [
        (0, 6),
        (1, 5),
    ]
    assert client.ask(OffsetFetchRequest("nobody", None), 7).topics == []
    groups = [OffsetFetchRequestGroup("b", topics=None), OffsetFetchRequestGroup("a", topics=[])]
    response = client.ask(OffsetFetchRequest(groups=groups), 8)
    assert [(g.group_id, len(g.topics), g.error_code) for g in response.groups] == [("b", 1, 0), ("a", 0, 0)]


@pytest.mark.parametrize("version", range(6))
def test_list_groups_returns_group_states_since_v4_and_group_types_since_v5(
    cluster: VirtualCluster, version: int
) -> None:
    client = cluster.connect(client_id="me", address="10.0.0.7")
    member_id = joined(cluster, client, 3).member_id
    client.ask(sync(member_id, 3, **{member_id: b"all"}), 3)
    (listed,) = client.ask(ListGroupsRequest(), version).groups
    assert (listed.group_id, listed.protocol_type) == ("g", "consumer")
    assert listed.group_state == ("Stable" if version >= 4 else "")
    assert listed.group_type == ("classic" if version >= 5 else "")
    existing, missing = client.ask(DescribeGroupsRequest(["g", "nobody"], version >= 3), version).groups
    assert (existing.error_code, existing.group_state, existing.protocol_data) == (0, "Stable", "range")
    (member,) = existing.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "me", "/10.0.0.7")
    assert (member.member_metadata, member.member_assignment) == (b"mine", b"all")
    assert existing.authorized_operations == (328 if version >= 3 else -(2**31))
    assert (missing.error_code, missing.group_state) == (0, "Dead")


def test_list_groups_filters_by_state_and_type(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    client.ask(commit(8, ("t", 1, 5), group="a"), 8)
    assert [g.group_id for g in client.ask(ListGroupsRequest(["empty"]), 4).groups] == ["a"]
    assert client.ask(ListGroupsRequest(["Stable"]), 4).groups == []
    assert client.ask(ListGroupsRequest([], ["consumer"]), 5).groups == []
    assert len(client.ask(ListGroupsRequest([], ["Classic"]), 5).groups) == 1


@pytest.mark.rule("M-8")
@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize("profile", ["test", "kafka"])
def test_every_find_coordinator_version_creates_the_consumer_offsets_topic(version: int, profile: str) -> None:
    """Under profile `kafka` the first request creates the offsets topic and gets an error, as in Kafka; under `test` it succeeds."""
    cluster = VirtualCluster(config={"offsets.topic.replication.factor": "1"}, profile=profile)
    client = cluster.connect()
    many = version >= 4
    request = FindCoordinatorRequest(coordinator_keys=["g", "h"]) if many else FindCoordinatorRequest("g")

    def ask() -> list[tuple[int, int, str, int]]:
        response = client.ask(request, version)
        coordinators = response.coordinators if many else [response]
        has_message = 1 <= version < 4
        assert [c.error_message for c in coordinators] == [
            MESSAGES[c.error_code] if has_message else "" for c in coordinators
        ]
        return [(c.error_code, c.node_id, c.host, c.port) for c in coordinators]

    assert "__consumer_offsets" not in cluster.state.controller.image.topics
    expected = [(0, 0, "broker0", 9092)] * (2 if many else 1)
    assert ask() == ([(NOT_AVAILABLE, -1, "", -1)] * (2 if many else 1) if profile == "kafka" else expected)
    assert "__consumer_offsets" in cluster.state.controller.image.topics
    assert ask() == expected


@pytest.mark.rule("M-8")
def test_find_coordinator_rejects_unknown_key_types(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    assert client.ask(FindCoordinatorRequest("g", 9), 3).error_code == INVALID_REQUEST
    assert client.ask(FindCoordinatorRequest("x", 1), 3).error_code == 0


@pytest.mark.rule("M-8")
def test_group_request_to_another_broker_than_the_coordinator_gets_an_error() -> None:
    cluster = VirtualCluster(3, {"offsets.topic.num.partitions": "50"})
    cluster.topic("t")
    topic = cluster.state.controller.ensure_internal("__consumer_offsets")
    assert java_hash("g") == 103 and java_hash("group") == 98629247
    clients = [cluster.connect(n) for n in range(3)]
    for group in ("g", "group", "Ω"):
        leader = topic.partitions[java_hash(group) % 50].leader
        coordinator = clients[(leader + 1) % 3].ask(FindCoordinatorRequest(group), 3)
        assert coordinator.node_id == leader
        others = [client for n, client in enumerate(clients) if n != leader]
        assert codes(clients[leader].ask(commit(8, ("t", 0, 5), group=group), 8)) == [("t", 0, 0)]
        for client in others:
            assert client.ask(join(group), 3).error_code == NOT_COORDINATOR
            assert client.ask(HeartbeatRequest(group, 1, "m"), 3).error_code == NOT_COORDINATOR
            assert client.ask(SyncGroupRequest(group, 1, "m"), 3).error_code == NOT_COORDINATOR
            assert client.ask(LeaveGroupRequest(group, "m"), 1).error_code == NOT_COORDINATOR
            assert codes(client.ask(commit(8, ("t", 0, 5), group=group), 8)) == [("t", 0, NOT_COORDINATOR)]
            assert client.ask(OffsetFetchRequest(group, None), 7).error_code == NOT_COORDINATOR
            request = OffsetFetchRequest(group, [OffsetFetchRequestTopic("t", [0])])
            assert client.ask(request, 1).topics == []
            assert client.ask(DescribeGroupsRequest([group]), 3).groups[0].error_code == NOT_COORDINATOR
        assert [group in {g.group_id for g in c.ask(ListGroupsRequest(), 3).groups} for c in clients] == [
            n == leader for n in range(3)
        ]


def test_waiting_join_group_request_adds_a_parked_event_to_the_journal_of_the_broker(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    client.send(join(), 3)
    assert client.answers == []
    assert [e.facts["api"] for e in cluster.state.journal.events(kind="parked")] == ["JoinGroup"]


@pytest.mark.rule("GO-2")
def test_find_coordinator_fails_if_too_few_brokers_run_for_the_offsets_topic() -> None:
    cluster = VirtualCluster(2, {"offsets.topic.replication.factor": "3"}, profile="kafka")
    client = cluster.connect()
    for _ in range(3):
        assert client.ask(FindCoordinatorRequest("g"), 3).error_code == NOT_AVAILABLE
        cluster.advance(1000)
    assert "__consumer_offsets" not in cluster.state.controller.image.topics
