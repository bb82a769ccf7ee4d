"""Consumer groups of the new protocol (KIP-848) through the APIs of one broker, in virtual time: the scenarios SN-28 to SN-41."""

from __future__ import annotations

import pytest

from kafkaproto.broker.group.reconciliation import MemberState
from kafkaproto.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
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
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kafkaproto.partitioner import java_hash
from tests.support.broker.consumer_group import (
    ALL,
    FENCED_EPOCH,
    FENCED_INSTANCE,
    FULL,
    INVALID,
    NOT_FOUND,
    SESSION_MS,
    STALE_EPOCH,
    TIMEOUT_MS,
    UNKNOWN_MEMBER,
    UNRELEASED,
    UNSUPPORTED_ASSIGNOR,
    UNSUPPORTED_VERSION,
    Group,
)
from tests.support.scene import elect, hold, release

OFFSETS = "__consumer_offsets"
NOT_COORDINATOR = 16


@pytest.fixture(params=["3.9", "4.2"])
def group(request: pytest.FixtureRequest) -> Group:
    return Group(request.param)


@pytest.mark.rule("SN-28")
def test_consumer_group_heartbeats_with_invalid_fields_are_rejected(group: Group) -> None:
    assert group.join("A").error_code == 0
    for response, error, text in (
        (group.join("B", timeout_ms=-1), INVALID, "RebalanceTimeoutMs must be provided in first request."),
        (group.beat("B", 0, None, ["T"], timeout_ms=1), INVALID, "TopicPartitions must be empty when (re-)joining."),
        (group.beat("B", 0, [1], ["T"], timeout_ms=1), INVALID, "TopicPartitions must be empty when (re-)joining."),
        (group.beat("B", 0, [], None, timeout_ms=1), INVALID, None),
        (
            group.join("B", server_assignor="nope"),
            UNSUPPORTED_ASSIGNOR,
            "ServerAssignor nope is not supported. Supported assignors: uniform, range.",
        ),
        (group.beat("B", 1, group="other"), NOT_FOUND, None),
        (group.beat("B", -1, group="other"), NOT_FOUND, None),
        (group.beat("A", -3), INVALID, "MemberEpoch is invalid."),
        (group.beat("A", -2), INVALID, None),
        (group.beat("", 1), INVALID, None),
        (group.join("B", group=""), INVALID, None),
        (group.join("B", instance_id=""), INVALID, None),
        (group.join("B", rack_id=""), INVALID, None),
    ):
        assert (response.error_code, response.member_id, response.member_epoch, response.assignment) == (
            error,
            None,
            0,
            None,
        )
        assert text is None or response.error_message == text
    assert [member.member_id for member in group.described().members] == ["A"]


def test_consumer_group_heartbeat_without_member_id_is_accepted_in_v0_but_not_v1() -> None:
    old = Group("3.9").join("")
    assert old.error_code == 0 and len(old.member_id) == 22
    assert Group("4.2").join("").error_code == INVALID


@pytest.mark.rule("SN-29")
def test_single_member_of_a_consumer_group_gets_all_partitions(group: Group) -> None:
    response = group.join("A")
    assert group.epoch_and_partitions(response) == (1, ALL) and (
        response.member_id,
        response.heartbeat_interval_ms,
    ) == ("A", 5000)
    assert group.epoch_and_partitions(group.beat("A", 1, sorted(ALL))) == (1, None)
    assert group.beat("A", 9).error_code == FENCED_EPOCH
    assert group.beat("zzz", 1).error_code == UNKNOWN_MEMBER
    described = group.described()
    assert group.epochs == ("Stable", 1, 1) and described.assignor_name == "uniform"
    [member] = described.members
    assert (member.member_id, member.member_epoch, member.subscribed_topic_names) == ("A", 1, ["T"])
    assert [(t.topic_name, t.partitions) for t in member.assignment.topic_partitions] == [("T", sorted(ALL))]


