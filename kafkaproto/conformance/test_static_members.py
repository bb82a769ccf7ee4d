"""Tests of static members (KIP-345): a new process with the group instance id of a member replaces the old process."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.groups import Group, enter_together, make_stable
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject

pytestmark = pytest.mark.needs("group.initial.rebalance.delay.ms", offsets_topic=True)


@pytest.mark.rule("GC-31", "GC-32", "GC-33", "GC-34", "SN-12")
def test_restarted_static_group_leader_keeps_its_generation_and_assignment(subject: Subject) -> None:
    """A second process with the leader's instance id gets the leader's generation and assignment. The first process is fenced (scenario SN-12)."""
    topic = new_topic(subject)
    group = Group(subject)
    old, new = group.client(instance="i1"), group.client(instance="i1")
    make_stable(old)
    response = new.join()
    assert (response.error_code, response.generation_id, response.members) == (0, 1, [])
    assert response.leader == old.member_id != response.member_id
    assert group.state() == ("Stable", 1)
    assert old.heartbeat() == 82
    assert old.heartbeat(group_instance_id=None) == 25
    assert old.sync().error_code == 82
    assert old.join().error_code == 82
    offsets = {topic.name: {0: (5, "x")}}
    assert old.commit(offsets) == {(topic.name, 0): 82}
    assert old.commit(offsets, group_instance_id=None) == {(topic.name, 0): 25}
    assert new.sync({}).assignment == b"a0"
    assert (new.heartbeat(), new.commit(offsets)) == (0, {(topic.name, 0): 0})


@pytest.mark.rule("GC-33", "GC-34", "SN-13")
def test_restarted_static_group_leader_gets_skip_assignment_true_in_join_group_v9(subject: Subject) -> None:
    """A restarted static leader gets `skip_assignment` and the list of members: it sees the members, but must not assign partitions (SN-13)."""
    group = Group(subject)
    old, new = (group.client(instance="i1", version=9) for _ in range(2))
    make_stable(old)
    response = new.join()
    assert (response.error_code, response.generation_id, response.skip_assignment) == (0, 1, True)
    assert response.leader == response.member_id != old.member_id
    assert [(m.member_id, m.group_instance_id, m.metadata) for m in response.members] == [
        (response.member_id, "i1", b"m")
    ]
    assert (response.protocol_type, response.protocol_name) == ("consumer", "range")
    assert new.sync({}, 5).assignment == b"a0"


@pytest.mark.rule("GC-33")
def test_restarted_static_member_that_is_not_group_leader_gets_no_member_list(subject: Subject) -> None:
    group = Group(subject)
    leader, old = group.client(version=9), group.client(instance="i1", version=9)
    make_stable(leader, old)
    new = group.client(instance="i1", version=9)
    response = new.join()
    assert (response.error_code, response.generation_id, response.leader) == (0, 2, leader.member_id)
    assert (response.skip_assignment, response.members) == (False, [])
    assert new.sync({}, 5).assignment == b"a1"
    assert (leader.heartbeat(), old.heartbeat()) == (0, 82)


@pytest.mark.rule("GC-31")
def test_restarted_static_member_that_changes_the_protocol_starts_a_rebalance(subject: Subject) -> None:
    group = Group(subject)
    both = [("range", b"m"), ("roundrobin", b"m")]
    old = group.client(instance="i1", protocols=both)
    make_stable(old)
    new = group.client(instance="i1", protocols=both[::-1])
    response = new.join()
    assert (response.error_code, response.generation_id, response.protocol_name) == (0, 2, "roundrobin")
    assert response.leader == new.member_id
    assert group.state() == ("CompletingRebalance", 1)


@pytest.mark.rule("GC-31", "GC-41")
def test_static_member_that_restarts_before_the_leader_syncs_starts_a_rebalance(subject: Subject) -> None:
    group = Group(subject)
    a, old = group.client(), group.client(instance="i1")
    enter_together(a, old)
    old.send_sync()
    assert old.is_parked()
    new = group.client(instance="i1")
    new.send_join()
    assert old.synced().error_code == 82
    assert a.heartbeat() == 27
    assert a.join().generation_id == new.joined().generation_id == 3


@pytest.mark.rule("GC-35", "GC-46", "GC-48", "GC-50", "SN-14")
def test_leave_group_removes_a_static_member_by_its_instance_id(subject: Subject) -> None:
    """LeaveGroup with the instance id of a static member removes the member if the member id is empty; a wrong member id gets an error (SN-14)."""
    group = Group(subject)
    client = group.client(instance="i1")
    make_stable(client)
    assert group.leave(("x", "i1")) == (0, [("x", "i1", 82)])
    assert group.state() == ("Stable", 1)
    assert group.leave(("", "i1")) == (0, [("", "i1", 0)])
    assert group.state() == ("Empty", 0)
    assert group.leave(("x", "i1")) == (0, [("x", "i1", 25)])
    assert group.describe().protocol_type == "consumer"
