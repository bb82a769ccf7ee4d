"""usage: python -m tests.differential [--from SEED] [--count N] [--seconds S] [--nodes N]

Plays conversations on ours and on a real Kafka 3.9.1, and prints what differs, shrunk and ready to be replayed.
--nodes N: so many more in which a broker stops and comes back.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.conformance.real_kafka import RealKafka
from tests.conformance.subjects import Ours
from tests.differential.comparing import Found, Pair, Unstable
from tests.differential.conversations import conversation

PROFILE = "default"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--nodes", type=int, default=0)
    given = parser.parse_args()
    ours, real = Ours(PROFILE, "kafka"), None
    found: list[Found] = []
    unstable: list[Unstable] = []
    played = 0
    try:
        real = RealKafka(PROFILE)
        pair = Pair(ours, real)
        end = time.monotonic() + given.seconds
        for seed in range(given.first, given.first + given.count + given.nodes):
            if time.monotonic() > end:
                break
            result = pair.compare(conversation(seed, nodes=seed >= given.first + given.count))
            played += 1
            if isinstance(result, Found):
                found.append(result)
                sys.stdout.write(f"seed {seed}:\n{result.conversation}\n{result.difference}\n\n")
            elif result is not None:
                unstable.append(result)
                sys.stdout.write(f"seed {seed} is unstable: {result.difference}\n\n")
            sys.stdout.flush()
    finally:
        ours.stop()
        if real is not None:
            real.stop()
    sys.stdout.write(f"{played} conversations, {len(found)} differ, {len(unstable)} unstable\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
