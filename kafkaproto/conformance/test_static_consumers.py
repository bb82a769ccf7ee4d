"""Tests of static members of consumer groups of the new protocol (KIP-848) that change their instance id or their subscription."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.consumer_groups import ALL, ConsumerGroup, refusal
from kafkaproto.conformance.subject import Subject

PROFILE = "consumer"
pytestmark = pytest.mark.needs(offsets_topic=True)

UNKNOWN_MEMBER, UNRELEASED = 25, 111
AWAY_EPOCH = -2
"""The member epoch with which a static member leaves its group for a while."""


@pytest.mark.rule("GN-34")
def test_old_instance_id_of_a_member_that_changed_its_instance_id_stays_reserved(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    assert group.enter("A", instance_id="i1") == (1, ALL)
    assert group.enter("A", instance_id="i2") == (1, ALL)
    assert [member.instance_id for member in group.described().members] == ["i2"]
    owned = "Static member B with instance id i1 cannot join the group because the instance id is owned by A member."
    assert refusal(group.join("B", instance_id="i1")) == (UNRELEASED, owned)
    assert group.result(group.heartbeat("A", 1, instance_id="i1")) == (1, None)
    assert group.result(group.heartbeat("A", 1, instance_id="i2")) == (1, None)
    assert group.result(group.heartbeat("A", -1, instance_id="i2")) == (-1, None)
    not_a_member = UNKNOWN_MEMBER, f"Member A is not a member of group {group.id}."
    assert refusal(group.join("B", instance_id="i1")) == not_a_member
    assert refusal(group.join("A", instance_id="i1")) == not_a_member
    assert refusal(group.heartbeat("C", 5, instance_id="i1")) == not_a_member
    assert refusal(group.heartbeat("C", -1, instance_id="i1")) == not_a_member
    assert group.enter("B", instance_id="i2") == (3, ALL)


@pytest.mark.rule("GN-32", "GN-40")
@pytest.mark.parametrize("assignor", ["range", "uniform"])
def test_static_member_that_returns_with_another_subscription_starts_a_group_epoch(
    subject: Subject, assignor: str
) -> None:
    """Static member A leaves temporarily. B joins with A's instance id and subscribes to another topic.

    B gets the partitions of that topic at once. The partitions of A's topic become free at the same time. Member C, which subscribes to A's topic,
    gets them with C's next heartbeat. assignor: the assignor that all members prefer.
    """
    group = ConsumerGroup(subject)
    first, second = group.topic.name, group.add_topic().name
    assert group.enter("A", first, instance_id="i1", server_assignor=assignor) == (1, ALL)
    assert group.enter("C", first, server_assignor=assignor) == (2, [])
    assert group.beat("A", 1, ALL)[0] == 1
    heartbeat_result = group.result(group.heartbeat("A", 1, ALL[:3], instance_id="i1"))
    assert heartbeat_result == (2, None)
    assert group.result(group.heartbeat("A", AWAY_EPOCH, instance_id="i1")) == (AWAY_EPOCH, None)
    join_result = group.enter("B", second, instance_id="i1", server_assignor=assignor)
    assert join_result == (3, {second: ALL})
    assert group.targets() == {"B": {second: ALL}, "C": {first: ALL}}
    assert group.epochs == ("Reconciling", 3, 3)
    assert group.beat("C", 2, []) == (3, ALL)
    assert group.epochs == ("Stable", 3, 3)


@pytest.mark.rule("GN-32")
def test_member_takes_over_the_instance_id_and_partitions_of_an_absent_member(subject: Subject) -> None:
    """Member B still owns all partitions, also those of the target assignment of member A, a static member that has left temporarily.

    B joins again, with the instance id of A. With this join, B gives up all partitions and gets A's target assignment. The partitions that B gives
    up become free only after the join, so the response to the join has no partitions. The response to B's next heartbeat has the partitions of A's
    target assignment.
    """
    group = ConsumerGroup(subject)
    assert group.enter("B", instance_id="i2") == (1, ALL)
    assert group.enter("A", instance_id="i1") == (2, [])
    target = group.targets()["A"][group.topic.name]
    assert len(target) == len(ALL) // 2
    assert group.result(group.heartbeat("A", AWAY_EPOCH, instance_id="i1")) == (AWAY_EPOCH, None)
    assert group.enter("B", instance_id="i1") == (2, [])
    assert [(member.member_id, member.instance_id) for member in group.described().members] == [("B", "i1")]
    assert group.result(group.heartbeat("B", 2, [], instance_id="i1")) == (2, target)
    assert group.targets() == {"B": {group.topic.name: target}}
    assert group.epochs == ("Stable", 2, 2)
