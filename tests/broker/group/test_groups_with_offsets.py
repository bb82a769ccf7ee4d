"""The order of groups in the batch of tombstones for a deleted topic: that of Kafka's table of groups with committed offsets (GO-9)."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.group_log import OffsetLog
from kafkaproto.conformance.groups import Group, commit, make_stable
from kafkaproto.conformance.internal_topics import reassign
from kafkaproto.conformance.scene import make_lead, new_topic
from kafkaproto.hash_order import timeline_order
from kafkaproto.partitioner import java_hash_bits
from tests.support.broker.transaction_bench import TransactionBench

pytestmark = pytest.mark.rule("GO-9")


@pytest.fixture
def bench() -> TransactionBench:
    return TransactionBench(newer=True, semantics="kafka")


def committed_groups(bench: TransactionBench, topic: str, count: int) -> list[Group]:
    groups = [Group(bench, 0) for _ in range(count)]
    for group in groups:
        assert commit(group, {topic: {0: (5, "")}}) == {(topic, 0): 0}
    return groups


def order_of_tombstones(bench: TransactionBench, topic: str, groups: list[Group]) -> list[str]:
    """Delete a topic, and return the ids of the groups in the order of the tombstones of their offsets."""
    log = OffsetLog(groups[0])
    bench.cluster.state.controller.delete_topic(topic)
    [batch] = log.of_groups(groups, len(groups))
    return [group_id for group_id, _, _ in batch]


def in_table(groups: list[Group], most: int = 0) -> list[str]:
    return timeline_order([group.id for group in groups], java_hash_bits, most)


def test_groups_without_committed_offsets_do_not_affect_the_order_of_tombstones(bench: TransactionBench) -> None:
    for _ in range(40):
        assert Group(bench, 0).client(version=3).join().error_code == 0
    topic = new_topic(bench).name
    groups = committed_groups(bench, topic, 9)
    assert order_of_tombstones(bench, topic, groups) == in_table(groups)


def test_hash_table_of_groups_with_offsets_does_not_shrink_when_groups_lose_offsets(bench: TransactionBench) -> None:
    topic = new_topic(bench).name
    groups = committed_groups(bench, topic, 40)
    for group in groups[9:]:
        assert group.delete_offsets({topic: [0]}) == (0, {(topic, 0): 0})
    assert order_of_tombstones(bench, topic, groups[:9]) == in_table(groups[:9], 40)


def test_group_that_gets_offsets_again_is_added_again_to_the_table_of_groups(bench: TransactionBench) -> None:
    topic = new_topic(bench).name
    groups = committed_groups(bench, topic, 12)
    for group in groups[:8]:
        assert group.delete_offsets({topic: [0]}) == (0, {(topic, 0): 0})
        assert commit(group, {topic: {0: (6, "")}}) == {(topic, 0): 0}
    assert order_of_tombstones(bench, topic, groups) == in_table([*groups[8:], *groups[:8]])


def test_new_coordinator_orders_groups_in_its_hash_table_by_their_first_offsets(bench: TransactionBench) -> None:
    topic = new_topic(bench).name
    groups = committed_groups(bench, topic, 12)
    for group in (groups[11], groups[7], groups[8]):  # the records about their members come after those of the offsets
        make_stable(group.client(version=3))
    before = groups[0].coordinator()
    after = (before + 1) % 3
    reassign(groups[0].offsets, before, after)
    make_lead(groups[0].offsets, after)
    assert groups[0].coordinator() == after
    assert order_of_tombstones(bench, topic, groups) == in_table(groups)
