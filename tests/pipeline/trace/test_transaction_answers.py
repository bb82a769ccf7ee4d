"""The answer about transactions, for traffic with known times: how long each was open, how it ended, and what it held back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkaproto.conformance.transactions import Producer
from kafkaproto.conformance.wire import fetch
from kafkaproto.pipeline.trace.answers import transactions
from kafkaproto.pipeline.trace.audit.rule import Tables
from kafkaproto.pipeline.trace.report import transaction_figures
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.trace.format import Entry
from tests.support.broker.transaction_bench import TransactionBench
from tests.support.pipeline.judging import frame
from tests.support.pipeline.played import answer_rows
from tests.support.recording import recorder_into

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

Row = dict[str, Any]
S = 1_000_000_000
FENCED, CONCURRENT = 90, 51


def step(begun_s: float, ready_s: float, api: str, **fields: Any) -> tuple[str, Row]:
    times = {"begun_ns": int(begun_s * S), "ready_ns": int(ready_s * S)}
    return "transactions", {"api": api, "position": 0, "error": 0, **times, **fields}


def init(at_s: float, name: str, producer: int, epoch: int, error: int = 0) -> tuple[str, Row]:
    returned = {} if error else {"returned_producer_id": producer, "returned_epoch": epoch}
    return step(at_s, at_s, "InitProducerId", transactional_id=name, producer_id=-1, error=error, **returned)


def adds(begun_s: float, name: str, producer: int, epoch: int = 0, **more: Any) -> tuple[str, Row]:
    ids = {"transactional_id": name, "producer_id": producer, "producer_epoch": epoch}
    return step(begun_s, begun_s + 0.5, "AddPartitionsToTxn", **ids, **more)


def ends(begun_s: float, ready_s: float, name: str, producer: int, commit: bool, **more: Any) -> tuple[str, Row]:
    end_fields = {"transactional_id": name, "producer_id": producer, "producer_epoch": 0, "committed": commit}
    return step(begun_s, ready_s, "EndTxn", **end_fields | more)


def writes(
    ready_s: float, producer: int, offset: int, count: int = 1, partition: int = 0, **more: Any
) -> tuple[str, Row]:
    """Return an acknowledged batch; producer -1 writes without a transaction."""
    epochs = {"producer_id": producer, "producer_epoch": 0, "transactional": producer >= 0, "control": False}
    times = {"begun_ns": int(ready_s * S), "ready_ns": int(ready_s * S)}
    return "batches", {
        "api": "Produce",
        "topic": "t",
        "partition": partition,
        "base_offset": offset,
        "count": count,
        **epochs,
        **times,
    } | more


def sees(at_s: float, stable: int, high: int, partition: int = 0) -> tuple[str, Row]:
    times = {"begun_ns": int(at_s * S), "ready_ns": int(at_s * S)}
    return "partitions", {"api": "Fetch", "topic": "t", "partition": partition, "error": 0, "replica_id": -1, "high_watermark": high,
                          "last_stable_offset": stable, **times}  # fmt: skip


STEPS = [
    init(0, "orders", 1, 0),
    adds(1, "orders", 1),
    writes(2, 1, 0, 3),
    writes(3, -1, 3, 4),
    sees(4, 0, 7),
    ends(6, 7, "orders", 1, True),
    sees(8, 8, 8),
    ends(9, 9, "orders", 1, True),
    adds(10, "orders", 1),
    step(11, 11, "AddOffsetsToTxn", transactional_id="orders", producer_id=1, producer_epoch=0, group_id="g"),
    ends(12, 12, "orders", 1, False),
    init(0, "bills", 2, 0),
    adds(13, "bills", 2),
    writes(14, 2, 0, 1, partition=1),
    sees(15, 0, 1, 1),
    init(16, "bills", 2, 0, CONCURRENT),
    init(17, "bills", 2, 1),
    sees(18, 2, 2, 1),
    ends(19, 19, "bills", 2, True, error=FENCED),
    init(0, "late", 3, 0),
    adds(20, "late", 3),
    writes(21, 3, 8, 5),
    sees(22, 8, 13),
]
"""Transactions of `orders`, one with a record of another producer behind it; of `bills`, which is fenced; and of `late`, which stays open."""


def aborts(at_s: float, producer: int, epoch: int, offset: int, partition: int = 0) -> tuple[str, Row]:
    """Return an abort marker that a consumer fetches."""
    marker = {"control": True, "committed": False, "transactional": True}
    return writes(at_s, producer, offset, 1, partition, api="Fetch", producer_epoch=epoch, **marker)


TIMED_OUT = [
    init(0, "late", 1, 0),
    adds(1, "late", 1),
    writes(2, 1, 0),
    sees(3, 0, 1),
    aborts(12, 1, 1, 1),
    sees(12, 2, 2),
    init(100, "late", 1, 2),
    adds(101, "late", 1, 2),
    ends(102, 102, "late", 1, True, producer_epoch=2),
    init(0, "fenced", 2, 0),
    adds(1, "fenced", 2),
    writes(2, 2, 0, partition=1),
    init(5, "fenced", 2, 1),
    aborts(12, 2, 1, 1, partition=1),
]
"""A transaction of `late`, which times out long before its producer starts again, and one of `fenced`, which a newer producer aborts."""


def tables_of(spark: Any, steps: list[tuple[str, Row]]) -> Tables:
    table_rows: dict[str, list[Row]] = {"requests": [], "partitions": [], "batches": [], "transactions": []}
    for seq, (table, row) in enumerate(steps, 1):
        table_rows[table].append({"run": "r", "seq": seq, **row})
        times = {"received_ns": row["begun_ns"], "ready_ns": row["ready_ns"]}
        table_rows["requests"].append({"run": "r", "seq": seq, "api": row["api"], "client_id": "client", **times})
    return Tables(**{table: frame(spark, table, rows) for table, rows in table_rows.items()})


@pytest.fixture(scope="module")
def tables(spark: Any) -> Tables:
    return tables_of(spark, STEPS)


def only(query: str, tables: Tables, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in answer_rows(transactions.ANSWER, query, tables)]


def test_transaction_analysis_lists_each_transaction_with_duration_and_outcome(tables: Tables) -> None:
    names = ("transactional_id", "client_id", "opened_s", "open_ms", "outcome", "partitions", "records", "groups")
    assert only("transactions", tables, *names) == [
        ("orders", "client", 1.0, 6000.0, "committed", 1, 3, ""),
        ("bills", "client", 13.0, 3000.0, "aborted: a newer producer fenced it", 1, 1, ""),
        ("late", "client", 20.0, 2000.0, "open at the end", 1, 5, ""),
        ("orders", "client", 10.0, 2000.0, "aborted", 0, 0, "g"),
    ]


def test_transaction_analysis_counts_records_not_visible_due_to_open_transactions(tables: Tables) -> None:
    names = ("transactional_id", "held_records", "held_ms", "completion_ms")
    assert only("transactions", tables, *names) == [
        ("orders", 7, 6000.0, None),
        ("bills", 1, 4000.0, None),
        ("late", 5, 1000.0, None),
        ("orders", None, None, None),
    ]
    names = (
        "topic",
        "partition",
        "transactions",
        "max_held_records",
        "longest_ms",
        "longest_of",
        "longest_from_s",
        "undecided_at_the_end",
    )
    assert only("partitions", tables, *names) == [
        ("t", 0, 2, 7, 6000.0, "orders", 2.0, 1),
        ("t", 1, 1, 1, 4000.0, "bills", 14.0, 0),
    ]


def test_transaction_analysis_measures_an_aborted_transaction_up_to_the_abort_marker(spark: Any) -> None:
    """A trace of a real Kafka has no recorded causes. The first sign of the abort says when and why the transaction ended."""
    names = ("transactional_id", "epoch", "open_ms", "outcome")
    assert only("transactions", tables_of(spark, TIMED_OUT), *names) == [
        ("late", 0, 11_000.0, "aborted: its timeout passed, or an admin ended it"),
        ("fenced", 0, 4000.0, "aborted: a newer producer fenced it"),
        ("late", 2, 1000.0, "committed"),
    ]


def test_transaction_charts_show_outcomes_and_records_not_yet_visible_to_consumers(tables: Tables) -> None:
    lanes = answer_rows(transactions.ANSWER, "lanes", tables)
    assert [(row["transactional_id"], row["from_s"], row["until_s"]) for row in lanes] == [
        ("orders", 1.0, 7.0),
        ("orders", 10.0, 12.0),
        ("bills", 13.0, 16.0),
        ("late", 20.0, 22.0),
    ]
    figure = transaction_figures.lanes(lanes) or ""
    assert "aborted, not requested" in figure and "open at the end" in figure and transaction_figures.lanes([]) is None
    over_time = answer_rows(transactions.ANSWER, "invisible", tables)
    assert max(row["invisible"] for row in over_time) == 7 and over_time[-1]["invisible"] == 5
    figure = transaction_figures.invisible(over_time) or ""
    assert "records not yet visible" in figure and transaction_figures.invisible([]) is None


def test_transaction_analysis_prefers_recorded_abort_causes_to_inferred_causes(spark: Any) -> None:
    """A trace of this broker has recorded causes. The times in the trace depend on the machine: only causes and offsets are checked."""
    bench = TransactionBench()
    topic = bench.topic()
    entries: list[Entry] = []
    bench.cluster.state.record(recorder_into(entries))
    first = bench.begin(topic, timeout_ms=5_000)
    bench.pass_ms(20_000)
    second = Producer(bench)
    second.init()
    second.add({topic.name: [0]})
    assert second.send(topic, 0)[0] == 0
    second.finish(commit=True)
    bench.cluster.connect(topic.leader()).ask(fetch((topic.name, 0, 0)), 11)
    table_rows: dict[str, list[Row]] = {table: [] for table in TABLES}
    rows = Rows("r", 1_700_000_000_000, 0)
    for entry in entries:
        for table, row in rows.of(entry):
            table_rows[table].append(row)
    tables = Tables(
        **{table: frame(spark, table, rows_of_table) for table, rows_of_table in table_rows.items() if rows_of_table}
    )
    outcomes = {row[0]: row[1:] for row in only("transactions", tables, "transactional_id", "outcome", "held_records")}
    assert outcomes == {first.id: ("aborted: its timeout passed", 1), second.id: ("committed", 1)}
    assert all(row["completion_ms"] >= 0 for row in answer_rows(transactions.ANSWER, "transactions", tables))
    source = {query.name: query.source for query in transactions.ANSWER.queries}
    assert json.dumps(source) and "FROM transactions" in source["transactions"]
