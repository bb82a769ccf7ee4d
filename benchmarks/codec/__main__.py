"""The codec against kafka-python, aiokafka, kio and stock construct: the same bytes, in turn, in one run. Writes BENCHMARKS.md.

Each case has a process of its own, and the list of cases is gone through several times. In a process all codecs take
turns in short rounds; a ratio is that of two neighbours in a round, and the median of all rounds counts.

usage: python -m benchmarks.codec      (make bench)
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pyperf

import kafkaproto
from benchmarks.codec import costs, tables
from benchmarks.codec.cases import all_cases

PASSES, ROUNDS, ROUND_SECONDS = 4, 7, 0.01
QUICK = 1, 1, 0.001
COST_REPEATS = 9


def measure(titles: list[str], passes: int, rounds: int, round_seconds: float) -> tables.Measured:
    """Title and kind of work, then codec, to seconds a call in all rounds of all passes."""
    found: tables.Measured = {}
    begun = time.monotonic()
    for number in range(passes):
        for done, title in enumerate(titles):
            say(
                f"[{time.monotonic() - begun:4.0f} s] pass {number + 1} of {passes}, case {done + 1} of {len(titles)}: {title}"
            )
            for kind, seconds in run_worker(title, rounds, round_seconds).items():
                cell = found.setdefault((title, kind), {})
                for codec, values in seconds.items():
                    cell.setdefault(codec, []).extend(values)
    return found


def run_worker(title: str, rounds: int, round_seconds: float) -> dict[str, dict[str, list[float]]]:
    command = [sys.executable, "-m", "benchmarks.codec.worker", title, str(rounds), str(round_seconds)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found: dict[str, dict[str, list[float]]] = json.loads(done.stdout)
    return found


def suite(found: tables.Measured) -> pyperf.BenchmarkSuite:
    """The values as pyperf keeps them, for its own commands."""
    made = []
    for (title, kind), cell in found.items():
        for codec, values in cell.items():
            name = {"name": f"{title}, {kind}: {codec}", "unit": "second"}
            made.append(pyperf.Benchmark([pyperf.Run(values, metadata=name, collect_metadata=False)]))
    return pyperf.BenchmarkSuite(made)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.codec", description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument(
        "--only", metavar="PATTERN", help="cases whose title has this regular expression; writes nothing"
    )
    parser.add_argument("--quick", action="store_true", help="one short round: does it run? writes nothing")
    parser.add_argument("--output", metavar="FILE", help="all values as pyperf's JSON")
    options = parser.parse_args(arguments)
    say(f"measuring {Path(kafkaproto.__file__).parent}")
    titles = [title for title in all_cases() if re.search(options.only or "", title)]
    if not titles:
        parser.error(f"no case is called like {options.only}")
    found = measure(titles, *(QUICK if options.quick else (PASSES, ROUNDS, ROUND_SECONDS)))
    if options.output:
        suite(found).dump(options.output, replace=True)
    sections = tables.sections(found)
    if not options.only:
        say("import and first use")
        sections.append(tables.cost_section(costs.rows(1 if options.quick else COST_REPEATS)))
    for section in sections:
        print(section.text() if options.only or options.quick else section.write())
    return 0


if __name__ == "__main__":
    sys.exit(main())
