"""`kafkaproto tables TRACE OUT`: writes traces and captures as Parquet tables, with a folder per table, run and hour.

A later job reads only the new bytes of a trace and adds their rows. It reads a run (a recording) from its start and replaces the rows if the files
changed in another way than by growing, or if another version of this program made the rows. A capture that has grown is always read from its start,
because later packets can complete earlier requests. Each run is read by one task, because rows depend on earlier entries; several runs are spread
over the cores. `--without-spark` makes the same tables in this process.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafkaproto.pipeline.capture import job as captures
from kafkaproto.pipeline.options import parser
from kafkaproto.pipeline.session import local_session
from kafkaproto.pipeline.sources import runs_of
from kafkaproto.pipeline.trace.earlier_names import EARLIER_NAMES
from kafkaproto.pipeline.trace.place import FINGERPRINT
from kafkaproto.pipeline.trace.runs import Notice, Run, meta_text, resumable_place
from kafkaproto.pipeline.trace.schema import TABLES, ddl
from kafkaproto.pipeline.trace.store import Store, StoreError, folder_of, is_valid_folder_name
from kafkaproto.pipeline.trace.writing import COMPRESSION, PARTITIONED_BY, WriteResult, write_run
from kafkaproto.trace.format import TraceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORM = "form"
"""A key in the manifest (the file that describes the Parquet tables). Its value identifies the row format of a recording.

If the value differs from `place.FINGERPRINT`, which identifies the row format of this version of the program, the recording is read again from its
start, so that all its rows have one format.
"""
ONE_ROW = {
    **{table: table.removesuffix("s") for table in TABLES},
    "batches": "batch",
}
"""Maps the name of a table to the word for one of its rows, such as "requests" to "request"."""
ATTEMPTS = "_attempts"
ATTEMPT_SCHEMA = pa.schema(
    [
        ("number", pa.int32()),
        ("folder", pa.string()),
        ("files", pa.int32()),
        ("notices", pa.string()),
        ("place", pa.string()),
    ]
)
ATTEMPT_DDL = "number int, folder string, files int, notices string, place string"
READ, READ_OF_CAPTURES = "_read", "_read_of_captures"
"""Folders inside the staging folder for the progress of Spark tasks: `READ` for traces, `READ_OF_CAPTURES` for captures.

