"""Tests of groups of the new protocol (KIP-848) whose coordinator moves to another broker."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.consumer_groups import ALL, TIMEOUT_MS, ConsumerGroup
from kafkaproto.conformance.internal_topics import reassign
from kafkaproto.conformance.scene import make_lead, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_consumer_rebalances import split
from kafkaproto.conformance.test_group_migration import Consumer, stable
from kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

PROFILE = "migration"
pytestmark = pytest.mark.needs(offsets_topic=True)

NOT_COORDINATOR, REBALANCE, AWAY_EPOCH = 16, 27, -2


def move(group: ConsumerGroup, before: int, after: int) -> None:
    """Move the first partition of the offsets topic, whose only replica is on broker `before`, so that broker `after` coordinates the group."""
    reassign(group.offsets, before, after)
    make_lead(group.offsets, after)
    reassign(group.offsets, after)
    assert group.coordinator() == after
    group.connection = group.connect()


def members(group: ConsumerGroup) -> dict[str, tuple[str | None, int, list[int], list[int]]]:
    """Return a dict of member ids to (instance id, member epoch, assigned partitions, partitions of the target assignment).

    The values are those of ConsumerGroupDescribe. The instance id is None for a dynamic member.
    """

    def partitions(assignment: object) -> list[int]:
        return sorted(index for topic in assignment.topic_partitions for index in topic.partitions)  # type: ignore[attr-defined]

    return {
        m.member_id: (m.instance_id, m.member_epoch, partitions(m.assignment), partitions(m.target_assignment))
        for m in group.described().members
    }


@pytest.mark.rule("GN-22", "GN-26", "GO-11", "GO-12")
def test_new_coordinator_assigns_partitions_only_after_the_old_owner_revoked_them(subject: Subject) -> None:
    """The coordinator moves while member A still owns partitions that A must revoke, so that member B can get them.

    The next coordinator assigns these partitions to B only after A has revoked them.
    """
    group = ConsumerGroup(subject, 0)
    before = group.coordinator()
    after = (before + 1) % len(subject.bootstrap)
    subject.need_broker(1)
    kept, moved = split(group)
    members_before = members(group)
    old_connection = group.connection
    try:
        move(group, before, after)
        request = ConsumerGroupHeartbeatRequest(group.id, "B", 2)
        assert subject.ask(old_connection, request, group.version).error_code == NOT_COORDINATOR
        assert members(group) == members_before == {"A": (None, 1, kept, kept), "B": (None, 2, [], moved)}
        assert group.epochs == ("Reconciling", 2, 2)
        assert group.beat("B", 2, []) == (2, None)
        assert group.beat("A", 1, ALL) == (1, None)
        assert group.beat("B", 2, []) == (2, None)
        assert group.beat("A", 1, kept) == (2, None)
        assert group.beat("B", 2, []) == (2, moved)
        assert group.epochs == ("Stable", 2, 2)
    finally:
        move(group, after, before)
    assert members(group) == {"A": (None, 2, kept, kept), "B": (None, 2, moved, moved)}
    assert group.result(group.heartbeat("B", 2, moved, [group.topic.name], TIMEOUT_MS)) == (2, moved)


@pytest.mark.rule("GN-32", "GN-35", "GO-11", "GO-12")
def test_new_coordinator_keeps_the_partitions_of_a_temporarily_absent_static_member(subject: Subject) -> None:
    """Static member B leaves with epoch -2 before the coordinator moves.

    At the next coordinator, member C joins with B's instance id. C gets B's partitions, and the group epoch does not change.
    """
    group = ConsumerGroup(subject, 0)
    before = group.coordinator()
    after = (before + 1) % len(subject.bootstrap)
    subject.need_broker(1)
    assert group.enter("A") == (1, ALL)
    assert group.enter("B", instance_id="i1") == (2, [])
    _, kept = group.beat("A", 1)
    assert group.beat("A", 1, kept) == (2, None)
    moved = sorted({*ALL} - {*kept})
    assert group.result(group.heartbeat("B", 2, [], instance_id="i1")) == (2, moved)
    assert group.result(group.heartbeat("B", AWAY_EPOCH, instance_id="i1")) == (AWAY_EPOCH, None)
    members_before = members(group)
    try:
        move(group, before, after)
        assert members(group) == members_before == {"A": (None, 2, kept, kept), "B": ("i1", AWAY_EPOCH, moved, moved)}
        assert group.enter("C", instance_id="i1") == (2, moved)
        assert group.beat("A", 2, kept) == (2, None)
        assert members(group) == {"A": (None, 2, kept, kept), "C": ("i1", 2, moved, moved)}
        assert group.epochs == ("Stable", 2, 2)
    finally:
        move(group, after, before)


@pytest.mark.rule("GN-59", "GO-11")
@pytest.mark.needs("group.consumer.migration.policy")
def test_new_coordinator_uses_the_group_session_timeout_until_a_member_heartbeats(subject: Subject) -> None:
    """A classic member with a session timeout of 6 s sends nothing for 9 s after the coordinator has moved, and stays in the group.

    The next coordinator first applies the session timeout of the group, which is longer. From the member's next heartbeat on, its own timeout of 6 s
    applies again: the member is removed when it sends nothing for 7 s.
    """
    group = ConsumerGroup(subject, 0)
    before = group.coordinator()
    after = (before + 1) % len(subject.bootstrap)
    subject.need_broker(1)
    assert group.enter("A") == (1, ALL)
    classic = Consumer(group, session_ms=6_000, rebalance_ms=60_000)
    assert (classic.enter().error_code, classic.sync().error_code) == (0, 0)
    try:
        move(group, before, after)
        subject.pass_ms(9_000)
        assert set(members(group)) == {"A", classic.member_id}
        classic.connection = group.connect()
        assert classic.heartbeat() in (0, REBALANCE)
        subject.pass_ms(7_000)
        assert set(members(group)) == {"A"}
    finally:
        move(group, after, before)


@pytest.mark.rule("GN-59", "GO-11")
@pytest.mark.needs("group.consumer.migration.policy")
def test_new_coordinator_removes_a_classic_member_that_does_not_revoke_in_time(subject: Subject) -> None:
    """The coordinator moves while a classic member has to revoke partitions.

    The next coordinator removes the member after the member's rebalance timeout.
    """
    group = ConsumerGroup(subject, 0)
    before = group.coordinator()
    after = (before + 1) % len(subject.bootstrap)
    subject.need_broker(1)
    classic = stable(group, session_ms=30_000, rebalance_ms=6_000)
    assert group.enter("A") == (2, [])
    generation, _, kept = classic.rejoin(*ALL)
    assert generation == 1 and len(kept) < len(ALL)
    try:
        move(group, before, after)
        assert set(members(group)) == {"A", classic.member_id}
        wait_until(
            subject,
            lambda: set(members(group)) == {"A"},
            f"classic member {classic.member_id} is removed from group {group.id}",
        )
    finally:
        move(group, after, before)
