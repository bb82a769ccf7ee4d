"""Tests of the batches in the offsets topic that the group coordinator in Java writes for requests with repeated partitions or several groups.

Kafka 4 always uses this coordinator; Kafka 3.9 uses it if the new protocol (KIP-848) is enabled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from kafkaproto.conformance.consumer_groups import ConsumerGroup
from kafkaproto.conformance.group_log import OffsetLog
from kafkaproto.conformance.groups import Group, commit, make_stable
from kafkaproto.conformance.internal_topics import topic_setting
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_java_coordinator import java
from kafkaproto.conformance.test_offset_batches import (
    TOO_LARGE,
    TOO_LONG,
    WITH_NAMES,
    in_tables,
    new_topics,
    offsets_of,
)
from kafkaproto.conformance.test_offset_order import Requested, flat
from kafkaproto.conformance.test_transactions import begun
from kafkaproto.hash_order import copy_order, long_hash_bits, timeline_order
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkaproto.partitioner import java_hash_bits

PROFILE = "consumer"
pytestmark = pytest.mark.needs(offsets_topic=True)
__all__ = ["java"]

UNKNOWN_SERVER_ERROR = -1
Commits = Sequence[tuple[int, int, str]]
"""The entries of an offset commit for one topic: (partition, offset, metadata) of each."""


def commit_errors(group: Group, topic: str, commits: Commits) -> list[int]:
    """Commit offsets with OffsetCommit, and return the error code of each entry."""
    partitions = [OffsetCommitRequestPartition(index, offset, -1, -1, text) for index, offset, text in commits]
    request = OffsetCommitRequest(group.id, topics=[OffsetCommitRequestTopic(topic, partitions=partitions)])
    return [p.error_code for t in group.ask(request, 8).topics for p in t.partitions]


def commit_errors_in_transaction(group: Group, topic: str, commits: Commits) -> list[int]:
    """Commit offsets with TxnOffsetCommit in a transaction that stays open, and return the error code of each entry."""
    producer = begun(group.subject, new_topic(group.subject))
    assert producer.add_offsets(group) == 0
    partitions = [TxnOffsetCommitRequestPartition(index, offset, -1, text) for index, offset, text in commits]
    numbers = producer.producer_id, producer.epoch
    topics = [TxnOffsetCommitRequestTopic(topic, partitions)]
    response = group.ask(TxnOffsetCommitRequest(producer.id, group.id, *numbers, topics=topics), 3)
    return [p.error_code for t in response.topics for p in t.partitions]


@pytest.mark.rule("GO-4", "GO-15")
@pytest.mark.parametrize("commit_all", [commit_errors, commit_errors_in_transaction])
@pytest.mark.parametrize("long", [(), (3,), (0,), (0, 2, 3)])
def test_offset_commit_that_repeats_a_partition_writes_a_record_each_time(
    java: Subject, commit_all: Callable[[Group, str, Commits], list[int]], long: Sequence[int]
) -> None:
    """An entry whose metadata is too long gets no record. commit_all: sends the commit. long: the positions of entries with too long metadata."""
    group, topic = Group(java, 0), new_topic(java, partitions=2).name
    commits = [(i, 5 + n, TOO_LONG if n in long else "") for n, i in enumerate((0, 1, 0, 0, 1))]
    log = OffsetLog(group)
    assert commit_all(group, topic, commits) == [TOO_LARGE if n in long else 0 for n in range(5)]
    written = [(group.id, (topic, index), offset) for index, offset, text in commits if not text]
    assert log.of_groups([group]) == [written]
    if commit_all is commit_errors:
        assert group.committed() == {key: offset for _, key, offset in written}


@pytest.mark.rule("GO-4", "GO-36")
@pytest.mark.parametrize("count", [5, 10, 11, 21, 22])
def test_offset_commit_that_repeats_a_partition_enlarges_the_hash_table_of_offsets(java: Subject, count: int) -> None:
    """Before the coordinator replaces an offset, it makes room for another one. OffsetFetch lists the offsets in the order of the larger table."""
    group, topic = Group(java), new_topic(java, partitions=count).name
    indexes = list(range(count))
    assert set(commit_errors(group, topic, [(index, 5, "") for index in (*indexes, 2)])) == {0}
    [fetched] = group.fetch(None).topics
    assert [(topic, p.partition_index) for p in fetched.partitions] == in_tables([(topic, indexes)], count + 1)


@pytest.mark.rule("GO-9")
def test_offset_delete_that_repeats_a_partition_writes_a_tombstone_each_time(java: Subject) -> None:
    """A partition without a committed offset gets no tombstone."""
    group, topic = Group(java, 0), new_topic(java, partitions=6).name
    assert commit_errors(group, topic, [(0, 5, ""), (1, 6, ""), (4, 7, "")]) == [0, 0, 0]
    log = OffsetLog(group)
    parts = [(1, 0, 4, 1, 5, 0, 5), (0,)]
    topics = [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(i) for i in part]) for part in parts]
    response = group.ask(OffsetDeleteRequest(group.id, topics), 0)
    assert {p.error_code for t in response.topics for p in t.partitions} == {0}
    assert log.new() == [[(topic, index) for index in (1, 0, 4, 1, 0, 0)]]
    assert group.committed() == {}


def committed_groups(subject: Subject, count: int, topics: Requested) -> list[Group]:
    """Return groups of partition 0 of the offsets topic that have committed offsets for these partitions, given as (topic, partitions)."""
    groups = [Group(subject, 0) for _ in range(count)]
    for group in groups:
        assert set(commit(group, offsets_of(topics)).values()) == {0}
    return groups


@pytest.mark.rule("GO-9", "GC-59")
def test_delete_groups_writes_tombstones_of_all_groups_of_a_partition_as_one_batch(java: Subject) -> None:
    """A group with members and an unknown group are not deleted. Before Kafka 4.1, the tombstones have the order of the groups in the request."""
    topics = new_topics(java, [3, 1, 2], [0])
    unknown, stable, *groups = committed_groups(java, 14, topics)
    assert unknown.ask(DeleteGroupsRequest([unknown.id]), 2).results[0].error_code == 0
    make_stable(stable.client(version=3))
    group_ids = [each.id for each in (*groups[::-2], unknown, stable, *groups[::2])]
    has_set, log = not ConsumerGroup(java).stores_topics, OffsetLog(stable)
    results = stable.ask(DeleteGroupsRequest(group_ids), 2).results
    assert {result.group_id for result in results if result.error_code} == {unknown.id, stable.id}
    if has_set:
        group_ids = copy_order(group_ids)
    assert log.of_groups([stable, unknown, *groups]) == [
        [
            (group_id, key, None)
            for group_id in group_ids
            if group_id not in (unknown.id, stable.id)
            for key in (*in_tables(topics), None)
        ]
    ]


def _delete(subject: Subject, *topics: str) -> None:
    responses = subject.ask_once(DeleteTopicsRequest(topic_names=[*topics], timeout_ms=5000), WITH_NAMES).responses
    assert {response.error_code for response in responses} == {0}


@pytest.mark.rule("GO-9", "GO-25")
def test_topics_deleted_together_get_the_tombstones_of_all_groups_as_one_batch(java: Subject) -> None:
    """The groups and topics have the order of Kafka's tables, and the partitions of a topic are sorted.

    The table of groups also contains groups of other tests, so its size is unknown. The test accepts the order of every possible size.
    """
    topics = new_topics(java, [3, 1, 2], [0, 1], [0])
    groups = committed_groups(java, 14, topics)
    log = OffsetLog(groups[0])
    _delete(java, topics[1][0], topics[0][0])
    [batch] = log.of_groups(groups)
    indexes = {name: sorted(indexes) for name, indexes in topics}
    deleted = [name for name in timeline_order(indexes, java_hash_bits) if name != topics[2][0]]
    group_ids = list(dict.fromkeys(group_id for group_id, _, _ in batch))
    assert group_ids in [
        timeline_order([group.id for group in groups], java_hash_bits, 3 * 2**power) for power in range(16)
    ]
    assert batch == [(group_id, (name, i), None) for group_id in group_ids for name in deleted for i in indexes[name]]


@pytest.mark.rule("GO-9", "GO-25", "TX-43")
def test_pending_offsets_of_deleted_topics_get_tombstones_after_committed_offsets(java: Subject) -> None:
    """Each pending offset gets a tombstone of its own, in the order of Kafka's tables: by producer, group and topic, then by partition."""
    topics = new_topics(java, [0, 1], [0])
    [(name, _), (other, _)] = topics
    first, second = committed_groups(java, 2, [(name, [0])])
    producers = [begun(java, new_topic(java)) for _ in range(2)]
    for producer in producers:
        assert producer.add_offsets(first) == 0 == producer.add_offsets(second)
        for group in (first, second):
            assert set(producer.commit_offsets(group, {(name, 1): 5, (name, 0): 5, (other, 0): 5}).values()) == {0}
    log = OffsetLog(first)
    _delete(java, name, other)
    [batch] = log.of_groups([first, second])
    assert {(group_id, key) for group_id, key, _ in batch[:2]} == {(group.id, (name, 0)) for group in (first, second)}
    keys = [(each, i) for each in timeline_order(dict(topics), java_hash_bits) for i in sorted(dict(topics)[each])]
    group_ids = timeline_order([first.id, second.id], java_hash_bits)
    assert batch[2:] == [(group_id, key, None) for group_id in group_ids for key in keys] * 2
    for producer in producers:
        producer.finish(commit=False)


