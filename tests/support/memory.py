"""Memory measurements: how many objects of a class are alive, and how much Python allocates during a block."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


class Living:
    """Counts the objects of a class that were created after the counter and are still alive."""

    def __init__(self, kind: type) -> None:
        gc.collect()
        self._kind = kind
        self._before = self._alive()

    def count(self) -> int:
        gc.collect()
        return self._alive() - self._before

    def _alive(self) -> int:
        return sum(isinstance(get_object, self._kind) for get_object in gc.get_objects())


@contextmanager
def memory_within(limit_bytes: int, at_least: int = 0) -> Iterator[None]:
    """Assert that Python's allocations during the block never exceed the initial ones by more than `limit_bytes`.

    at_least: the minimum peak, which proves that the measurement sees this memory.
    """
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert at_least <= peak - before < limit_bytes, f"{peak - before} bytes"


@contextmanager
def memory_left_within(limit_bytes: int) -> Iterator[None]:
    """Assert that less than `limit_bytes` of the memory allocated during the block is still held at its end."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    try:
        yield
        gc.collect()
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes - before < limit_bytes, f"{held_bytes - before} bytes"
