"""The answers about groups, for traffic with known times: members, lag, rebalances with causes, and partitions without an owner."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkaproto.pipeline.trace.answers import groups, lag, rebalances, unread
from kafkaproto.pipeline.trace.answers.answer import Answer
from kafkaproto.pipeline.trace.audit.rule import Tables
from kafkaproto.pipeline.trace.report import group_figures
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.trace.format import Entry
from tests.support.broker.consumer_group import Group
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


def step(begun_s: float, ready_s: float, api: str, member: str, **fields: Any) -> Row:
    times = {"begun_ns": int(begun_s * S), "ready_ns": int(ready_s * S)}
    names = {"run": "r", "position": 0, "broker": 2, "group_id": "g", "error": 0, "api": api, "member_id": member}
    for name in ("assigned", "owned"):
        if name in fields:
            fields[name] = json.dumps(fields[name])
    return names | times | fields


def joins(begun_s: float, ready_s: float, member: str, generation: int, **fields: Any) -> Row:
    return step(
        begun_s, ready_s, "JoinGroup", member, returned_epoch=generation, leader="a", assignor="range", **fields
    )


def syncs(begun_s: float, ready_s: float, member: str, generation: int, *partitions: int) -> Row:
    epochs = {"requested_epoch": generation, "returned_epoch": generation}
    return step(begun_s, ready_s, "SyncGroup", member, assigned={"t": list(partitions)}, **epochs)


STEPS = [
    joins(0, 1, "a", 1),
    syncs(1, 2, "a", 1, 0, 1),
    step(3, 3, "OffsetCommit", "a", requested_epoch=1, topic="t", partition=0, offset=5),
    joins(4, 5, "b", 2),
    joins(4.5, 5, "a", 2, owned={}, reason="rebalance"),
    syncs(5, 6, "b", 2, 1),
    syncs(5, 6, "a", 2, 0),
    step(7, 7, "Heartbeat", "b", requested_epoch=2),
    joins(20, 20.5, "a", 3, owned={}),
    syncs(20.5, 21, "a", 3, 0, 1),
    step(30, 30, "LeaveGroup", "a", reason="closed"),
]
"""Member a, which b joins. Member b is not heard of after second 7; a gets its partition at second 21 and leaves at second 30."""


@pytest.fixture(scope="module")
def tables(spark: Any) -> Tables:
    rows = [row | {"seq": seq} for seq, row in enumerate(STEPS, 1)]
    table_rows: dict[str, list[Row]] = {
        "requests": [{"run": "r", "seq": row["seq"], "client_id": f"client-{row['member_id']}", "received_ns": row["begun_ns"],
                      "ready_ns": row["ready_ns"], "api": row["api"]} for row in rows],
        "groups": [row for row in rows if "offset" not in row],
        "group_offsets": [row for row in rows if "offset" in row],
        "partitions": [{"run": "r", "seq": 99, "api": "Produce", "error": 0, "topic": "t", "partition": 0, "next_offset": 12, "ready_ns": 8 * S}],
    }  # fmt: skip
    return Tables(**{table: frame(spark, table, rows_of_table) for table, rows_of_table in table_rows.items()})


def only(answer: Answer, query: str, tables: Tables, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in answer_rows(answer, query, tables)]


def test_group_analysis_lists_each_group_with_its_coordinator_and_its_members(tables: Tables) -> None:
    names = ("group_id", "coordinator", "protocol", "assignor", "generation_or_epoch", "members", "members_ever")
    assert only(groups.ANSWER, "groups", tables, *names) == [("g", 2, "classic", "range", 3, 0, 2)]
    names = ("member_id", "client_id", "generation_or_epoch", "status", "first_seen_s", "last_seen_s")
    assert only(groups.ANSWER, "members", tables, *names) == [
        ("a", "client-a", 3, "left or fenced", 0.0, 30.0),
        ("b", "client-b", 2, "silent", 4.0, 7.0),
    ]


def test_lag_analysis_subtracts_the_committed_offset_from_the_end_offset(tables: Tables) -> None:
    names = ("group_id", "topic", "partition", "committed_offset", "end_offset", "lag", "committed_s")
    assert only(lag.ANSWER, "partitions", tables, *names) == [("g", "t", 0, 5, 12, 7, 3.0)]
    over_time = answer_rows(lag.ANSWER, "over-time", tables)
    assert {row["lag"] for row in over_time} == {7} and 8 <= over_time[0]["at_s"] < 8.5 and over_time[-1]["at_s"] == 30
    assert "records behind" in (group_figures.lag(over_time) or "") and group_figures.lag([]) is None


def test_rebalance_analysis_names_members_that_joined_or_stopped_sending_requests(tables: Tables) -> None:
    names = ("from_epoch", "to_epoch", "begins_s", "took_ms", "members", "causes", "causes_from")
    assert only(rebalances.ANSWER, "rebalances", tables, *names) == [
        (None, 1, 0.0, 2000.0, 1, "member a joined", "requests"),
        (1, 2, 4.0, 2000.0, 2, "member b joined; member a joined again (rebalance)", "requests"),
        (2, 3, 20.0, 1000.0, 1, "member b sent nothing for 13.5 s", "requests"),
    ]


def test_unowned_partition_analysis_reports_how_long_a_partition_had_no_group_member(tables: Tables) -> None:
    names = (
        "topic",
        "partition",
        "times",
        "without_owner_ms",
        "longest_ms",
        "longest_from_s",
        "owned_until_s",
        "owners",
    )
    assert only(unread.ANSWER, "partitions", tables, *names) == [
        ("t", 1, 2, 15_500.0, 14_000.0, 7.0, 30.0, 2),
        ("t", 0, 2, 2_500.0, 1_500.0, 4.5, 30.0, 1),
    ]
    owners = answer_rows(unread.ANSWER, "owners", tables)
    assert [(row["partition"], row["client_id"], row["from_s"], row["until_s"]) for row in owners] == [
        (0, "client-a", 2.0, 4.5),
        (0, "client-a", 6.0, 20.0),
        (0, "client-a", 21.0, 30.0),
        (1, "client-a", 2.0, 4.5),
        (1, "client-b", 6.0, 7.0),
        (1, "client-a", 21.0, 30.0),
    ]
    figure = group_figures.owners(owners) or ""
    assert "no owner" in figure and "var(--bad)" in figure and group_figures.owners([]) is None


def test_rebalance_analysis_prefers_recorded_causes_to_causes_inferred_from_requests(spark: Any) -> None:
    """A trace of this broker has recorded causes. The times in the trace depend on the machine: only the causes and epochs are checked."""
    group = Group()
    entries: list[Entry] = []
    group.cluster.state.record(recorder_into(entries))
    group.join("a")
    group.join("b")
    group.beat("b", -1)
    group.beat("a", 1, range(6))
    table_rows: dict[str, list[Row]] = {table: [] for table in TABLES}
    rows = Rows("r", 1_700_000_000_000, 0)
    for entry in entries:
        for table, row in rows.of(entry):
            table_rows[table].append(row)
    tables = Tables(
        **{table: frame(spark, table, rows_of_table) for table, rows_of_table in table_rows.items() if rows_of_table}
    )
    assert only(rebalances.ANSWER, "rebalances", tables, "to_epoch", "causes", "causes_from") == [
        (1, "member a joined", "coordinator"),
        (2, "member b joined", "coordinator"),
        (3, "member b left", "coordinator"),
    ]
    assert only(groups.ANSWER, "groups", tables, "protocol", "members", "recorded_state") == [("consumer", 1, "Stable")]
    assert only(groups.ANSWER, "members", tables, "member_id", "status") == [("a", "member"), ("b", "left or fenced")]
