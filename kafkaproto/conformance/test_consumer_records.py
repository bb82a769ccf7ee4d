"""Tests of the records that a coordinator writes to the offsets topic for consumer groups of the new protocol (KIP-848)."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.consumer_groups import ALL, TIMEOUT_MS, ConsumerGroup
from kafkaproto.conformance.group_log import ASSIGNMENT_EPOCH, CURRENT, GROUP, MEMBER, TARGET, TOPICS, GroupLog
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.delete_groups import DeleteGroupsRequest

PROFILE = "consumer"
pytestmark = pytest.mark.needs(offsets_topic=True)

STABLE, UNREVOKED, UNRELEASED = 0, 1, 2


def left(member_id: str) -> list[tuple[int, str, int | None]]:
    """Return the tombstones expected for a member that leaves, as (type, member id, None)."""
    return [(kind, member_id, None) for kind in (CURRENT, TARGET, MEMBER)]


@pytest.mark.rule("GO-5", "GO-9", "GN-48")
def test_consumer_group_writes_records_for_joins_revocations_leaves_and_deletion(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    log = GroupLog(group)
    topics = [] if group.is_release_4 else [(TOPICS, "", 0)]
    assert group.enter("A") == (1, ALL)
    assert log.kinds() == [
        (MEMBER, "A", 0),
        *topics,
        (GROUP, "", 0),
        (TARGET, "A", 0),
        (ASSIGNMENT_EPOCH, "", 0),
        (CURRENT, "A", 0),
    ]
    assert group.beat("A", 1, ALL) == (1, None)
    assert log.kinds() == []
    assert group.enter("B") == (2, [])
    joined = log.kinds()
    assert sorted(joined[2:4]) == [(TARGET, "A", 0), (TARGET, "B", 0)]
    assert joined[:2] == [(MEMBER, "B", 0), (GROUP, "", 0)]
    assert joined[4:] == [(ASSIGNMENT_EPOCH, "", 0), (CURRENT, "B", 0)]
    kept = group.beat("A", 1)[1]
    assert log.kinds() == [(CURRENT, "A", 0)]
    assert group.beat("A", 1, kept) == (2, None)
    assert group.beat("B", 2, [])[0] == 2
    assert log.kinds() == [(CURRENT, "A", 0), (CURRENT, "B", 0)]
    assert group.beat("B", -1) == (-1, None)
    assert log.kinds() == [*left("B"), (GROUP, "", 0)]
    assert group.beat("A", 2, kept) == (3, ALL)
    assert log.kinds() == [(TARGET, "A", 0), (ASSIGNMENT_EPOCH, "", 0), (CURRENT, "A", 0)]
    assert group.beat("A", -1) == (-1, None)
    assert log.kinds() == [*left("A"), *topics, (GROUP, "", 0)]
    [result] = group.ask(DeleteGroupsRequest([group.id]), 2).results
    assert result.error_code == 0
    assert log.kinds() == [(ASSIGNMENT_EPOCH, "", None), (TOPICS, "", None), (GROUP, "", None)]


@pytest.mark.rule("GN-21")
def test_record_of_a_member_that_revokes_partitions_has_the_expected_fields(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    log = GroupLog(group)
    assert group.enter("A", instance_id="i1", rack_id="r", server_assignor="uniform") == (1, ALL)
    values = {kind: value for kind, _, _, value in log.new()}
    member, current = values[MEMBER], values[CURRENT]
    assert (member.instance_id, member.rack_id, member.client_id, member.client_host) == ("i1", "r", "pc", "/127.0.0.1")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == ([group.topic.name], "")
    assert (member.rebalance_timeout_ms, member.server_assignor) == (TIMEOUT_MS, "uniform")
    assert member.classic_member_metadata is None
    assert (values[GROUP].epoch, values[ASSIGNMENT_EPOCH].assignment_epoch) == (1, 1)
    assert (current.member_epoch, current.previous_member_epoch, current.state) == (1, 0, STABLE)
    assert group.enter("B") == (2, [])
    [waiting] = [value for kind, _, _, value in log.new() if kind == CURRENT]
    assert (waiting.member_epoch, waiting.previous_member_epoch, waiting.state) == (2, 0, UNRELEASED)
    _, kept = group.result(group.heartbeat("A", 1, instance_id="i1"))
    [(_, _, _, revoking)] = log.new()
    assert (revoking.member_epoch, revoking.previous_member_epoch, revoking.state) == (1, 1, UNREVOKED)
    [assigned], [pending] = revoking.assigned_partitions, revoking.partitions_pending_revocation
    assert (assigned.topic_id, pending.topic_id) == (group.topic.topic_id, group.topic.topic_id)
    assert sorted(assigned.partitions) == kept and sorted([*assigned.partitions, *pending.partitions]) == ALL
    away = group.heartbeat("A", -2, instance_id="i1")
    assert group.result(away) == (-2, None)
    [(_, _, _, gone)] = log.new()
    assert (gone.member_epoch, gone.state, gone.partitions_pending_revocation) == (-2, UNREVOKED, [])
