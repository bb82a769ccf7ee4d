"""Writing rows as Parquet files: row groups, open files, and repeated attempts at a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from kafkaproto.pipeline.trace import tables, writing
from kafkaproto.pipeline.trace.reading import SCHEMAS
from kafkaproto.pipeline.trace.runs import Run, runs_of
from kafkaproto.pipeline.trace.store import Store, StoreError
from tests.support.pipeline.recorded import traffic, write
from tests.support.pipeline.tables import rows

pytestmark = pytest.mark.spark

RUN = Run("r", {}, (), ())
EVENTS_PER_BATCH = 4096


def events(hours: list[str], first: int) -> pa.RecordBatch:
    """Return one event in each of these hours, in order."""
    event_rows = [{"run": "r", "hour": hour, "seq": first + place, "kind": "k"} for place, hour in enumerate(hours)]
    return pa.RecordBatch.from_pylist(event_rows, SCHEMAS["events"])


def patch_batches(monkeypatch: pytest.MonkeyPatch, batches: Iterator[pa.RecordBatch]) -> None:
    monkeypatch.setattr(writing, "batches", lambda *_: (("events", batch) for batch in batches))


def test_parquet_writer_combines_small_batches_into_large_row_groups(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    count = 2 * writing.ROWS_PER_GROUP // EVENTS_PER_BATCH + 1
    patch_batches(monkeypatch, (events(["h"] * EVENTS_PER_BATCH, EVENTS_PER_BATCH * n) for n in range(count)))
    assert writing.write_run(RUN, tmp_path) == ([], None)
    [path] = tmp_path.glob("events/run=r/hour=h/*.parquet")
    meta = pq.read_metadata(path)
    groups = [meta.row_group(number).num_rows for number in range(meta.num_row_groups)]
    assert groups == [writing.ROWS_PER_GROUP, writing.ROWS_PER_GROUP, EVENTS_PER_BATCH]


def test_parquet_writer_closes_files_of_old_hours_and_writes_late_rows_to_new_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hours = [f"h{number:02d}" for number in range(3 * writing.OPEN_PARTS)]
    opened: list[int] = []

    class Counted(pq.ParquetWriter):
        def __init__(self, *more: Any, **options: Any) -> None:
            opened.append(opened[-1] + 1 if opened else 1)
            super().__init__(*more, **options)

        def close(self) -> None:
            opened.append(opened[-1] - 1)
            super().close()

    monkeypatch.setattr(pq, "ParquetWriter", Counted)
    # Each hour, and then all hours again: late rows get their own files.
    patch_batches(monkeypatch, (events(hours, len(hours) * turn) for turn in range(2)))
    writing.write_run(RUN, tmp_path)
    assert max(opened) == writing.OPEN_PARTS and opened[-1] == 0
    written_rows = rows(tmp_path, "events")
    assert [(row["seq"], row["hour"]) for row in written_rows] == list(enumerate(hours * 2))
    assert len(list(tmp_path.rglob("*.parquet"))) == 2 * len(hours)


class TriesTwice:
    """The part of Spark that the job uses. The first attempt at each run fails after half of its rows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._attempt = 0

    def range(self, begin: int, end: int, *_: int) -> TriesTwice:
        self._numbers = range(begin, end)
        return self

    def mapInArrow(self, work: Callable[..., Iterator[pa.RecordBatch]], _: str) -> TriesTwice:
        self._work = work
        return self

    def collect(self) -> list[Any]:
        results = []
        for number in self._numbers:
            with self._patch.context() as patch:
                patch.setattr(writing, "batches", half)
                with pytest.raises(OSError, match="no space"):
                    self._try(number)
            [batch] = self._try(number)
            results += [SimpleNamespace(**row) for row in batch.to_pylist()]
        return results

    def _try(self, number: int) -> list[pa.RecordBatch]:
        self._attempt += 1
        context = SimpleNamespace(taskAttemptId=lambda: self._attempt)
        self._patch.setattr(pyspark.TaskContext, "get", lambda: context)
        return list(self._work(iter([pa.RecordBatch.from_pydict({"id": [number]})])))


def half(run: Run, *more: Any) -> Iterator[tuple[str, pa.RecordBatch]]:
    from kafkaproto.pipeline.sources import batches

    yield next(iter(batches(run, *more)))
    raise OSError("no space is left")


def test_trace_tables_contain_only_rows_of_the_last_attempt_of_a_repeated_spark_task(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    for name in "ab":
        write(trace, traffic(), name)
    spark: Any = TriesTwice(monkeypatch)
    tables.build(trace, tmp_path / "out", lambda due, staging: tables.with_spark(spark, due, staging))
    tables.build(trace, tmp_path / "whole", tables.without_spark)
    assert [run.name for run in runs_of(trace)[0]] == ["a", "b"]
    for table in ("requests", "partitions", "batches", "events"):
        assert rows(tmp_path / "out", table) == rows(tmp_path / "whole", table) != []
    assert not list((tmp_path / "out").rglob(tables.ATTEMPTS))


def test_trace_table_job_adds_no_rows_if_files_written_by_a_spark_task_are_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Such files are missing if each machine has its own folder, or if a network share shows new files late."""

    class Elsewhere(TriesTwice):
        def collect(self) -> list[Any]:
            results = super().collect()
            next((tmp_path / "out").rglob(f"{results[-1].folder}/**/*.parquet")).unlink()
            return results

    write(tmp_path / "trace", traffic(), "a")
    write(tmp_path / "trace", traffic(), "b")
    spark: Any = Elsewhere(monkeypatch)
    with pytest.raises(StoreError, match="every machine reaches"):
        tables.build(tmp_path / "trace", tmp_path / "out", lambda due, staging: tables.with_spark(spark, due, staging))
    assert Store(tmp_path / "out").manifest() == {} and not list((tmp_path / "out").glob("*/run=*"))
