"""Small runs of `benchmarks.memory`: the memory used per byte, partition and connection."""

from __future__ import annotations

import pytest

from benchmarks.memory import many_connections, many_partitions, much_data


def _seen(row: tuple[str, str, str]) -> float:
    return float(row[1])


@pytest.mark.slow
def test_broker_memory_is_nearly_equal_with_20_mb_and_100_mb_of_records() -> None:
    [row] = much_data(20_000_000, 3, reads=1)
    [five_times] = much_data(100_000_000, 3, reads=1)
    assert _seen(five_times) < _seen(row) + 10


@pytest.mark.slow
def test_2000_partitions_with_100_kb_memory_limit_use_fewer_than_50_file_descriptors() -> None:
    resident, descriptors = many_partitions(2000, "--memory", "100K")
    assert _seen(resident) < 300
    assert _seen(descriptors) < 50


@pytest.mark.slow
def test_connection_with_a_parked_fetch_uses_less_than_40_kib() -> None:
    each, _ = many_connections(200, 0.5)
    assert _seen(each) < 40
