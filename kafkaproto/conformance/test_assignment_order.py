"""Tests of the order in which a consumer group of the new protocol (KIP-848) lists topics and partitions, in responses and in stored records.

Kafka keeps assignments in hash tables of Java. The tests compute the expected order: they repeat Kafka's operations on these tables with the topic
ids of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from kafkaproto.conformance.consumer_groups import TIMEOUT_MS, ConsumerGroup
from kafkaproto.conformance.group_log import CURRENT, TARGET, TOPICS, GroupLog
from kafkaproto.conformance.groups import Client
from kafkaproto.conformance.scene import Topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.coordinator_records import write_value
from kafkaproto.data.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafkaproto.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkaproto.hash_order import copy_order, hash_order, uuid_hash_bits
from kafkaproto.hash_table import JavaTable, table_for
from kafkaproto.partitioner import java_hash_bits

PROFILE = "migration"
pytestmark = pytest.mark.needs("group.consumer.migration.policy", offsets_topic=True)

EMPTY_COPY = 1
"""The number of buckets of a `HashMap` that Kafka creates as a copy of an empty assignment."""


def filled(topic_ids: Iterable[bytes]) -> JavaTable[bytes]:
    """Return a table to which topic ids were added one by one."""
    table = JavaTable(uuid_hash_bits)
    for topic_id in topic_ids:
        table.add(topic_id)
    return table


def order_of(listed: Iterable[Any]) -> list[bytes]:
    """Return the topic ids of the entries of a list of assigned partitions."""
    return [entry.topic_id for entry in listed]


def assigned_ids(log: GroupLog) -> tuple[list[bytes], list[bytes]]:
    """Return the topic ids in the group's newest record of a target, and those in its newest record of a current assignment."""
    values = {kind: value for kind, _, _, value in log.new()}
    return order_of(values[TARGET].topic_partitions), order_of(values[CURRENT].assigned_partitions)


def consumer(group: ConsumerGroup, member_id: str, topics: Sequence[str]) -> Client:
    """Return a client of the classic protocol that subscribes to `topics`. It has not joined yet."""
    metadata = write_value(ConsumerProtocolSubscription([*topics]), 1)
    return Client(group, member_id, protocols=(("range", metadata),))


def synced(client: Client) -> dict[str, list[int]]:
    """Let a classic member sync. Returns its assigned partitions by topic name, in the order of the response."""
    response = client.sync()
    assert response.error_code == 0, response
    decoded: Any = ConsumerProtocolAssignment.layout(1).decode_flat(
        memoryview(response.assignment), 2, len(response.assignment)
    )[0]
    return {topic.topic: list(topic.partitions) for topic in decoded.assigned_partitions}


def new_topics(group: ConsumerGroup, count: int) -> list[Topic]:
    return [group.topic, *(group.add_topic(2) for _ in range(count - 1))]


@pytest.mark.rule("GN-27", "GN-48", "GN-60")
@pytest.mark.parametrize("count", [5, 13])
def test_assigned_topics_have_the_order_of_the_java_hash_tables_that_kafka_fills(subject: Subject, count: int) -> None:
    """A member gets all partitions of `count` topics from the assignor `uniform`. Its target and its assignment come from different tables.

    Their orders can therefore differ. With 13 topics, a table of 16 buckets grows.
    """
    group = ConsumerGroup(subject)
    topics = {topic.name: topic.topic_id for topic in new_topics(group, count)}
    log = GroupLog(group)
    response = group.join("A", *topics, server_assignor="uniform")
    in_target = JavaTable(uuid_hash_bits, EMPTY_COPY)
    for topic_id in JavaTable.copy_of((topics[name] for name in copy_order([*topics])), uuid_hash_bits):
        for _ in range(2):  # once for each partition, because each call can make the table grow
            in_target.add_first(topic_id)
    in_assignment = JavaTable(uuid_hash_bits)
    for topic_id in filled(JavaTable.copy_of(in_target, uuid_hash_bits)):
        in_assignment.add_first(topic_id)
    assert assigned_ids(log) == ([*in_target], [*in_assignment])
    assert order_of(response.assignment.topic_partitions) == [*in_assignment]
    [member] = group.described().members
    assert order_of(member.target_assignment.topic_partitions) == [*filled(in_target)]
    assert order_of(member.assignment.topic_partitions) == [*filled(in_assignment)]
    response = group.heartbeat("A", 1, {name: [0] for name in topics}, [*topics], TIMEOUT_MS)
    assert order_of(response.assignment.topic_partitions) == [*filled(in_assignment)]


