"""Runs with missing entries, as after a deleted file, a full recorder buffer or `kill -9`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy

from kafkaproto.trace.format import Entry, Event, Exchange
from tests.support.pipeline.patched import Rows, fallen_watermark

FILES = 9
SEEDS = 5
TELLING = ("topic", "quota", "leader", "isr", "broker", "throttle")
"""The kinds of events that rules evaluate."""
EXPLAINED = {"17", "19"}
"""Rules that report findings unless they take missing entries into account."""
UNDECIDED = {
    "5-bytes",
    "8",
    "8-gap",
    "9",
    "9-lost",
    "10",
    "10-moved",
    "15-twice",
    "16",
    "16-time",
    "17",
    "18",
    "20-HW",
    "20-moved",
    "21-moved",
    "22",
    "23",
    "25-moved",
    "26-responses",
    "27",
    "28",
}
"""Rules whose findings may always be due to missing entries."""
PARTLY = {"1", "10-epoch", "10-order", "11-aborted", "13-early", "14", "15", "19", "21", "25"}
"""Rules that find only a part of the faults in a sparse run: those that one exchange shows. Rules in neither set find all faults."""
BESIDE_A_HOLE, FAR_FROM_A_HOLE = "beside.pcap", "far.pcap"
SPARSE = 64
"""The factor by which `sparse` multiplies sequence numbers, so that entries seem to be missing between any two."""


def lacking(entries: list[Entry], clean: Rows) -> Iterator[tuple[str, list[Entry]]]:
    """Yield (name, remaining entries) of runs that lack a file, some entries, an event about a change, or a fetch of a session.

    Without the second fetch of a session, the epoch of the third one looks wrong (rule 17). clean: the tables of the whole run.
    """
    second_fetches = {row["seq"] for row in clean["requests"] if row["api"] == "Fetch" and row["session_epoch"] == 1}
    size = -(-len(entries) // FILES)
    for number in range(FILES):
        yield f"without file {number}", entries[: number * size] + entries[(number + 1) * size :]
    for seed in range(SEEDS):
        dice = random.Random(seed)
        yield f"without some {seed}", [entry for entry in entries if dice.random() > 0.02 * 2**seed]
    for at, entry in enumerate(entries):
        is_change = isinstance(entry, Event) and entry.kind in TELLING
        if is_change or (isinstance(entry, Exchange) and entry.seq in second_fetches):
            yield f"without entry {at}", entries[:at] + entries[at + 1 :]


def sparse(some: Rows) -> Rows:
    """Return the tables of a run that has lost nearly all its entries."""
    return {
        table: [row | {"run": f"sparse {row['run']}", "seq": row["seq"] * SPARSE} for row in rows]
        for table, rows in some.items()
    }


def captures(clean: Rows) -> Rows:
    """Return the tables of two captures with a falling watermark: next to a gap in the capture, and an hour before one."""
    tables: Rows = {table: [] for table in clean}
    for run, later_ns in ((BESIDE_A_HOLE, 0), (FAR_FROM_A_HOLE, 3600 * 10**9)):
        copy = deepcopy(clean)
        seq = fallen_watermark(copy)
        at_ns = next(table_row["ready_ns"] for table_row in copy["partitions"] if table_row["seq"] == seq) + later_ns
        copy["events"].append(copy["events"][0] | {"kind": "lost", "seq": 10**6, "at_ns": at_ns, "facts": "{}"})
        for table, table_rows in copy.items():
            tables[table] += [table_row | {"run": run} for table_row in table_rows]
    return tables


def missing(entries: list[Entry]) -> int:
    """Return how many sequence numbers up to the last one are missing."""
    sequence_numbers = {int(entry.facts["seq"]) if isinstance(entry, Event) else entry.seq for entry in entries}
    return len(set(range(1, max(sequence_numbers))) - sequence_numbers)
