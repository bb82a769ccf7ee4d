"""The check of orders that a Java hash table may have: it accepts those of every size, and no others."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.table_order import is_table_order
from kafkaproto.hash_order import concurrent_order
from kafkaproto.partitioner import java_hash_bits

NAMES = [f"group-{number}" for number in range(9)]


@pytest.mark.parametrize("most", [0, 12, 24, 48, 384, 6144])
def test_order_of_a_concurrent_hash_map_of_each_size_is_accepted(most: int) -> None:
    assert is_table_order(concurrent_order(NAMES, java_hash_bits, most))


def test_order_of_creation_is_no_order_of_a_table() -> None:
    names = ["b", "a", "d", "c"]
    assert is_table_order(sorted(names)) and not is_table_order(names)


def test_names_in_one_bucket_may_have_any_order() -> None:
    """Aa and BB have the same `hashCode()` in Java."""
    assert is_table_order(["Aa", "BB"]) and is_table_order(["BB", "Aa"])
