"""Tests of the order of results in responses of the group coordinator in Java: results for several groups, and the offsets of all topics.

Kafka 4 always uses this coordinator; Kafka 3.9 uses it if the new protocol (KIP-848) is enabled. The order is that of hash tables in Kafka.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kafkaproto.conformance.consumer_groups import TIMEOUT_MS, ConsumerGroup
from kafkaproto.conformance.group_log import OffsetLog
from kafkaproto.conformance.groups import OFFSETS_TOPIC, Group, commit
from kafkaproto.conformance.scene import new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_java_coordinator import commit_in_transaction, java
from kafkaproto.conformance.test_offset_order import fetch_request, listed
from kafkaproto.conformance.test_transactions import begun
from kafkaproto.hash_order import (
    ALL_BITS,
    concurrent_order,
    copy_order,
    grouped_order,
    hash_order,
    partition_hash_bits,
    timeline_order,
    uuid_hash_bits,
)
from kafkaproto.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.describe_groups import DescribeGroupsRequest
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.partitioner import java_hash, java_hash_bits

PROFILE = "consumer"
pytestmark = pytest.mark.needs(offsets_topic=True)
__all__ = ["java"]

NOT_COORDINATOR, NOT_FOUND = 16, 69


def by_partition(group: Group, group_ids: Sequence[str]) -> list[list[str]]:
    """Return a list of group ids for each partition of `__consumer_offsets` that stores one of the groups `group_ids`.

    The partitions are in the order of a Java `HashMap`. The ids of one partition have the order of `group_ids`.
    """
    count = len(group.offsets.metadata().partitions)
    partitions = [(OFFSETS_TOPIC, java_hash(group_id) % count) for group_id in group_ids]
    return [
        [group_id for group_id, own in zip(group_ids, partitions, strict=True) if own == partition]
        for partition in grouped_order(partitions, partition_hash_bits)
    ]


def uuid_bucket(topic_id: bytes) -> int:
    """Return the index of a topic id's bucket in a Java hash table with 16 buckets."""
    bits = uuid_hash_bits(topic_id)
    return (bits ^ bits >> 16) & 15


def flat(ids_of_partitions: Sequence[Sequence[str]]) -> list[str]:
    return [group_id for group_ids in ids_of_partitions for group_id in group_ids]


