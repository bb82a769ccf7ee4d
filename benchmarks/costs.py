"""What a feature costs who uses it: a part of the race on a broker with it against one without, interleaved. Writes BENCHMARKS.md.

quotas: 1,000 client-ids and 1,000 users have quotas of bytes and of time, the client that runs among them, which it never reaches:
everything is charged and nothing throttled. trace: all traffic is recorded (`--trace`).

usage: python -m benchmarks.costs [quotas|trace]... [--rounds 40] [--check]
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
from benchmarks.programs import Program
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
    """A part of the race, short enough for many rounds. How much is to be left: where batches count, and where requests do."""
    large, small = ({WITH: 0.0, WITHOUT: wanted} for wanted in (of_batches, of_requests))
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
    """Quotas of many, and of the client-id and the user that the race runs as."""
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
    answer = client.ask(address, ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest(entries))
    refused = [entry for entry in answer.entries if entry.error_code]
    if refused or len(answer.entries) != 2 * MANY:
        raise RuntimeError(f"AlterClientQuotas answered {refused[:1] or len(answer.entries)}")


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
    """title, text: of its section. start: a running broker that has it. cells: what is raced, with what is wanted of each."""

    title: str
    text: str
    start: Callable[[], contextmanager[Program]]  # type: ignore[type-arg]
    cells: list[Cell]


FEATURES = {
    "quotas": Feature(
        "What quotas cost",
        f"How much of its own speed the broker keeps when {MANY} client-ids and {MANY} users have quotas of bytes and of time, the one that runs "
        "among them",
        with_quotas,
        cells(0.9, 0.9),
    ),
    "trace": Feature(
        "What a trace costs",
        "How much of its own speed the broker keeps when `--trace` records all traffic",
        with_trace,
        cells(0.85, 0.6),
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", nargs="*", choices=[*FEATURES, []], help="all without any")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--check", action="store_true", help="fail when a ratio is below what is wanted")
    options = parser.parse_args()
    missed = []
    for name in options.features or FEATURES:
        missed += measured(name, options.rounds)
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed and options.check else 0


def measured(name: str, rounds: int) -> list[str]:
    """Run one feature's cells and write its section; what was missed."""
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
        )  # a machine's speed changes from round to round
        wanted = cell.wanted[WITHOUT]
        rows.append((cell.name, f"{ratio:.2f} (≥ {wanted:g})" + (" **missed**" if ratio < wanted else "")))
        if ratio < wanted:
            missed.append(f"{name}, {cell.name}: {ratio:.2f}, wanted {wanted:g}")
    text = f"{feature.text}; interleaved, medians of the ratios of {rounds} rounds."
    print(
        write_section(
            f"cost-{name}",
            feature.title,
            f"python -m benchmarks.costs {name}",
            text,
            ("work", "with, of without"),
            rows,
        )
    )
    return missed


if __name__ == "__main__":
    sys.exit(main())
