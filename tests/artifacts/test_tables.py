"""A trace and its tables that commit 7c3b0af wrote: the tables can be read, and a grown trace adds only new rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kafkaproto.pipeline.trace import tables
from kafkaproto.pipeline.trace.schema import TABLES
from tests.artifacts.holding import unpack

MANIFEST = "_manifest.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with `trace`, which ends where the tables end, and `whole`, the complete trace."""
    unpack("trace", tmp_path)
    (tmp_path / "trace").rename(tmp_path / "whole")
    (tmp_path / "trace").mkdir()
    for name, size in manifest(tmp_path / "tables")["files"].items():
        (tmp_path / "trace" / name).write_bytes((tmp_path / "whole" / name).read_bytes()[:size])
    return tmp_path


def manifest(out: Path) -> dict[str, Any]:
    [run] = json.loads((out / MANIFEST).read_text())["runs"].values()
    return dict(run)


def parquet(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*.parquet"))}


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    column_rows = [
        row for path in sorted((out / table).rglob("*.parquet")) for row in pq.ParquetFile(path).read().to_pylist()
    ]
    return sorted(column_rows, key=lambda row: (row["seq"], row.get("place") or 0))


def build(trace: Path, out: Path) -> Any:
    return tables.build(trace, out, tables.without_spark)


def test_tables_built_by_an_old_commit_equal_tables_built_now(folder: Path) -> None:
    build(folder / "trace", folder / "fresh")
    counted = manifest(folder / "tables")["rows"]
    assert {table: len(rows(folder / "tables", table)) for table in TABLES} == counted
    assert counted["requests"] > 20 and counted["partitions"] > 10
    for table in TABLES:
        assert rows(folder / "tables", table) == rows(folder / "fresh", table), table


def test_complete_old_tables_are_not_rebuilt(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = parquet(folder / "tables")

    def must_not_read(*_: Any) -> Any:
        raise AssertionError("the trace is read from the beginning")

    monkeypatch.setattr(tables, "without_spark", must_not_read)
    assert build(folder / "trace", folder / "tables") == ({}, [])
    assert parquet(folder / "tables") == before


def test_old_tables_of_a_grown_trace_get_only_the_new_rows(folder: Path) -> None:
    before, counted = parquet(folder / "tables"), manifest(folder / "tables")["rows"]
    counts, notices = build(folder / "whole", folder / "tables")
    [added] = counts.values()
    assert notices == [] and added["requests"] > 0
    after = parquet(folder / "tables")
    assert {name: after.get(name) for name in before} == before
    build(folder / "whole", folder / "fresh")
    for table in TABLES:
        assert rows(folder / "tables", table) == rows(folder / "fresh", table), table
        assert len(rows(folder / "tables", table)) == counted[table] + added[table], table
