"""Two recordings of the same traffic, side by side: exchange by exchange their tables say the same. Where a connection ends, one of them may
have seen more of it, and the other says that it has not. Must never know who recorded."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from kafkaproto.pipeline.trace.schema import TABLES
from tests.support.pipeline.tables import rows

COMPARED = ("requests", "partitions", "batches")
TIMES = {"hour", "received_ns", "handled_ns", "ready_ns", "sent_ns", "begun_ns"}
NUMBERS = {"run", "seq", "conn"}
REQUEST: tuple[str, ...] = (
    "broker",
    "client_id",
    "software",
    "api_version",
    "correlation_id",
    "bytes_in",
    "transactional_id",
)
REQUEST += ("api", "acks", "max_bytes", "min_bytes", "max_wait_ms", "isolation", "session_id", "session_epoch", "rack")
"""Columns that need no answer."""

Row = dict[str, Any]


class Recorded(NamedTuple):
    """row: of its request. counts: of its rows in each table. text: all of them, without what differs between recorders."""

    row: Row
    counts: dict[str, int]
    text: str

    @property
    def request(self) -> str:
        return str([self.row[name] for name in REQUEST])


def recorded(out: Path) -> list[Recorded]:
    """The exchanges of tables in their order."""
    found: dict[tuple[str, int], dict[str, list[str]]] = defaultdict(lambda: {table: [] for table in COMPARED})
    requests = sorted(rows(out, "requests"), key=lambda row: row["seq"])
    for table in COMPARED:
        differs = TIMES | NUMBERS | {column.name for column in TABLES[table] if column.broker_only}
        for row in rows(out, table):
            told = str([(name, value) for name, value in row.items() if name not in differs])
            found[row["run"], row["seq"]][table].append(told)
    of_each = [(row, found[row["run"], row["seq"]]) for row in requests]
    return [
        Recorded(
            row,
            {table: len(some) for table, some in of_one.items()},
            "\n".join(f"{table} {told}" for table, some in of_one.items() for told in sorted(some)),
        )
        for row, of_one in of_each
    ]


def assert_same(seen: Path, told: Path, own: str | None = None) -> dict[str, int]:
    """seen: tables of who stood between clients and brokers, or nearer to the clients than who made `told`. own: a client that only `told`
    can have, as nothing stood between. How many rows of each table both have.

    Each exchange that `seen` has whole is in `told`, equal in all its rows. Each other one that `told` has is in `seen` as the same request
    without its answer, and no request of that connection is answered after it: nobody has gone another way.
    """
    near, far = recorded(seen), [one for one in recorded(told) if own is None or one.row["client_id"] != own]
    whole = [one for one in near if not one.row["partial"]]
    more = Counter(one.text for one in far if not one.row["partial"])
    more.subtract(one.text for one in whole)
    assert [text for text, count in more.items() if count < 0] == [], "only who stood between has it"
    cut = [one for one in near if one.row["partial"]]
    answered = {one.row["conn"]: one.row["seq"] for one in near if one.row["answered"]}
    too_soon = [one.row for one in cut if answered.get(one.row["conn"], -1) > one.row["seq"]]
    assert too_soon == [], "it was answered afterwards"
    requests = {one.text: one.request for one in far}
    without_answer = Counter(requests[text] for text in more.elements())
    assert without_answer - Counter(one.request for one in cut) == Counter(), "nobody who stood between has it"
    return {table: sum(one.counts[table] for one in whole) for table in COMPARED}
