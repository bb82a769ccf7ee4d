"""What a rule is, and what comes of it. A rule that has checked nothing is "not exercised", and never holds.

Must never know a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.trace.tables import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE_ROWS = 5
ERROR, WARNING = "error", "warning"
HOLDS, BROKEN, NOT_EXERCISED = "holds", "broken", "not exercised"


class Tables:
    """The tables as DataFrames. Made from a folder, or from DataFrames with the same columns."""

    def __init__(self, requests: DataFrame, partitions: DataFrame, batches: DataFrame, events: DataFrame) -> None:
        self.requests = requests
        self.partitions = partitions
        self.batches = batches
        self.events = events

    @classmethod
    def of(cls, spark: SparkSession, out: Path) -> Tables:
        return cls(*(read(spark, out, table) for table in ("requests", "partitions", "batches", "events")))

    def timed(self, rows: DataFrame) -> DataFrame:
        """Rows of partitions or batches with the times of their request: `conn`, `received_ns`, `ready_ns`."""
        return rows.join(self.requests.select("run", "seq", "conn", "received_ns", "ready_ns"), ["run", "seq"])


class Rule(NamedTuple):
    """check: every row that the rule can decide, with `broken` (boolean), `excess` (double: how far off) and what a reader wants to see,
    `run` and `seq` first."""

    number: str
    statement: str
    severity: str
    check: Callable[[Tables], DataFrame]


class Outcome(NamedTuple):
    """worst: the largest excess, None where nothing is broken. sample: the worst rows, at most `SAMPLE_ROWS`."""

    rule: Rule
    checked: int
    broken: int
    worst: float | None
    sample: list[dict[str, Any]]

    @property
    def verdict(self) -> str:
        if not self.checked:
            return NOT_EXERCISED
        return BROKEN if self.broken else HOLDS


def outcome(rule: Rule, tables: Tables) -> Outcome:
    rows = rule.check(tables)
    numbers = rows.selectExpr(
        "count(1) AS checked",
        "count_if(broken) AS broken",
        "max(CASE WHEN broken THEN excess END) AS worst",
    ).first()
    assert numbers is not None
    sample: Sequence[Any] = ()
    if numbers.broken:
        worst_first = rows.where("broken").orderBy(rows.excess.desc_nulls_last(), "run", "seq")
        sample = worst_first.drop("broken").limit(SAMPLE_ROWS).collect()
    return Outcome(rule, numbers.checked, numbers.broken, numbers.worst, [row.asDict() for row in sample])
