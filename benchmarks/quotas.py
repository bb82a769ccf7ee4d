"""What quotas cost: the race's work on a broker with quotas of 1,000 client-ids and 1,000 users in force, against one without any.

The client that runs has a quota of its own for bytes both ways and for time, which it never reaches: everything is charged and nothing
throttled. Interleaved, medians of 15 rounds. Writes BENCHMARKS.md.

usage: python -m benchmarks.quotas [--rounds 15] [--check]
"""

from __future__ import annotations

import argparse
import statistics
import sys

from benchmarks import raw_client as client
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
LEAST_RATIO = 0.9
NEVER_REACHED = {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12, "request_percentage": 1e9}
WITHOUT, WITH = "without", "with"
WANTED = {WITH: 0.0, WITHOUT: LEAST_RATIO}


def cells() -> list[Cell]:
    """A part of the race, short enough for many rounds."""
    return [
        Cell("produce, 1 KB batches", produced(1, 5000), WANTED),
        Cell("produce, 16 KB batches", produced(16, 2000), WANTED),
        Cell("fetch of 16 KB batches", fetched(16, 3000), WANTED),
        Cell("round trips, one connection", lambda a: client.round_trips(a, 0.5), WANTED, apart=True),
        Cell("round trips, pipelined 64 deep", lambda a: client.pipelined(a, 0.5), WANTED),
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--check", action="store_true", help="fail when a ratio is below what is wanted")
    options = parser.parse_args()
    limited, free = ours(), ours()
    limited.name, free.name = WITH, WITHOUT
    with running([limited, free]):
        set_quotas(limited.address)
        run_cells([limited, free], cells(), options.rounds)
    rows, missed = [], []
    for cell in cells():
        ratio = statistics.median(limited.seen[cell.name]) / statistics.median(free.seen[cell.name])
        rows.append((cell.name, f"{ratio:.2f} (≥ {LEAST_RATIO:g})" + (" **missed**" if ratio < LEAST_RATIO else "")))
        if ratio < LEAST_RATIO:
            missed.append(f"{cell.name}: {ratio:.2f}")
    print(
        write_section(
            "quotas",
            "What quotas cost",
            "python -m benchmarks.quotas",
            f"How much of its own speed the broker keeps when {MANY} client-ids and {MANY} users have quotas of bytes and of time, the one that "
            f"runs among them; interleaved, medians of {options.rounds}.",
            ("work", "with quotas, of without"),
            rows,
        )
    )
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
