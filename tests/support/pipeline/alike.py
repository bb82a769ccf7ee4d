"""Compare two recordings of the same traffic: their tables must agree exchange by exchange.

At the end of a connection one recording may contain more and the other marks the exchange as partial. Independent of the recorders.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from kafkaproto.pipeline.trace.schema import TABLES
from tests.support.pipeline.tables import rows

OF_RECORDS = ("requests", "partitions", "batches")
OF_COORDINATORS = ("groups", "group_offsets", "transactions")
COMPARED = (*OF_RECORDS, *OF_COORDINATORS)
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
"""Columns that do not depend on the response."""

Row = dict[str, Any]


class Recorded(NamedTuple):
    """One recorded exchange. row: the row of the request. counts: rows by table. text: all rows without columns that differ between recorders."""

    row: Row
    counts: dict[str, int]
    text: str

    @property
    def request(self) -> str:
        return str([self.row[name] for name in REQUEST])


def recorded(out: Path) -> list[Recorded]:
    """Return the exchanges of a set of tables in order."""
    by_request: dict[tuple[str, int], dict[str, list[str]]] = defaultdict(lambda: {table: [] for table in COMPARED})
    requests = sorted(rows(out, "requests"), key=lambda row: row["seq"])
    for table in COMPARED:
        differs = TIMES | NUMBERS | {column.name for column in TABLES[table] if column.broker_only}
        for row in rows(out, table):
            row_text = str([(name, value) for name, value in row.items() if name not in differs])
            by_request[row["run"], row["seq"]][table].append(row_text)
    of_each = [(row, by_request[row["run"], row["seq"]]) for row in requests]
    return [
        Recorded(
            row,
            {table: len(table_rows) for table, table_rows in run_tables.items()},
            "\n".join(
                f"{table} {row_text}" for table, table_rows in run_tables.items() for row_text in sorted(table_rows)
            ),
        )
        for row, run_tables in of_each
    ]


def assert_same(first: Path, second: Path, own: str | None = None) -> dict[str, int]:
    """Assert that two sets of tables agree, and return the number of rows of each table that both contain.

    first: tables recorded between clients and brokers, or closer to the clients than `second`. own: a client-id that only `second` contains.
    Each complete exchange in `first` is in `second` with equal rows. Each other exchange in `second` is in `first` as the same request
    without a response, and no later request of that connection has a response.
    """
    near, far = recorded(first), [entry for entry in recorded(second) if own is None or entry.row["client_id"] != own]
    whole = [entry for entry in near if not entry.row["partial"]]
    more = Counter(entry.text for entry in far if not entry.row["partial"])
    more.subtract(entry.text for entry in whole)
    assert [text for text, count in more.items() if count < 0] == [], "only the closer recording has it"
    cut = [entry for entry in near if entry.row["partial"]]
    answered = {entry.row["conn"]: entry.row["seq"] for entry in near if entry.row["has_response"]}
    too_soon = [entry.row for entry in cut if answered.get(entry.row["conn"], -1) > entry.row["seq"]]
    assert too_soon == [], "a later request of the connection has a response"
    requests = {entry.text: entry.request for entry in far}
    without_answer = Counter(requests[text] for text in more.elements())
    assert without_answer - Counter(entry.request for entry in cut) == Counter(), "the closer recording lacks it"
    return {table: sum(entry.counts[table] for entry in whole) for table in COMPARED}
