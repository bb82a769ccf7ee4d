"""Audit rules over rows that a test writes, and over the tables of a recording. Independent of the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.rivals.real_kafka import KafkaCluster
from kafkaproto.pipeline.trace import tables as job
from kafkaproto.pipeline.trace.audit.rule import NAMES, Rule, Tables
from kafkaproto.pipeline.trace.audit.rules import RULES
from kafkaproto.pipeline.trace.report.making import fast_tables
from kafkaproto.pipeline.trace.schema import TABLES, ddl
from tests.support.proxied import proxied

Row = dict[str, Any]


def frame(spark: Any, table: str, rows: Iterable[Mapping[str, Any]]) -> Any:
    """Return a DataFrame of one table; columns that a row lacks are null."""
    return spark.createDataFrame([tuple(row.get(c.name) for c in TABLES[table]) for row in rows], ddl(table)).coalesce(
        1
    )


def broken_rows(
    spark: Any, rules: Sequence[Rule], runs: Mapping[str, Iterable[tuple[str, Row]]]
) -> dict[str, dict[str, int]]:
    """Return the number of broken rows of each rule by run, without rules that hold. runs: the (table, row) pairs of each run."""
    rows_by_table: dict[str, list[Row]] = {}
    for rows in runs.values():
        for table, row in rows:
            rows_by_table.setdefault(table, []).append(row)
    tables = Tables(**{table: frame(spark, table, rows) for table, rows in rows_by_table.items()})
    counts: dict[str, dict[str, int]] = {run: {} for run in runs}
    for rule in rules:
        for run, count in rule.check(tables).where("broken").groupBy("run").count().collect():
            counts[run][rule.number] = count
    return counts


def checked_rows(spark: Any, folder: Path) -> tuple[dict[str, list[Row]], dict[int, str | None]]:
    """Return the rows of each rule for the trace in `folder`, by the rule's number, and the client id of each request."""
    job.build(folder / "trace", folder / "out", job.without_spark)
    frames = [job.read(spark, folder / "out", name) for name in NAMES]
    with fast_tables(spark, frames, frames[0].count()) as tables:
        clients = {row.seq: row.client_id for row in tables.requests.select("seq", "client_id").collect()}
        return {rule.number: [row.asDict() for row in rule.check(tables).collect()] for rule in RULES}, clients


@contextmanager
def recorded_kafka(settings: dict[str, str], version: str, trace: Path) -> Iterator[str]:
    """Run a real Kafka behind the recording proxy, and yield the proxy's address."""
    kafka = KafkaCluster(settings, version)
    try:
        host, port = kafka.bootstrap[0]
        with proxied(f"{host}:{port}", trace) as bootstrap:
            yield bootstrap
    finally:
        kafka.stop()
