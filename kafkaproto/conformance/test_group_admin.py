"""Tests of requests that administrators send: leave, describe, list and delete groups, and delete offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkaproto.conformance.consumer_groups import TIMEOUT_MS
from kafkaproto.conformance.groups import Group, commit, has_new_coordinator, make_stable, subscription
from kafkaproto.conformance.scene import new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.messages.describe_groups import DescribeGroupsRequest
from kafkaproto.messages.leave_group import LeaveGroupRequest
from kafkaproto.messages.list_groups import ListGroupsRequest

pytestmark = pytest.mark.needs("group.initial.rebalance.delay.ms", offsets_topic=True)


@pytest.mark.rule("GC-46", "GC-47", "GC-48", "GC-50", "SN-15")
def test_leave_group_returns_an_error_code_for_each_member_of_the_request(subject: Subject) -> None:
    """A request names a member and three unknown members. The member leaves, and the others get UNKNOWN_MEMBER_ID (scenario SN-15)."""
    group = Group(subject)
    client = group.client()
    make_stable(client)
    result = group.leave((client.member_id, None), ("zz", None), ("", "i9"), ("", None), version=5)
    assert result == (0, [(client.member_id, None, 0), ("zz", None, 25), ("", "i9", 25), ("", None, 25)])
    assert group.state() == ("Empty", 0)
    assert client.heartbeat() == 25
    unknown = Group(subject)
    assert unknown.leave(("zz", None)) == (0, [("zz", None, 25)])
    for any_group in (group, unknown):
        assert any_group.ask(LeaveGroupRequest(any_group.id, "zz"), 2).error_code == 25


@pytest.mark.rule("GC-46", "GC-48")
def test_leave_group_v2_removes_the_only_member_and_leaves_the_group_empty(subject: Subject) -> None:
    group = Group(subject)
    client = group.client()
    make_stable(client)
    assert group.ask(LeaveGroupRequest(group.id, client.member_id), 2).error_code == 0
    assert group.state() == ("Empty", 0)


@pytest.mark.rule("GC-8", "GC-51", "GC-53", "SN-16")
def test_describe_groups_reports_an_unknown_group_as_dead(subject: Subject) -> None:
    """DescribeGroups returns the state Dead; from version 6 on, it also returns GROUP_ID_NOT_FOUND (first half of scenario SN-16)."""
    group = Group(subject)
    for version in range(6):
        [unknown] = group.ask(DescribeGroupsRequest([group.id]), version).groups
        assert (unknown.error_code, unknown.group_id, unknown.group_state) == (0, group.id, "Dead"), version
        assert (unknown.protocol_type, unknown.protocol_data, unknown.members) == ("", "", []), version
    if has_new_coordinator(subject):  # KIP-1043
        [unknown] = group.ask(DescribeGroupsRequest([group.id]), 6).groups
        assert (unknown.error_code, unknown.group_state, unknown.members) == (69, "Dead", [])
        assert unknown.error_message == f"Group {group.id} not found."
    [unknown] = group.ask(DescribeGroupsRequest([group.id], include_authorized_operations=False), 5).groups
    assert unknown.authorized_operations == -(2**31)
    make_stable(group.client())
    [description] = group.ask(DescribeGroupsRequest([group.id], include_authorized_operations=True), 5).groups
    assert description.authorized_operations == (3400 if has_new_coordinator(subject) else 328)


@pytest.mark.rule("GC-12", "GC-58")
def test_join_group_answered_with_member_id_required_creates_an_empty_listed_group(subject: Subject) -> None:
    group = Group(subject)
    assert group.client().join().error_code == 79
    entries = [g for g in group.ask(ListGroupsRequest(), 5).groups if g.group_id == group.id]
    assert [(g.protocol_type, g.group_state) for g in entries] == [("", "Empty")]


@pytest.mark.rule("GC-13", "GC-56", "SN-16")
def test_list_groups_filters_groups_by_state_and_type(subject: Subject) -> None:
    """The filters of ListGroups ignore case, and unknown states and types match no group (second half of scenario SN-16)."""
    group = Group(subject)
    make_stable(group.client())

    def listed(states: list[str], types: list[str]) -> list[Any]:
        response = group.ask(ListGroupsRequest(states, types), 5)
        assert response.error_code == 0
        return [g for g in response.groups if g.group_id == group.id]

    for states, types in (
        ([], []),
        (["stable"], ["Classic"]),
        (["Empty", "STABLE"], []),
        ([], ["consumer", "classic"]),
    ):
        [listed_group] = listed(states, types)
        assert (listed_group.protocol_type, listed_group.group_state, listed_group.group_type) == (
            "consumer",
            "Stable",
            "classic",
        )
    for states, types in ((["Empty"], []), ([], ["foo"]), (["foo"], []), ([], ["consumer"]), ([""], [])):
        assert listed(states, types) == []
    assert group.ask(ListGroupsRequest([], ["foo"]), 5).groups == []
    assert len(listed([" Stable "], [])) == has_new_coordinator(subject)  # only the coordinator in Java trims states
    assert listed([], [" classic "]) == []
    [entry] = [g for g in group.ask(ListGroupsRequest(), 2).groups if g.group_id == group.id]
    assert (entry.group_id, entry.protocol_type) == (group.id, "consumer")


@pytest.mark.rule("GC-57")
def test_list_groups_returns_only_groups_that_the_broker_coordinates(subject: Subject) -> None:
    group = Group(subject)
    make_stable(group.client())
    owner = group.coordinator()
    for broker_id in range(len(subject.bootstrap)):
        ids = [g.group_id for g in subject.ask_once(ListGroupsRequest(), 4, broker_id).groups]
        assert (group.id in ids) == (broker_id == owner)


@pytest.mark.rule("GC-8", "GC-11", "GC-59", "GO-27", "SN-17")
def test_delete_groups_deletes_a_group_without_members_and_its_offsets(subject: Subject) -> None:
    """DeleteGroups rejects unknown groups and groups with members, and deletes a group whose last member has left (scenario SN-17)."""
    topic = new_topic(subject)
    group, stable = Group(subject), Group(subject, 0)

    def delete(*ids: str, of: Group = group) -> list[tuple[str, int]]:
        return [(r.group_id, r.error_code) for r in of.ask(DeleteGroupsRequest(list(ids)), 2).results]

    assert delete(group.id) == [(group.id, 69)]
    empty = Group(subject)
    empty.id = ""
    assert delete("", of=empty) == [("", 69)]
    make_stable(stable.client())
    assert delete(stable.id, of=stable) == [(stable.id, 68)]
    client = group.client()
    make_stable(client)
    assert client.commit({topic.name: {0: (5, "x")}}) == {(topic.name, 0): 0}
    assert group.leave((client.member_id, None))[0] == 0
    assert group.committed() == {(topic.name, 0): 5}
    assert delete(group.id, group.id) == [(group.id, 0)]
    assert group.describe().group_state == "Dead"
    assert group.committed() == {}
    assert group.committed({topic.name: [0]}) == {(topic.name, 0): -1}


@pytest.mark.rule("GC-60", "GC-61", "GC-62", "SN-18")
def test_offset_delete_rejects_topics_that_group_members_subscribe_to(subject: Subject) -> None:
    """OffsetDelete rejects topics that a member subscribes to, and deletes other offsets. In an empty group it deletes all (scenario SN-18)."""
    t1, t2 = new_topic(subject).name, new_topic(subject).name
    group = Group(subject)
    assert group.delete_offsets({t1: [0]}) == (69, {})
    client = group.client(protocols=[("range", subscription(t1))])
    make_stable(client)
    client.commit({t1: {0: (5, "")}, t2: {0: (6, "")}})
    assert group.delete_offsets({t1: [0], t2: [0], "zz": [0]}) == (0, {(t1, 0): 86, (t2, 0): 0, ("zz", 0): 3})
    assert group.committed() == {(t1, 0): 5}
    assert group.leave((client.member_id, None))[0] == 0
    assert group.delete_offsets({t2: [0], t1: [1]}) == (0, {(t2, 0): 0, (t1, 1): 3})  # it never had this offset
    assert group.delete_offsets({t1: [0]}) == (0, {(t1, 0): 0})
    assert group.committed() == {}


@pytest.mark.rule("GC-62")
def test_offset_delete_response_of_kip_848_coordinator_has_topics_in_request_order(subject: Subject) -> None:
    free, read = new_topic(subject).name, new_topic(subject).name
    group = Group(subject)
    make_stable(group.client(protocols=[("range", subscription(read))]))
    error, deleted = group.delete_offsets({free: [0], read: [0]})
    assert (error, deleted) == (0, {(free, 0): 0, (read, 0): 86})
    assert list(deleted) == ([(free, 0), (read, 0)] if has_new_coordinator(subject) else [(read, 0), (free, 0)])


@pytest.mark.rule("GC-61")
def test_offset_delete_rejects_all_topics_if_a_member_subscription_is_undecodable(subject: Subject) -> None:
    topic = new_topic(subject).name
    group = Group(subject)
    client = group.client(protocols=[("range", b"?")])
    make_stable(client)
    client.commit({topic: {0: (5, "")}})
    assert group.delete_offsets({topic: [0]}) == (0, {(topic, 0): 86})


@pytest.mark.rule("GC-60")
def test_offset_delete_is_rejected_for_a_group_whose_protocol_type_is_not_consumer(subject: Subject) -> None:
    topic = new_topic(subject).name
    group = Group(subject)
    make_stable(group.client(kind="connect"))
    assert group.delete_offsets({topic: [0]}) == (68, {})


@pytest.mark.rule("GC-64")
def test_group_without_members_is_deleted_when_its_last_offset_is_deleted(subject: Subject) -> None:
    topic = new_topic(subject).name
    group = Group(subject)
    assert commit(group, {topic: {0: (5, "")}}) == {(topic, 0): 0}
    assert group.delete_offsets({topic: [0]}) == (0, {(topic, 0): 0})
    [result] = group.ask(DeleteGroupsRequest([group.id]), 2).results
    assert result.error_code == (
        0 if has_new_coordinator(subject) else 69
    )  # the coordinator in Java waits for the next check


def _delete_offset(group: Group, topic: str) -> None:
    assert group.delete_offsets({topic: [0]}) == (0, {(topic, 0): 0})


def _delete_topic(group: Group, topic: str) -> None:
    response = group.subject.ask_once(DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000), 3)
    assert response.responses[0].error_code == 0


@pytest.mark.rule("GC-64")
@pytest.mark.releases(before="4.0")
@pytest.mark.parametrize("delete", [_delete_offset, _delete_topic])
def test_deleting_the_last_offset_deletes_a_group_with_a_pending_member_before_4_0(
    subject: Subject, delete: Callable[[Group, str], None]
) -> None:
    """The only client of a group has got a member id, but has not joined with it yet. Deleting the group's last offset deletes the group.

    Kafka's group coordinator in Scala does this at once, so the client's second JoinGroup is rejected. delete: a function that deletes the
    offset of a topic, either with OffsetDelete or by deleting the topic.
    """
    topic, group = new_topic(subject).name, Group(subject)
    client = group.client()
    assert client.join().error_code == 79
    assert commit(group, {topic: {0: (5, "")}}) == {(topic, 0): 0}
    assert group.state() == ("Empty", 0)
    delete(group, topic)
    wait_until(subject, lambda: group.state() == ("Dead", 0), f"group {group.id} is deleted")
    # Kafka returns COORDINATOR_NOT_AVAILABLE (15) until it has removed the dead group from its memory.
    wait_until(
        subject,
        lambda: client.join().error_code == 25,
        f"the coordinator of group {group.id} no longer knows member {client.member_id}",
    )


@pytest.mark.rule("GN-1")
@pytest.mark.releases(first="3.9")
def test_kip_848_protocol_is_off_by_default_in_3_9_and_on_from_4_0_on(subject: Subject) -> None:
    """A client sends ConsumerGroupHeartbeat and ConsumerGroupDescribe. If the protocol is off, both requests get UNSUPPORTED_VERSION."""
    group, is_on = Group(subject), has_new_coordinator(subject)
    version, topic = int(is_on), new_topic(subject).name
    join = ConsumerGroupHeartbeatRequest(group.id, "m1", 0, None, None, TIMEOUT_MS, [topic], topic_partitions=[])
    assert group.ask(join, version).error_code == (0 if is_on else 35)
    [described] = group.ask(ConsumerGroupDescribeRequest([group.id]), version).groups
    assert (described.error_code, len(described.members)) == ((0, 1) if is_on else (35, 0))
