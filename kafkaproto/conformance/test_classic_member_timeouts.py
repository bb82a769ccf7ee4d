"""Tests of the timeouts of classic members in a group of the new protocol (KIP-848)."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.consumer_groups import ALL, ConsumerGroup
from kafkaproto.conformance.groups import two_replicas
from kafkaproto.conformance.scene import held, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_group_migration import MEMBER_ID_REQUIRED, REBALANCE, UNKNOWN_MEMBER, Consumer, stable

PROFILE = "migration"
pytestmark = pytest.mark.needs("group.consumer.migration.policy", offsets_topic=True)
REBALANCE_MS = 1_000
NOT_AVAILABLE = 15


@pytest.mark.rule("GN-59")
def test_classic_members_are_removed_if_they_do_not_join_or_sync_in_time(subject: Subject) -> None:
    """One member sends heartbeats, but does not join again. Another one joins, but does not sync. Both are removed when their timeouts pass."""
    group = ConsumerGroup(subject)
    slow = stable(group, rebalance_ms=REBALANCE_MS)
    assert group.enter("A") == (2, [])
    assert slow.heartbeat() == REBALANCE
    silent = Consumer(group, rebalance_ms=REBALANCE_MS)
    assert silent.enter().error_code == 0
    ids = {slow.member_id, silent.member_id}
    wait_until(
        subject,
        lambda: slow.heartbeat() == UNKNOWN_MEMBER and not ids & set(group.targets()),
        f"group {group.id} has removed both classic members",
    )
    assert silent.heartbeat() == UNKNOWN_MEMBER
    assert set(group.targets()) == {"A"}


@pytest.mark.rule("GN-59")
def test_classic_member_that_joins_again_after_several_heartbeats_is_not_removed(subject: Subject) -> None:
    """Three heartbeats get REBALANCE_IN_PROGRESS. The member then joins again within its rebalance timeout, and revokes partitions."""
    group = ConsumerGroup(subject)
    rebalance_ms = 3 * REBALANCE_MS  # enough for several requests to a slow broker
    member = stable(group, rebalance_ms=rebalance_ms)
    assert group.enter("A") == (2, [])
    assert [member.heartbeat() for _ in range(3)] == [REBALANCE] * 3
    _, _, kept = member.rejoin(*ALL)
    assert member.rejoin(*kept)[0] == 2
    subject.pass_ms(rebalance_ms + 1_000)
    assert member.heartbeat() == 0
    assert set(group.targets()) == {"A", member.member_id}


@pytest.mark.rule("GN-59")
def test_new_classic_member_whose_join_is_not_replicated_in_time_has_no_timeouts(subject: Subject) -> None:
    """A new member gets an error for its JoinGroup. It stays in the group although it neither syncs nor sends heartbeats."""
    group = ConsumerGroup(subject, 0)
    with two_replicas(group) as follower:
        assert group.enter("A") == (1, ALL)
        member = Consumer(group, rebalance_ms=REBALANCE_MS)
        assert member.join().error_code == MEMBER_ID_REQUIRED
        with held(subject, group.offsets, follower):
            assert member.join().error_code == NOT_AVAILABLE
        subject.pass_ms(REBALANCE_MS + 1_000)
        assert set(group.targets()) == {"A", member.member_id}