@pytest.mark.rule("GO-9", "TX-43")
def test_delete_groups_writes_tombstones_of_pending_offsets_after_committed_ones(java: Subject) -> None:
    """A partition with a committed offset gets no second tombstone for its pending offsets.

    From Kafka 4.0 on, each other partition with pending offsets gets one tombstone, in the order of tables of topics and partitions. Before 4.0, it
    gets one for each producer, in the order of a table of producers.
    """
    [(name, _), (other, _)] = topics = new_topics(java, [5, 0, 1, 9, 6, 2], [0])
    [group], is_release_4 = committed_groups(java, 1, [(name, [0])]), ConsumerGroup(java).is_release_4
    producers = [begun(java, new_topic(java)) for _ in range(2)]
    pending: list[Requested] = [[(name, [5, 0, 1, 9]), (other, [0])], [(name, [6, 5, 2])]]
    for producer, parts in zip(producers, pending, strict=True):
        assert producer.add_offsets(group) == 0
        errors = producer.commit_offsets(group, dict.fromkeys(flat(parts), 5))
        assert set(errors.values()) == {0}
    log = OffsetLog(group)
    assert group.ask(DeleteGroupsRequest([group.id]), 2).results[0].error_code == 0
    if is_release_4:
        keys = in_tables(topics)
    else:
        parts_of = {p.producer_id: parts for p, parts in zip(producers, pending, strict=True)}
        keys = [
            key for producer_id in timeline_order(parts_of, long_hash_bits) for key in in_tables(parts_of[producer_id])
        ]
    assert log.new() == [[(name, 0), *(key for key in keys if key != (name, 0))]]
    for producer in producers:
        producer.finish(commit=False)


