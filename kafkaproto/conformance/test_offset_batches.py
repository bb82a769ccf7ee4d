"""Tests of the batches in the offsets topic: each commit and each deletion of offsets is one batch, whose records have the order of Kafka's tables.

The coordinator in Scala (default before 4.0) keeps offsets in hash tables of Scala, the one in Java in a `TimelineHashMap`.
"""

from __future__ import annotations

import pytest

from kafkaproto.conformance.group_log import OffsetLog
from kafkaproto.conformance.groups import Group, Offsets, commit, has_new_coordinator
from kafkaproto.conformance.internal_topics import reassign
from kafkaproto.conformance.scene import Topic, make_lead, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.table_order import is_table_order
from kafkaproto.conformance.test_java_coordinator import commit_in_transaction
from kafkaproto.conformance.test_offset_order import Requested, flat
from kafkaproto.conformance.test_transactions import begun
from kafkaproto.hash_order import (
    ALL_BITS,
    java_order,
    partition_hash_bits,
    scala_copy_order,
    scala_filtered_order,
    scala_map_order,
    scala_table_order,
    timeline_order,
    topic_id_partition_hash_bits,
    uuid_hash_bits,
)
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.partitioner import java_hash_bits

pytestmark = pytest.mark.needs(offsets_topic=True)

TOO_LONG = "x" * 4097
TOO_LARGE = 12
WITH_NAMES = 3
"""A version of DeleteTopics that names topics."""


def offsets_of(topics: Requested) -> Offsets:
    return {name: dict.fromkeys(indexes, (5, "")) for name, indexes in topics}


def new_topics(subject: Subject, *indexes: list[int]) -> Requested:
    """Create a topic for each list of partition indexes. Returns the names of the topics, each with its list."""
    return [(new_topic(subject, partitions=max(each) + 1).name, each) for each in indexes]


def in_tables(topics: Requested, most_partitions: int = 0) -> list[tuple[str, int]]:
    """Return the partitions of `topics` in the order of the hash tables in which the coordinator in Java stores their offsets.

    There is a table of topics, and for each topic a table of partitions. most_partitions: the largest number of partitions for which the table of a
    topic has ever made room; 0 if it was never larger than the number of its partitions in `topics`.
    """
    indexes = dict(topics)
    return [
        (name, index)
        for name in timeline_order(indexes, java_hash_bits)
        for index in timeline_order(indexes[name], lambda index: index & ALL_BITS, most_partitions)
    ]


@pytest.mark.rule("GO-4")
@pytest.mark.parametrize("first", [[3], [2, 0, 1], [8, 0, 3, 1, 2, 7, 5], list(range(19, -1, -1))])
def test_scala_coordinator_orders_offset_commit_records_by_hash_java_by_request(
    subject: Subject, first: list[int]
) -> None:
    group, topics = Group(subject, 0), new_topics(subject, first, [1, 0], [4])
    log = OffsetLog(group)
    assert set(commit(group, offsets_of(topics)).values()) == {0}
    keys = flat(topics)
    if not has_new_coordinator(subject):
        keys = scala_copy_order(keys, topic_id_partition_hash_bits)
    assert log.new() == [keys]


@pytest.mark.rule("GO-4", "GO-21")
@pytest.mark.parametrize("count", [4, 5, 9])
def test_partly_rejected_commit_is_written_in_hash_order_by_scala_else_as_requested(
    subject: Subject, count: int
) -> None:
    """Every second offset has too long metadata and is rejected. The test checks the order of the records for the accepted offsets.

    The coordinator in Scala removes the rejected offsets from an immutable `Map`. A `Map` with more than four offsets is a hash table, and remains a
    hash table even if at most four offsets are left.
    """
    for _ in range(4):
        group, [(name, indexes)] = Group(subject, 0), new_topics(subject, list(range(count)))
        log = OffsetLog(group)
        errors = commit(group, {name: {index: (5, TOO_LONG if index % 2 else "") for index in indexes}})
        keys = flat([(name, indexes)])
        accepted = [key for key in keys if not errors[key]]
        assert {errors[key] for key in keys} == {0, TOO_LARGE}
        if not has_new_coordinator(subject):
            table = scala_table_order(keys, topic_id_partition_hash_bits)
            accepted = scala_filtered_order(table, accepted, topic_id_partition_hash_bits)
        assert log.new() == [accepted]