@pytest.mark.rule("SN-30")
def test_partitions_are_revoked_from_a_member_before_another_member_gets_them(group: Group) -> None:
    assert group.epoch_and_partitions(group.join("A")) == (1, ALL)
    assert group.epoch_and_partitions(group.join("B")) == (2, set())
    assert group.targets() == {"A": [0, 1, 2], "B": [3, 4, 5]} and group.epochs == ("Reconciling", 2, 2)
    assert group.epoch_and_partitions(group.beat("A", 1)) == (1, {0, 1, 2})
    assert group.epoch_and_partitions(group.beat("A", 1, sorted(ALL))) == (1, None)
    assert group.epoch_and_partitions(group.beat("B", 2, [])) == (2, None)
    assert group.epoch_and_partitions(group.join("C")) == (3, set())
    assert group.targets() == {"A": [0, 1], "B": [3, 4], "C": [2, 5]}
    assert group.epoch_and_partitions(group.beat("A", 1, [0, 1, 2])) == (1 if group.release == "4.2" else 2, {0, 1})
    assert group.epoch_and_partitions(group.beat("B", 2, [])) == (3, {3, 4})
    assert group.epoch_and_partitions(group.beat("C", 3, [])) == (3, {5})
    assert group.epoch_and_partitions(group.beat("A", 1, [0])) == (3, None)
    assert group.beat("A", 1, [5]).error_code == FENCED_EPOCH
    assert group.epoch_and_partitions(group.beat("C", 3, [5])) == (3, {2, 5})
    assert group.epochs == ("Stable", 3, 3)


@pytest.mark.rule("SN-31")
def test_consumer_group_heartbeat_with_all_fields_returns_an_unchanged_assignment(group: Group) -> None:
    group.join("A")
    group.join("B")
    group.beat("A", 1)
    group.beat("A", 1, [0, 1, 2])
    assert group.epoch_and_partitions(group.beat("B", 2, [])) == (2, {3, 4, 5})
    assert group.epoch_and_partitions(group.beat("B", 2, [], ["T"], timeout_ms=TIMEOUT_MS)) == (2, {3, 4, 5})
    assert group.epoch_and_partitions(group.beat("B", 2)) == (2, None)


@pytest.mark.rule("SN-32")
def test_member_at_epoch_2_that_rejoins_with_epoch_0_is_fenced_before_kafka_4_2(group: Group) -> None:
    group.join("A")
    assert group.epoch_and_partitions(group.join("A")) == (1, ALL)
    group.join("B")
    group.beat("A", 1)
    assert group.epoch_and_partitions(group.beat("A", 1, [0, 1, 2]))[0] == 2
    if group.release == "4.2":
        assert group.epoch_and_partitions(group.join("A")) == (2, {0, 1, 2})
    else:
        assert group.join("A").error_code == FENCED_EPOCH


@pytest.mark.rule("SN-33")
def test_changed_subscription_of_a_member_starts_a_new_consumer_group_epoch(group: Group) -> None:
    group.join("A")
    group.join("B")
    group.beat("A", 1)
    group.beat("A", 1, [0, 1, 2])
    assert group.epoch_and_partitions(group.beat("B", 2, [])) == (2, {3, 4, 5})
    assert group.epoch_and_partitions(group.beat("B", 2, [3, 4, 5], ["T", "t1"])) == (2, set())
    assert group.epochs[1] == 3
    assert group.targets() == {"A": sorted(ALL), "B": []} and group.targets("t1")["B"] == sorted(ALL)


@pytest.mark.rule("SN-34")
def test_each_leaving_member_starts_a_new_epoch_and_the_last_one_empties_the_group(group: Group) -> None:
    for member_id in "ABC":
        group.join(member_id)
    response = group.beat("C", -1)
    assert (response.error_code, response.member_epoch, response.heartbeat_interval_ms, response.assignment) == (
        0,
        -1,
        0,
        None,
    )
    assert group.epochs == ("Assigning", 4, 3)
    assert group.beat("C", -1).error_code == UNKNOWN_MEMBER
    for member_id in "AB":
        assert group.beat(member_id, -1).error_code == 0
    assert group.epochs == ("Empty", 6, 3)
    [result] = group.client.ask(DeleteGroupsRequest(["g"]), 2).results
    assert result.error_code == 0 and group.described().error_code == NOT_FOUND


