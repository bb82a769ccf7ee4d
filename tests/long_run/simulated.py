"""Many seeds of the simulation and their combined result."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

from tests.long_run.code import loaded_files
from tests.simulation.run import Broken, simulate

PROCESSES = 2
AT_ONCE = 10


@dataclass
class Simulated:
    """The combined result of simulated seeds. limited_ms: virtual time during which a quota was set. broken: seed to its conversation.

    loaded: the files of this project that the simulations loaded.
    """

    held: int = 0
    operations: int = 0
    virtual_ms: int = 0
    limited_ms: int = 0
    throttles: int = 0
    broken: dict[int, str] = field(default_factory=dict)
    loaded: frozenset[str] = frozenset()

    def add(self, other: Simulated) -> None:
        self.held += other.held
        self.operations += other.operations
        self.virtual_ms += other.virtual_ms
        self.limited_ms += other.limited_ms
        self.throttles += other.throttles
        self.broken |= other.broken
        self.loaded |= other.loaded


def seeds(first: int, count: int) -> Simulated:
    """Simulate some seeds, one after the other."""
    totals = Simulated()
    for seed in range(first, first + count):
        try:
            outcome = simulate(seed)
        except Broken as broken:
            totals.broken[seed] = str(broken)
        else:
            throttles = outcome.throttles.total()
            totals.add(Simulated(1, outcome.operations, outcome.virtual_ms, outcome.limited_ms, throttles))
    totals.loaded = loaded_files()
    return totals


def many_seeds(first: int, count: int) -> Simulated:
    """Simulate seeds on all cores, in processes that have loaded nothing else."""
    totals = Simulated()
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        parts = [
            pool.submit(seeds, first_seed, min(AT_ONCE, first + count - first_seed))
            for first_seed in range(first, first + count, AT_ONCE)
        ]
        for part in parts:
            totals.add(part.result())
    return totals