@pytest.mark.rule("GO-4", "TX-43")
def test_scala_coordinator_orders_txn_offset_commit_records_by_hash_java_by_request(subject: Subject) -> None:
    group, topics = Group(subject, 0), new_topics(subject, [8, 0, 3, 1, 2], [1, 0])
    producer = begun(subject, new_topic(subject))
    assert producer.add_offsets(group) == 0
    log = OffsetLog(group)
    parts = [(name, [(index, 5) for index in indexes]) for name, indexes in topics]
    committed = commit_in_transaction(group, producer, *parts)
    assert {error for _, results in committed for _, error in results} == {0}
    keys = flat(topics)
    if not has_new_coordinator(subject):
        keys = scala_copy_order(keys, topic_id_partition_hash_bits)
    assert log.new() == [keys]
    assert producer.end(commit=False)[0] == 0


@pytest.mark.rule("GO-9")
@pytest.mark.parametrize("first", [[1], [6, 3], [8, 0, 3, 1, 2, 7, 5], list(range(19, -1, -1))])
def test_delete_groups_writes_tombstones_of_offsets_in_the_hash_order_of_kafka(
    subject: Subject, first: list[int]
) -> None:
    group, topics = Group(subject, 0), new_topics(subject, first, [1, 0])
    assert set(commit(group, offsets_of(topics)).values()) == {0}
    log = OffsetLog(group)
    assert group.ask(DeleteGroupsRequest([group.id]), 2).results[0].error_code == 0
    if has_new_coordinator(subject):
        expected = in_tables(topics)
    else:
        expected = scala_map_order(scala_table_order(flat(topics), partition_hash_bits), partition_hash_bits)
    assert log.new() == [expected]


@pytest.mark.rule("GO-9")
@pytest.mark.parametrize("most", [10, 11, 30])
def test_delete_groups_writes_tombstones_in_hash_order_of_the_peak_offset_count(subject: Subject, most: int) -> None:
    """A hash table never shrinks, so the order of tombstones depends on the largest number of offsets for which the table has ever made room.

    A commit that replaces an offset makes room for one more offset than the table contains. most: the largest number of offsets in the table.
    """
    group, [(name, indexes)] = Group(subject, 0), new_topics(subject, list(range(most)))
    assert set(commit(group, offsets_of([(name, indexes)])).values()) == {0}
    assert commit(group, {name: {2: (6, "")}}) == {(name, 2): 0}
    left, deleted = [1, 4, 6, 9], [index for index in indexes if index not in (1, 4, 6, 9)]
    log = OffsetLog(group)
    assert group.delete_offsets({name: deleted})[0] == 0
    keys = [(name, index) for index in deleted]
    assert log.new() == [keys if has_new_coordinator(subject) else scala_map_order(keys, partition_hash_bits)]
    log = OffsetLog(group)
    assert group.ask(DeleteGroupsRequest([group.id]), 2).results[0].error_code == 0
    if has_new_coordinator(subject):
        expected = in_tables([(name, left)], most + 1)
    else:
        expected = scala_table_order([(name, index) for index in left], partition_hash_bits, most + 1)
    assert log.new() == [expected]


@pytest.mark.rule("GO-9", "GC-60")
@pytest.mark.parametrize("deleted", [[3, 0, 2, 1], [3, 0, 5, 2, 6, 1]])
def test_scala_coordinator_orders_offset_delete_tombstones_by_hash_java_by_request(
    subject: Subject, deleted: list[int]
) -> None:
    """With the coordinator in Scala, up to four tombstones have the order of the request, more than four that of a hash table of Scala."""
    group, [(name, indexes)] = Group(subject, 0), new_topics(subject, [7, 1, 3, 2, 6, 5, 4, 0])
    assert set(commit(group, offsets_of([(name, indexes)])).values()) == {0}
    log = OffsetLog(group)
    assert group.delete_offsets({name: deleted})[0] == 0
    keys = [(name, index) for index in deleted]
    assert log.new() == [keys if has_new_coordinator(subject) else scala_map_order(keys, partition_hash_bits)]


@pytest.mark.rule("GO-9", "GO-25")
@pytest.mark.parametrize("indexes", [[3, 0, 2], [17, 0, 5, 2, 16, 1]])
def test_scala_coordinator_orders_deleted_topic_tombstones_by_hash_java_by_partition(
    subject: Subject, indexes: list[int]
) -> None:
    """With the coordinator in Scala, up to four tombstones are ordered by partition, more than four have the order of a hash table of Scala."""
    group, topics = Group(subject, 0), new_topics(subject, indexes, [0])
    [(name, _), (other, _)] = topics
    assert set(commit(group, offsets_of(topics)).values()) == {0}
    log = OffsetLog(group)
    [deleted] = subject.ask_once(DeleteTopicsRequest(topic_names=[name], timeout_ms=5000), WITH_NAMES).responses
    assert deleted.error_code == 0
    wait_until(
        subject,
        lambda: set(group.committed()) == {(other, 0)},
        f"the offsets of group {group.id} for the deleted topic {name} are deleted",
    )
    keys = [(name, index) for index in sorted(indexes)]
    expected = keys if has_new_coordinator(subject) else scala_map_order(keys, partition_hash_bits)
    assert wait_until(subject, log.new, f"the tombstones of group {group.id} are replicated") == [expected]