Each folder has a file for each run (recording), with the number of bytes of the run that Spark tasks have read so far.
"""
PROGRESS_INTERVAL_S = 10.0

Write = Callable[[list[Run], Path], WriteResult]
"""A function (runs, folder) -> result. It writes the rows of runs (recordings) that the Parquet tables lack into a staging folder."""


def build(
    trace: Path, out: Path, write: Write, ports: Sequence[int] = ()
) -> tuple[dict[str, dict[str, int]], list[Notice]]:
    """Update the Parquet tables in the folder `out`: add the part of the trace or capture `trace` that they do not contain yet.

    write: the function that writes the new rows, with Spark or without. ports: the ports on which brokers listen, to select connections in captures;
    if it is empty, every connection that speaks Kafka is selected.

    Returns (number of new rows by run and table, notices for the user). A run (a recording) without new rows is not in the dict. Raises TraceError
    if there is no trace and StoreError if `out` cannot be used; the tables are then unchanged.
    """
    runs, notices = runs_of(trace, ports)
    store = Store(out)
    counts: dict[str, dict[str, int]] = {}
    with store.locked():
        manifest = store.manifest()
        due = []
        for run in runs:
            before = manifest.get(run.name)
            if refusal := _refusal(run, before):
                notices.append(Notice(run.name, refusal, False))
            elif before is None or before.get(FORM) != FINGERPRINT:
                due.append(run)
            elif before["files"] != _files(run):
                due.append(run._replace(place=resumable_place(run, before["files"], store.place(run.name, before))))
        if due:
            staging = store.staging()
            new_notices, places = write(due, staging)
            new_rows = {run.name: _rows(staging, run) for run in due}
            counts = {run: rows for run, rows in new_rows.items() if any(rows.values())}
            new_notices += [
                Notice(run.name, f"{run.files[0]}: this capture contains no Kafka request", False)
                for run in due
                if run.capture and not new_rows[run.name]["requests"]
            ]
            notices += new_notices
            added = {run.name: manifest[run.name]["rows"] for run in due if run.place is not None}
            entries = {
                run.name: {
                    "meta": meta_text(run),
                    "files": _files(run),
                    FORM: FINGERPRINT,
                    "rows": {
                        table: n + added.get(run.name, {}).get(table, 0) for table, n in new_rows[run.name].items()
                    },
                    "notices": [notice.text for notice in new_notices if notice.run == run.name],
                }
                for run in due
            }
            store.commit(manifest | entries, places, added)
    return counts, notices


def _files(run: Run) -> dict[str, int]:
    return {Path(file).name: size for file, size in zip(run.files, run.sizes, strict=True)}


def _refusal(run: Run, before: dict[str, Any] | None) -> str:
    """Return the reason why a run (a recording) cannot be added to the Parquet tables, or an empty text if it can be added.

    before: the manifest entry of the run with the same name in the tables; None if there is none. `run` would extend or replace this earlier run.
    """
    sizes = _files(run)
    if not is_valid_folder_name(run.name):
        return f"{run.files[0]}: its run name is no valid folder name; the run is left out"
    if before is None:
        return ""
    if before.get("meta") != meta_text(run):
        return (
            f"run {run.name}: {run.files[0]} is another recording with the name of a run in the tables; it is left out"
        )
    for name, size in before["files"].items():
        if name not in sizes:
            return f"run {run.name}: {name} is in the tables but no longer in the trace; the run is left unchanged"
        if sizes[name] < size:
            return f"run {run.name}: {name} had {size} bytes and now has {sizes[name]}; the run is left unchanged"
    return ""


def _rows(staging: Path, run: Run) -> dict[str, int]:
    return {
        table: sum(
            pq.read_metadata(file).num_rows for file in (staging / table / folder_of(run.name)).rglob("*.parquet")
        )
        for table in TABLES
    }


def without_spark(runs: list[Run], staging: Path) -> WriteResult:
    """Write the rows of runs (recordings) into the folder `staging`, in this process and one run after the other."""
    result = WriteResult([], {})
    for run in runs:
        _add(result, run, *write_run(run, staging))
    return result


def _add(result: WriteResult, run: Run, notices: list[Notice], place: str | None) -> None:
    result.notices.extend(notices)
    if place is not None:
        result.places[run.name] = place


# ---- with Spark --------------------------------------------------------------------------------------------------------------


def with_spark(
    spark: SparkSession, runs: list[Run], staging: Path, progress: Callable[[str], None] = lambda _: None
) -> WriteResult:
    """Write the rows of runs (recordings) into the folder `staging`, with Spark.

    A trace is read by one Spark task, which also writes its files. A capture is divided by connection among many tasks, and its files are written by
    Spark's Parquet writer. progress: a function called regularly with a line of text. Returns messages about the files, and the position up to which
    each trace was read.
    """

    def save(rows: DataFrame, table: str) -> None:
        rows.write.mode("append").partitionBy(*PARTITIONED_BY).option("compression", COMPRESSION).parquet(
            str(staging / table)
        )

    traced = [run for run in runs if not run.capture]
    captured = [run for run in runs if run.capture]
    result = WriteResult([], {})
    if traced:
        notes = staging / READ
        notes.mkdir()
        with report_progress(traced, notes, progress):
            _traces(spark, traced, staging, result)
    if captured:
        notes = (staging / READ_OF_CAPTURES).resolve()  # executors may run elsewhere
        notes.mkdir()
        with report_progress(captured, notes, progress):
            result.notices.extend(captures.with_spark(spark, captured, save, partial(note_read, notes)))
    return result


@contextmanager
def report_progress(runs: list[Run], notes: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Return a context in which `progress` is called every few seconds with the share of the new bytes that Spark tasks have read.

    runs: the recordings that are being read. notes: a folder with a file for each of these recordings, into which Spark tasks write the number of
    bytes that they have read (`note_read`). progress: a function called with a line of text.
    """
    total = sum(run.new_bytes for run in runs)
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(PROGRESS_INTERVAL_S):
            read_bytes = sum(int(note.read_text()) for note in notes.glob("[0-9]*"))
            if read_bytes < total:
                progress(
                    f"{read_bytes / 1e6:,.0f} of {total / 1e6:,.0f} MB read, {100 * read_bytes // max(total, 1)} %"
                )
            else:
                progress("everything is read; writing")

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def _traces(spark: SparkSession, runs: list[Run], staging: Path, result: WriteResult) -> None:
    """Write the rows of traces with one Spark task per run (recording), and move the files of the tasks into the folder `staging`.

    result: receives the notices about the files, and the position reached in each run. Each attempt of a task writes into a folder of its own; only
    the files of the attempt that Spark accepts are moved. Raises StoreError if this process cannot see the files that a task wrote: the task may have
    run on a machine where the path is another folder, or a network file system may not show the files yet.
    """
    staging = staging.resolve()  # executors may run elsewhere
    numbers = spark.range(0, len(runs), 1, len(runs))
    for row in numbers.mapInArrow(partial(_write_runs, runs, staging), ATTEMPT_DDL).collect():
        if _files_under(staging / row.folder) != row.files:
            raise StoreError(
                f"{staging.parent}: files that a Spark task wrote are not visible on this machine; give a folder that every machine reaches "
                "under the same path"
            )
        for run_folder in sorted((staging / row.folder).glob("*/run=*")):
            table = staging / run_folder.parent.name
            table.mkdir(exist_ok=True)
            run_folder.rename(table / run_folder.name)
        _add(result, runs[row.number], [Notice(*fields) for fields in json.loads(row.notices)], row.place)
    shutil.rmtree(staging / ATTEMPTS, ignore_errors=True)


