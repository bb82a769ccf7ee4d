"""Tests of hash tables of Java that change over time. The expected orders and sizes are those that Java 17 prints."""

from __future__ import annotations

from random import Random

import pytest

from kafkaproto.hash_order import copy_order, grouped_order, java_order
from kafkaproto.hash_table import JavaTable, map_copy_table, table_for
from kafkaproto.partitioner import java_hash_bits


def index_bits(index: int) -> int:
    return index


@pytest.mark.parametrize("count", [1, 12, 13, 40, 200])
def test_java_table_that_is_only_filled_has_the_order_that_hash_order_computes(count: int) -> None:
    names = [f"name-{Random(count).randrange(10**9)}-{i}" for i in range(count)]
    put, computed = JavaTable(java_hash_bits), JavaTable(java_hash_bits)
    for name in names:
        put.add(name)
        computed.add_first(name)
    assert [*put] == java_order(names, java_hash_bits)
    assert [*computed] == grouped_order(names, java_hash_bits)
    assert [*JavaTable.copy_of(names, java_hash_bits)] == copy_order(names)


def test_java_table_adds_an_item_at_the_end_or_at_the_start_of_its_bucket() -> None:
    table = JavaTable(index_bits)
    for index in (33, 17, 1):
        table.add(index)
    table.add(33)  # it stays where it is
    table.add_first(49)
    assert [*table] == [49, 33, 17, 1]
    table.discard(17)
    table.add(17)
    table.discard(99)
    assert [*table] == [49, 33, 1, 17]
    assert (len(table), 17 in table, 99 in table) == (4, True, False)


def test_java_table_grows_after_add_but_before_add_first_and_never_shrinks() -> None:
    put, computed = JavaTable(index_bits), JavaTable(index_bits)
    for index in range(10, 23):  # thirteen items, too many for 16 buckets
        put.add(index)
        computed.add_first(index)
    assert [*put] == [*range(10, 23)]
    assert [*computed] == [*range(16, 23), *range(10, 16)]
    computed.add_first(10)  # adds nothing, but the table grows
    assert [*computed] == [*range(10, 23)]
    for index in range(11, 22):
        put.discard(index)
    assert [*put] == [10, 22]


def test_java_bucket_count_follows_from_the_initial_capacity_or_the_copied_map() -> None:
    assert [table_for(capacity) for capacity in (0, 1, 2, 3, 4, 5, 16, 17)] == [1, 1, 2, 4, 4, 8, 16, 32]
    assert [map_copy_table(size) for size in (0, 1, 2, 3, 6, 12, 13)] == [16, 2, 4, 8, 16, 32, 32]