@pytest.mark.rule("GO-9", "GC-59")
@pytest.mark.releases(before="4.0")
@pytest.mark.parametrize("count", [3, 40])
def test_scala_coordinator_deletes_groups_one_by_one_in_scala_hash_order(subject: Subject, count: int) -> None:
    """The order is that of an immutable `Set` of Scala with all groups of the request, also those that are not deleted."""
    groups, topics = [Group(subject, 0) for _ in range(count)], new_topics(subject, [1, 0])
    for group in groups[1:]:
        assert set(commit(group, offsets_of(topics)).values()) == {0}
    log = OffsetLog(groups[0])
    results = groups[0].ask(DeleteGroupsRequest([group.id for group in groups[::-1]]), 2).results
    assert {result.group_id for result in results if not result.error_code} == {group.id for group in groups[1:]}
    keys = scala_table_order(flat(topics), partition_hash_bits)
    assert log.of_groups(groups) == [
        [(group_id, key, None) for key in keys]
        for group_id in scala_map_order([group.id for group in groups[::-1]], java_hash_bits)
        if group_id != groups[0].id
    ]


@pytest.mark.rule("GO-9", "GO-25")
@pytest.mark.releases(before="4.0")
@pytest.mark.parametrize("indexes", [[1, 0], [4, 2, 0, 3, 1]])
def test_scala_coordinator_writes_a_batch_per_group_for_topics_deleted_together(
    subject: Subject, indexes: list[int]
) -> None:
    """If a group has at most four tombstones, they are ordered by topic, as in a Java hash table of topic ids, and then by partition.

    The groups have the order of a Java `ConcurrentHashMap` that also contains groups of other tests. The test accepts every order
    that this map can have.
    """
    groups, topics = [Group(subject, 0) for _ in range(9)], new_topics(subject, indexes, indexes, [0])
    for group in groups:
        assert set(commit(group, offsets_of(topics)).values()) == {0}
    ids = {Topic(subject, name).metadata().topic_id: name for name, _ in topics[1::-1]}
    log = OffsetLog(groups[0])
    request = DeleteTopicsRequest(topic_names=list(ids.values()), timeout_ms=5000)
    assert {each.error_code for each in subject.ask_once(request, WITH_NAMES).responses} == {0}
    written = log.of_groups(groups, 2 * len(indexes) * len(groups))
    orders = [java_order(each, uuid_hash_bits) for each in ([*ids], [*ids][::-1])]  # they differ only within a bucket
    group_ids = [batch[0][0] for batch in written]
    assert sorted(group_ids) == sorted(group.id for group in groups)
    assert is_table_order(group_ids)
    keys = [[(ids[topic_id], index) for topic_id in order for index in sorted(indexes)] for order in orders]
    assert written in [
        [[(group_id, key, None) for key in scala_map_order(each, partition_hash_bits)] for group_id in group_ids]
        for each in keys
    ]


@pytest.mark.rule("GO-9", "GO-11")
def test_coordinator_move_changes_the_hash_order_of_tombstones_only_in_scala(subject: Subject) -> None:
    """With the coordinator in Scala, the table of a group that a coordinator loads has room for the loaded offsets only.

    The coordinator in Java applies the records one by one, so that its tables have the same sizes as before.
    """
    subject.need_broker(1)
    group, [(name, indexes)] = Group(subject, 0), new_topics(subject, list(range(40)))
    assert set(commit(group, offsets_of([(name, indexes)])).values()) == {0}
    left = [33, 1, 35, 18]
    assert group.delete_offsets({name: [index for index in indexes if index not in left]})[0] == 0
    before = group.coordinator()
    after = (before + 1) % len(subject.bootstrap)
    reassign(group.offsets, before, after)
    try:
        make_lead(group.offsets, after)
        assert group.coordinator() == after
        log = OffsetLog(group)
        assert group.ask(DeleteGroupsRequest([group.id]), 2).results[0].error_code == 0
        if has_new_coordinator(subject):
            expected = in_tables([(name, left)], len(indexes))
        else:
            expected = scala_table_order([(name, index) for index in left], partition_hash_bits)
        assert wait_until(subject, log.new, f"the tombstones of group {group.id} are replicated") == [expected]
    finally:
        reassign(group.offsets, before)