@pytest.mark.rule("GO-8")
@pytest.mark.releases(before="4.0")
@pytest.mark.parametrize("count", [5, 13])
def test_record_of_subscribed_topics_has_java_hash_map_order_before_kafka_4_0(subject: Subject, count: int) -> None:
    """Kafka copies the topic names of the first member to a `HashSet` and then to two `HashMap`s, the second with room for all names."""
    group = ConsumerGroup(subject)
    replicated = group.add_topic(1, assignment={0: [0, 1, 2]}).name
    names = sorted([*(topic.name for topic in new_topics(group, count - 1)), replicated])
    log = GroupLog(group)
    assert group.join("A", *names).error_code == 0
    subscribed = JavaTable(java_hash_bits)
    for name in copy_order(names):
        subscribed.add_first(name)
    [value] = [value for kind, _, _, value in log.new() if kind == TOPICS]
    assert [topic.topic_name for topic in value.topics] == hash_order(subscribed, table_for(count))
    racks = {topic.topic_name: topic.partition_metadata[0].racks for topic in value.topics}
    assert racks[replicated] == hash_order(["r0", "r1", "r2"])


@pytest.mark.rule("GN-60")
@pytest.mark.parametrize("count", [5, 13])
def test_sync_group_in_a_consumer_group_lists_topics_in_the_order_of_a_java_hash_map(
    subject: Subject, count: int
) -> None:
    """Kafka adds the topics to this `HashMap` in the order of the member's record."""
    group = ConsumerGroup(subject)
    topics = {topic.name: topic.topic_id for topic in new_topics(group, count)}
    assert group.join("A", group.topic.name).error_code == 0
    log = GroupLog(group)
    member = consumer(group, "M", [name for name in topics if name != group.topic.name])
    assert member.join().error_code == 0
    names = {topic_id: name for name, topic_id in topics.items()}
    _, in_record = assigned_ids(log)
    assert [*synced(member)] == [names[topic_id] for topic_id in filled(in_record)]
    assert len(in_record) == count - 1


@pytest.mark.rule("GN-27", "GN-60")
def test_assigned_partitions_have_the_order_of_a_java_hash_set_of_partition_indexes(subject: Subject) -> None:
    """With the assignor `range`, the second of two members gets the partitions 20 to 39. Kafka adds them to a `HashSet` of 32 buckets."""
    group = ConsumerGroup(subject)
    topic = group.add_topic(40)
    log = GroupLog(group)
    assert group.join("A", topic.name, server_assignor="range").error_code == 0
    member = consumer(group, "M", [topic.name])
    assert member.join().error_code == 0
    assert synced(member) == {}
    assert group.heartbeat("A", 1, {topic.name: range(20)}).member_epoch == 2
    assert member.join().error_code == 0
    assert synced(member) == {topic.name: [*range(32, 40), *range(20, 32)]}
    [target] = [v.topic_partitions for kind, member_id, _, v in log.new() if (kind, member_id) == (TARGET, "M")]
    assert [list(t.partitions) for t in target] == [[*range(20, 40)]]
    members = {described.member_id: described for described in group.described().members}
    for listed in (members["M"].assignment, members["M"].target_assignment):
        assert [list(t.partitions) for t in listed.topic_partitions] == [[*range(32, 40), *range(20, 32)]]
