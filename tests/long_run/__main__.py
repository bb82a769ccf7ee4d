"""The proofs of which `make test-all` runs a part, in full: does the parts that are missing, and writes LONG.md.

usage: python -m tests.long_run [--minutes N] [--only PREFIX] [--list]      (make long)

--minutes N: begin no part after so many minutes. --only PREFIX: parts whose names begin so. --list: say which parts are missing, and stop.
Each finished part is a file in tests/long_run/results/, to be committed; Ctrl-C loses the part that is under way and no other.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.long_run.page import write_page
from tests.long_run.parts import all_parts, commit, done, missing, read, trees, write


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Return 1 if a part does not hold, 2 if the code is not committed or changes meanwhile."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.long_run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--only", default="", metavar="PREFIX")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args(arguments)
    at = trees()
    if at is None:
        sys.stderr.write(
            "broker/ or kafkaproto/ have changes that are not committed; commit them, so that a result has a commit\n"
        )
        return 2
    parts = all_parts()
    names, results = [part.name for part in parts], read()
    wanted = [part for part in missing(parts, results, at) if part.name.startswith(given.only)]
    if given.list:
        sys.stdout.write("".join(f"{part.name}\n" for part in wanted))
        return 0
    end = time.monotonic() + given.minutes * 60
    for number, part in enumerate(wanted, 1):
        if time.monotonic() > end:
            sys.stdout.write(f"{len(wanted) - number + 1} parts are left for the next run\n")
            break
        sys.stdout.write(f"{number} of {len(wanted)}: {part.name}\n")
        sys.stdout.flush()
        result = done(part, commit(), at)
        if trees() != at:
            sys.stderr.write(f"broker/ or kafkaproto/ changed while {part.name} was under way; it does not count\n")
            return 2
        results[part.name] = result
        write(result)
        write_page(names, results)
        for finding in result.findings:
            sys.stdout.write(f"  {'' if finding.holds else 'DOES NOT HOLD: '}{finding.line}\n")
    write_page(names, results)
    return 0 if all(result.holds for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
