"""Measure how much slower a broker with a certain feature is, and write docs/benchmarks.md.

A broker with the feature and one without it run at the same time, and each measurement alternates
between the two. The features are:

quotas: 1,000 client ids and 1,000 users, including those of the benchmark's client, have byte and
time quotas that are never reached: every request is charged and none is throttled. trace: all
traffic is recorded (`--trace`).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from benchmarks import raw_client as client
from benchmarks.programs import Program, choice_of
from benchmarks.race import Cell, fetched, ours, produced, run_cells, running
from benchmarks.report import write_section
from kafkaproto.api import ApiKey
from kafkaproto.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)

MANY = 1000
NEVER_REACHED = {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12, "request_percentage": 1e9}
WITHOUT, WITH = "without", "with"


def cells(of_batches: float, of_requests: float) -> list[Cell]:
    """Return the measurements of a feature's cost, each with the minimum ratio: the speed with the feature divided by the speed without it.

    The measurements are shorter variants of those in `benchmarks.race`. of_batches: the minimum ratio of measurements that spend most time on
    batches. of_requests: the minimum ratio of the other measurements, which spend most time on requests.
    """
    large, small = ({WITH: 0.0, WITHOUT: ratio} for ratio in (of_batches, of_requests))
    return [
        Cell("produce, 1 KB batches", produced(1, 5000), small),
        Cell("produce, 16 KB batches", produced(16, 2000), large),
        Cell("produce, 1 MB batches", produced(1000, 100), large),
        Cell("fetch of 16 KB batches", fetched(16, 3000), large),
        Cell("fetch of 1 MB batches", fetched(1000, 150), large),
        Cell("round trips, one connection", lambda a: client.round_trips(a, 0.5), small, apart=True),
        Cell("round trips, pipelined 64 deep", lambda a: client.pipelined(a, 0.5), small),
    ]


def set_quotas(address: str) -> None:
    """Set quotas, too high to be reached, for many clients, including the benchmark's own client id and user. address: host:port of the broker."""
    clients = ["race", *(f"client-{i}" for i in range(MANY - 1))]
    users = ["ANONYMOUS", *(f"user-{i}" for i in range(MANY - 1))]
    entities = [[("client-id", name)] for name in clients] + [[("user", name)] for name in users]
    entries = [
        AlterClientQuotasRequestEntryData(
            [AlterClientQuotasRequestEntityData(*component) for component in entity],
            [OpData(key, value) for key, value in NEVER_REACHED.items()],
        )
        for entity in entities
    ]
    response = client.ask(address, ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest(entries))
    rejected = [entry for entry in response.entries if entry.error_code]
    if rejected or len(response.entries) != 2 * MANY:
        raise RuntimeError(
            f"the broker must set quotas for {2 * MANY} client ids and users, but returned {len(response.entries)} results "
            f"with {len(rejected)} errors; the first error: {rejected[:1]}"
        )


@contextmanager
def with_quotas() -> Iterator[Program]:
    limited = ours()
    with running([limited]):
        set_quotas(limited.address)
        yield limited


@contextmanager
def with_trace() -> Iterator[Program]:
    with tempfile.TemporaryDirectory() as folder:
        recorded = ours("--trace", folder)
        with running([recorded]):
            yield recorded


class Feature(NamedTuple):
    """A feature of the broker whose cost is measured.

    title, text: title and text of the feature's section in docs/benchmarks.md. start: returns a context in which a broker with the feature runs.
    cells: the measurements, each with the minimum ratio: the speed with the feature divided by the speed without it.
    """

    title: str
    text: str
    start: Callable[[], contextmanager[Program]]  # type: ignore[type-arg]
    cells: list[Cell]


FEATURES = {
    "quotas": Feature(
        "What quotas cost",
        f"Share of its own speed that the broker keeps when {MANY} client ids and {MANY} users have byte and time quotas, among them the client "
        "that runs",
        with_quotas,
        cells(0.9, 0.9),
    ),
    "trace": Feature(
        "What a trace costs",
        "Share of its own speed that the broker keeps when `--trace` records all traffic",
        with_trace,
        cells(0.85, 0.6),
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.costs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "features",
        nargs="*",
        type=choice_of(FEATURES),
        metavar="FEATURE",
        help=f"features to measure: {', '.join(FEATURES)} (default: all)",
    )
    parser.add_argument(
        "--rounds", type=int, default=40, metavar="N", help="how often each measurement is repeated (default: 40)"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit with status 1 if a feature slows the broker down more than its limit allows",
    )
    options = parser.parse_args()
    missed = []
    for name in options.features or FEATURES:
        missed += measured(name, options.rounds)
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed and options.check else 0


def measured(name: str, rounds: int) -> list[str]:
    """Measure what the feature `name` costs, and write its section of docs/benchmarks.md. rounds: how often each measurement is repeated.

    Each measurement, such as producing batches of 1 MB, gives the ratio of the speed with the feature to the speed without it. Returns a
    description of each measurement whose ratio is lower than required.
    """
    feature = FEATURES[name]
    free = ours()
    free.name = WITHOUT
    with feature.start() as costly, running([free]):
        costly.name = WITH
        run_cells([costly, free], feature.cells, rounds)
    rows, missed = [], []
    for cell in feature.cells:
        pairs = zip(costly.seen[cell.name], free.seen[cell.name], strict=True)
        ratio = statistics.median(
            with_it / without for with_it, without in pairs
        )  # the speed of a machine changes from round to round
        required = cell.required[WITHOUT]
        rows.append((cell.name, f"{ratio:.2f} (≥ {required:g})" + (" **missed**" if ratio < required else "")))
        if ratio < required:
            missed.append(f"{name}, {cell.name}: {ratio:.2f}, required {required:g}")
    text = f"{feature.text}; interleaved, medians of the ratios of {rounds} rounds."
    print(
        write_section(
            f"cost-{name}",
            feature.title,
            f"python -m benchmarks.costs {name}",
            text,
            ("work", "with / without"),
            rows,
        )
    )
    return missed


if __name__ == "__main__":
    sys.exit(main())
