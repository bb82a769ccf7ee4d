"""Audit rules alone: each family on a table of a few rows, two table sets at a time, and no leftovers in the session."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import pytest

from kafkaproto.pipeline.trace.answers.census import verdicts
from kafkaproto.pipeline.trace.audit.rule import Outcome, Tables, outcome
from kafkaproto.pipeline.trace.audit.rules import FAMILIES, RULES
from kafkaproto.pipeline.trace.report.making import fast_tables
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.trace.format import Event
from tests.support.pipeline.judging import frame
from tests.support.pipeline.played import RACKS, play, windows
from tests.support.pipeline.recorded import META

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

Row = dict[str, Any]


# ---- one rule, one small table -----------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A rule's number, the rows of the one table that it reads, and the seq of the rows that break it."""

    rule: str
    table: str
    rows: list[Row]
    checked: int
    broken: list[int]


OF_FETCH: Row = {"run": "r", "api": "Fetch", "broker": 0, "topic": "t", "partition": 0, "begun_ns": 1, "ready_ns": 2}
FETCH: Row = {
    "run": "r",
    "api": "Fetch",
    "api_version": 12,
    "conn": 1,
    "broker": 0,
    "has_response": True,
    "held": False,
}
NAMED: Row = {"run": "r", "kind": "named", "broker": 0}
PRODUCED: Row = {
    "run": "r",
    "api": "Produce",
    "broker": 0,
    "topic": "t",
    "partition": 0,
    "acks": -1,
    "crc": 1,
    "count": 1,
    "producer_id": 7,
    "producer_epoch": 0,
    "base_sequence": 0,
}

JOINED: Row = {
    "run": "r",
    "api": "JoinGroup",
    "broker": 0,
    "group_id": "g",
    "member_id": "m",
    "leader": "m",
    "error": 0,
}


def named(seq: int, topic: str, topic_id: str) -> Row:
    facts = {"topic": topic, "topic_id": topic_id, "begun_ns": seq}
    return NAMED | {"seq": seq, "at_ns": seq, "facts": json.dumps(facts)}


