"""Groups with members of both protocols and with regular expressions: timers, writes under way, requests in line, and damaged data."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.group import consumer_records
from kafkaproto.broker.group.consumer_group import ClassicProtocol, ConsumerMember
from kafkaproto.broker.group.reconciliation import Current
from kafkaproto.broker.group.records import Entry
from kafkaproto.broker.testing.memory import MemoryClient
from kafkaproto.coordinator_records import write_value
from kafkaproto.data.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kafkaproto.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkaproto.data.consumer_protocol_subscription import TopicPartition as OwnedPartitions
from kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkaproto.partitioner import java_hash
from tests.support.broker.consumer_group import ALL, Group
from tests.support.scene import elect, hold, release

OFFSETS = "__consumer_offsets"
REBALANCE, INCONSISTENT, UNKNOWN_MEMBER, NOT_AVAILABLE, INVALID_REGEX = 27, 23, 25, 15, 128
NOT_LEADER, NOT_COORDINATOR = 6, 16
SUBSCRIPTION = write_value(ConsumerProtocolSubscription(["T"]), 1)
RANGE = (("range", SUBSCRIPTION),)


@pytest.fixture
def group() -> Group:
    return Group("4.2", group_initial_rebalance_delay_ms="0")


def join_request(
    *protocols: tuple[str, bytes], member_id: str = "", session_ms: int = 10_000, rebalance_ms: int = 20_000
) -> JoinGroupRequest:
    offered = [JoinGroupRequestProtocol(*protocol) for protocol in protocols or RANGE]
    return JoinGroupRequest("g", session_ms, rebalance_ms, member_id, None, "consumer", offered)


def join(group: Group, *protocols: tuple[str, bytes], **fields: Any) -> Any:
    """Send JoinGroup of version 3, in which the first request is enough."""
    return group.client.ask(join_request(*protocols, **fields), 3)


def join_with_regex(group: Group, member_id: str, regex: str) -> Any:
    return group.beat(member_id, 0, [], timeout_ms=60_000, subscribed_topic_regex=regex)


def assignment(*indexes: int) -> bytes:
    return write_value(ConsumerProtocolAssignment([TopicPartition("T", list(indexes))]), 1)


def kind(group: Group) -> tuple[str, str]:
    [listed] = group.client.ask(ListGroupsRequest(), 5).groups
    return listed.group_type, listed.group_state


def members(group: Group) -> list[str]:
    return [member.member_id for member in group.described().members]


def index_of_the_group(group: Group) -> int:
    return java_hash("g") % len(group.cluster.state.controller.image.topics[OFFSETS].partitions)


# ---- regular expressions -----------------------------------------------------------------------------------------------------


@pytest.mark.rule("GN-52", "GO-24")
def test_offsets_of_topics_subscribed_only_by_a_regular_expression_do_not_expire() -> None:
    group = Group("4.2", offsets_retention_minutes="1", offsets_retention_check_interval_ms="10000")
    join_with_regex(group, "A", "T.*")
    group.cluster.advance(1)
    epoch = group.beat("A", 1).member_epoch
    partition = OffsetCommitRequestPartition(0, 7)
    commit = OffsetCommitRequest("g", epoch, "A", topics=[OffsetCommitRequestTopic("T", partitions=[partition])])
    assert group.client.ask(commit, 9).topics[0].partitions[0].error_code == 0
    for _ in range(12):
        group.cluster.advance(10_000)
        assert group.beat("A", epoch).error_code == 0
    fetched = group.client.ask(OffsetFetchRequest("g", [OffsetFetchRequestTopic("T", [0])]), 5)
    assert fetched.topics[0].partitions[0].committed_offset == 7


@pytest.mark.rule("GN-14", "GN-49")
def test_rejected_heartbeats_of_a_member_do_not_extend_the_session_of_other_members(group: Group) -> None:
    group.join("silent")
    for _ in range(5):
        group.cluster.advance(10_000)
        refused = join_with_regex(group, "B", "(")
        assert refused.error_code == INVALID_REGEX
    assert group.epochs == ("Empty", 2, 1)  # the session of the silent member ended after 45 s


def test_member_gets_all_partitions_although_another_members_stored_regex_is_invalid() -> None:
    invalid, valid = (
        ConsumerMember(member_id, None, None, "c", "/h", 60_000, frozenset(), regex)
        for member_id, regex in (("A", "("), ("B", "T.*"))
    )
    group = loaded(invalid, valid)
    group.beat("B", 1)
    group.cluster.advance(1)
    assert group.epochs[1] == 2
    assert group.epoch_and_partitions(group.beat("B", 1)) == (2, set(ALL))


def loaded(*stored: ConsumerMember) -> Group:
    """Return a group whose coordinator has just loaded these members, stable in epoch 1."""
    group = Group("4.2", brokers=3, group_initial_rebalance_delay_ms="0")
    entries: list[Entry] = [consumer_records.member_entry("g", member) for member in stored]
    entries += [consumer_records.group_entry("g", 1), consumer_records.assignment_epoch_entry("g", 1)]
    entries += [consumer_records.current_entry("g", member.member_id, Current(1, 0)) for member in stored]
    coordinator = group.cluster.state.coordinator_of("g")
    log = group.cluster.state.nodes[coordinator].groups.groups._storage._log
    assert log is not None and log.append_only(index_of_the_group(group), entries, 0) == 0
    group.cluster.run()
    elect(group.cluster, (coordinator + 1) % 3, OFFSETS, index_of_the_group(group))
    group.reconnect()
    return group


# ---- timers ------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("GN-59")
def test_classic_member_that_switches_to_kip_848_is_not_removed_at_rebalance_timeout(group: Group) -> None:
    group.join("A")
    joined = join(group, session_ms=60_000)
    assert group.client.ask(SyncGroupRequest("g", joined.generation_id, joined.member_id), 2).error_code == 0
    assigned = group.epoch_and_partitions(group.beat("A", 1))[1]
    assert group.beat("A", 1, sorted(assigned or ())).member_epoch == 2
    assert group.client.ask(HeartbeatRequest("g", 2, joined.member_id), 2).error_code == REBALANCE
    assert group.join(joined.member_id).error_code == 0
    group.cluster.advance(20_000)  # the rebalance timeout, within which a classic member must join
    assert joined.member_id in members(group)


@pytest.mark.rule("GN-29")
def test_member_that_switches_to_classic_is_not_removed_at_its_old_rebalance_timeout(group: Group) -> None:
    group.join("A", timeout_ms=10_000)
    group.join("B")
    group.beat("A", 1, sorted(ALL))
    owned = ConsumerProtocolSubscription(["T"], owned_partitions=[OwnedPartitions("T", sorted(ALL))])
    joined = join(group, ("range", write_value(owned, 1)), member_id="A", session_ms=60_000, rebalance_ms=60_000)
    assert joined.error_code == 0
    group.cluster.advance(10_000)
    assert "A" in members(group)


# ---- leaving -----------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("GN-62")
def test_leave_group_that_cannot_be_stored_returns_an_error_and_removes_no_member(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    group.join("A")
    joined = join(group)
    log = group.cluster.state.nodes[0].groups.groups._storage._log

    def refuse(index: int, entries: Any, now_ms: int, done: Any, **_: Any) -> None:
        done(NOT_LEADER, now_ms)

    with monkeypatch.context() as patched:
        patched.setattr(log, "append", refuse)
        response = group.client.ask(LeaveGroupRequest("g", members=[MemberIdentity(joined.member_id)]), 3)
    assert (response.error_code, response.members) == (NOT_COORDINATOR, [])
    assert set(members(group)) == {"A", joined.member_id}


# ---- upgrade and downgrade ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("GN-55")
@pytest.mark.parametrize("is_heartbeat", [True, False])
def test_kip_848_join_fails_a_parked_join_group_and_the_next_request_is_answered(is_heartbeat: bool) -> None:
    group = Group("4.2", group_initial_rebalance_delay_ms="3000")
    client = group.cluster.connect(0)
    client.send(join_request(), 3)
    if is_heartbeat:
        client.send(heartbeat("B"), 1)
    else:
        client.send(join_request(), 3)
    group.cluster.run()
    assert client.answers == []
    assert group.join("A").error_code == 0
    assert [response.message.error_code for response in client.answers] == [REBALANCE, 0]
    expected = {"A", "B"} if is_heartbeat else {"A", client.latest.member_id}
    assert expected < set(members(group))


def heartbeat(member_id: str) -> ConsumerGroupHeartbeatRequest:
    """Return the heartbeat of a member that joins."""
    return ConsumerGroupHeartbeatRequest(
        "g", member_id, 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["T"], topic_partitions=[]
    )


@pytest.mark.rule("GN-55")
def test_late_replication_of_a_failed_sync_group_does_not_undo_a_group_upgrade() -> None:
    group = Group("4.2", brokers=3, group_initial_rebalance_delay_ms="0")
    joined = join(group)
    coordinator = group.cluster.state.coordinator_of("g")
    followers = [n for n in range(3) if n != coordinator]
    hold(group.cluster, *followers, topic=OFFSETS, index=index_of_the_group(group))
    leader, upgrader = group.cluster.connect(coordinator), group.cluster.connect(coordinator)
    everything = [SyncGroupRequestAssignment(joined.member_id, assignment(*ALL))]
    leader.send(SyncGroupRequest("g", 1, joined.member_id, assignments=everything), 2)
    upgrader.send(heartbeat("A"), 1)
    group.cluster.advance(5_000)  # the time in which a write must be replicated
    assert [client.latest.error_code for client in (leader, upgrader)] == [REBALANCE, NOT_AVAILABLE]
    release(group.cluster, *followers, topic=OFFSETS, index=index_of_the_group(group))
    assert group.join("B").error_code == 0
    before = len(stored(group))
    for _ in range(5):
        group.cluster.advance(5_000)
        assert group.beat("B", group.epochs[1]).error_code in (0, 110)
    assert (kind(group)[0], [key[1] for key, _ in stored(group)[before:] if key[1] == 2]) == ("consumer", [])
    types = [event.facts["type"] for event in group.cluster.state.journal.events("group")]
    assert "classic" not in types[types.index("consumer") :]


def stored(group: Group) -> list[tuple[bytes, bytes | None]]:
    """Return (key, value) of the records in the group's partition of the offsets topic."""
    log = group.cluster.state.nodes[group.cluster.state.coordinator_of("g")].groups.groups._storage._log
    assert log is not None
    return [(record.key, record.value) for record in log.read(index_of_the_group(group)) if record.key is not None]


