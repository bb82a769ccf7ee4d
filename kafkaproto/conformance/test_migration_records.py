"""Tests of the records of groups that change between the classic and the new protocol (KIP-848)."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.consumer_groups import ALL, ConsumerGroup
from kafkaproto.conformance.group_log import (
    ASSIGNMENT_EPOCH,
    CLASSIC_GROUP,
    CURRENT,
    GROUP,
    MEMBER,
    TARGET,
    TOPICS,
    GroupLog,
)
from kafkaproto.conformance.groups import commit
from kafkaproto.conformance.scene import wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_group_migration import MEMBER_ID_REQUIRED, Consumer, assignment, embedded, stable
from kafkaproto.hash_order import hash_order, timeline_order
from kafkaproto.partitioner import java_hash_bits

PROFILE = "migration"
pytestmark = pytest.mark.needs("group.consumer.migration.policy", offsets_topic=True)


@pytest.mark.rule("GO-5", "GO-9", "GN-55", "GN-61")
def test_upgrade_and_downgrade_of_a_group_write_the_same_records_as_in_kafka(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    member = stable(group)
    log = GroupLog(group)
    assert group.enter("A") == (2, [])
    topics = [(TOPICS, "", 0)] if group.stores_topics else []
    first, records = member.member_id, log.new()
    assert [record[:3] for record in records[:6]] == [
        (CLASSIC_GROUP, "", None),
        (MEMBER, first, 0),
        (GROUP, "", 0),
        (TARGET, first, 0),
        (ASSIGNMENT_EPOCH, "", 0),
        (CURRENT, first, 0),
    ]
    at = 7 + len(topics)
    assert [record[:3] for record in records[6 : at + 1]] == [(MEMBER, "A", 0), *topics, (GROUP, "", 0)]
    assert sorted(record[:3] for record in records[at + 1 : at + 3]) == sorted([(TARGET, first, 0), (TARGET, "A", 0)])
    assert [record[:3] for record in records[at + 3 :]] == [(ASSIGNMENT_EPOCH, "", 0), (CURRENT, "A", 0)]
    stored = records[1][3].classic_member_metadata
    assert stored.session_timeout_ms == member.session_ms
    assert [(p.name, p.metadata) for p in stored.supported_protocols] == [("range", embedded(group))]
    assert (records[5][3].member_epoch, records[5][3].previous_member_epoch, records[5][3].state) == (1, 1, 0)
    assert group.beat("A", -1) == (-1, None)
    kinds = log.kinds()
    by_type = [(record[0], record[2]) for record in kinds]
    assert by_type == [
        (CURRENT, None),
        (CURRENT, None),
        (TARGET, None),
        (TARGET, None),
        (ASSIGNMENT_EPOCH, None),
        (MEMBER, None),
        (MEMBER, None),
        (TOPICS, None),
        (GROUP, None),
        (CLASSIC_GROUP, 3),
    ]
    assert {record[1] for record in kinds if record[1]} == {first, "A"}


def joined_one_by_one(group: ConsumerGroup, count: int) -> list[Consumer]:
    """Return the members of a stable classic group of `count` members. Each joins after the previous one. No partition is assigned to them."""
    members = [Consumer(group) for _ in range(count)]
    assert members[0].enter().error_code == 0
    for size, member in enumerate(members[1:], 2):
        member.send_enter()
        group.wait_for("PreparingRebalance", size)
    if count > 1:
        members[0].send_join()
        assert {member.joined().error_code for member in members} == {0}
    for member in members[1:]:
        member.send_sync()
    assert members[0].sync({member.member_id: assignment(group, []) for member in members}).error_code == 0
    assert {member.synced().error_code for member in members[1:]} <= {0}
    return members


@pytest.mark.rule("GN-55", "GN-61", "GN-64")
@pytest.mark.parametrize("count", [4, 6])
def test_group_upgrade_and_downgrade_write_members_in_order_of_kafkas_hash_tables(subject: Subject, count: int) -> None:
    """An upgrade writes the members in the order of a `TimelineHashMap`, to which Kafka adds them in the order of the classic group's `HashMap`.

    Kafka builds the upgraded group from these records: it adds the members to another `TimelineHashMap` in the order of the records. A downgrade
    writes the members in the order of that map.
    """
    group = ConsumerGroup(subject)
    ids = [member.member_id for member in joined_one_by_one(group, count)]
    log = GroupLog(group)
    assert group.join("A").error_code == 0
    stored = timeline_order(hash_order(ids), java_hash_bits)
    expected = [(kind, member_id) for kind in (MEMBER, TARGET, CURRENT) for member_id in stored]
    own = [(kind, member_id) for kind, member_id, _ in log.kinds() if kind in (MEMBER, TARGET, CURRENT)]
    assert own[: 3 * count] == expected
    in_table = timeline_order([*stored, "A"], java_hash_bits, count + 2)
    assert [member.member_id for member in group.described().members] == in_table
    assert group.beat("A", -1) == (-1, None)
    records = log.new()
    for kind in (CURRENT, TARGET, MEMBER):
        assert [member_id for own_kind, member_id, *_ in records if own_kind == kind] == in_table
    [classic] = [value for kind, _, _, value in records if kind == CLASSIC_GROUP]
    left = [member_id for member_id in in_table if member_id != "A"]
    assert [member.member_id for member in classic.members] == hash_order(left)
    assert classic.leader == left[0]


@pytest.mark.rule("GN-61")
@pytest.mark.releases(first="4.0")
def test_group_downgrade_tombstones_have_a_new_static_member_in_the_old_ones_place(subject: Subject) -> None:
    """The classic group gets the new member as its last one."""
    group = ConsumerGroup(subject)
    ids = [member.member_id for member in joined_one_by_one(group, 5)]
    assert group.join("A", instance_id="i").error_code == 0
    log = GroupLog(group)
    member = Consumer(group, instance="i")
    assert member.join().error_code == 0
    stored = timeline_order(hash_order(ids), java_hash_bits)
    in_table = timeline_order([*stored, "A"], java_hash_bits, 7)
    records = log.new()
    expected = [member.member_id if member_id == "A" else member_id for member_id in in_table]
    for kind in (CURRENT, TARGET, MEMBER):
        tombstones = [m for own, m, version, _ in records if (own, version) == (kind, None)]
        assert tombstones == ["A", *expected]
    [classic] = [value for kind, _, _, value in records if kind == CLASSIC_GROUP]
    left = [member_id for member_id in in_table if member_id != "A"]
    assert [other.member_id for other in classic.members] == hash_order([*left, member.member_id])
    assert classic.leader == left[0]


def next_kinds(log: GroupLog, count: int) -> list[int]:
    """Wait until the group has at least `count` records that `log` has not returned before, and return the types of these records."""
    kinds: list[int] = []

    def are_there() -> bool:
        kinds.extend(kind for kind, _, _ in log.kinds())
        return len(kinds) >= count

    wait_until(log.group.subject, are_there, f"__consumer_offsets has {count} new records of group {log.group.id}")
    return kinds


@pytest.mark.rule("GO-5", "GN-63")
def test_classic_group_record_is_written_before_the_first_generation_from_4_0_on(subject: Subject) -> None:
    """The coordinator of Kafka 4 writes a record for a classic group as soon as a first member has an id, before the first generation.

    A classic member that joins an empty group of the new protocol replaces the records of that group.
    """
    group = ConsumerGroup(subject)
    log = GroupLog(group)

    member = group.client()
    assert member.join().error_code == MEMBER_ID_REQUIRED
    assert next_kinds(log, 1) == [CLASSIC_GROUP]
    other = ConsumerGroup(subject)
    log = GroupLog(other)
    assert commit(other, {other.topic.name: {0: (1, None)}}) == {(other.topic.name, 0): 0}
    assert other.enter("A") == (1, ALL)
    assert log.kinds()[1:2] == [(CLASSIC_GROUP, "", None)]
    assert other.beat("A", -1) == (-1, None)
    log.kinds()
    assert other.client(version=3).join().error_code == 0
    assert next_kinds(log, 4) == [ASSIGNMENT_EPOCH, TOPICS, GROUP, CLASSIC_GROUP]
