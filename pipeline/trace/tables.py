"""`python -m pipeline.trace.tables TRACE OUT`: traces and captures as Parquet, a folder for each table, in it one for each run and hour.

Run again, it reads only runs of which a file is new or has grown. Such a run is read and replaced whole, by one task, since its rows
depend on the entries before; runs are spread over the cores. `--without-spark` does the same in this process.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafkaproto.trace.format import TraceError
from pipeline.capture import job as captures
from pipeline.session import local_session
from pipeline.sources import batches, runs_of
from pipeline.trace import reading as traces
from pipeline.trace.reading import SCHEMAS, TOLD, Run, Told, meta_text
from pipeline.trace.schema import TABLES, ddl
from pipeline.trace.store import Store, StoreError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONED_BY = ("run", "hour")
COMPRESSION = "zstd"
READ = "_read"
"""In the staging folder: of each run how many bytes its task has read."""
TOLD_EVERY_S = 10.0

Write = Callable[[list[Run], Path], list[Told]]
"""Writes the tables of runs into a staging folder; what has to be said of their files."""


def build(
    trace: Path, out: Path, write: Write, ports: Sequence[int] = ()
) -> tuple[dict[str, dict[str, int]], list[Told]]:
    """Bring the tables in `out` up to what `trace` holds. ports: see `pipeline.sources.runs_of`.

    Returns the rows of each table of the runs that were read, and what has to be said. Raises TraceError where there is no trace at all
    and StoreError for an `out` that cannot be used; then nothing has changed.
    """
    runs, told = runs_of(trace, ports)
    store = Store(out)
    counts: dict[str, dict[str, int]] = {}
    with store.at_work():
        manifest = store.manifest()
        due = []
        for run in runs:
            before = manifest.get(run.name)
            refused = None if before is None else _refusal(run, before)
            if refused:
                told.append(Told(run.name, refused, False))
            elif before is None or before["files"] != _files(run):
                due.append(run)
        if due:
            staging = store.staging()
            said = write(due, staging)
            counts = {run.name: _rows(staging, run) for run in due}
            said += [
                Told(run.name, f"{run.files[0]}: no request of Kafka is in this capture", False)
                for run in due
                if run.capture and not counts[run.name]["requests"]
            ]
            told += said
            store.commit(
                manifest
                | {
                    run.name: {
                        "meta": meta_text(run),
                        "files": _files(run),
                        "rows": counts[run.name],
                        "told": [one.text for one in said if one.run == run.name],
                    }
                    for run in due
                }
            )
    return counts, told


def _files(run: Run) -> dict[str, int]:
    return {Path(file).name: size for file, size in zip(run.files, run.sizes, strict=True)}


def _refusal(run: Run, before: dict[str, Any]) -> str:
    """Why a run must not replace the one of its name that is there; empty if it may."""
    now = _files(run)
    if before["meta"] != meta_text(run):
        return f"run {run.name}: {run.files[0]} is another recording of the same name as one in the tables, and is left out"
    for name, size in before["files"].items():
        if name not in now:
            return f"run {run.name}: {name} is in the tables and no longer in the trace; the run is left as it is"
        if now[name] < size:
            return f"run {run.name}: {name} had {size} bytes and now has {now[name]}; the run is left as it is"
    return ""


def _folder(table: str, run: str) -> Path:
    return Path(table) / f"run={quote(run, safe=' ')}"


def _rows(staging: Path, run: Run) -> dict[str, int]:
    return {
        table: sum(
            pq.read_metadata(file).num_rows for file in sorted((staging / _folder(table, run.name)).rglob("*.parquet"))
        )
        for table in TABLES
    }


# ---- without Spark -----------------------------------------------------------------------------------------------------------


def without_spark(runs: list[Run], staging: Path) -> list[Told]:
    """In this process, a run after the other."""
    told: list[Told] = []
    for run in runs:
        writers: dict[Path, pq.ParquetWriter] = {}
        try:
            for table, rows in batches(run):
                if table == TOLD:
                    told += [Told(**one) for one in rows.to_pylist()]
                    continue
                for hour in pc.unique(rows["hour"]).to_pylist():
                    kept = rows.filter(pc.equal(rows["hour"], hour)).drop_columns(list(PARTITIONED_BY))
                    path = staging / _folder(table, run.name) / f"hour={hour}" / "part-00000.parquet"
                    if path not in writers:
                        path.parent.mkdir(parents=True, exist_ok=True)
                        writers[path] = pq.ParquetWriter(path, kept.schema, compression=COMPRESSION)
                    writers[path].write_batch(kept)
        finally:
            for writer in writers.values():
                writer.close()
    return told


# ---- with Spark --------------------------------------------------------------------------------------------------------------


def with_spark(
    spark: SparkSession, runs: list[Run], staging: Path, progress: Callable[[str], None] = lambda _: None
) -> list[Told]:
    """A task for each run of a trace; captures are spread by connection. progress: takes a line now and then."""

    def save(rows: DataFrame, table: str) -> None:
        rows.write.mode("append").partitionBy(*PARTITIONED_BY).option("compression", COMPRESSION).parquet(
            str(staging / table)
        )

    traced = [run for run in runs if not run.capture]
    captured = [run for run in runs if run.capture]
    told = []
    if traced:
        notes = staging / READ
        notes.mkdir()
        with told_now_and_then(traced, notes, progress):
            told = _traces(spark, traced, notes, save)
    return told + (captures.with_spark(spark, captured, save) if captured else [])


@contextmanager
def told_now_and_then(runs: list[Run], notes: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """While it lasts `progress` is told every few seconds how much of the runs is read, as their tasks have noted it in files."""
    total = sum(sum(run.sizes) for run in runs)
    ends = threading.Event()

    def watch() -> None:
        while not ends.wait(TOLD_EVERY_S):
            done = sum(int(note.read_text()) for note in notes.glob("[0-9]*"))
            if done < total:
                progress(f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB read, {100 * done // max(total, 1)} %")
            else:
                progress("all is read, the rest is written")

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def _traces(spark: SparkSession, runs: list[Run], notes: Path, save: Callable[[DataFrame, str], None]) -> list[Told]:
    """Every run is read once, for all tables."""
    columns = [f"`{table}` struct<{ddl(table)}>" for table in TABLES]
    schema = ", ".join(("`table` string", *columns, f"`{TOLD}` struct<run string, text string, torn boolean>"))
    made = spark.range(0, len(runs), 1, len(runs)).mapInArrow(partial(_work, runs, notes), schema).persist()
    try:
        for table in TABLES:
            save(made.where(f"table = '{table}'").select(f"{table}.*"), table)
        said = made.where(f"table = '{TOLD}'").select(f"{TOLD}.*").collect()
    finally:
        made.unpersist()
    return [Told(row.run, row.text, row.torn) for row in said]


def _work(runs: list[Run], notes: Path, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for some in numbers:
        for number in some.column(0).to_pylist():
            for table, rows in traces.batches(runs[number], partial(_note, notes / str(number))):
                columns = [
                    rows.to_struct_array() if name == table else pa.nulls(len(rows), pa.struct(schema))
                    for name, schema in SCHEMAS.items()
                ]
                names = pa.array([table] * len(rows), pa.string())
                yield pa.RecordBatch.from_arrays([names, *columns], ["table", *SCHEMAS])


def _note(file: Path, done_bytes: int) -> None:
    """At once or not at all: somebody reads it."""
    fresh = file.with_name(f".{file.name}")
    fresh.write_text(str(done_bytes))
    fresh.replace(file)


def read(spark: SparkSession, out: Path, table: str) -> DataFrame:
    """A table with the columns that `schema` declares, whether or not it has a row."""
    columns = [column.name for column in TABLES[table]]
    if not any((out / table).glob("run=*")):
        return spark.createDataFrame([], ddl(table)).select(columns)
    return spark.read.schema(ddl(table)).parquet(str(out / table)).select(columns)


# ---- the command -------------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0; 1 when a file ends in the middle of an entry; 2 when something could not be read or was refused."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.trace.tables", description="Traces as Parquet tables.")
    parser.add_argument("trace", type=Path, help="a folder with files *.kptrace, *.pcap or *.pcapng, or one such file")
    parser.add_argument("out", type=Path, help="the folder of the tables")
    parser.add_argument("--without-spark", action="store_true", help="in this process: quicker for small traces")
    parser.add_argument(
        "--port",
        type=int,
        action="append",
        default=[],
        help="of brokers, in captures; may be repeated; without it, of all that speak Kafka",
    )
    options = parser.parse_args(arguments)

    def note(line: str) -> None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def spark(runs: list[Run], staging: Path) -> list[Told]:
        with local_session("kafkaproto tables") as session:
            return with_spark(session, runs, staging, lambda line: note(f"tables: {line}"))

    try:
        counts, told = build(
            options.trace, options.out, without_spark if options.without_spark else spark, options.port
        )
    except (TraceError, StoreError, OSError) as error:
        sys.stderr.write(f"tables: {error}\n")
        return 2
    for run, rows in counts.items():
        sys.stdout.write(f"run {run}: {', '.join(f'{count:,} {table}' for table, count in rows.items())}\n")
    if not counts:
        sys.stdout.write("nothing is new\n" if all(one.torn for one in told) else "nothing new could be read\n")
    for one in told:
        sys.stderr.write(f"tables: {one.text}\n")
    return 2 if any(not one.torn for one in told) else int(bool(told))


if __name__ == "__main__":
    sys.exit(main())
