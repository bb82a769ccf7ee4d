"""What a broker that is right does and looks like a fault is no finding; what it looks like is one. Each is a run of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from broker.server.tracing import meta_of
from broker.testing.memory import VirtualCluster
from kafkaproto.trace.format import Entry, Event
from pipeline.trace.audit.__main__ import RULES
from pipeline.trace.audit.rule import Tables
from pipeline.trace.rows import Rows
from pipeline.trace.schema import TABLES, ddl
from tests.broker.recording import recorder_into
from tests.broker.test_fetch_visibility import lagging
from tests.broker.wire import fetch
from tests.pipeline.trace import patched

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # py4j leaves its sockets to the collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]
EPOCH_MS = 1_700_000_000_000
NS_PER_MS = 1_000_000
Scene = Callable[[], patched.Rows]
RIGHT: dict[Scene, tuple[str, ...]] = {}
"""To the rules by which it looks like a fault."""
WRONG: dict[Scene, str] = {}
"""To the rule that has to find it."""


def right(*rules: str) -> Callable[[Scene], Scene]:
    def note(scene: Scene) -> Scene:
        RIGHT[scene] = rules
        return scene

    return note


def wrong(rule: str) -> Callable[[Scene], Scene]:
    def note(scene: Scene) -> Scene:
        WRONG[scene] = rule
        return scene

    return note


# ---- who records -------------------------------------------------------------------------------------------------------------


def rows_of(entries: list[Entry]) -> patched.Rows:
    made = Rows("", EPOCH_MS, 0)
    found: patched.Rows = {table: [] for table in TABLES}
    for entry in entries:
        for table, row in made.of(entry):
            found[table].append(row)
    return found


def recorded(cluster: VirtualCluster) -> list[Entry]:
    """What the cluster does from now on, as it records it."""
    entries: list[Entry] = [Event("meta", {**meta_of(cluster.state), "wall_ms": EPOCH_MS, "seq": 0, "broker": -1})]
    cluster.state.record(recorder_into(entries))
    return entries


# ---- fetches that need not wait, or cannot -----------------------------------------------------------------------------------


@right("13 early")
def reads_above_the_high_watermark() -> patched.Rows:
    """F-17, D1: what is written there is not to be seen yet; nobody waits for it."""
    cluster = lagging("kafka")
    entries = recorded(cluster)
    client = cluster.connect(0)
    client.ask(fetch(("t", 0, 4), max_wait_ms=700), 12)
    client.ask(fetch(("t", 0, 4), max_wait_ms=700, isolation=1), 12)
    step = client.ask(fetch(("t", 0, 4), max_wait_ms=700, session=(0, 0)), 12)
    client.ask(fetch(max_wait_ms=700, session=(step.session_id, 1)), 12)
    made = rows_of(entries)
    assert [row["ready_ns"] - row["handled_ns"] < 600 * NS_PER_MS for row in made["requests"]] == [True] * 4
    assert not any(row["error"] for row in made["requests"])
    return made


@wrong("13 early")
def answered_early_at_the_high_watermark() -> patched.Rows:
    cluster = lagging("kafka")
    entries = recorded(cluster)
    client = cluster.connect(0)
    client.send(fetch(("t", 0, 2), max_wait_ms=700), 12)
    cluster.advance(700)
    client.ask(fetch(("t", 0, 4), max_wait_ms=700), 12)
    made = rows_of(entries)
    early = patched.row(made["requests"], lambda row: row["api"] == "Fetch")
    early["handled_ms"] = early["clock_ms"]
    return made


# ---- the audit of all of them ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found(spark: Any) -> Iterator[Mapping[tuple[str, str], int]]:
    """(run, rule) to how many rows are broken."""
    tables: patched.Rows = {table: [] for table in TABLES}
    for scene in [*RIGHT, *WRONG]:
        for table, some in scene().items():
            tables[table] += [one | {"run": scene.__name__} for one in some]
    frames = [
        spark.createDataFrame([tuple(one[c.name] for c in TABLES[table]) for one in some], ddl(table)).coalesce(2).cache()
        for table, some in tables.items()
    ]  # fmt: skip
    audited, asked = Tables(*frames), {*WRONG.values()}.union(*RIGHT.values())
    broken: dict[tuple[str, str], int] = {}
    for rule in RULES:
        if rule.number in asked:
            counts = rule.check(audited).where("broken").groupBy("run").count()
            broken |= {(one["run"], rule.number): one["count"] for one in counts.collect()}
    yield broken
    for frame in frames:
        frame.unpersist()


@pytest.mark.parametrize("scene", RIGHT, ids=lambda scene: scene.__name__)
def test_what_is_right_is_no_finding(found: Mapping[tuple[str, str], int], scene: Scene) -> None:
    assert {rule: found.get((scene.__name__, rule), 0) for rule in RIGHT[scene]} == dict.fromkeys(RIGHT[scene], 0)


@pytest.mark.parametrize("scene", WRONG, ids=lambda scene: scene.__name__)
def test_the_fault_beside_it_is_found(found: Mapping[tuple[str, str], int], scene: Scene) -> None:
    assert found.get((scene.__name__, WRONG[scene]), 0) == 1
