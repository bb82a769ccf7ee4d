"""Run client libraries against brokers of each release, and check the outcomes against those in git.

The program takes two minutes.
"""

from __future__ import annotations

import argparse
import sys

from tests.support.by_release import expected


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.by_release", description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="write the outcomes to their file instead of comparing them"
    )
    parser.add_argument(
        "--real", action="store_true", help="run the clients against a real Kafka of each release instead"
    )
    options = parser.parse_args()
    if options.write and options.real:
        parser.error("--write and --real exclude each other: the outcomes are those of this project's brokers")
    if options.write:
        expected.write()
        return 0
    differences = []
    for release in expected.RELEASES:
        outcomes = expected.observe_real(release) if options.real else expected.observe(release)
        differences += expected.differences(release, outcomes)
    sys.stderr.write("".join(f"{line}\n" for line in differences))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
