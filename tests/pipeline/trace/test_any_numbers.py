"""Every query of every analysis runs and the report is drawn, whatever numbers clients and brokers sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kafkaproto.pipeline.trace.answers import diff
from kafkaproto.pipeline.trace.answers.answer import evaluate_query
from kafkaproto.pipeline.trace.report.making import ANSWERS, RELEASE, fast_tables
from kafkaproto.pipeline.trace.report.page import Facts, page
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.schema import TABLES, ddl
from tests.support.pipeline.played import RACKS, SPARK, play, windows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

Row = dict[str, Any]
SAID = {
    "requests": (
        "max_bytes",
        "min_bytes",
        "max_wait_ms",
        "throttle_ms",
        "applied_throttle_ms",
        "session_id",
        "session_epoch",
    ),
    "partitions": (
        *("limit_bytes", "requested_epoch", "returned_epoch", "preferred_replica", "requested_offset", "base_offset"),
        *("next_offset", "high_watermark", "last_stable_offset", "log_start", "requested_timestamp"),
    ),
    "batches": ("base_offset", "last_offset", "producer_id", "base_sequence", "max_timestamp"),
    "events": (),
    "state": ("high_watermark", "last_stable_offset", "log_start", "log_end"),
}
"""Columns whose values come from clients or brokers and may be any number."""
TIMES = ("begun_ns", "received_ns", "handled_ns", "ready_ns", "sent_ns", "at_ns")
COUNTS = ("bytes", "bytes_in", "bytes_out", "records_bytes", "records", "count", "first_batch_bytes")
BITS = {"int": 32, "bigint": 64}


def largest(table: str, row: Row) -> Row:
    kinds = {column.name: BITS.get(column.type, 0) for column in TABLES[table]}
    return row | {name: 2 ** (kinds[name] - 1) - 1 for name in SAID[table] if row.get(name) is not None}


def least(table: str, row: Row) -> Row:
    """Return the row with zero durations and sizes, and the lowest possible values from clients and brokers."""
    kinds = {column.name: BITS.get(column.type, 0) for column in TABLES[table]}
    low = {name: -(2 ** (kinds[name] - 1)) for name in SAID[table]} | dict.fromkeys((*TIMES, *COUNTS), 0)
    return row | {name: value for name, value in low.items() if row.get(name) is not None}


def rows(run: str) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {table: [] for table in TABLES}
    rows_made = Rows(run, 1_700_000_000_000, 0)
    for entry in play(run):
        for table, row in rows_made.of(entry):
            tables[table].append(row)
    brokers = [{"id": i, "rack": rack, "settings": windows(i)} for i, rack in enumerate(RACKS)]
    facts = {"advertised": {"0": [0, 11], "1": [0]}, "brokers": brokers}
    tables["events"].append(tables["events"][0] | {"seq": 0, "kind": "meta", "facts": json.dumps(facts)})
    return tables


@pytest.fixture(scope="module")
def runs() -> list[dict[str, list[Row]]]:
    return [rows(run) for run in ("before", "after")]


@pytest.mark.parametrize("change", [largest, least], ids=lambda change: change.__name__)
def test_trace_report_is_built_from_a_trace_that_contains_extreme_numbers(
    spark: Any, runs: list[dict[str, list[Row]]], change: Callable[[str, Row], Row]
) -> None:
    """Spark's consumers only look up offsets and do not fetch."""
    excluded_requests = {
        (r["run"], r["seq"]) for run in runs for r in run["requests"] if (r["client_id"], r["api"]) == (SPARK, "Fetch")
    }
    assert excluded_requests
    frames = []
    for table, columns in TABLES.items():
        changed_rows = [
            change(table, r) for run in runs for r in run[table] if (r["run"], r["seq"]) not in excluded_requests
        ]
        frames.append(spark.createDataFrame([tuple(r.get(c.name) for c in columns) for r in changed_rows], ddl(table)))
    answers = [*ANSWERS, diff.answer("before", "after")]
    with fast_tables(spark, frames, 1) as tables:
        every = {
            (answer.name, query.name): evaluate_query(query, tables) for answer in answers for query in answer.queries
        }
    assert every["latency", "slowest"].rows and every["spark", "queries"].rows
    assert "</html>" in page(Facts("any", [], [], "TRACE", RELEASE), "", [], answers, every, {})
