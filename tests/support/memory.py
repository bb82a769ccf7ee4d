"""What is held in memory: how many objects of a class are alive, and what Python allocates while something happens."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


class Living:
    """Counts the objects of a class that were made after this was, and are still alive."""

    def __init__(self, kind: type) -> None:
        gc.collect()
        self._kind = kind
        self._before = self._alive()

    def count(self) -> int:
        gc.collect()
        return self._alive() - self._before

    def _alive(self) -> int:
        return sum(isinstance(one, self._kind) for one in gc.get_objects())


@contextmanager
def memory_within(limit_bytes: int, at_least: int = 0) -> Iterator[None]:
    """What Python allocates meanwhile never exceeds what there was by more than `limit_bytes`.

    at_least: what it does exceed it by, so that the limit is one on memory that the measure sees.
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
    """What was allocated meanwhile and is still held at the end is less than `limit_bytes`."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    try:
        yield
        gc.collect()
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left - before < limit_bytes, f"{left - before} bytes"