@pytest.mark.rule("SN-35")
def test_static_member_that_leaves_with_epoch_minus_2_keeps_its_partitions(group: Group) -> None:
    assert group.epoch_and_partitions(group.join("A", instance_id="i1")) == (1, ALL)
    assert group.join("B", instance_id="i1").error_code == UNRELEASED
    assert group.join("A", instance_id="i1").error_code == UNRELEASED
    assert group.beat("B", 1, instance_id="i1").error_code == FENCED_INSTANCE
    away = group.beat("A", -2, instance_id="i1")
    assert (away.error_code, away.member_epoch) == (0, -2)
    [member] = group.described().members
    assert (group.epochs[0], member.member_epoch) == ("Reconciling", -2)
    assert [t.partitions for t in member.assignment.topic_partitions] == [sorted(ALL)]
    assert group.epoch_and_partitions(group.join("B", instance_id="i1")) == (1, ALL)
    assert group.epochs == ("Stable", 1, 1)
    assert group.beat("A", 1, instance_id="i1").error_code == FENCED_INSTANCE
    assert group.beat("A", 1, instance_id="i2").error_code == UNKNOWN_MEMBER


@pytest.mark.rule("GN-30")
def test_static_member_that_left_with_epoch_minus_2_is_removed_when_session_expires(group: Group) -> None:
    group.join("A", instance_id="i1")
    group.beat("A", -2, instance_id="i1")
    group.cluster.advance(SESSION_MS - 1)
    assert len(group.described().members) == 1
    group.cluster.advance(1)
    assert group.epochs == ("Empty", 2, 1)


def commit(group: Group, version: int, epoch: int, member_id: str) -> int:
    partition = OffsetCommitRequestPartition(0, committed_offset=7)
    request = OffsetCommitRequest("g", epoch, member_id, topics=[OffsetCommitRequestTopic("T", partitions=[partition])])
    return int(group.client.ask(request, version).topics[0].partitions[0].error_code)


@pytest.mark.rule("SN-36")
def test_offset_commits_and_fetches_of_a_member_need_the_current_member_epoch(group: Group) -> None:
    group.join("A")
    group.join("B")
    group.beat("A", 1)
    group.beat("A", 1, [0, 1, 2])
    assert commit(group, 8, 2, "A") == UNSUPPORTED_VERSION
    assert commit(group, 9, 2, "A") == 0
    assert commit(group, 9, 1, "A") == STALE_EPOCH
    assert commit(group, 9, 2, "q") == UNKNOWN_MEMBER
    assert commit(group, 9, -1, "") == UNKNOWN_MEMBER
    for member_id, epoch, error in (("A", 1, STALE_EPOCH), ("q", 2, UNKNOWN_MEMBER), (None, -1, 0), ("A", 2, 0)):
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", member_id, epoch, None)])
        [group_response] = group.client.ask(request, 9).groups
        assert (group_response.error_code, len(group_response.topics)) == (error, int(error == 0))


@pytest.mark.rule("SN-37")
def test_classic_protocol_requests_to_a_consumer_group_are_rejected(group: Group) -> None:
    group.join("C")
    [described] = group.client.ask(DescribeGroupsRequest(["g"]), 5).groups
    assert (described.error_code, described.group_state) == (0, "Dead")
    assert group.client.ask(HeartbeatRequest("g", 1, "C"), 4).error_code == UNKNOWN_MEMBER
    [listed] = group.client.ask(ListGroupsRequest([], ["consumer"]), 5).groups
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
        "g",
        "consumer",
        "Stable",
        "consumer",
    )
    assert group.client.ask(ListGroupsRequest([], ["classic"]), 5).groups == []
    [result] = group.client.ask(DeleteGroupsRequest(["g"]), 2).results
    assert result.error_code == 68


@pytest.mark.rule("SN-39")
def test_group_with_the_range_assignor_assigns_consecutive_partitions_of_each_topic(group: Group) -> None:
    group.join("A", server_assignor="range")
    group.join("B", "T", "t1", server_assignor="range")
    assert group.targets() == {"A": [0, 1, 2], "B": [3, 4, 5]} and group.targets("t1") == {"A": [], "B": sorted(ALL)}
    assert group.described().assignor_name == "range"


