"""Compare the codec with other codecs for Python on the same bytes, and write docs/benchmarks.md.

The other codecs are those of kafka-python, aiokafka and kio, and message layouts made with the library construct (`benchmarks.codec.stock`).

A case is a message, or a kind of work with records. Each case runs in a process of its own, in several passes over all cases. In a process the codecs
alternate in short rounds. A ratio is computed in each round; the result is the median of all rounds.

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
    """Return the seconds per call in all rounds of all passes, by (title of the case, kind of work) and then by codec.

    titles: the benchmark cases to measure. rounds: rounds of each case in one pass. round_seconds: approximate duration of a round.
    """
    seconds_by_codec: tables.Measured = {}
    start = time.monotonic()
    for number in range(passes):
        for index, title in enumerate(titles):
            say(
                f"[{time.monotonic() - start:4.0f} s] pass {number + 1} of {passes}, case {index + 1} of {len(titles)}: {title}"
            )
            for kind, seconds in run_worker(title, rounds, round_seconds).items():
                cell = seconds_by_codec.setdefault((title, kind), {})
                for codec, values in seconds.items():
                    cell.setdefault(codec, []).extend(values)
    return seconds_by_codec


def run_worker(title: str, rounds: int, round_seconds: float) -> dict[str, dict[str, list[float]]]:
    command = [sys.executable, "-m", "benchmarks.codec.worker", title, str(rounds), str(round_seconds)]
    completed = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    results: dict[str, dict[str, list[float]]] = json.loads(completed.stdout)
    return results


def suite(measured: tables.Measured) -> pyperf.BenchmarkSuite:
    """Return the measured values as a pyperf suite, for use with pyperf's own commands.

    measured: maps (title of a case, kind of work) to the seconds per call of each codec, by its name.
    """
    benchmarks = []
    for (title, kind), cell in measured.items():
        for codec, values in cell.items():
            name = {"name": f"{title}, {kind}: {codec}", "unit": "second"}
            benchmarks.append(pyperf.Benchmark([pyperf.Run(values, metadata=name, collect_metadata=False)]))
    return pyperf.BenchmarkSuite(benchmarks)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.codec", description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        help="run only the cases whose title matches this regular expression; writes nothing",
    )
    parser.add_argument("--quick", action="store_true", help="measure only one short round, as a trial; writes nothing")
    parser.add_argument(
        "--output", metavar="FILE", help="also write all measured values to this file, in the JSON format of pyperf"
    )
    options = parser.parse_args(arguments)
    say(f"measuring {Path(kafkaproto.__file__).parent}")
    titles = [title for title in all_cases() if re.search(options.only or "", title)]
    if not titles:
        parser.error(f"no benchmark title matches --only {options.only}; docs/benchmarks.md lists the titles")
    measured = measure(titles, *(QUICK if options.quick else (PASSES, ROUNDS, ROUND_SECONDS)))
    if options.output:
        suite(measured).dump(options.output, replace=True)
    sections = tables.sections(measured)
    if not options.only:
        say("import and first use")
        sections.append(tables.cost_section(costs.rows(1 if options.quick else COST_REPEATS)))
    for section in sections:
        print(section.text() if options.only or options.quick else section.write())
    return 0


if __name__ == "__main__":
    sys.exit(main())
