"""Mutate `broker/` at random places and check whether the tests notice.

python -m tests.mutations --list                         show what the seeds select in the working tree, and run nothing
python -m tests.mutations --seeds 4-6                    test three mutations of the working tree
python -m tests.mutations --rev 96f9c43 --column before  test thirty mutations of a revision and write the column of RESULTS.md
python -m tests.mutations --page                         write RESULTS.md again, after judgements.py was edited

The tests of the tree itself decide. The tree without a mutation is tested first: it must pass. One mutation takes 5 to 30 s if a test
catches it, and five minutes otherwise.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from tests.mutations import results
from tests.mutations.runs import (
    ROOT,
    Runner,
    apply,
    caught,
    checked_out,
    copied,
    edit_of,
    is_package_loaded_from,
    run_pytest,
)
from tests.mutations.sites import chosen, sites

SEEDS = range(1, 31)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Return 1 if a mutation survived, 2 if the unmutated tree fails."""
    options = _parsed(arguments)
    if options.page:
        results.save(results.load())
        return 0
    revision = options.rev and _commit(options.rev)
    with checked_out(revision) if revision else nullcontext(options.tree) as tree:
        if options.list:
            for seed in options.seeds:
                site = chosen(sites(tree), seed)
                _say(f"{seed} {site.path}:{site.line}", *edit_of((tree / site.path).read_bytes(), site))
            return 0
        if not options.unchecked and (failure := _unmutated(tree, run_pytest)):
            sys.stderr.write(f"a test fails before any mutation ({failure}); make the tests pass first\n")
            return 2
        column = _column(options, revision)
        column["sites"] = len(sites(tree))
        survivors = 0
        for seed in options.seeds:
            start_s = time.monotonic()
            result = column["seeds"][str(seed)] = tried(tree, seed, run_pytest)
            survivors += result["stage"] == results.SURVIVED
            _say(f"{seed} {result['place']}", result["before"], result["after"])
            _say(f"  {result['stage']} {result['test']}", f"{time.monotonic() - start_s:.0f} s")
            if options.column:
                results.save({**results.load(), options.column: column})
    return 1 if survivors else 0


def tried(tree: Path, seed: int, run: Runner) -> results.Result:
    """Test the mutation that a seed selects in a copy of the tree."""
    site = chosen(sites(tree), seed)
    with copied(tree) as copy:
        edit = apply(site, copy)
        return results.result_of(site, edit, caught(copy, run))


def _unmutated(tree: Path, run: Runner) -> str:
    """Return why an unmutated tree cannot be tested, or an empty string."""
    with copied(tree) as copy:
        if not is_package_loaded_from(copy):
            return "its tests import another tree's broker"
        failure = caught(copy, run)
        return failure.test if failure else ""


def _column(options: argparse.Namespace, revision: str) -> results.Column:
    """Return the column to fill: that of RESULTS.md if it has the same revision, else a new one."""
    column = results.load().get(options.column)
    if column and revision and column["revision"] == revision:
        return column
    command = f"python -m tests.mutations --rev {revision} --column {options.column}"
    return {"revision": revision, "command": command, "sites": 0, "seeds": {}}


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations",
        description="Change the code in broker/ at random places, and print which changes the tests find.",
    )
    tree = parser.add_mutually_exclusive_group()
    tree.add_argument(
        "--tree", type=Path, default=ROOT, metavar="FOLDER", help="checkout whose files are changed (default: this one)"
    )
    tree.add_argument("--rev", default="", metavar="REV", help="change the files of this git revision instead")
    parser.add_argument(
        "--seeds",
        type=_seeds,
        default=SEEDS,
        metavar="N[-M][,...]",
        help="random seeds, one for each change (default: 1-30)",
    )
    parser.add_argument(
        "--column",
        choices=results.COLUMNS,
        help="write the outcomes to this column of RESULTS.md, which compares an earlier revision (before) with a later one "
        "(after); needs --rev",
    )
    parser.add_argument(
        "--unchecked", action="store_true", help="do not first check that the tests pass without a change"
    )
    parser.add_argument("--list", action="store_true", help="print the changes and run no test")
    parser.add_argument("--page", action="store_true", help="only write RESULTS.md from results.json and judgements.py")
    options = parser.parse_args(arguments)
    if options.column and not options.rev:
        parser.error(f"--column {options.column} needs --rev REV: a column has the results of one revision")
    return options


def _seeds(text: str) -> list[int]:
    ranges = [part.partition("-") for part in text.split(",")]
    return [seed for first, _, last in ranges for seed in range(int(first), int(last or first) + 1)]


def _commit(revision: str) -> str:
    command = ["git", "rev-parse", "--short", "--verify", f"{revision}^{{commit}}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _say(*parts: str) -> None:
    sys.stdout.write(" | ".join(parts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
