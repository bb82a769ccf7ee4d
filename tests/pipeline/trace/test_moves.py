"""The rules of recorded moves, on what the simulation does: brokers that stop, are elected uncleanly, are killed and come back, topics that
are made again, logs that are cut. Everything there is as it should be, and high watermarks fall."""

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
    # py4j leaves its sockets to the collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]
SEEDS = range(3)


def recorded(seed: int, patch: pytest.MonkeyPatch) -> list[list[Entry]]:
    """The trace of each process of a seed: a broker that is killed begins another."""
    traces: list[list[Entry]] = []
    original = World._new_cluster

    def new(world: World, clock: ManualClock) -> VirtualCluster:
        made = original(world, clock)
        traces.append([])
        made.state.record(recorder_into(traces[-1]))
        return made

    with patch.context() as patched:
        patched.setattr(World, "_new_cluster", new)
        simulate(seed)
    return traces


def test_10_and_20_hold_whatever_happens_to_a_cluster_that_is_right(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, list[Row]] = {table: [] for table in TABLES}
    for seed in SEEDS:
        for number, entries in enumerate(recorded(seed, monkeypatch)):
            made = Rows(f"{seed}-{number}", 0, 0)
            for entry in entries:
                for table, row in made.of(entry):
                    found[table].append(row)
    tables = Tables(*(frame(spark, table, found[table]) for table in TABLES))
    for rule in (moves, covered, ordered_offsets):
        checked = rule(tables)
        assert checked.count() > 100 and checked.where("broken").collect() == []
    assert falls(found["state"]) > 2
    assert ordered_offsets(tables).where("log_end IS NOT NULL").count() > 100


def frame(spark: Any, table: str, rows: list[Row]) -> Any:
    """Of batches, which are the most and which neither rule asks, none."""
    wanted = [] if table == "batches" else [tuple(row[c.name] for c in TABLES[table]) for row in rows]
    return spark.createDataFrame(wanted, ddl(table)).coalesce(1).cache()


def falls(state: list[Row]) -> int:
    """How often a high watermark is lower than it was told before."""
    last: dict[tuple[Any, ...], int] = {}
    count = 0
    for row in state:
        key = (row["run"], row["broker"], row["topic"], row["partition"])
        count += row["high_watermark"] < last.get(key, 0) and not row["begins"]
        last[key] = row["high_watermark"]
    return count
