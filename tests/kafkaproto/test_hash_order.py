"""The order of strings in hash tables, compared with orders that Scala 2.13.15 printed."""

from __future__ import annotations

import pytest

from kafkaproto.hash_order import scala_order

ORDERS = [
    "range roundrobin sticky cooperative-sticky: cooperative-sticky roundrobin range sticky",
    "qkh range sticky stream v0: qkh range v0 stream sticky",
    "roundrobin compatible fxhvjgc gxdp: fxhvjgc roundrobin gxdp compatible",
    "zu uniform range cooperative-sticky compatible d n clqftvblx eager yznjoagjn v0 a swiexuqs sticky: "
    "n zu a compatible yznjoagjn swiexuqs d cooperative-sticky eager clqftvblx uniform range v0 sticky",
    "Aa BB: Aa BB",
]


@pytest.mark.parametrize("order", ORDERS)
def test_strings_are_sorted_in_the_iteration_order_of_an_immutable_scala_hash_map(order: str) -> None:
    added, printed = (names.split() for names in order.split(":"))
    assert scala_order(added) == printed


def test_strings_with_equal_scala_hashes_are_sorted_in_the_order_of_the_input() -> None:
    assert scala_order(["Aa", "BB"]) == ["Aa", "BB"]
    assert scala_order(["BB", "Aa", "BB"]) == ["BB", "Aa"]
