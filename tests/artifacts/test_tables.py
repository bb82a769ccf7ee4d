"""Traces and their tables that the commits 2b9d954, 7c3b0af, 7dc9971 and 970a5c3 wrote: the tables can be read, and are made again from the trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kafkaproto.pipeline.trace import tables
from kafkaproto.pipeline.trace.audit.rule import Tables
from kafkaproto.pipeline.trace.audit.verdict import remarks
from kafkaproto.pipeline.trace.earlier_names import EARLIER_NAMES
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.pipeline.trace.store import Store
from tests.artifacts.holding import unpack
from tests.support.pipeline.recorded import traffic, write

MANIFEST = "_manifest.json"


@pytest.fixture(params=["trace-2", "trace", "groups", "transactions"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a folder with `trace`, which ends where the tables end, and `whole`, the complete trace."""
    folder = tmp_path / str(request.param)
    unpack(request.param, folder)
    (folder / "trace").rename(folder / "whole")
    (folder / "trace").mkdir()
    for name, size in manifest(folder / "tables")["files"].items():
        (folder / "trace" / name).write_bytes((folder / "whole" / name).read_bytes()[:size])
    return folder


def manifest(out: Path) -> dict[str, Any]:
    [run] = json.loads((out / MANIFEST).read_text())["runs"].values()
    return dict(run)


def parquet(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*.parquet"))}


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    column_rows = [
        row for path in sorted((out / table).rglob("*.parquet")) for row in pq.ParquetFile(path).read().to_pylist()
    ]
    return sorted(column_rows, key=lambda row: (row["seq"], row.get("position", row.get("place")) or 0))


def build(trace: Path, out: Path) -> Any:
    return tables.build(trace, out, tables.without_spark)


def under_new_names(table: str, row: dict[str, Any]) -> dict[str, Any]:
    new_names = {earlier: name for name, earlier in EARLIER_NAMES.get(table, {}).items()}
    return {new_names.get(name, name): value for name, value in row.items()}


def test_stored_trace_tables_of_an_older_version_have_the_rows_of_newly_built_tables(folder: Path) -> None:
    build(folder / "trace", folder / "fresh")
    counted = manifest(folder / "tables")["rows"]
    assert {table: len(rows(folder / "tables", table)) for table in counted} == counted
    assert counted["requests"] > 20 and counted["partitions"] > 10
    for table in counted:
        old_rows = [under_new_names(table, row) for row in rows(folder / "tables", table)]
        if table == "events":
            old_rows = [row | {"kind": row["kind"].replace("trouble", "problem")} for row in old_rows]
        if table == "requests":
            old_rows = [{"wait_ms": None} | row for row in old_rows]
            for old, new in zip(old_rows, rows(folder / "fresh", table), strict=True):
                if old["api"] == "AddPartitionsToTxn":  # earlier versions did not read the errors of its partitions
                    assert old["error"] == 0
                    old["error"] = new["error"]
        if table == "batches":
            old_rows = [{"committed": None, "coordinator_epoch": None} | row for row in old_rows]
        assert old_rows == rows(folder / "fresh", table), table


def test_building_tables_of_a_trace_replaces_tables_that_an_older_version_built(folder: Path) -> None:
    counts, notices = build(folder / "trace", folder / "tables")
    build(folder / "trace", folder / "fresh")
    assert notices == [] and [*counts.values()] == [manifest(folder / "tables")["rows"]]
    for table in TABLES:
        assert rows(folder / "tables", table) == rows(folder / "fresh", table), table
    before = parquet(folder / "tables")
    assert build(folder / "trace", folder / "tables") == ({}, []) and parquet(folder / "tables") == before


def test_building_tables_of_a_grown_trace_replaces_tables_of_an_older_version(folder: Path) -> None:
    counts, notices = build(folder / "whole", folder / "tables")
    build(folder / "whole", folder / "fresh")
    assert notices == [] and [*counts.values()] == [manifest(folder / "fresh")["rows"]]
    for table in TABLES:
        assert rows(folder / "tables", table) == rows(folder / "fresh", table), table
    if folder.name == "groups":
        assert len(rows(folder / "tables", "groups")) > 20 and len(rows(folder / "tables", "group_offsets")) > 10
    if folder.name == "transactions":
        ends = [row["committed"] for row in rows(folder / "tables", "transactions") if row["api"] == "EndTxn"]
        assert ends.count(True) == 4 and ends.count(False) >= 7
        markers = [row for row in rows(folder / "tables", "batches") if row["control"]]
        assert markers and {row["committed"] for row in markers} == {None}


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("folder", ["trace", "groups", "transactions"], indirect=True)
def test_spark_renames_columns_of_trace_tables_of_an_older_version_to_the_new_names(spark: Any, folder: Path) -> None:
    """No trace is left to make them again. The other run of the folder has the new format."""
    old = {table: rows(folder / "tables", table) for table in TABLES}
    [old_run] = json.loads((folder / "tables" / MANIFEST).read_text())["runs"]
    write(folder / "other", traffic(), "other")
    build(folder / "other", folder / "tables")
    store = Store(folder / "tables")
    assert tables.earlier_runs(store) == [old_run]
    for table, earlier_names in EARLIER_NAMES.items():
        frame = tables.read(spark, folder / "tables", table)
        assert frame.columns == [column.name for column in TABLES[table]]
        for name, earlier in earlier_names.items():
            values = sorted(str(row[name]) for row in frame.where(frame.run == old_run).select(name).collect())
            assert values == sorted(str(row[earlier if earlier in row else name]) for row in old[table])
    for table in ("groups", "transactions"):
        assert tables.read(spark, folder / "tables", table).where(f"run = '{old_run}'").count() == 0
    positions = tables.read(spark, folder / "tables", "partitions").where("run = 'other'").select("position")
    assert {row.position for row in positions.collect()} == {0}
    [note] = [line for line in remarks(store, Tables.of(spark, folder / "tables")) if "earlier version" in line]
    assert note.startswith(f"run {old_run}: ") and f"kafkaproto tables TRACE {folder / 'tables'}" in note