def _write_runs(runs: list[Run], staging: Path, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            folder = f"{ATTEMPTS}/{number}-{context.taskAttemptId()}"
            notices, place = write_run(runs[number], staging / folder, partial(note_read, staging / READ, number))
            files = _files_under(staging / folder)
            row = {"number": number, "folder": folder, "files": files, "notices": json.dumps(notices), "place": place}
            yield pa.RecordBatch.from_pylist([row], ATTEMPT_SCHEMA)


def _files_under(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*.parquet"))


def note_read(folder: Path, number: int, done_bytes: int) -> None:
    """Write how many bytes of a run (a recording) were read, `done_bytes`, into a file for `report_progress`. The file is replaced atomically.

    folder: the folder of the file. number: index of the run, which is the name of the file.
    """
    fresh = folder / f".{number}"
    fresh.write_text(str(done_bytes))
    fresh.replace(folder / str(number))


def row_counts_text(rows: Mapping[str, int]) -> str:
    """Return the numbers of rows as text, such as "2 requests, 1 batch". rows: maps the name of a table to its number of rows."""
    return ", ".join(f"{count:,} {ONE_ROW[table] if count == 1 else table}" for table, count in rows.items())


def read(spark: SparkSession, out: Path, table: str) -> DataFrame:
    """Return one of the tables in the folder `out`, with the columns of `schema`, even if it has no rows.

    Columns in tables of earlier versions get their current names.
    """
    columns = [column.name for column in TABLES[table]]
    if not any((out / table).glob("run=*")):
        return spark.createDataFrame([], ddl(table)).select(columns)
    earlier_names = EARLIER_NAMES.get(table, {}) if earlier_runs(Store(out)) else {}
    types = {column.name: column.type for column in TABLES[table]}
    earlier_columns = [f"`{earlier}` {types[name]}" for name, earlier in earlier_names.items()]
    frame = spark.read.schema(", ".join([ddl(table), *earlier_columns])).parquet(str(out / table))
    return frame.selectExpr(
        *(f"coalesce({name}, {earlier_names[name]}) AS {name}" if name in earlier_names else name for name in columns)
    )


def earlier_runs(store: Store) -> list[str]:
    """Return the names of the runs (recordings) whose rows another version of this program made, in another format.

    store: the folder of the Parquet tables. Such runs may have no rows in tables that later versions added, such as `transactions` and `groups`.
    """
    return sorted(name for name, entry in store.manifest().items() if entry.get(FORM) != FINGERPRINT)


# ---- the command -------------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `kafkaproto tables` and return the exit status.

    0: no problem. 1: files lack their end, as after `kill -9`, and there is no other problem. 2: a file could not be read, a run (a recording) was
    rejected, or the tables could not be updated.
    """
    options = parser("tables").parse_args(arguments)

    def note(line: str) -> None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def spark(runs: list[Run], staging: Path) -> WriteResult:
        with local_session("kafkaproto tables") as session:
            return with_spark(session, runs, staging, lambda line: note(f"kafkaproto tables: {line}"))

    try:
        counts, notices = build(
            options.trace, options.out, without_spark if options.without_spark else spark, options.port
        )
    except (TraceError, StoreError, OSError) as error:
        sys.stderr.write(f"kafkaproto tables: {error}\n")
        return 2
    for run, rows in counts.items():
        sys.stdout.write(f"run {run}: {row_counts_text(rows)}\n")
    if not counts:
        sys.stdout.write(
            "nothing is new\n" if all(notice.torn for notice in notices) else "nothing new could be read\n"
        )
    for notice in notices:
        sys.stderr.write(f"kafkaproto tables: {notice.text}\n")
    return 2 if any(not notice.torn for notice in notices) else int(bool(notices))


if __name__ == "__main__":
    sys.exit(main())
