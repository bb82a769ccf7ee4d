"""One case in a process of its own: every codec in turn, round after round. Prints what each round took, as JSON.

usage: python -m benchmarks.codec.worker TITLE ROUNDS ROUND_SECONDS
"""

from __future__ import annotations

import gc
import json
import os
import sys

os.environ["AIOKAFKA_NO_EXTENSIONS"] = "1"  # read when it is imported; its C record code is asked for by name

import pyperf

from benchmarks.codec.cases import Case, MessageCase, all_cases
from benchmarks.codec.record_works import NotThereYet, record_works
from benchmarks.codec.rivals import Work, message_works


def works_of(case: Case) -> dict[str, dict[str, Work]]:
    """Direction or work, then codec, to what is timed. Everything was run and compared once."""
    return message_works(case) if isinstance(case, MessageCase) else record_works(case)


def measure(works: dict[str, Work], rounds: int, round_seconds: float) -> dict[str, list[float]]:
    """Seconds a call, for each codec and round. The collector is on, as in any program, but old objects are set aside."""
    calls = {name: calibrate(work, round_seconds) for name, work in works.items()}
    found: dict[str, list[float]] = {name: [] for name in works}
    gc.collect()
    gc.freeze()
    for _ in range(rounds):
        for name, work in works.items():
            found[name].append(seconds(work, calls[name]) / calls[name])
    gc.unfreeze()
    return found


def calibrate(work: Work, round_seconds: float) -> int:
    """The number of calls that fill a round."""
    calls = 1
    while (took := seconds(work, calls)) < round_seconds / 4:
        calls *= 2
    return max(1, round(calls * round_seconds / took))


def seconds(work: Work, calls: int) -> float:
    repeat = range(calls)
    begun = pyperf.perf_counter()
    for _ in repeat:
        work()
    return float(pyperf.perf_counter() - begun)


def main(title: str, rounds: str, round_seconds: str) -> int:
    try:
        works = works_of(all_cases()[title])
    except NotThereYet as missing:
        print(f"{title}: left out, there is no {missing}", file=sys.stderr)
        works = {}
    found = {kind: measure(each, int(rounds), float(round_seconds)) for kind, each in works.items()}
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