@pytest.mark.rule("GN-61")
@pytest.mark.parametrize("metadata", [b"\xff\xff", b"", b"\x7f\xff"])
def test_group_becomes_classic_again_even_if_a_member_sent_damaged_protocol_metadata(
    group: Group, metadata: bytes
) -> None:
    group.join("A")
    joined = [
        join(group, *RANGE, ("x", metadata), session_ms=200_000, rebalance_ms=300_000).error_code,
        join(group, ("x", SUBSCRIPTION), session_ms=200_000, rebalance_ms=300_000).error_code,
    ]
    assert joined == [0, 0]
    group.cluster.advance(45_000)  # the session of A
    assert kind(group) == ("classic", "PreparingRebalance")


@pytest.mark.rule("GN-55")
def test_group_upgrade_gives_a_doubly_assigned_partition_to_exactly_one_member() -> None:
    """A leader may assign partitions that do not exist, and the same one to two members."""
    group = Group("4.2", group_initial_rebalance_delay_ms="1000")
    clients = [group.cluster.connect(0) for _ in range(2)]
    for client in clients:
        client.send(join_request(), 3)
    group.cluster.advance(5_000)
    leader = next(client for client in clients if client.latest.leader == client.latest.member_id)
    assignments = [SyncGroupRequestAssignment(client.latest.member_id, assignment(-1, *ALL, 99)) for client in clients]
    assert leader.ask(SyncGroupRequest("g", 1, leader.latest.member_id, assignments=assignments), 2).error_code == 0
    assert group.join("A").error_code == 0
    owners = sorted(index for indexes in group.targets().values() for index in indexes)
    assert owners == sorted(ALL)