CASES = [
    Case(
        "2",
        "partitions",
        [
            OF_FETCH
            | {"seq": seq, "position": 0, "batches": 1, "limit_bytes": 100, "bytes": size, "first_batch_bytes": 60}
            for seq, size in ((1, 100), (2, 101), (3, 60))
        ],
        3,
        [2],
    ),
    Case(
        "5",
        "requests",
        [
            FETCH | {"seq": seq, "applied_throttle_ms": ms, "records_bytes": 9 * (seq % 2)}
            for seq, ms in ((1, 0), (2, 5), (3, 5))
        ],
        2,
        [3],
    ),
    Case(
        "20",
        "requests",
        [
            {"run": "r", "seq": seq, "api": "Produce", "acks": acks, "has_response": answered}
            for seq, acks, answered in ((1, 0, False), (2, 0, True), (3, 1, True), (4, -1, False))
        ],
        4,
        [2, 4],
    ),
    Case(
        "8",
        "batches",
        [
            OF_FETCH | {"seq": seq, "position": position, "base_offset": base, "last_offset": last}
            for seq, position, base, last in ((1, 0, 0, 4), (1, 1, 5, 9), (2, 0, 0, 4), (2, 1, 4, 9))
        ],
        2,
        [2],
    ),
    Case(
        "15-twice",
        "batches",
        [
            PRODUCED | {"seq": seq, "base_offset": offset, "last_offset": offset, "begun_ns": seq, "ready_ns": seq}
            for seq, offset in ((1, 0), (2, 0), (3, 1))
        ],
        3,
        [3],
    ),
    Case(
        "11",
        "partitions",
        [
            OF_FETCH | {"seq": seq, "isolation": 1, "replica_id": -1, "next_offset": seq, "last_stable_offset": 2}
            for seq in (1, 2, 3)
        ],
        3,
        [3],
    ),
    Case(
        "26",
        "batches",
        [
            OF_FETCH
            | {"seq": seq, "base_offset": seq, "last_offset": seq, "producer_id": 7, "producer_epoch": epoch, "crc": 1}
            for seq, epoch in ((1, 0), (2, 1), (3, 0))
        ],
        2,
        [3],
    ),
    Case(
        "18",
        "partitions",
        [
            OF_FETCH
            | {"seq": seq, "begun_ns": seq, "ready_ns": seq, "error": error, "requested_offset": offset}
            | ({} if error else {"high_watermark": 10, "log_start": 0})
            for seq, error, offset in ((1, 0, 0), (2, 1, 5), (3, 1, 20), (4, 0, 0))
        ],
        2,
        [2],
    ),
    Case("19", "events", [named(1, "t", "a"), named(2, "u", "b"), named(3, "v", "b")], 3, [3]),
    Case(
        "21",
        "groups",
        [
            JOINED | {"seq": seq, "returned_epoch": epoch, "begun_ns": 10 * seq, "ready_ns": 10 * seq + 1}
            for seq, epoch in ((1, 4), (2, 5), (3, 4))
        ],
        2,
        [3],
    ),
    Case(
        "17",
        "requests",
        [
            FETCH | {"seq": seq, "received_ns": seq, "ready_ns": seq, "session_missing": missing, "session_strays": 0}
            for seq, missing in ((1, 0), (2, 1))
        ],
        2,
        [2],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"rule {case.rule}")
def test_audit_rule_finds_exactly_the_rows_that_break_the_rule_in_a_small_table(spark: Any, case: Case) -> None:
    [rule] = [rule for rule in RULES if rule.number == case.rule]
    rows = rule.check(Tables(**{case.table: frame(spark, case.table, case.rows)})).collect()
    assert sorted(row.seq for row in rows if row.broken) == case.broken
    assert len(rows) == case.checked and not any(row.broken is None for row in rows)


def test_every_module_of_audit_rules_has_a_rule_that_is_tested_with_a_small_table() -> None:
    alone = {rule.check.__module__ for rule in RULES if rule.number in {case.rule for case in CASES}}
    assert alone == {family.__name__ for family in FAMILIES}


# ---- two sets of tables ------------------------------------------------------------------------------------------------------


def played(run: str) -> dict[str, list[Row]]:
    """Return the rows of a run named "r"."""
    tables: dict[str, list[Row]] = {table: [] for table in TABLES}
    rows = Rows("r", META["wall_ms"], 0)
    brokers = [{"id": i, "rack": rack, "settings": windows(i)} for i, rack in enumerate(RACKS)]
    advertised = {"0": [0, 11], "1": [0, 17], "2": [0, 9], "3": [0, 12], "18": [0, 4]}
    for entry in [Event("meta", {"seq": 0, "broker": -1, "brokers": brokers, "advertised": advertised}), *play(run)]:
        for table, row in rows.of(entry):
            tables[table].append(row)
    return tables


def with_faults(tables: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """Return the tables with faults: throttles a millisecond too long, every other high watermark too low, each tenth event and state missing."""
    for row in tables["requests"]:
        row["throttle_ms"] = row["throttle_ms"] and row["throttle_ms"] + 1
    for row in tables["partitions"][::2]:
        row["high_watermark"] = row["high_watermark"] and row["high_watermark"] // 2
    return tables | {table: [row for row in tables[table] if row["seq"] % 10 != 9] for table in ("events", "state")}


def test_two_audits_at_the_same_time_each_report_only_faults_of_their_own_tables(spark: Any) -> None:
    """Both have a run of the same name. Two rules run at the same time, one on each set, as in the report.

    The rules are the first of each module, and those that the faults break or leave undecided.
    """
    broken, undecided = {"4", "10-order"}, "10"
    chosen = {family.RULES[0].number for family in FAMILIES} | broken | {undecided}
    rules = [rule for rule in RULES if rule.number in chosen]
    sets = [played("before"), with_faults(played("after"))]
    frames = [[frame(spark, table, rows) for table, rows in table_rows.items()] for table_rows in sets]
    with fast_tables(spark, frames[0], 1), fast_tables(spark, frames[1], 1), ThreadPoolExecutor(2) as pool:
        alone = [list(pool.map(partial(outcome, tables=Tables(*table_frames)), rules)) for table_frames in frames]
        both = [Tables(*table_frames) for table_frames in frames]
        turns = [(rule, tables) for rule in rules for tables in both]
        outcomes: list[Outcome] = list(pool.map(lambda turn: outcome(*turn), turns))
    assert [
        outcome_of_rule.rule.number
        for outcome_of_rule in alone[0]
        if outcome_of_rule.broken or outcome_of_rule.left_out
    ] == []
    assert broken <= {outcome_of_rule.rule.number for outcome_of_rule in alone[1] if outcome_of_rule.broken}
    assert undecided in {outcome_of_rule.rule.number for outcome_of_rule in alone[1] if outcome_of_rule.left_out}
    assert [outcomes[::2], outcomes[1::2]] == alone


# ---- leftovers of a query -----------------------------------------------------------------------------------------------------


def test_audit_queries_create_no_spark_views_and_read_cached_tables_from_the_cache(
    spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def views() -> list[str]:
        return [table.name for table in spark.catalog.listTables()]

    before = views()
    requests = frame(spark, "requests", [FETCH | {"seq": 1, "client_id": "c", "api_key": 1}]).cache()
    tables = Tables(requests=requests)
    assert requests.count() == 1
    lazy = tables.sql("SELECT a.seq FROM {requests} a JOIN {requests} b USING (run) LEFT ANTI JOIN {gaps} USING (run)")
    census = verdicts(tables)
    assert views() == before
    assert requests.storageLevel.useMemory
    assert lazy.collect() == [(1,)] and census.count() > 1
    lazy.explain()
    assert "InMemoryTableScan" in capsys.readouterr().out


def test_audit_query_that_names_an_unknown_table_is_rejected(spark: Any) -> None:
    with pytest.raises(KeyError, match="request"):
        Tables(requests=frame(spark, "requests", [])).sql("SELECT 1 FROM {request}")
    with pytest.raises(
        ValueError, match="requests, partitions, batches, events, state, groups, group_offsets, transactions"
    ):
        Tables()