@pytest.mark.rule("GO-9", "GO-23")
def test_delete_groups_deletes_no_group_if_the_tombstones_exceed_max_message_bytes(java: Subject) -> None:
    """A later request that deletes only one of these groups succeeds."""
    groups = committed_groups(java, 8, new_topics(java, [0, 1, 2], [0, 1]))
    log = OffsetLog(groups[0])
    with topic_setting(groups[0].offsets, "max.message.bytes", "900"):
        results = groups[0].ask(DeleteGroupsRequest([group.id for group in groups]), 2).results
        assert {result.error_code for result in results} == {UNKNOWN_SERVER_ERROR}
        assert groups[0].ask(DeleteGroupsRequest([groups[0].id]), 2).results[0].error_code == 0
        assert len(log.of_groups(groups)) == 1


@pytest.mark.rule("GO-9", "GO-25")
def test_tombstones_for_deleted_topics_are_split_if_they_exceed_max_message_bytes(java: Subject) -> None:
    topics = new_topics(java, [0, 1, 2], [0, 1])
    groups = committed_groups(java, 8, topics)
    log = OffsetLog(groups[0])
    with topic_setting(groups[0].offsets, "max.message.bytes", "900"):
        _delete(java, *(name for name, _ in topics))
        written = log.of_groups(groups, 40)
    records = [record for batch in written for record in batch]
    names = timeline_order(dict(topics), java_hash_bits)
    keys = flat([(name, dict(topics)[name]) for name in names])
    assert len(written) > 1
    assert sorted({group_id for group_id, _, _ in records[::5]}) == sorted(group.id for group in groups)
    assert records == [(group_id, key, None) for group_id, _, _ in records[::5] for key in keys]