def names(subject: Subject, group: Group, count: int = 20) -> list[str]:
    """Return the ids of `count` groups: of `group`, and of others that do not exist."""
    group_ids = [subject.new_name("unknown") for _ in range(count - 1)]
    return [*group_ids[: count // 2], group.id, *group_ids[count // 2 :]]


@pytest.mark.rule("GO-36", "GC-59")
@pytest.mark.parametrize("count", [3, 80])
def test_java_coordinator_orders_delete_groups_results_by_consumer_offsets_partition(java: Subject, count: int) -> None:
    """The results are ordered by partition of `__consumer_offsets`. Before 4.1, the results of one partition have the order of the request.

    From 4.1 on, the results of one partition have the order of a hash table. This is a Java `HashMap` if another broker coordinates the groups of the
    partition, otherwise a Java `HashSet`.
    """
    topic, group = new_topic(java).name, Group(java)
    group_ids = names(java, group, count)
    assert set(commit(group, {topic: {0: (5, None)}}).values()) == {0}
    response = group.ask(DeleteGroupsRequest([*group_ids, *group_ids[::-1]]), 2)
    results = {result.group_id: result.error_code for result in response.results}
    partitions = by_partition(group, group_ids)
    if not ConsumerGroup(java).stores_topics:
        partitions = [hash_order(ids) if results[ids[0]] == NOT_COORDINATOR else copy_order(ids) for ids in partitions]
    assert list(results) == flat(partitions)
    assert results[group.id] == 0


@pytest.mark.rule("GC-57")
def test_java_coordinator_lists_groups_by_consumer_offsets_partition(java: Subject) -> None:
    """The partitions have the order of a Java `ConcurrentHashMap`, and the groups of one partition have the order of a `TimelineHashMap`.

    The `TimelineHashMap` also contains groups of other tests, so its size is unknown. The test accepts the order of every possible size.
    """
    topic, first = new_topic(java).name, Group(java)
    count, broker_id = len(first.offsets.metadata().partitions), first.coordinator()
    groups = [first, *(Group(java) for _ in range(11))]
    group_ids = [group.id for group in groups if group.coordinator() == broker_id]
    for group in groups:
        assert set(commit(group, {topic: {0: (5, None)}}).values()) == {0}
    found_ids = [listed.group_id for listed in first.ask(ListGroupsRequest(), 4).groups if listed.group_id in group_ids]
    partitions = concurrent_order(
        ((OFFSETS_TOPIC, java_hash(group_id) % count) for group_id in group_ids), partition_hash_bits
    )
    assert sorted(found_ids) == sorted(group_ids)
    for _, index in partitions:
        own_ids = [group_id for group_id in group_ids if java_hash(group_id) % count == index]
        found_own_ids, found_ids = found_ids[: len(own_ids)], found_ids[len(own_ids) :]
        assert found_own_ids in [timeline_order(own_ids, java_hash_bits, 3 * 2**power) for power in range(16)]


@pytest.mark.rule("GN-64")
@pytest.mark.parametrize("count", [5, 11, 12, 13, 24])
def test_consumer_group_describe_lists_members_and_topic_names_in_java_hash_order(java: Subject, count: int) -> None:
    """The members have the order of a `TimelineHashMap`, and the topic names of a member that of a Java `HashSet`."""
    group = ConsumerGroup(java)
    member_ids = [java.new_name("m") for _ in range(count)]
    topics = [java.new_name("unknown") for _ in range(count)]
    for member_id in member_ids:
        assert group.heartbeat(member_id, 0, [], topics, TIMEOUT_MS).error_code == 0
    members = group.described().members
    assert [member.member_id for member in members] == timeline_order(member_ids, java_hash_bits, count + 1)
    assert members[0].subscribed_topic_names == copy_order(sorted(topics))


@pytest.mark.rule("GN-27")
def test_assigned_topics_have_the_order_of_a_java_hash_map_of_topic_ids(java: Subject) -> None:
    """A topic can be before or after another topic in the same bucket."""
    group = ConsumerGroup(java)
    topics = [group.topic, *(group.add_topic(1) for _ in range(6))]
    response = group.join("m", *(topic.name for topic in topics))
    found_ids = [assigned.topic_id for assigned in response.assignment.topic_partitions]
    [member] = group.described().members
    assert sorted(found_ids) == sorted(topic.topic_id for topic in topics)
    for topic_ids in (
        found_ids,
        [assigned.topic_id for assigned in member.assignment.topic_partitions],
        [assigned.topic_id for assigned in member.target_assignment.topic_partitions],
    ):
        assert [uuid_bucket(i) for i in topic_ids] == sorted(uuid_bucket(i) for i in topic_ids)


@pytest.mark.rule("GO-36")
def test_java_coordinator_orders_described_groups_by_consumer_offsets_partition(java: Subject) -> None:
    """A group that the request names twice has two results. They are adjacent if no other requested group is in the same partition."""
    group = Group(java)
    group_ids = names(java, group)
    group_ids += group_ids[::-2]
    response = group.ask(DescribeGroupsRequest(group_ids), 5)
    assert [described.group_id for described in response.groups] == flat(by_partition(group, group_ids))


@pytest.mark.rule("GO-36")
@pytest.mark.releases(first="4.0")
def test_consumer_group_describe_orders_groups_by_offsets_topic_partition_since_4_0(java: Subject) -> None:
    group = Group(java)
    group_ids = names(java, group)
    group_ids += group_ids[::-2]
    response = group.ask(ConsumerGroupDescribeRequest(group_ids), 0)
    assert [described.group_id for described in response.groups] == flat(by_partition(group, group_ids))


@pytest.mark.rule("GO-36", "GN-66")
@pytest.mark.releases(before="4.0")
def test_before_4_0_consumer_group_describe_repeats_groups_per_coordinated_partition(java: Subject) -> None:
    """Each partition that the broker coordinates returns a result for every group of the request.

    For groups that another partition stores, this result is GROUP_ID_NOT_FOUND (69).
    """
    group = ConsumerGroup(java)
    assert group.join("m").error_code == 0
    group_ids = names(java, group)
    group_ids += group_ids[::-2]
    response = group.ask(ConsumerGroupDescribeRequest(group_ids), 0)
    expected = []
    for own_ids in by_partition(group, group_ids):
        [own] = group.ask(DescribeGroupsRequest([own_ids[0]]), 5).groups
        if own.error_code:
            expected += [(group_id, NOT_COORDINATOR) for group_id in own_ids]
        else:
            expected += [(g, 0 if g == group.id and g in own_ids else NOT_FOUND) for g in group_ids]
    assert [(described.group_id, described.error_code) for described in response.groups] == expected


def in_table(indexes: Sequence[int], most: int = 0) -> list[int]:
    return timeline_order(indexes, lambda index: index & ALL_BITS, most)


def fetched(group: Group) -> dict[str, list[int]]:
    """Fetch the offsets of all topics with two versions of OffsetFetch, and check that both responses have the same order.

    Returns a dict of topics to partitions, in this order.
    """
    old = listed(group.ask(fetch_request(group, None), 7))
    new: Any = group.fetch(None)
    assert [(topic.name, [p.partition_index for p in topic.partitions]) for topic in new.topics] == old
    return dict(old)


@pytest.mark.rule("GO-36")
def test_offset_fetch_of_all_topics_lists_offsets_in_java_timeline_hash_map_order(java: Subject) -> None:
    """The tables of topics and partitions grow with the number of entries, and do not shrink when offsets are deleted."""
    group, topics = Group(java), [new_topic(java, partitions=20).name for _ in range(6)]
    first, *others = topics
    indexes = [3, 17, 0, 9, 1, 12, 5, 19, 2]
    assert set(commit(group, {first: dict.fromkeys(indexes, (5, None))}).values()) == {0}
    assert fetched(group) == {first: in_table(indexes)}
    for name in others:
        assert set(commit(group, {name: dict.fromkeys((1, 0), (5, None))}).values()) == {0}
    expected = timeline_order(topics, java_hash_bits)
    assert list(fetched(group)) == expected
    for name in topics:
        assert fetched(group)[name] == in_table(indexes if name == first else [1, 0])
    assert set(commit(group, {others[0]: {0: (6, None)}}).values()) == {0}  # a replaced offset needs room for one more
    assert fetched(group)[others[0]] == in_table([1, 0], 3)
    assert group.delete_offsets({first: [*indexes[:5]], others[1]: [0, 1], others[2]: [0, 1]})[0] == 0
    left = [name for name in topics if name not in others[1:3]]
    assert list(fetched(group)) == timeline_order(left, java_hash_bits, len(topics))
    assert fetched(group)[first] == in_table(indexes[5:], len(indexes))


@pytest.mark.rule("GO-36")
def test_offset_fetch_lists_transactional_offsets_in_java_timeline_hash_map_order(java: Subject) -> None:
    group, topic, other = Group(java), new_topic(java, partitions=40), new_topic(java, partitions=40)
    producer = begun(java, topic)
    assert producer.add_offsets(group) == 0
    indexes = [31, 3, 17, 0, 9, 28, 1, 12, 5, 19, 2, 30, 33]
    parts = [(t.name, [(index, 5) for index in indexes]) for t in (topic, other)]
    assert {error for _, results in commit_in_transaction(group, producer, *parts) for _, error in results} == {0}
    assert producer.end(commit=True)[0] == 0
    wait_until(
        java,
        lambda: len(group.committed()),
        f"group {group.id} has the offsets from the transaction of transactional id {producer.id}",
    )
    added = in_table(indexes)
    expected_topics = timeline_order(timeline_order([topic.name, other.name], java_hash_bits), java_hash_bits)
    assert fetched(group) == {name: in_table(added) for name in expected_topics}
    assert list(fetched(group)) == expected_topics


@pytest.mark.rule("GO-4", "GO-9")
@pytest.mark.parametrize("deleted", [2, 9])
def test_java_coordinator_writes_delete_groups_tombstones_in_hash_not_request_order(
    java: Subject, deleted: int
) -> None:
    """OffsetDelete writes tombstones in the order of the request. DeleteGroups writes them in the order of the coordinator's hash tables.

    deleted: the number of offsets that the test deletes with OffsetDelete. DeleteGroups then deletes the others.
    """
    group, first, second = Group(java, 0), new_topic(java, partitions=20).name, new_topic(java, partitions=2).name
    indexes = [3, 17, 0, 9, 1, 12, 5, 19, 2, 8, 4, 11]
    log = OffsetLog(group)
    offsets = {first: dict.fromkeys(indexes, (5, None)), second: dict.fromkeys((1, 0), (5, None))}
    assert set(commit(group, offsets).values()) == {0}
    assert group.delete_offsets({first: indexes[:deleted]})[0] == 0
    assert group.ask(DeleteGroupsRequest([group.id]), 2).results[0].error_code == 0
    left = {first: in_table(indexes[deleted:], len(indexes)), second: in_table([1, 0])}
    assert log.new() == [
        [(name, index) for name in offsets for index in offsets[name]],
        [(first, index) for index in indexes[:deleted]],
        [(name, index) for name in timeline_order(left, java_hash_bits) for index in left[name]],
    ]
