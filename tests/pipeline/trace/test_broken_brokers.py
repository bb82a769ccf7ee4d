"""A broker with one rule broken is found out by that rule, at the request that it hit, and by no rule that has nothing to do with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.trace.audit.__main__ import RULES
from pipeline.trace.audit.rule import Tables
from pipeline.trace.rows import Rows
from pipeline.trace.schema import TABLES, ddl
from tests.pipeline.trace.broken import EPOCH_MS, FAULTS, PLANTED, play

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(120),
    # py4j leaves its sockets to the collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]
AS_IT_IS = "as it is: "


@pytest.fixture(scope="module")
def found(spark: Any) -> Iterator[dict[str, Any]]:
    """run → rule → the client ids of the broken rows, worst first. Each scene is two runs: the broker as it is, and broken."""
    rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
    clients: dict[tuple[str, int], str | None] = {}
    for name, fault in FAULTS.items():
        for run, broken in ((AS_IT_IS + name, False), (name, True)):
            made = Rows(run, EPOCH_MS, 0)
            for entry in play(fault, broken):
                for table, row in made.of(entry):
                    rows[table].append(tuple(row[column.name] for column in TABLES[table]))
                    if table == "requests":
                        clients[run, row["seq"]] = row["client_id"]
    frames = [spark.createDataFrame(rows[table], ddl(table)).coalesce(2).cache() for table in TABLES]
    tables = Tables(*frames)
    seen: dict[str, Any] = {run: {} for run, _ in clients}
    for rule in RULES:
        checked = rule.check(tables)
        for one in checked.where("broken").orderBy(checked.excess.desc_nulls_last(), "run", "seq").collect():
            seen[one.run].setdefault(rule.number, []).append(clients[one.run, one.seq])
    yield seen
    for frame in frames:
        frame.unpersist()


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_broker_is_found_out_by_its_rules_at_the_request_that_was_hit(
    found: dict[str, Any], name: str
) -> None:
    fault, rules = FAULTS[name], found[name]
    assert fault.must <= rules.keys() <= fault.must | fault.may, rules
    assert all(rules[number][0] == PLANTED for number in fault.must), rules


def test_the_same_scenes_with_the_broker_as_it_is_have_no_finding(found: dict[str, Any]) -> None:
    assert {run: rules for run, rules in found.items() if run.startswith(AS_IT_IS) and rules} == {}
