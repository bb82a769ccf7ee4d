"""Groups that change between the classic and the new protocol (KIP-848): policies, size limits, coordinator moves and failed writes."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.coordinator_records import write_value
from kafkaproto.data.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kafkaproto.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkaproto.partitioner import java_hash
from tests.support.broker.consumer_group import ALL, NOT_FOUND, UNKNOWN_MEMBER, Group
from tests.support.scene import elect, hold, release

ILLEGAL_GENERATION, REBALANCE = 22, 27
SUBSCRIPTION = write_value(ConsumerProtocolSubscription(["T"]), 1)


def join(group: Group, member_id: str = "", session_ms: int = 10_000) -> Any:
    """Send JoinGroup of version 3, in which the first request is enough."""
    protocols = [JoinGroupRequestProtocol("range", SUBSCRIPTION)]
    return group.client.ask(JoinGroupRequest("g", session_ms, 20_000, member_id, None, "consumer", protocols), 3)


def classic_member(group: Group) -> str:
    """Make `g` a stable classic group of one member that has all partitions, and return the member's id."""
    joined = join(group)
    everything = write_value(ConsumerProtocolAssignment([TopicPartition("T", sorted(ALL))]), 1)
    request = SyncGroupRequest(
        "g", 1, joined.member_id, assignments=[SyncGroupRequestAssignment(joined.member_id, everything)]
    )
    assert (joined.error_code, group.client.ask(request, 2).error_code) == (0, 0)
    return str(joined.member_id)


def heartbeat(group: Group, member_id: str, generation: int) -> int:
    return int(group.client.ask(HeartbeatRequest("g", generation, member_id), 2).error_code)


def commit(group: Group, member_id: str, generation: int, offset: int) -> int:
    partition = OffsetCommitRequestPartition(0, offset)
    topics = [OffsetCommitRequestTopic("T", partitions=[partition])]
    response = group.client.ask(OffsetCommitRequest("g", generation, member_id, topics=topics), 5)
    return int(response.topics[0].partitions[0].error_code)


def committed(group: Group) -> int:
    response = group.client.ask(OffsetFetchRequest("g", [OffsetFetchRequestTopic("T", [0])]), 5)
    return int(response.topics[0].partitions[0].committed_offset)


def kind(group: Group) -> tuple[str, str]:
    [listed] = group.client.ask(ListGroupsRequest(), 5).groups
    return listed.group_type, listed.group_state


def with_policy(release_name: str, policy: str | None, **config: str) -> Group:
    if policy is not None:
        config["group_consumer_migration_policy"] = policy
    return Group(release_name, group_initial_rebalance_delay_ms="0", **config)


@pytest.mark.rule("GN-54", "GN-55")
@pytest.mark.parametrize("release_name", ["3.9", "4.2"])
@pytest.mark.parametrize("policy", [None, "disabled", "Upgrade", "downgrade", "BIDIRECTIONAL"])
def test_group_is_upgraded_or_downgraded_only_if_the_migration_policy_allows_it(
    release_name: str, policy: str | None
) -> None:
    meant = (policy or ("disabled" if release_name == "3.9" else "bidirectional")).lower()
    group = with_policy(release_name, policy)
    member_id = classic_member(group)
    joined = group.join("A")
    if meant in ("upgrade", "bidirectional"):
        assert group.epoch_and_partitions(joined) == (2, set())
        group.beat("A", -1)
        goes_back = meant == "bidirectional"
        assert kind(group) == (("classic", "PreparingRebalance") if goes_back else ("consumer", "Assigning"))
        assert heartbeat(group, member_id, 2 if goes_back else 1) == REBALANCE
    else:
        reason = "Group g is not a consumer group."
        if release_name == "4.2":
            reason = "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
        assert (joined.error_code, joined.error_message) == (NOT_FOUND, reason)
        assert kind(group) == ("classic", "Stable")
        assert heartbeat(group, member_id, 1) == 0


@pytest.mark.rule("GN-55", "GN-61")
def test_group_above_the_max_size_of_the_target_protocol_is_not_converted() -> None:
    group = with_policy("4.2", None, group_consumer_max_size="1", group_max_size="1")
    classic_member(group)
    refused = group.join("A")
    assert (refused.error_code, kind(group)) == (
        81,
        ("classic", "Stable"),
    )  # the group has one member, A would be the second
    group = with_policy("4.2", None, group_consumer_max_size="3", group_max_size="1")
    group.join("A")
    assert [join(group).error_code for _ in range(2)] == [0, 0]
    group.beat("A", -1)
    assert kind(group)[0] == "consumer"  # two classic members are left, and a classic group may have one