@pytest.mark.rule("SN-40")
def test_member_that_does_not_revoke_partitions_in_time_is_fenced(group: Group) -> None:
    group.join("A", timeout_ms=10_000)
    group.join("B")
    group.beat("A", 1)
    for _ in range(9):
        group.cluster.advance(1_000)
        assert group.epoch_and_partitions(group.beat("A", 1, sorted(ALL))) == (1, None)
    group.cluster.advance(1_000)
    assert group.beat("A", 1).error_code == UNKNOWN_MEMBER
    assert group.epoch_and_partitions(group.beat("B", 2, [])) == (3, ALL)


@pytest.mark.rule("SN-41")
def test_partitions_added_to_a_topic_are_assigned_at_the_next_heartbeat(group: Group) -> None:
    group.join("A")
    response = group.client.ask(CreatePartitionsRequest([CreatePartitionsTopic("T", 8, None)], 1000), 1)
    assert response.results[0].error_code == 0
    assert group.epoch_and_partitions(group.beat("A", 1, sorted(ALL))) == (2, set(range(8)))


@pytest.mark.rule("GN-30")
def test_member_without_heartbeats_is_removed_after_its_session_timeout(group: Group) -> None:
    group.join("A")
    group.join("B")
    group.cluster.advance(SESSION_MS - 1)
    assert group.epoch_and_partitions(group.beat("B", 2, [])) == (2, None)
    group.cluster.advance(1)
    assert group.beat("A", 1).error_code == UNKNOWN_MEMBER
    assert group.epoch_and_partitions(group.beat("B", 2, [])) == (3, ALL)


def test_consumer_group_rejects_members_beyond_its_maximum_size() -> None:
    group = Group(group_consumer_max_size="1")
    group.join("A")
    assert group.join("B").error_code == FULL
    assert group.epoch_and_partitions(group.join("A")) == (1, ALL)
    assert group.epochs == ("Stable", 1, 1)


def test_partitions_of_a_subscribed_topic_are_assigned_after_the_topic_is_created(group: Group) -> None:
    assert group.epoch_and_partitions(group.join("A", "later")) == (1, set())
    group.cluster.topic("later", 2)
    response = group.beat("A", 1, [])
    assert response.member_epoch == 2
    assert [(t.topic_id, t.partitions) for t in response.assignment.topic_partitions] == [
        (group.id_of("later"), [0, 1])
    ]
    group.cluster.state.controller.delete_topic("later")
    response = group.beat("A", 2, [])
    assert (response.member_epoch, response.assignment.topic_partitions) == (3, [])


def test_consumer_group_is_described_identically_before_and_after_a_coordinator_move() -> None:
    group = Group(brokers=3)
    group.join("A", instance_id="i1")
    group.join("B")
    group.beat("A", 1, instance_id="i1")
    assert commit(group, 9, 2, "B") == 0
    before = group.described()
    index = 103 % len(group.cluster.state.controller.image.topics["__consumer_offsets"].partitions)
    old = group.cluster.state.coordinator_of("g")
    elect(group.cluster, (old + 1) % 3, "__consumer_offsets", index)
    assert group.beat("A", 1).error_code == 16
    group.reconnect()
    assert repr(group.described()) == repr(before)
    assert group.epoch_and_partitions(group.beat("A", 1, [0, 1, 2], instance_id="i1")) == (2, None)
    assert group.epoch_and_partitions(group.beat("B", 2, [])) == (2, {3, 4, 5})
    group.cluster.advance(SESSION_MS)
    assert group.epochs == ("Empty", 4, 2)


