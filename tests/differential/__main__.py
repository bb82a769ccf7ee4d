"""Send random request sequences to this broker and to a real Kafka 3.9.1, and print each difference, shrunk and ready to be replayed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.differential.comparing import Found, Pair, Unstable
from tests.differential.request_sequences import request_sequence
from tests.support.conformance.ours import Ours
from tests.support.conformance.real_kafka import RealKafka

PROFILE = "default"


@contextmanager
def both() -> Iterator[Pair]:
    """Run the broker and a real Kafka broker."""
    ours, real = Ours(PROFILE, "kafka"), None
    try:
        real = RealKafka(PROFILE)
        yield Pair(ours, real)
    finally:
        ours.stop()
        if real is not None:
            real.stop()


@dataclass
class Summary:
    """The differences that a run found, by seed."""

    played: int = 0
    differences: dict[int, Found] = field(default_factory=dict)
    unstable: dict[int, Unstable] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.played} conversations, {len(self.differing)} differ, {len(self.unstable)} unstable"


def run(pair: Pair, first: int, count: int, nodes: int = 0, seconds: float = float("inf")) -> Summary:
    """Play `count` request sequences and `nodes` more in which a broker stops; print each sequence that differs."""
    summary = Summary()
    end = time.monotonic() + seconds
    for seed in range(first, first + count + nodes):
        if time.monotonic() > end:
            break
        result = pair.compare(request_sequence(seed, nodes=seed >= first + count))
        summary.played += 1
        if isinstance(result, Found):
            summary.differing[seed] = result
            sys.stdout.write(f"seed {seed}:\n{result.request_sequence}\n{result.difference}\n\n")
        elif result is not None:
            summary.unstable[seed] = result
            sys.stdout.write(f"seed {seed} is unstable: {result.difference}\n\n")
        sys.stdout.flush()
    return summary


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="SEED", help="first seed (default: 0)")
    parser.add_argument("--count", type=int, default=100, metavar="N", help="number of sequences (default: 100)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=float("inf"),
        metavar="N",
        help="start no further sequence after N seconds (default: no limit)",
    )
    parser.add_argument(
        "--nodes",
        type=int,
        default=0,
        metavar="N",
        help="number of additional sequences in which a broker stops and starts again (default: 0)",
    )
    given = parser.parse_args()
    with both() as pair:
        summary = run(pair, given.first, given.count, given.nodes, given.seconds)
    sys.stdout.write(f"{summary}\n")
    return 1 if summary.differing else 0


if __name__ == "__main__":
    sys.exit(main())
