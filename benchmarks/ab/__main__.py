"""Compare the speed and size of the working tree with those of another commit.

The comparison has three parts, each with several measurements and a limit for the working tree:
instructions: CPU instructions per request, counted by callgrind on a simulated clock, without
sockets; at most 3 % more.
start: instructions until the broker is ready, and resident memory when idle; at most 3 % more.
race: speeds over real sockets, for example of producing batches of 1 MB. Each round measures the
brokers of both commits. The ratio of a round is the speed of the working tree divided by the speed
of the other commit. The median of the ratios of all rounds must be at least 0.95.

The program prints a table with one row for each measurement. It fails if the working tree is slower
or larger than the limits allow. `make ab BASE=<commit>` runs this program.

Exit status: 0 if every limit is kept; 1 if a limit is not kept or a measurement failed; 2 for
a wrong BASE or option, on a system other than Linux, or if valgrind is not installed.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from benchmarks.ab import instructions, workload
from benchmarks.ab.sides import Side, SideError, base_side, clean, now_side, resolve
from benchmarks.ab.verdicts import MOST_INSTRUCTIONS, MOST_MEMORY, Result, at_most, paired, table

INSTRUCTIONS, START, RACE = "instructions", "start", "race"
PARTS = (INSTRUCTIONS, START, RACE)
ROUNDS = 30


class Plan(NamedTuple):
    """What to measure.

    rows: the names of the measurements of each part of the comparison: "instructions", "start" and "race", as described above. rounds: how often each
    measurement of "race" is repeated. requests: the number of requests in each measurement of "instructions".
    """

    rows: dict[str, list[str]]
    rounds: int
    requests: int

    def of(self, part: str) -> list[str]:
        return self.rows.get(part, [])


def parser() -> argparse.ArgumentParser:
    argument_parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ab", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    argument_parser.add_argument(
        "base", nargs="?", default="HEAD", metavar="BASE", help="the commit to compare with (default: HEAD)"
    )
    argument_parser.add_argument(
        "--only", choices=PARTS, action="append", help="measure only this part; may be repeated (default: all)"
    )
    argument_parser.add_argument(
        "--rows",
        default="",
        metavar="REGEX",
        help="run only the measurements (rows of the table) whose name matches this regular expression (default: all)",
    )
    argument_parser.add_argument(
        "--rounds", type=_positive, default=ROUNDS, metavar="N", help=f"rounds of the part race (default: {ROUNDS})"
    )
    argument_parser.add_argument(
        "--requests",
        type=_positive,
        default=workload.REQUESTS,
        metavar="N",
        help=f"requests per measurement in the part instructions (default: {workload.REQUESTS})",
    )
    argument_parser.add_argument(
        "--clean",
        action="store_true",
        help="only remove the git worktrees and virtual environments of earlier comparisons",
    )
    return argument_parser


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1 (got {text!r})")
    return int(text)


def names() -> dict[str, list[str]]:
    """Return the names of all measurements, by part of the comparison: "instructions", "start" or "race" (speed over real sockets)."""
    from benchmarks.ab import sockets

    return {
        INSTRUCTIONS: list(workload.ROWS),
        START: [instructions.START, instructions.POSTPONED, sockets.IDLE],
        RACE: [row.name for row in sockets.ROWS],
    }


def plan_of(options: argparse.Namespace) -> Plan:
    """Return the measurements that the command-line options select. Raises ValueError if no measurement matches."""
    try:
        pattern = re.compile(options.rows)
    except re.error as error:
        raise ValueError(f"--rows {options.rows} is not a regular expression: {error}") from None
    chosen = {
        part: [name for name in rows if pattern.search(name)]
        for part, rows in names().items()
        if part in (options.only or PARTS)
    }
    if not any(chosen.values()):
        raise ValueError(
            f"no benchmark row matches --rows {options.rows}; the rows are {', '.join(name for rows in names().values() for name in rows)}"
        )
    return Plan(chosen, options.rounds, options.requests)


def needs_valgrind(plan: Plan) -> bool:
    return bool(plan.of(INSTRUCTIONS)) or not {instructions.START, instructions.POSTPONED}.isdisjoint(plan.of(START))


def on_both(base: Side, now: Side, count: Callable[[Side], dict[str, instructions.Count]]) -> list[Result]:
    """Call `count` for the other commit (`base`) and the working tree (`now`) in parallel, and return a `Result` for each measurement.

    count: a function that takes one side of the comparison, and returns its instruction counts by name of the measurement. The machine's load does
    not affect the number of instructions.
    """
    with ThreadPoolExecutor(2) as pool:
        counts_base, counts_now = pool.map(count, (base, now))
    results = []
    for row, counted in counts_base.items():
        now_count = counts_now[row]
        why = "; ".join(
            f"{side.name}: {count_of_side.why}"
            for side, count_of_side in ((base, counted), (now, now_count))
            if count_of_side.why
        )
        results.append(at_most(row, counted.instructions, now_count.instructions, MOST_INSTRUCTIONS, "{:,.0f}", why))
    return results


def compare(base: Side, now: Side, plan: Plan) -> list[Result]:
    """Run all measurements of the plan with the other commit (`base`) and the working tree (`now`). Returns a `Result` for each measurement.

    Progress goes to stderr.
    """
    from benchmarks.ab import sockets

    results = []
    if plan.of(INSTRUCTIONS):
        progress(f"counting the instructions of {len(plan.of(INSTRUCTIONS))} rows under callgrind")
        results += on_both(base, now, lambda side: instructions.of_requests(side, plan.of(INSTRUCTIONS), plan.requests))
    if {instructions.START, instructions.POSTPONED} & set(plan.of(START)):
        progress("counting the instructions of a start")
        results += [r for r in on_both(base, now, instructions.of_start) if r.row in plan.of(START)]
    if sockets.IDLE in plan.of(START):
        progress(f"starting each broker {sockets.STARTS} times")
        idle = sockets.idle_mb((base, now))
        results.append(at_most(sockets.IDLE, idle[base.name], idle[now.name], MOST_MEMORY, "{:.1f}"))
    if plan.of(RACE):
        progress(f"racing {len(plan.of(RACE))} rows for {plan.rounds} rounds")
        rows = [row for row in sockets.ROWS if row.name in plan.of(RACE)]
        speeds_by_row = sockets.raced((base, now), rows, plan.rounds)
        results += [paired(name, speeds[base.name], speeds[now.name]) for name, speeds in speeds_by_row.items()]
    return results


def progress(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def fail(why: str) -> int:
    print(f"make ab: {why}", file=sys.stderr)
    return 2


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        if options.clean:
            print(f"removed {clean()} worktrees")
            return 0
        plan = plan_of(options)
        if platform.system() != "Linux":
            return fail("the comparison reads /proc and pins cores: it runs on Linux only")
        if needs_valgrind(plan) and instructions.valgrind() is None:
            return fail(instructions.MISSING)
        commit = resolve(options.base)
        progress(f"base: {options.base} ({commit[:12]}), now: the working tree")
        results = compare(base_side(commit), now_side(), plan)
    except (SideError, ValueError) as error:
        return fail(str(error))
    print(table(results))
    if plan.of(RACE) and plan.rounds < ROUNDS:
        print(f"{plan.rounds} rounds are a quick look: a comparison that counts has at least {ROUNDS}")
    missed = [result for result in results if result.missed]
    print(f"{len(results)} rows, {len(missed)} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
