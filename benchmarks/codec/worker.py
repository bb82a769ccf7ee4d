"""Measures one case of the codec benchmark (a message or a kind of work with records), every codec in turn. Prints the times as JSON.

usage: python -m benchmarks.codec.worker TITLE ROUNDS ROUND_SECONDS
"""

from __future__ import annotations

import gc
import json
import os
import sys

os.environ["AIOKAFKA_NO_EXTENSIONS"] = "1"  # read during the import; the C record code is imported by name

import pyperf

from benchmarks.codec.cases import Case, MessageCase, all_cases
from benchmarks.codec.record_works import NotSupportedYet, record_works
from benchmarks.codec.rivals import Work, message_works


def works_of(case: Case) -> dict[str, dict[str, Work]]:
    """Return the functions to time for one benchmark case. Raises ValueError if two codecs give different results.

    case: one version of a message, or one kind of work with records, such as building a batch. The result maps each kind of work, such as "decode",
    to a dict from the name of a codec to the function that does this work with the codec.
    """
    return message_works(case) if isinstance(case, MessageCase) else record_works(case)


def measure(works: dict[str, Work], rounds: int, round_seconds: float) -> dict[str, list[float]]:
    """Return the seconds per call of each codec in each round. works: maps the name of a codec to the function to time.

    round_seconds: approximately how long each codec is timed in a round. The garbage collector is on, but ignores the objects that exist before the
    first round (`gc.freeze`).
    """
    calls = {name: calibrate(work, round_seconds) for name, work in works.items()}
    seconds_by_codec: dict[str, list[float]] = {name: [] for name in works}
    gc.collect()
    gc.freeze()
    for _ in range(rounds):
        for name, work in works.items():
            seconds_by_codec[name].append(seconds(work, calls[name]) / calls[name])
    gc.unfreeze()
    return seconds_by_codec


def calibrate(work: Work, round_seconds: float) -> int:
    """Return how many calls of `work` take about `round_seconds`."""
    calls = 1
    while (took := seconds(work, calls)) < round_seconds / 4:
        calls *= 2
    return max(1, round(calls * round_seconds / took))


def seconds(work: Work, calls: int) -> float:
    repeat = range(calls)
    start = pyperf.perf_counter()
    for _ in repeat:
        work()
    return float(pyperf.perf_counter() - start)


def main(title: str, rounds: str, round_seconds: str) -> int:
    try:
        works = works_of(all_cases()[title])
    except NotSupportedYet as missing:
        print(f"{title}: skipped, {missing}", file=sys.stderr)
        works = {}
    results = {kind: measure(each, int(rounds), float(round_seconds)) for kind, each in works.items()}
    print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
