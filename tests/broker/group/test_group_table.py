"""The order of groups in a `GroupTable`, compared with orders of ListGroups that a real Kafka 3.9.1 and 4.2.0 returned (GC-57)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.group.group import Group
from kafkaproto.broker.group.group_table import GroupTable
from kafkaproto.broker.group.storage import GroupStorage
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.hash_order import concurrent_order, timeline_order
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.partitioner import java_hash, java_hash_bits
from tests.support.broker.processes import commit

PARTITIONS = 4
COMMITTED = [f"list-{number}" for number in (5, 3, 9, 1, 7, 2, 8, 0, 4, 6)]
CREATED = ["warm", *(f"g{number}" for number in range(1, 9)), *COMMITTED]


def table_of(group_ids: list[str], *, is_new_coordinator: bool) -> GroupTable:
    storage = GroupStorage(
        None, lambda group_id: java_hash(group_id) % PARTITIONS, is_new_coordinator=is_new_coordinator
    )
    table = GroupTable(storage)
    for group_id in group_ids:
        table[group_id] = Group(group_id, 0)
    return table


@pytest.mark.rule("GC-57")
def test_scala_coordinator_lists_groups_in_the_order_of_a_real_kafka_3_9_1() -> None:
    table = table_of(COMMITTED, is_new_coordinator=False)
    assert " ".join(table.in_table_order(table, ())) == (
        "list-8 list-7 list-9 list-0 list-2 list-1 list-4 list-3 list-6 list-5"
    )


@pytest.mark.rule("GC-57")
def test_java_coordinator_lists_groups_in_the_order_of_a_real_kafka_4_2_0() -> None:
    table = table_of(CREATED, is_new_coordinator=True)
    assert " ".join(table.in_table_order(table, range(PARTITIONS))) == (
        "list-3 g7 list-7 g3 list-0 list-8 g2 list-4 g6 list-6 list-2 g4 g8 warm list-1 list-9 g5 list-5 g1"
    )


@pytest.mark.rule("GC-57")
def test_deleting_90_of_100_groups_does_not_shrink_the_scala_hash_table_of_groups() -> None:
    group_ids = [f"g{number}" for number in range(100)]
    table = table_of(group_ids, is_new_coordinator=False)
    for group_id in group_ids[10:]:
        del table[group_id]
    assert table.in_table_order(table, ()) == concurrent_order(group_ids[:10], java_hash_bits, 100)
    assert [*table] == group_ids[:10]


@pytest.mark.rule("GC-57")
def test_hash_table_of_groups_shrinks_only_when_the_offsets_partition_is_unloaded() -> None:
    group_ids = [group_id for number in range(100) if java_hash(group_id := f"g{number}") % PARTITIONS == 1]
    table = table_of(group_ids, is_new_coordinator=True)
    table.clear()
    assert table.in_table_order(group_ids[:5], ()) == timeline_order(group_ids[:5], java_hash_bits, len(group_ids))
    table.drop_table(1)
    assert table.in_table_order(group_ids[:5], ()) == timeline_order(group_ids[:5], java_hash_bits)


def listed(cluster: VirtualCluster) -> list[str]:
    """Return the ids in a ListGroups response."""
    return [group.group_id for group in cluster.connect().ask(ListGroupsRequest(), 4).groups]


@pytest.mark.rule("GC-57")
@pytest.mark.parametrize("resets", [False, True])
def test_scala_hash_table_of_groups_shrinks_when_the_broker_restarts_or_is_reset(resets: bool) -> None:
    """resets: whether the cluster is reset instead of a restart of its broker."""
    group_ids = [f"g{number}" for number in range(100)]
    kept_ids = group_ids[:10]
    cluster = VirtualCluster(release_name="3.9")
    cluster.topic("t")
    assert {commit(cluster, group_id, "t", 1) for group_id in group_ids} == {0}
    deleted = cluster.connect().ask(DeleteGroupsRequest(group_ids[10:]), 2).results
    assert {result.error_code for result in deleted} == {0}
    assert listed(cluster) == concurrent_order(kept_ids, java_hash_bits, 100)
    if resets:
        cluster.state.reset()
        cluster.topic("t")
        assert {commit(cluster, group_id, "t", 1) for group_id in kept_ids} == {0}
    else:
        cluster.state.stop_broker(0)
        cluster.state.start_broker(0)
    assert listed(cluster) == concurrent_order(kept_ids, java_hash_bits)
    assert listed(cluster) != concurrent_order(kept_ids, java_hash_bits, 100)
