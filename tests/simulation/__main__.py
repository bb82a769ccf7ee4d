"""Simulate a cluster with clients and faults in virtual time, once for each seed.

The program prints how many runs kept all rules, or the first run that broke a rule.
"""

from __future__ import annotations

import argparse
import sys

from tests.simulation.run import Broken, simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seeds", nargs="*", type=int, metavar="SEED", help="random seed of a run")
    parser.add_argument(
        "--from", dest="first", type=int, default=0, metavar="SEED", help="first seed of a range of runs (default: 0)"
    )
    parser.add_argument("--count", type=int, default=0, metavar="N", help="number of seeds in the range (default: 0)")
    options = parser.parse_args()
    operations = passed_runs = 0
    for seed in [*options.seeds, *range(options.first, options.first + options.count)]:
        try:
            operations += simulate(seed).operations
        except Broken as broken:
            sys.stdout.write(f"{broken}\n")
            return 1
        passed_runs += 1
    sys.stdout.write(f"{passed_runs} seeds held, {operations} operations\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