@pytest.mark.rule("GN-63")
def test_classic_join_without_protocols_is_rejected_but_makes_an_empty_group_classic(group: Group) -> None:
    group.join("A")
    group.beat("A", -1)
    assert join(group, member_id="nobody").error_code == UNKNOWN_MEMBER
    assert kind(group) == ("consumer", "Empty")
    assert group.beat("A", 1).error_code == UNKNOWN_MEMBER  # not GROUP_ID_NOT_FOUND: the group is not forgotten
    no_protocols = JoinGroupRequest("g", 10_000, 20_000, "", None, "consumer", [])
    assert group.client.ask(no_protocols, 3).error_code == INCONSISTENT
    assert kind(group) == ("classic", "Empty")


def test_member_can_leave_although_the_stored_record_of_another_member_is_damaged() -> None:
    """Such a record is damaged, but the coordinator must not fail over it."""
    empty = ConsumerMember("M", None, None, "c", "/h", 60_000, frozenset({"T"}), classic=ClassicProtocol(10_000, ()))
    other = ConsumerMember("A", None, None, "c", "/h", 60_000, frozenset({"T"}))
    group = loaded(empty, other)
    client: MemoryClient = group.client
    assert client.ask(SyncGroupRequest("g", 1, "M"), 2).error_code in (0, REBALANCE)
    assert group.beat("A", -1).error_code == 0
    assert kind(group) == ("classic", "PreparingRebalance")
