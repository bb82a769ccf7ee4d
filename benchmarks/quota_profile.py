"""Profile the time that quotas add to a produce request, and write docs/benchmarks.md.

It compares requests under quotas that are never reached with the same requests without quotas. The
broker runs under cProfile with the CPU clock of its process, so the time of other processes is not
included. A profiler makes short functions look slower than they are; the numbers of calls are
exact.
"""

from __future__ import annotations

import argparse
import pstats
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.costs import set_quotas
from benchmarks.programs import Program
from benchmarks.race import MEMORY, produced, running
from benchmarks.report import write_section

REQUESTS = 20_000
LEAST_SHARE = 0.003
"""A function gets a table row of its own if quotas increase its time by at least this share of the whole time of a request without quotas."""
RUN = """
import cProfile, sys, time
from kafkaproto.broker.server.main import main
profile = cProfile.Profile(time.process_time)
try:
    profile.runcall(main, sys.argv[2:])
finally:
    profile.dump_stats(sys.argv[1])
"""
OPTIONS = ("--port", "0", "--memory", MEMORY, "--log-level", "error")


class Spent(NamedTuple):
    """The cost of one function: the number of its calls, and its time in microseconds, excluding the functions that it calls."""

    calls: float
    own_us: float


def per_request(with_quotas: bool) -> dict[str, Spent]:
    """Return the cost of each function for one produce request of 1 KB, without the start of the broker.

    The broker is profiled in two runs: with 4,000 requests, and with 24,000. The costs of the first run are subtracted from those of the second, and
    the results are divided by 20,000 (`REQUESTS`), the number of additional requests. with_quotas: whether quotas, which are never reached, are set
    for many clients, including the one that sends the requests.
    """
    short, long = profiled(with_quotas, REQUESTS // 5), profiled(with_quotas, REQUESTS // 5 + REQUESTS)
    nothing = Spent(0.0, 0.0)
    return {
        name: Spent(
            (spent.calls - short.get(name, nothing).calls) / REQUESTS,
            (spent.own_us - short.get(name, nothing).own_us) / REQUESTS,
        )
        for name, spent in long.items()
    }


def profiled(with_quotas: bool, requests: int) -> dict[str, Spent]:
    """Return the cost of each function of a broker that handles `requests` produce requests, from its start to its end.

    with_quotas: whether quotas, which are never reached, are set for many clients, including the one that sends the requests.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stats")
        broker = Program("profiled", [sys.executable, "-c", RUN, str(path), *OPTIONS])
        with running([broker]):
            if with_quotas:
                set_quotas(broker.address)
            produced(1, requests)(broker.address)
        stats = pstats.Stats(str(path))
    spent: dict[str, Spent] = {}
    for (file, _, function), (_, calls, own_s, _, _) in stats.stats.items():  # type: ignore[attr-defined]
        name = _module(file) + re.sub(r" at 0x[0-9a-f]+", "", function)
        calls_before, us_before = spent.get(name, (0.0, 0.0))
        spent[name] = Spent(calls_before + calls, us_before + 1e6 * own_s)
    return spent


def _module(file: str) -> str:
    """Return the folder and name of a Python file with a dot at the end, such as "quota/windows."; "" if `file` is no Python file.

    The text is the prefix of a function's name in the table. cProfile gives "~" instead of a file for a built-in function.
    """
    path = Path(file)
    return f"{path.parent.name}/{path.stem}." if path.suffix == ".py" else ""


def rows(without: dict[str, Spent], with_: dict[str, Spent]) -> Iterator[tuple[str, ...]]:
    """Yield a table row for each function to which quotas add at least 0.3 % of the time of a request, then one row for all others.

    The function to which quotas add most time comes first. without, with_: the costs for one request, by function, without and with quotas.
    """
    whole_us = sum(spent.own_us for spent in without.values())
    nothing = Spent(0.0, 0.0)
    more_us = {name: spent.own_us - without.get(name, nothing).own_us for name, spent in with_.items()}
    rest_us = sum(spent.own_us for spent in with_.values()) - whole_us
    for name in sorted(more_us, key=lambda name: -more_us[name]):
        if more_us[name] < LEAST_SHARE * whole_us:
            break
        rest_us -= more_us[name]
        before, now = without.get(name, nothing).calls, with_[name].calls
        yield f"`{name}`", f"{before:.1f}", f"{now:.1f}", f"{more_us[name] / whole_us:.1%}"
    yield "all others", "", "", f"{rest_us / whole_us:.1%}"


def main() -> int:
    """Profile a broker with quotas and one without, and write the section of docs/benchmarks.md. Returns exit status 0."""
    argparse.ArgumentParser(
        prog="python -m benchmarks.quota_profile",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    without, with_ = per_request(with_quotas=False), per_request(with_quotas=True)
    section = write_section(
        "quota-profile",
        "Where the time with quotas goes",
        "python -m benchmarks.quota_profile",
        f"{REQUESTS} produce requests of 1 KB to a broker whose 1000 client ids and 1000 users have quotas that are never reached, against one"
        " without quotas: the additional time of each function itself, as a share of a whole request without quotas. Under cProfile, which makes"
        " short functions look slower.",
        ("function", "calls without", "with", "more time"),
        list(rows(without, with_)),
    )
    sys.stdout.write(f"{section}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
