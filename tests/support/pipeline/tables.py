"""Build the tables of a trace without Spark, and read their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from kafkaproto.pipeline.trace import tables
from kafkaproto.pipeline.trace.runs import Notice


def build(trace: Path, out: Path) -> tuple[dict[str, dict[str, int]], list[Notice]]:
    return tables.build(trace, out, tables.without_spark)


def rows(out: Path, table: str, run: str = "*") -> list[dict[str, Any]]:
    """Return the rows of a table in order, with run and hour from the names of the folders."""
    table_rows: list[dict[str, Any]] = []
    for path in sorted((out / table).glob(f"run={run}/hour=*/*.parquet")):
        keys = dict(part.split("=") for part in path.parts[-3:-1])
        table_rows += [keys | row for row in pq.ParquetFile(path).read().to_pylist()]
    return sorted(table_rows, key=lambda row: (row["run"], row["seq"], row.get("position") or 0))
