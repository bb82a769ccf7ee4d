"""Audit rules of recorded log positions hold for the failures that the simulation causes.

Brokers stop, are killed, restart and are elected uncleanly; topics are recreated and logs truncated. High watermarks may decrease.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.runtime.clock import ManualClock
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.pipeline.trace.audit.durability import covered
from kafkaproto.pipeline.trace.audit.offsets import moves, ordered_offsets
from kafkaproto.pipeline.trace.audit.rule import Tables
from kafkaproto.pipeline.trace.columns import Row
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.schema import TABLES, ddl
from kafkaproto.trace.format import Entry
from tests.simulation.run import simulate
from tests.simulation.world import World
from tests.support.recording import recorder_into

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]
SEEDS = 2, 34, 38
"""In the last two, reported high watermarks fall twice."""


def recorded(seed: int, patch: pytest.MonkeyPatch) -> list[list[Entry]]:
    """Return the trace of each process of a seed: a killed broker starts a new trace."""
    traces: list[list[Entry]] = []
    original = World._new_cluster

    def new(world: World, clock: ManualClock) -> VirtualCluster:
        cluster = original(world, clock)
        traces.append([])
        cluster.state.record(recorder_into(traces[-1]))
        return cluster

    with patch.context() as patched:
        patched.setattr(World, "_new_cluster", new)
        simulate(seed)
    return traces


def test_traces_of_simulated_broker_failures_break_no_audit_rule_on_high_watermarks(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: dict[str, list[Row]] = {table: [] for table in TABLES}
    for seed in SEEDS:
        for number, entries in enumerate(recorded(seed, monkeypatch)):
            row_builder = Rows(f"{seed}-{number}", 0, 0)
            for entry in entries:
                for table, row in row_builder.of(entry):
                    rows[table].append(row)
    tables = Tables(*(frame(spark, table, rows[table]) for table in TABLES))
    for rule in (moves, covered, ordered_offsets):
        checked = rule(tables)
        assert checked.count() > 100 and checked.where("broken").collect() == []
    assert falls(rows["state"]) > 2
    assert ordered_offsets(tables).where("log_end IS NOT NULL").count() > 100


def frame(spark: Any, table: str, rows: list[Row]) -> Any:
    """Return a DataFrame without batches: there are many, and neither rule reads them."""
    frame_rows = [] if table == "batches" else [tuple(row[c.name] for c in TABLES[table]) for row in rows]
    return spark.createDataFrame(frame_rows, ddl(table)).coalesce(1).cache()


def falls(state: list[Row]) -> int:
    """Return how often a reported high watermark is lower than the one before."""
    last: dict[tuple[Any, ...], int] = {}
    count = 0
    for row in state:
        key = (row["run"], row["broker"], row["topic"], row["partition"])
        count += row["high_watermark"] < last.get(key, 0) and not row["begins"]
        last[key] = row["high_watermark"]
    return count
