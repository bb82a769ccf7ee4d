"""The order of in-sync replicas that a leader proposes is that of Kafka's sets."""

from __future__ import annotations

import pytest

from kafkaproto.broker.metadata.election import isr_order


@pytest.mark.rule("M-13")
@pytest.mark.parametrize(
    ("old", "new", "release", "expected"),
    [
        ((2, 0), {0, 1, 2}, "3.9", (2, 0, 1)),
        ((2, 0), {0, 1, 2}, "4.1", (2, 0, 1)),
        ((2, 0), {0, 1, 2}, "4.2", (0, 1, 2)),
        ((2, 0, 1), {1, 2}, "3.9", (2, 1)),
        ((2, 0, 1), {1, 2}, "4.2", (1, 2)),
        ((16, 1), {1, 2, 16}, "4.2", (16, 1, 2)),  # 16 and 0 share a bucket of a table of 16
        ((4, 3, 2, 1), {1, 2, 3, 4, 5}, "3.9", (5, 1, 2, 3, 4)),  # a Scala set of five is a hash table
    ],
)
def test_order_of_broker_ids_in_a_changed_isr_is_that_of_the_emulated_kafka_release(
    old: tuple[int, ...], new: set[int], release: str, expected: tuple[int, ...]
) -> None:
    assert isr_order(old, new, release) == expected