def test_new_coordinator_answers_heartbeats_only_after_loaded_records_are_replicated() -> None:
    """The previous coordinator stopped before all followers had the change, so the next coordinator may lose it, too."""
    group = Group("4.2", brokers=3)
    group.join("A")
    leader = group.cluster.state.coordinator_of("g")
    index = java_hash("g") % len(group.cluster.state.controller.image.topics[OFFSETS].partitions)
    new_leader, held_follower = (broker_id for broker_id in range(3) if broker_id != leader)
    hold(group.cluster, held_follower, topic=OFFSETS, index=index)
    group.client.send(group.request("A", 1, ALL, ["T", "t1"], timeout_ms=TIMEOUT_MS), group.version)
    group.cluster.advance(100)
    assert len(group.client.answers) == 1  # of the join
    elect(group.cluster, new_leader, OFFSETS, index)
    member = group.cluster.connect(new_leader)
    member.send(group.request("A", 1, ALL, ["T", "t1"], timeout_ms=TIMEOUT_MS), group.version)
    group.cluster.run()
    assert member.answers == []
    release(group.cluster, held_follower, topic=OFFSETS, index=index)
    group.cluster.advance(100)
    assert member.latest.member_epoch == 2


@pytest.mark.parametrize("outcome", ["replicated", "moved"])
def test_retried_heartbeat_succeeds_only_after_the_new_subscription_is_replicated(outcome: str) -> None:
    """The response to the first heartbeat is lost; the broker may lose the change, too, so a second heartbeat must not show it yet."""
    group = Group("4.2", brokers=3)
    group.join("A")
    leader = group.cluster.state.coordinator_of("g")
    index = java_hash("g") % len(group.cluster.state.controller.image.topics[OFFSETS].partitions)
    followers = [broker_id for broker_id in range(3) if broker_id != leader]
    hold(group.cluster, *followers, topic=OFFSETS, index=index)
    resubscribed = group.request("A", 1, ALL, ["T", "t1"], timeout_ms=TIMEOUT_MS)
    first, second = (group.cluster.connect(leader) for _ in range(2))
    first.send(resubscribed, group.version)
    second.send(resubscribed, group.version)
    group.cluster.run()
    assert first.answers == second.answers == []
    if outcome == "moved":
        elect(group.cluster, followers[0], OFFSETS, index)
        assert [second.latest.error_code, second.latest.member_epoch] == [NOT_COORDINATOR, 0]
    else:
        release(group.cluster, *followers, topic=OFFSETS, index=index)
        assert [first.latest.member_epoch, second.latest.member_epoch] == [2, 2]


def test_member_that_revokes_too_late_is_removed_even_after_a_coordinator_move() -> None:
    group = Group(brokers=3)
    group.join("A", timeout_ms=10_000)
    group.join("B")
    group.beat("A", 1)
    index = 103 % len(group.cluster.state.controller.image.topics["__consumer_offsets"].partitions)
    elect(group.cluster, (group.cluster.state.coordinator_of("g") + 1) % 3, "__consumer_offsets", index)
    group.reconnect()
    coordinator = group.cluster.state.nodes[group.cluster.state.coordinator_of("g")].groups
    loaded = coordinator.groups.get_consumer("g")
    assert loaded is not None and loaded.members["A"].current.state is MemberState.UNREVOKED_PARTITIONS
    group.cluster.advance(10_000)
    assert group.beat("A", 1).error_code == UNKNOWN_MEMBER


def test_empty_group_can_change_its_group_protocol_and_keeps_its_offsets(group: Group) -> None:
    assert commit(group, 8, -1, "") == 0
    assert group.epoch_and_partitions(group.join("A")) == (1, ALL)
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", None, -1, None)])
    assert len(group.client.ask(request, 9).groups[0].topics) == 1
    assert group.beat("A", -1).error_code == 0
    protocols = [JoinGroupRequestProtocol("range", b"m")]
    joined = group.client.ask(JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", protocols), 3)
    assert (joined.error_code, joined.generation_id) == (0, 1)
    [listed] = group.client.ask(ListGroupsRequest(), 5).groups
    assert listed.group_type == "classic" and len(group.client.ask(request, 9).groups[0].topics) == 1
    assert group.join("A").error_code == NOT_FOUND  # it has a classic member
    group.client.ask(LeaveGroupRequest("g", members=[MemberIdentity(joined.member_id)]), 3)
    assert group.epoch_and_partitions(group.join("A")) == (1, ALL)
