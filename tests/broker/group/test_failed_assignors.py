"""Requests for which the assignor of Kafka 3.9 fails change nothing, not even a timer (GN-47), in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.coordinator_records import write_value
from kafkaproto.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.sync_group import SyncGroupRequest
from tests.support.broker.consumer_group import FENCED_EPOCH, Group

pytestmark = pytest.mark.rule("GN-47")

FAILED, REBALANCE, UNKNOWN_MEMBER = -1, 27, 25
THREE, TWO = "three", "two"


def new_group() -> Group:
    """Return a group whose third member makes the assignor fail if it stops to read the topic `two`. Its first two members are B and C."""
    group = Group("3.9", group_consumer_migration_policy="bidirectional", group_initial_rebalance_delay_ms="0")
    for name, partitions in ((THREE, 3), (TWO, 2)):
        group.cluster.topic(name, partitions)
    return group


def enter(group: Group) -> None:
    group.join("B", "T", THREE, TWO)
    group.join("C", "T", THREE)


def test_heartbeat_rejected_because_the_assignor_fails_does_not_extend_the_session() -> None:
    group = new_group()
    enter(group)
    group.join("A", THREE, TWO)
    epoch = group.beat("B", 1, []).member_epoch
    for _ in range(4):
        group.cluster.advance(10_000)
        assert group.beat("A", 3, [], [THREE]).error_code == FAILED
        epoch = group.beat("B", epoch).member_epoch
    assert {member.member_id for member in group.described().members} == {"A", "B", "C"}
    group.cluster.advance(6_000)
    assert [member.member_id for member in group.described().members] == ["B"]


def test_fenced_member_still_gets_error_fenced_member_epoch_after_assignor_failure() -> None:
    group = new_group()
    group.join("D")
    group.cluster.state.nodes[0].groups.fence_member("g", "D", group.cluster.clock.now_ms())
    enter(group)
    group.join("A", THREE, TWO)
    assert group.beat("A", group.epochs[1], [], [THREE]).error_code == FAILED
    assert group.beat("D", 1).error_code == FENCED_EPOCH


def test_classic_member_that_does_not_sync_is_removed_even_if_its_rejoin_failed() -> None:
    """The member joined, did not sync, and joined again in vain. It is removed when its first rebalance timeout of 20 s ends."""
    group = new_group()
    enter(group)

    def join(member_id: str, *names: str) -> Any:
        protocols = [JoinGroupRequestProtocol("range", write_value(ConsumerProtocolSubscription(list(names)), 1))]
        request = JoinGroupRequest("g", 45_000, 20_000, member_id, None, "consumer", protocols)
        return group.client.ask(request, 3)

    joined = join("", THREE, TWO)
    assert joined.error_code == 0
    group.cluster.advance(15_000)
    assert join(joined.member_id, THREE).error_code == FAILED
    beat = HeartbeatRequest("g", joined.generation_id, joined.member_id)
    assert group.client.ask(beat, 3).error_code in (0, REBALANCE)
    group.cluster.advance(6_000)
    assert group.client.ask(beat, 3).error_code == UNKNOWN_MEMBER
    sync = SyncGroupRequest("g", joined.generation_id, joined.member_id)
    assert group.client.ask(sync, 3).error_code == UNKNOWN_MEMBER
