"""Runs that lack entries: what a file that is gone, a recorder without room, or `kill -9` leave of one that had them all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy

from kafkaproto.trace.format import Entry, Event
from tests.support.pipeline.patched import Rows, fallen_watermark

FILES = 9
SEEDS = 5
TELLING = ("topic", "quota", "leader", "isr", "broker", "throttle")
"""Events that rules look at."""
EXPLAINED = {"17", "19"}
"""Rules that would have findings in them if nobody knew what is missing."""
UNDECIDED = {
    "5 bytes",
    "8",
    "8 gap",
    "9",
    "9 lost",
    "10",
    "10 moved",
    "11 aborted",
    "15 twice",
    "16",
    "16 time",
    "17",
    "18",
    "20 HW",
    "20 moved",
}
"""Rules that what is missing may always explain."""
PARTLY = {"1", "10 epoch", "10 order", "13 early", "14", "15", "19"}
"""Those of which an exchange may break a part by itself. All others see a fault in one exchange, or in two that are there."""
BESIDE_A_HOLE, FAR_FROM_A_HOLE = "beside.pcap", "far.pcap"
SPARSE = 64
"""Between any two entries of a sparse run others are missing."""


def lacking(entries: list[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    """(name, what is left) of runs that lack a file, entries here and there, or an event that tells of a change."""
    size = -(-len(entries) // FILES)
    for number in range(FILES):
        yield f"without file {number}", entries[: number * size] + entries[(number + 1) * size :]
    for seed in range(SEEDS):
        dice = random.Random(seed)
        yield f"without some {seed}", [one for one in entries if dice.random() > 0.02 * 2**seed]
    for at, one in enumerate(entries):
        if isinstance(one, Event) and one.kind in TELLING:
            yield f"without entry {at}", entries[:at] + entries[at + 1 :]


def sparse(some: Rows) -> Rows:
    """Rows of tables as if their run had lost nearly all."""
    return {
        table: [one | {"run": f"sparse {one['run']}", "seq": one["seq"] * SPARSE} for one in rows]
        for table, rows in some.items()
    }


def captures(clean: Rows) -> Rows:
    """Two captures in which a watermark falls: beside a hole in what was captured, and an hour before one."""
    tables: Rows = {table: [] for table in clean}
    for run, later_ns in ((BESIDE_A_HOLE, 0), (FAR_FROM_A_HOLE, 3600 * 10**9)):
        copy = deepcopy(clean)
        seq = fallen_watermark(copy)
        at_ns = next(one["ready_ns"] for one in copy["partitions"] if one["seq"] == seq) + later_ns
        copy["events"].append(copy["events"][0] | {"kind": "lost", "seq": 10**6, "at_ns": at_ns, "facts": "{}"})
        for table, some in copy.items():
            tables[table] += [one | {"run": run} for one in some]
    return tables


def missing(left: list[Entry]) -> int:
    """How many numbers up to the last nobody has."""
    there = {int(one.facts["seq"]) if isinstance(one, Event) else one.seq for one in left}
    return len(set(range(1, max(there))) - there)
