"""A trace and its tables of commit 7c3b0af: the tables open, nothing is read anew, and a trace that has grown adds only new rows."""

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
    """`trace` ends where the tables end; the whole trace is `whole`."""
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
    found = [
        row for path in sorted((out / table).rglob("*.parquet")) for row in pq.ParquetFile(path).read().to_pylist()
    ]
    return sorted(found, key=lambda row: (row["seq"], row.get("place") or 0))


def build(trace: Path, out: Path) -> Any:
    return tables.build(trace, out, tables.without_spark)


def test_tables_have_the_rows_that_their_trace_gives_now(folder: Path) -> None:
    build(folder / "trace", folder / "fresh")
    counted = manifest(folder / "tables")["rows"]
    assert {table: len(rows(folder / "tables", table)) for table in TABLES} == counted
    assert counted["requests"] > 20 and counted["partitions"] > 10
    for table in TABLES:
        assert rows(folder / "tables", table) == rows(folder / "fresh", table), table


def test_nothing_of_a_trace_is_read_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = parquet(folder / "tables")

    def must_not_read(*_: Any) -> Any:
        raise AssertionError("the trace is read anew")

    monkeypatch.setattr(tables, "without_spark", must_not_read)
    assert build(folder / "trace", folder / "tables") == ({}, [])
    assert parquet(folder / "tables") == before


def test_a_trace_that_has_grown_adds_only_new_rows(folder: Path) -> None:
    before, counted = parquet(folder / "tables"), manifest(folder / "tables")["rows"]
    counts, told = build(folder / "whole", folder / "tables")
    [added] = counts.values()
    assert told == [] and added["requests"] > 0
    after = parquet(folder / "tables")
    assert {name: after.get(name) for name in before} == before
    build(folder / "whole", folder / "fresh")
    for table in TABLES:
        assert rows(folder / "tables", table) == rows(folder / "fresh", table), table
        assert len(rows(folder / "tables", table)) == counted[table] + added[table], table
