"""The order of partitions in a `PartitionTable`, compared with orders that Kafka 4.2.0 printed."""

from __future__ import annotations

import pytest

from kafkaproto.broker.group.partition_table import PartitionTable
from kafkaproto.hash_order import partition_hash_bits, scala_table_order, timeline_order
from kafkaproto.partitioner import java_hash_bits

ORDERS = [
    "+43 +23 -39 +42 +10 -5 +32 -39 -28 -11 +35: 10 23 43 35 32 42",
    "+1 -2 +1 +0 +3 +5 -2 +1 +1 +2 +1 +5 +4: 5 0 2 4 1 3",
    "+5 -4 +9 +9 +3 +4 +1 +8 +10 +1 -8 +7 +5: 5 10 7 4 1 9 3",
    "-0 +21 +20 +16 +11 +3 +16 +22 +13 +18 +15 -3 +3 +21 -0 -20 +9 -15 +15: 18 13 15 9 22 3 11 16 21",
    "+12 +19 -2 -39 +15 +43 +48 +2 +45 +9 +1 +26 +26: 26 2 15 12 9 1 43 48 19 45",
    "+77 -43 +45 -26 +6 +70 +30 +18 -22 +26 +3 +78 +57 -17: 26 18 57 78 70 30 77 6 3 45",
]
"""Partitions that were put into a `TimelineHashMap` (+) or removed from it (-), and the order of those that it then had."""


@pytest.mark.parametrize("order", ORDERS)
def test_partition_table_is_iterated_in_the_order_of_kafkas_timeline_hash_map(order: str) -> None:
    changes, printed = (text.split() for text in order.split(": "))
    table: PartitionTable[str] = PartitionTable()
    for change in changes:
        key = "topic", int(change[1:])
        if change.startswith("+"):
            table[key] = change
        else:
            table.pop(key, None)
    assert list(table.in_table_order()) == [("topic", int(index)) for index in printed]
    assert dict(table) == table.in_table_order()


def test_partition_table_keeps_the_hash_order_of_its_largest_size_until_cleared() -> None:
    names = [f"topic-{number}" for number in range(9)]
    table = PartitionTable({(name, 0): name for name in names})
    assert list(table.in_table_order().values()) == timeline_order(names, java_hash_bits)
    for name in names[2:]:
        del table[name, 0]
    assert list(table.in_table_order().values()) == timeline_order(names[:2], java_hash_bits, len(names))
    table.clear()
    table.update({(name, 0): name for name in names[:2]})
    assert list(table.in_table_order().values()) == timeline_order(names[:2], java_hash_bits)


def test_replacing_a_value_counts_as_one_more_entry_in_the_scala_hash_table_size() -> None:
    keys = [("t", index) for index in range(11)]
    table = PartitionTable(dict.fromkeys(keys, "x"))
    assert table.in_scala_order() == scala_table_order(keys, partition_hash_bits)
    table["t", 3] = "y"
    for key in keys[4:]:
        del table[key]
    assert table.in_scala_order() == scala_table_order(keys[:4], partition_hash_bits, 12)