@pytest.mark.rule("GN-55", "GN-59", "GO-11")
def test_new_coordinator_of_a_mixed_group_loads_classic_and_kip_848_members() -> None:
    group = Group("4.2", brokers=3, group_initial_rebalance_delay_ms="0")
    member_id = classic_member(group)
    assert group.epoch_and_partitions(group.join("A")) == (2, set())
    assert commit(group, member_id, 1, 7) == 0
    index = java_hash("g") % len(group.cluster.state.controller.image.topics["__consumer_offsets"].partitions)
    elect(group.cluster, (group.cluster.state.coordinator_of("g") + 1) % 3, "__consumer_offsets", index)
    group.reconnect()
    assert heartbeat(group, member_id, 1) == REBALANCE
    assert heartbeat(group, member_id, 9) == ILLEGAL_GENERATION
    assert (committed(group), set(group.targets())) == (7, {"A", member_id})
    group.cluster.advance(10_000)  # the session timeout of the classic member
    assert heartbeat(group, member_id, 1) == UNKNOWN_MEMBER
    assert set(group.targets()) == {"A"}


@pytest.mark.rule("GN-55", "GO-11")
def test_downgraded_group_keeps_members_and_offsets_after_a_coordinator_move() -> None:
    group = Group("4.2", brokers=3, group_initial_rebalance_delay_ms="0")
    member_id = classic_member(group)
    group.join("A")
    assert commit(group, member_id, 1, 7) == 0
    group.beat("A", -1)
    assert kind(group) == ("classic", "PreparingRebalance")
    index = java_hash("g") % len(group.cluster.state.controller.image.topics["__consumer_offsets"].partitions)
    elect(group.cluster, (group.cluster.state.coordinator_of("g") + 1) % 3, "__consumer_offsets", index)
    group.reconnect()
    assert kind(group) == ("classic", "Stable")  # as stored; the rebalance is not
    assert (heartbeat(group, member_id, 2), committed(group)) == (0, 7)


@pytest.mark.rule("GN-55")
def test_offset_commit_written_during_a_group_upgrade_is_not_lost() -> None:
    group = Group("4.2", brokers=3, group_initial_rebalance_delay_ms="0")
    member_id = classic_member(group)
    leader = group.cluster.state.coordinator_of("g")
    index = java_hash("g") % len(group.cluster.state.controller.image.topics["__consumer_offsets"].partitions)
    followers = [n for n in range(3) if n != leader]
    hold(group.cluster, *followers, topic="__consumer_offsets", index=index)
    writer = group.cluster.connect(leader)
    partition = OffsetCommitRequestPartition(0, 7)
    topics = [OffsetCommitRequestTopic("T", partitions=[partition])]
    writer.send(OffsetCommitRequest("g", 1, member_id, topics=topics), 5)
    upgrader = group.cluster.connect(leader)
    joining = ConsumerGroupHeartbeatRequest(
        "g", "A", 0, rebalance_timeout_ms=1000, subscribed_topic_names=["T"], topic_partitions=[]
    )
    upgrader.send(joining, 1)
    group.cluster.run()
    assert (writer.answers, upgrader.answers) == ([], [])
    release(group.cluster, *followers, topic="__consumer_offsets", index=index)
    assert upgrader.latest.member_epoch == 2
    assert writer.latest.topics[0].partitions[0].error_code == 0
    assert (kind(group)[0], committed(group)) == ("consumer", 7)


def test_rebalance_event_in_the_journal_names_a_changed_group_protocol_as_a_cause() -> None:
    group = with_policy("4.2", None)
    member_id = classic_member(group)
    group.join("A")
    group.beat("A", -1)
    events = [
        (e.facts["type"], e.facts["state"], e.facts["causes"]) for e in group.cluster.state.journal.events("group")
    ]
    assert events[-3:] == [
        ("classic", "Stable", []),
        ("consumer", "Reconciling", ["member A joined", "the group changed from the classic to the new protocol"]),
        ("classic", "PreparingRebalance", ["member A left", "the group changed from the new to the classic protocol"]),
    ]
    assert heartbeat(group, member_id, 2) == REBALANCE
