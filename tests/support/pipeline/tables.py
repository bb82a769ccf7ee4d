"""Build the tables of a trace without Spark, and read their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from kafkaproto.pipeline.trace import tables
from kafkaproto.pipeline.trace.runs import Told


def build(trace: Path, out: Path) -> tuple[dict[str, dict[str, int]], list[Told]]:
    return tables.build(trace, out, tables.without_spark)


def rows(out: Path, table: str, run: str = "*") -> list[dict[str, Any]]:
    """Of a table, in its order, with run and hour from the names of the folders."""
    found: list[dict[str, Any]] = []
    for path in sorted((out / table).glob(f"run={run}/hour=*/*.parquet")):
        keys = dict(part.split("=") for part in path.parts[-3:-1])
        found += [keys | row for row in pq.ParquetFile(path).read().to_pylist()]
    return sorted(found, key=lambda row: (row["run"], row["seq"], row.get("place") or 0))
