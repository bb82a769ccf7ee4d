"""Tests of the order of results in responses of the group coordinator in Scala: ListGroups, DeleteGroups, commits and deletions of offsets.

Before 4.0 this coordinator is the default. It keeps the results in hash tables of Scala, and the responses have the order of these tables.
"""

from __future__ import annotations

import pytest

from kafkaproto.conformance.groups import Group, Offsets, commit, make_stable, subscription
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_java_coordinator import commit_in_transaction
from kafkaproto.conformance.test_offset_order import by_topic, flat
from kafkaproto.conformance.test_transactions import begun
from kafkaproto.hash_order import (
    bucket,
    partition_hash_bits,
    scala_copy_order,
    scala_map_order,
    scala_table_order,
    topic_id_partition_hash_bits,
)
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.partitioner import java_hash_bits

pytestmark = [pytest.mark.needs(offsets_topic=True), pytest.mark.releases(before="4.0")]

SUBSCRIBED = 86
UNKNOWN_PARTITION = 99


@pytest.mark.rule("GO-36", "GC-59")
@pytest.mark.parametrize("count", [3, 11, 12, 40])
def test_delete_groups_lists_results_in_scala_hash_order_before_4_0(subject: Subject, count: int) -> None:
    topic, group = new_topic(subject).name, Group(subject)
    group_ids = [subject.new_name("unknown") for _ in range(count - 1)]
    group_ids.insert(count // 2, group.id)
    assert set(commit(group, {topic: {0: (5, None)}}).values()) == {0}
    response = group.ask(DeleteGroupsRequest([*group_ids, group_ids[0]]), 2)
    results = {result.group_id: result.error_code for result in response.results}
    assert list(results) == scala_table_order(group_ids, java_hash_bits)
    assert results[group.id] == 0


@pytest.mark.rule("GC-57")
def test_list_groups_has_the_order_of_a_java_hash_map_before_4_0(subject: Subject) -> None:
    """The groups are ordered by the buckets of a Java `HashMap`. The test accepts the order for any possible number of buckets.

    The number of buckets is unknown, because the broker also has groups of other tests.
    """
    topic = new_topic(subject).name
    groups = [Group(subject) for _ in range(12)]
    coordinator = groups[0].coordinator()
    group_ids = {group.id for group in groups if group.coordinator() == coordinator}
    for group in groups:
        assert set(commit(group, {topic: {0: (5, None)}}).values()) == {0}
    listed = groups[0].ask(ListGroupsRequest(), 4).groups
    found_ids = [each.group_id for each in listed if each.group_id in group_ids]
    buckets = [[bucket(group_id, 2**power) for group_id in found_ids] for power in range(4, 20)]
    assert set(found_ids) == group_ids
    assert any(indexes == sorted(indexes) for indexes in buckets)


@pytest.mark.rule("GO-36", "GO-15")
@pytest.mark.parametrize("partitions", [2, 3, 9])
def test_offset_commit_lists_partitions_in_scala_hash_order_before_4_0(subject: Subject, partitions: int) -> None:
    """The partitions in the response have the order of a hash table of Scala, except an unknown partition: it and its topic come first."""
    first, second, group = new_topic(subject, partitions=9).name, new_topic(subject, partitions=9).name, Group(subject)
    offsets: Offsets = {first: dict.fromkeys(range(partitions), (5, None)), second: dict.fromkeys((1, 0), (5, None))}
    keys = flat([(name, list(offsets[name])) for name in offsets])
    expected = by_topic(scala_copy_order(keys, topic_id_partition_hash_bits))
    assert by_topic(list(commit(group, offsets))) == expected
    with_unknown = {**offsets, second: {**offsets[second], UNKNOWN_PARTITION: (5, None)}}
    assert by_topic(list(commit(group, with_unknown))) == by_topic([(second, UNKNOWN_PARTITION), *flat(expected)])


@pytest.mark.rule("GO-36", "GO-15")
def test_txn_offset_commit_lists_partitions_in_scala_hash_order_before_4_0(subject: Subject) -> None:
    first, second, group = new_topic(subject, partitions=9), new_topic(subject, partitions=9), Group(subject)
    producer = begun(subject, first)
    assert producer.add_offsets(group) == 0
    topics = [(first.name, [8, 0, 1, 2, 3]), (second.name, [1, 0])]
    committed = commit_in_transaction(group, producer, *((name, [(i, 5) for i in indexes]) for name, indexes in topics))
    expected = by_topic(scala_copy_order(flat(topics), topic_id_partition_hash_bits))
    assert [(name, [index for index, _ in results]) for name, results in committed] == expected


@pytest.mark.rule("GO-36", "GC-62")
@pytest.mark.parametrize("partitions", [2, 3, 9])
def test_offset_delete_lists_partitions_in_scala_hash_order_before_4_0(subject: Subject, partitions: int) -> None:
    """The response has the order of an immutable `Map` of Scala, to which the coordinator adds one result for each partition.

    The coordinator first adds the partitions of topics to which members of the group subscribe, and then all others.
    """
    free, subscribed = new_topic(subject, partitions=9).name, new_topic(subject, partitions=9).name
    group = Group(subject)
    make_stable(group.client(protocols=[("range", subscription(subscribed))]))
    topics = [(free, list(range(partitions))), (subscribed, [1, 0])]
    error, results = group.delete_offsets(dict(topics))
    expected = by_topic(scala_map_order(flat([topics[1], topics[0]]), partition_hash_bits))
    assert (error, by_topic(list(results))) == (0, expected)
    assert {results[subscribed, index] for index in (0, 1)} == {SUBSCRIBED}
