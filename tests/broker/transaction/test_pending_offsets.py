"""Offsets of open transactions that are deleted before the transaction commits (TX-43 to TX-45)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkaproto.broker.group.migration import AnyGroup
from kafkaproto.broker.group.offsets import PartitionKey
from kafkaproto.conformance.groups import OFFSETS_TOPIC, Group
from kafkaproto.conformance.scene import Topic
from kafkaproto.conformance.transactions import Producer
from kafkaproto.error_codes import ErrorCode
from tests.support.broker.transaction_bench import TransactionBench


@pytest.fixture(params=[False, True], ids=["3.9", "4.2"])
def bench(request: pytest.FixtureRequest) -> Iterator[TransactionBench]:
    transaction_bench = TransactionBench(newer=request.param)
    yield transaction_bench
    transaction_bench.stop()


def begin(bench: TransactionBench, topic: Topic) -> tuple[Producer, Group]:
    """Return a producer with an open transaction, and a group with offset 7 of both partitions of a topic in it."""
    producer, group = Producer(bench), Group(bench)
    producer.init()
    offsets = {(topic.name, 0): 7, (topic.name, 1): 7}
    assert producer.add_offsets(group) == 0
    assert producer.commit_offsets(group, offsets) == dict.fromkeys(offsets, 0)
    return producer, group


def state(bench: TransactionBench, group: Group) -> AnyGroup | None:
    """Return the group on its coordinator, None if there is none."""
    leader, _ = bench.cluster.state.controller.image.leader_of(OFFSETS_TOPIC, group.index)
    return bench.cluster.state.nodes[leader].groups.groups.get_any(group.id)


def move(bench: TransactionBench, group: Group) -> None:
    """Make another broker the coordinator of a group, which loads it from its log."""
    leader, _ = bench.cluster.state.controller.image.leader_of(OFFSETS_TOPIC, group.index)
    bench.cluster.state.controller.elect(OFFSETS_TOPIC, group.index, (leader + 1) % 3)
    bench.cluster.run()


def committed(bench: TransactionBench, group: Group) -> list[dict[PartitionKey, int]]:
    """Return the committed offsets on the coordinator, and on the next one, which loads them; empty without a group."""
    committed_offsets = []
    for _ in range(2):
        group_state = state(bench, group)
        assert group_state is None or not group_state.pending_offsets
        committed_offsets.append(
            {} if group_state is None else {key: offset.offset for key, offset in group_state.offsets.items()}
        )
        move(bench, group)
    return committed_offsets


def expected(
    bench: TransactionBench, deleted: dict[PartitionKey, int], others: dict[PartitionKey, int], *, moves: bool
) -> list[dict[PartitionKey, int]]:
    """Return the result of `committed` for a transaction that was committed after some of its pending offsets had been deleted.

    With Kafka's group coordinator in Scala (3.9), a coordinator that loads the group has the deleted offsets again. deleted: these offsets. others:
    the other offsets of the transaction. moves: whether another coordinator loaded the group before the transaction was committed.
    """
    if bench.cluster.state.nodes[0].groups.is_new_coordinator:
        return [others, others]
    return [deleted | others if moves else others, deleted | others]


@pytest.mark.rule("TX-43", "GO-25")
@pytest.mark.parametrize("moves", [False, True])
def test_pending_offsets_of_a_deleted_topic_return_when_a_3_9_broker_loads_them(
    bench: TransactionBench, moves: bool
) -> None:
    topic, other = bench.topic(2), bench.topic()
    producer, group = begin(bench, topic)
    assert producer.commit_offsets(group, {(other.name, 0): 3}) == {(other.name, 0): 0}
    bench.cluster.state.controller.delete_topic(topic.name)
    bench.cluster.run()
    if moves:
        move(bench, group)
    producer.finish(commit=True)
    deleted = {(topic.name, 0): 7, (topic.name, 1): 7}
    assert committed(bench, group) == expected(bench, deleted, {(other.name, 0): 3}, moves=moves)


@pytest.mark.rule("TX-43")
@pytest.mark.parametrize("moves", [False, True])
def test_deleted_pending_offset_returns_when_a_3_9_broker_loads_the_group(bench: TransactionBench, moves: bool) -> None:
    topic = bench.topic(2)
    producer, group = begin(bench, topic)
    assert group.delete_offsets({topic.name: [1]}) == (0, {(topic.name, 1): 0})
    if moves:
        move(bench, group)
    producer.finish(commit=True)
    assert committed(bench, group) == expected(bench, {(topic.name, 1): 7}, {(topic.name, 0): 7}, moves=moves)


@pytest.mark.rule("TX-45")
@pytest.mark.parametrize("moves", [False, True])
def test_pending_offsets_of_a_deleted_group_return_when_a_3_9_broker_loads_them(
    bench: TransactionBench, moves: bool
) -> None:
    topic = bench.topic(2)
    producer, group = begin(bench, topic)
    leader, _ = bench.cluster.state.controller.image.leader_of(OFFSETS_TOPIC, group.index)
    deleted = bench.cluster.state.nodes[leader].groups.commits.deletions.delete_groups([group.id], bench.epoch_ms())
    assert deleted == {group.id: ErrorCode.NONE}
    if moves:
        move(bench, group)
    producer.finish(commit=True)
    deleted_offsets = {(topic.name, 0): 7, (topic.name, 1): 7}
    assert committed(bench, group) == expected(bench, deleted_offsets, {}, moves=moves)


@pytest.mark.rule("TX-43")
@pytest.mark.parametrize("is_moved", [False, True])
def test_committing_an_older_txn_offset_commit_does_not_overwrite_a_newer_one(
    bench: TransactionBench, is_moved: bool
) -> None:
    """Three producers commit offsets of the same partitions. The one in the middle ends first, the last one aborts, the first one ends last."""
    topic = bench.topic(2)
    first, group = begin(bench, topic)
    middle, last = Producer(bench), Producer(bench)
    for producer, offsets in ((middle, {(topic.name, 0): 9}), (last, {(topic.name, 0): 11})):
        producer.init()
        assert producer.add_offsets(group) == 0
        assert producer.commit_offsets(group, offsets) == dict.fromkeys(offsets, 0)
    middle.finish(commit=True)
    if is_moved:
        move(bench, group)
    last.finish(commit=False)
    first.finish(commit=True)
    assert committed(bench, group) == [{(topic.name, 0): 9, (topic.name, 1): 7}] * 2
