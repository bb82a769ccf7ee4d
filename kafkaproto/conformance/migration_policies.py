"""Finds out whether a cluster converts groups between the classic and the new protocol (`group.consumer.migration.policy`, GN-54)."""

from __future__ import annotations

from typing import NamedTuple

from kafkaproto.conformance.consumer_groups import ALL, ConsumerGroup
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_group_migration import NOT_FOUND, REBALANCE, Consumer, listed, stable


class Allowed(NamedTuple):
    """The conversions of groups between the classic and the new protocol (KIP-848) that a cluster allows.

    upgrade: whether a member of the new protocol may join a classic group, which becomes a consumer group. downgrade: whether a consumer group
    becomes a classic group when the last member of the new protocol leaves.
    """

    upgrade: bool
    downgrade: bool


def allowed(subject: Subject) -> Allowed:
    """Find out whether the cluster upgrades classic groups and downgrades consumer groups (`Allowed`), by trying each with a new group.

    If a group is not converted, also checks that the group keeps its type, classic or consumer, and that its classic member can still use the group.
    """
    return Allowed(_upgrades(subject), _downgrades(subject))


def _upgrades(subject: Subject) -> bool:
    group = ConsumerGroup(subject)
    member = stable(group)
    response = group.join("A")
    if response.error_code:
        assert response.error_code == NOT_FOUND
        assert (listed(group), member.heartbeat()) == (("classic", "consumer", "Stable"), 0)
        return False
    assert group.result(response) == (2, [])
    assert (listed(group)[0], member.heartbeat()) == ("consumer", REBALANCE)
    return True


def _downgrades(subject: Subject) -> bool:
    group = ConsumerGroup(subject)
    assert group.enter("A") == (1, ALL)
    member = Consumer(group)
    assert member.enter().error_code == 0
    assert group.beat("A", -1) == (-1, None)
    kind, protocol_type, _ = listed(group)
    assert protocol_type == "consumer"
    if kind == "classic":
        assert member.heartbeat() == REBALANCE
        response = member.join()
        assert (response.error_code, response.leader) == (0, member.member_id)
        return True
    assert member.heartbeat() == REBALANCE
    assert member.rejoin()[2] == ALL
    assert listed(group) == ("consumer", "consumer", "Stable")
    return False
