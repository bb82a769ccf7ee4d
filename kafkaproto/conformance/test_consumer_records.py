"""Tests of the records that a coordinator writes to the offsets topic for consumer groups of the new protocol (KIP-848)."""

from __future__ import annotations

import struct

import pytest

from kafkaproto.conformance.consumer_groups import ALL, TIMEOUT_MS, ConsumerGroup
from kafkaproto.conformance.group_log import ASSIGNMENT_EPOCH, CURRENT, GROUP, MEMBER, TARGET, TOPICS, GroupLog
from kafkaproto.conformance.scene import Topic, created, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.xxh3 import xxh3_64

PROFILE = "consumer"
pytestmark = pytest.mark.needs(offsets_topic=True)

STABLE, UNREVOKED, UNRELEASED = 0, 1, 2


def left(member_id: str) -> list[tuple[int, str, int | None]]:
    """Return the tombstones that the coordinator writes when a member leaves, each as (record type, member id, None)."""
    return [(kind, member_id, None) for kind in (CURRENT, TARGET, MEMBER)]


@pytest.mark.rule("GO-5", "GO-9", "GN-48")
def test_consumer_group_writes_records_when_members_join_revoke_partitions_or_leave(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    log = GroupLog(group)
    topics = [(TOPICS, "", 0)] if group.stores_topics else []
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
    kinds = log.kinds()
    assert sorted(kinds[2:4]) == [(TARGET, "A", 0), (TARGET, "B", 0)]
    assert kinds[:2] == [(MEMBER, "B", 0), (GROUP, "", 0)]
    assert kinds[4:] == [(ASSIGNMENT_EPOCH, "", 0), (CURRENT, "B", 0)]
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
def test_member_records_contain_all_member_fields_and_partitions_to_be_revoked(subject: Subject) -> None:
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
    response = group.heartbeat("A", -2, instance_id="i1")
    assert group.result(response) == (-2, None)
    [(_, _, _, away_value)] = log.new()
    assert (away_value.member_epoch, away_value.state, away_value.partitions_pending_revocation) == (-2, UNREVOKED, [])


Stored = tuple[int, dict[str, tuple[bytes, list[list[str]]]] | None]
"""What the records of a group in the offsets topic store about the topics to which the group subscribes: (hash, dict).

Kafka 4.1 and later store only a hash of these topics (see `hashed`), and the dict is None. Older releases store the topics, and the hash is 0. The
dict maps topic names to (topic id, racks of each partition).
"""


def text(value: str) -> bytes:
    return value.encode("utf-16-le") + struct.pack("<i", len(value))


def hashed(*topics: tuple[Topic, list[list[str]]]) -> int:
    """Return the hash that Kafka 4.1 and later store for topics (KIP-1101). topics: (topic, racks of each partition)."""
    hashes = b""
    for topic, racks in sorted(topics, key=lambda pair: pair[0].name):
        most, least = struct.unpack(">qq", topic.topic_id)
        data = struct.pack("<bqq", 0, most, least) + text(topic.name) + struct.pack("<i", len(racks))
        for index, names in enumerate(racks):
            data += struct.pack("<i", index) + b"".join(struct.pack("<i", len(name)) + text(name) for name in names)
        hashes += struct.pack("<Q", xxh3_64(data))
    [signed] = struct.unpack("<q", struct.pack("<Q", xxh3_64(hashes)))
    return int(signed)


@pytest.mark.rule("GO-8", "GN-17")
@pytest.mark.needs(racks=True, brokers=3)
def test_group_records_contain_a_hash_of_the_subscribed_topics_from_4_1_on(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    single, double = group.topic, group.add_topic(assignment={0: [0, 1], 1: [1, 0], 2: [1, 2]})
    log = GroupLog(group)
    racks = {single.name: [["r0"]] * 6, double.name: [["r0", "r1"], ["r0", "r1"], ["r1", "r2"]]}

    def stored() -> Stored:
        """Return (hash, topics) that the group's records store, in the form of `Stored`. Reads only the records written since the last call."""
        values = {kind: value for kind, _, _, value in log.new()}
        if TOPICS not in values:
            return values[GROUP].metadata_hash, None
        listed = {}
        for topic in values[TOPICS].topics:
            by_index = {p.partition: sorted(p.racks) for p in topic.partition_metadata}
            listed[topic.topic_name] = topic.topic_id, [by_index.get(i, []) for i in range(topic.num_partitions)]
        return values[GROUP].metadata_hash, listed

    def expected(*topics: Topic) -> Stored:
        if group.stores_topics:
            return 0, {
                topic.name: (topic.topic_id, [[] if group.is_release_4 else names for names in racks[topic.name]])
                for topic in topics
            }
        return hashed(*((topic, racks[topic.name]) for topic in topics)) if topics else 0, None

    assert group.join("A", single.name, double.name).error_code == 0
    assert stored() == expected(single, double)
    assert group.heartbeat("A", 1, names=[single.name]).error_code == 0
    assert stored() == expected(single)
    assignments = [CreatePartitionsAssignment([2]), CreatePartitionsAssignment([0])]
    grown = CreatePartitionsTopic(single.name, 8, assignments)
    assert created(subject, grown) == [(single.name, 0)]
    racks[single.name] += [["r2"], ["r0"]]
    wait_until(subject, lambda: group.beat("A", 1)[0] == 1 and group.epochs[1] == 3, f"group {group.id} has epoch 3")
    assert stored() == expected(single)
    assert group.beat("A", -1) == (-1, None)
    assert stored() == expected()
