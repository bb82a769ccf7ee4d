"""The full numbers of the proofs that `make test` has a minute for; writes LONG.md.

usage: python -m tests.long [--seeds N] [--conversations N] [--nodes N]      (make long)
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.differential.__main__ import Summary, both
from tests.differential.__main__ import run as run_conversations
from tests.oracle.jars import KAFKA_VERSION
from tests.simulation.run import Broken, simulate

PAGE = Path(__file__).resolve().parent.parent / "LONG.md"
SEEDS, CONVERSATIONS, WITH_NODES = 50_000, 2000, 20
PROCESSES = 2
AT_ONCE = 50


@dataclass
class Simulated:
    """What many seeds came to. broken: seed to its conversation."""

    held: int
    operations: int
    virtual_ms: int
    broken: dict[int, str]

    def add(self, other: Simulated) -> None:
        self.held += other.held
        self.operations += other.operations
        self.virtual_ms += other.virtual_ms
        self.broken |= other.broken


def seeds(first: int, count: int) -> Simulated:
    """Some seeds, one after the other."""
    done = Simulated(0, 0, 0, {})
    for seed in range(first, first + count):
        try:
            outcome = simulate(seed)
        except Broken as broken:
            done.broken[seed] = str(broken)
        else:
            done.add(Simulated(1, outcome.operations, outcome.virtual_ms, {}))
    return done


def all_seeds(count: int) -> Simulated:
    done = Simulated(0, 0, 0, {})
    firsts = range(0, count, AT_ONCE)
    with ProcessPoolExecutor(PROCESSES) as pool:
        for part in pool.map(seeds, firsts, [min(AT_ONCE, count - first) for first in firsts]):
            done.add(part)
            for conversation in part.broken.values():
                sys.stdout.write(f"{conversation}\n\n")
    return done


def page(command: str, simulated: Simulated, simulated_s: float, compared: Summary, compared_s: float) -> Iterator[str]:
    """The lines of LONG.md."""
    yield f"# The long run\n\nWritten by `{command}` on {datetime.now(UTC):%Y-%m-%d}.\n"
    total = simulated.held + len(simulated.broken)
    broken = f" {sorted(simulated.broken)}" if simulated.broken else ""
    yield (
        f"- Simulation: {total} seeds, {simulated.held} held, {len(simulated.broken)} broken{broken}; "
        f"{simulated.operations} client operations, {simulated.virtual_ms / 3_600_000:.0f} hours of virtual time, "
        f"in {simulated_s:.0f} s on {PROCESSES} processes."
    )
    yield f"- Differential against Kafka {KAFKA_VERSION}: {compared}; in {compared_s:.0f} s."
    yield from (f"  - seed {seed} differs: {found.difference.step}" for seed, found in compared.found.items())
    yield from (f"  - seed {seed} is unstable: {one.difference.step}" for seed, one in compared.unstable.items())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.long")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS)
    parser.add_argument("--nodes", type=int, default=WITH_NODES)
    given = parser.parse_args()
    begun = time.monotonic()
    simulated = all_seeds(given.seeds)
    between = time.monotonic()
    with both() as pair:
        compared = run_conversations(pair, 0, given.conversations, given.nodes)
    command = " ".join(["python -m tests.long", *sys.argv[1:]])
    lines = list(page(command, simulated, between - begun, compared, time.monotonic() - between))
    PAGE.write_text("\n".join(lines) + "\n")
    sys.stdout.write(PAGE.read_text())
    return 1 if simulated.broken or compared.found else 0


if __name__ == "__main__":
    sys.exit(main())
