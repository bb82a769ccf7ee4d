"""Run the proofs that take hours, and write docs/long-run.md. `make long` runs this program.

A proof is a test, a simulation or a measurement. The proofs are divided into parts, which run one
after the other. The result of a part is a file in tests/long_run/results/; commit it. Ctrl-C loses
only the part that is running.

The program runs the parts that have no result, and those whose code has changed since their result
was measured. For a simulation, only changes of the files that tests/long_run/simulated_files.txt
lists count; for any other part, changes of broker/ and kafkaproto/. Changes of comments,
docstrings, and names of tests and local variables never count.

`make test-all` runs some of these proofs for a shorter time.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.long_run.code import code_hashes
from tests.long_run.page import write_page
from tests.long_run.parts import all_parts, commit, done, missing, read, write


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Return 1 if a part fails, 2 if the code is not committed or changes during the run."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.long_run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=float("inf"),
        metavar="N",
        help="start no further part after N minutes (default: no limit)",
    )
    parser.add_argument(
        "--only", default="", metavar="PREFIX", help="run only parts whose name starts with PREFIX (default: all)"
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--list", action="store_true", help="print the names of the parts that have to be run, and run none"
    )
    mode.add_argument("--page", action="store_true", help="write docs/long-run.md from the results, and run no part")
    options = parser.parse_args(arguments)
    at = code_hashes()
    if at is None:
        sys.stderr.write(
            "broker/ or kafkaproto/ have changes that are not committed; commit them, so that a result has a commit\n"
        )
        return 2
    parts = all_parts()
    names, results = [part.name for part in parts], read()
    to_run = [part for part in missing(parts, results, at) if part.name.startswith(options.only)]
    if options.page:
        write_page(names, results, at)
        return 0
    if options.list:
        sys.stdout.write("".join(f"{part.name}\n" for part in to_run))
        return 0
    end = time.monotonic() + options.minutes * 60
    for number, part in enumerate(to_run, 1):
        if time.monotonic() > end:
            sys.stdout.write(f"{len(to_run) - number + 1} parts are left for the next run\n")
            break
        sys.stdout.write(f"{number} of {len(to_run)}: {part.name}\n")
        sys.stdout.flush()
        result = done(part, commit(), at)
        if code_hashes() != at:
            sys.stderr.write(
                f"broker/ or kafkaproto/ changed while {part.name} ran, so its result is not kept; run it again\n"
            )
            return 2
        results[part.name] = result
        write(result)
        write_page(names, results, at)
        for finding in result.findings:
            sys.stdout.write(f"  {'' if finding.holds else 'DOES NOT HOLD: '}{finding.line}\n")
    write_page(names, results, at)
    return 0 if all(result.holds for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
