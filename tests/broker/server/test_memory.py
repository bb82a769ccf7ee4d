"""What `benchmarks.memory` measures, in small: what one more of something costs, not what the interpreter takes."""

from __future__ import annotations

import pytest

from benchmarks.memory import many_connections, many_partitions, much_data


def _seen(row: tuple[str, str, str]) -> float:
    return float(row[1])


@pytest.mark.slow
def test_memory_does_not_grow_with_the_data() -> None:
    [row] = much_data(20_000_000, 3, reads=1)
    [five_times] = much_data(100_000_000, 3, reads=1)
    assert _seen(five_times) < _seen(row) + 10


@pytest.mark.slow
def test_partitions_beyond_the_memory_take_no_descriptors() -> None:
    resident, descriptors = many_partitions(2000, "--memory", "100K")
    assert _seen(resident) < 300
    assert _seen(descriptors) < 50


@pytest.mark.slow
def test_a_connection_in_a_long_poll_is_small() -> None:
    each, _ = many_connections(200, 0.5)
    assert _seen(each) < 40
