"""`kafkaproto tables TRACE OUT`: traces and captures as Parquet, a folder for each table, in it one for each run and hour.

Run again, it reads only what is new: of a trace the bytes behind the last whole entry that is in the tables, and its rows are added; it is
read from its beginning, and replaced, where it is not what it was (`place`), or another version of this program has made its rows. A capture
that has grown is read again whole, since what comes later may fill in what comes before. A run is read by one task, since its rows depend on
the entries before; runs are spread over the cores.
`--without-spark` does the same in this process.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafkaproto.pipeline.capture import job as captures
from kafkaproto.pipeline.session import local_session
from kafkaproto.pipeline.sources import runs_of
from kafkaproto.pipeline.trace.place import FINGERPRINT
from kafkaproto.pipeline.trace.runs import Run, Told, meta_text, place_in
from kafkaproto.pipeline.trace.schema import TABLES, ddl
from kafkaproto.pipeline.trace.store import Store, StoreError, can_be_held, folder_of
from kafkaproto.pipeline.trace.writing import COMPRESSION, PARTITIONED_BY, Written, written
from kafkaproto.trace.format import TraceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORM = "form"
"""In the manifest: of whoever made the rows of a run. Who makes other rows makes all of them again, so that all tables are of one form."""
ATTEMPTS = "_attempts"
ATTEMPTED = pa.schema(
    [
        ("number", pa.int32()),
        ("folder", pa.string()),
        ("files", pa.int32()),
        ("told", pa.string()),
        ("place", pa.string()),
    ]
)
ATTEMPTED_DDL = "number int, folder string, files int, told string, place string"
READ, READ_OF_CAPTURES = "_read", "_read_of_captures"
"""In the staging folder: of each run how many bytes its task has read."""
TOLD_EVERY_S = 10.0

Write = Callable[[list[Run], Path], Written]
"""Writes the rows of what is new of runs into a staging folder."""


def build(
    trace: Path, out: Path, write: Write, ports: Sequence[int] = ()
) -> tuple[dict[str, dict[str, int]], list[Told]]:
    """Bring the tables in `out` up to what `trace` holds. ports: see `kafkaproto.pipeline.sources.runs_of`.

    Returns how many rows were read of each run that has new ones, by table, and what has to be said. Raises TraceError where there is no
    trace at all and StoreError for an `out` that cannot be used; then nothing has changed.
    """
    runs, told = runs_of(trace, ports)
    store = Store(out)
    counts: dict[str, dict[str, int]] = {}
    with store.at_work():
        manifest = store.manifest()
        due = []
        for run in runs:
            before = manifest.get(run.name)
            if refused := _refusal(run, before):
                told.append(Told(run.name, refused, False))
            elif before is None or before.get(FORM) != FINGERPRINT:
                due.append(run)
            elif before["files"] != _files(run):
                due.append(run._replace(place=place_in(run, before["files"], store.place(run.name, before))))
        if due:
            staging = store.staging()
            said, places = write(due, staging)
            new = {run.name: _rows(staging, run) for run in due}
            counts = {run: rows for run, rows in new.items() if any(rows.values())}
            said += [
                Told(run.name, f"{run.files[0]}: no request of Kafka is in this capture", False)
                for run in due
                if run.capture and not new[run.name]["requests"]
            ]
            told += said
            added = {run.name: manifest[run.name]["rows"] for run in due if run.place is not None}
            made = {
                run.name: {
                    "meta": meta_text(run),
                    "files": _files(run),
                    FORM: FINGERPRINT,
                    "rows": {table: n + added.get(run.name, {}).get(table, 0) for table, n in new[run.name].items()},
                    "told": [one.text for one in said if one.run == run.name],
                }
                for run in due
            }
            store.commit(manifest | made, places, added)
    return counts, told


def _files(run: Run) -> dict[str, int]:
    return {Path(file).name: size for file, size in zip(run.files, run.sizes, strict=True)}


def _refusal(run: Run, before: dict[str, Any] | None) -> str:
    """Why a run cannot be in the tables, or must not replace the one of its name that is there; empty if it may."""
    now = _files(run)
    if not can_be_held(run.name):
        return f"{run.files[0]} has a name for its run that no folder can have, and is left out"
    if before is None:
        return ""
    if before.get("meta") != meta_text(run):
        return f"run {run.name}: {run.files[0]} is another recording of the same name as one in the tables, and is left out"
    for name, size in before["files"].items():
        if name not in now:
            return f"run {run.name}: {name} is in the tables and no longer in the trace; the run is left as it is"
        if now[name] < size:
            return f"run {run.name}: {name} had {size} bytes and now has {now[name]}; the run is left as it is"
    return ""


def _rows(staging: Path, run: Run) -> dict[str, int]:
    return {
        table: sum(
            pq.read_metadata(file).num_rows for file in (staging / table / folder_of(run.name)).rglob("*.parquet")
        )
        for table in TABLES
    }


def without_spark(runs: list[Run], staging: Path) -> Written:
    """In this process, a run after the other."""
    done = Written([], {})
    for run in runs:
        _add(done, run, *written(run, staging))
    return done


def _add(done: Written, run: Run, told: list[Told], place: str | None) -> None:
    done.told.extend(told)
    if place is not None:
        done.places[run.name] = place


# ---- with Spark --------------------------------------------------------------------------------------------------------------


def with_spark(
    spark: SparkSession, runs: list[Run], staging: Path, progress: Callable[[str], None] = lambda _: None
) -> Written:
    """A task for each run of a trace, which writes its files itself; captures are spread by connection, and written by Spark. progress: takes
    a line now and then."""

    def save(rows: DataFrame, table: str) -> None:
        rows.write.mode("append").partitionBy(*PARTITIONED_BY).option("compression", COMPRESSION).parquet(
            str(staging / table)
        )

    traced = [run for run in runs if not run.capture]
    captured = [run for run in runs if run.capture]
    done = Written([], {})
    if traced:
        notes = staging / READ
        notes.mkdir()
        with told_now_and_then(traced, notes, progress):
            _traces(spark, traced, staging, done)
    if captured:
        notes = (staging / READ_OF_CAPTURES).resolve()  # executors may run elsewhere
        notes.mkdir()
        with told_now_and_then(captured, notes, progress):
            done.told.extend(captures.with_spark(spark, captured, save, partial(note_read, notes)))
    return done


@contextmanager
def told_now_and_then(runs: list[Run], notes: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """While it lasts `progress` is told every few seconds how much of what is new is read, as tasks have noted it in files."""
    total = sum(run.new_bytes for run in runs)
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


def _traces(spark: SparkSession, runs: list[Run], staging: Path, done: Written) -> None:
    """Each attempt of a task writes into a folder of its own; what the one wrote that Spark takes is what counts. Raises StoreError where that
    is not here: another machine's folder of the same name, or a share that is behind."""
    staging = staging.resolve()  # executors may run elsewhere
    numbers = spark.range(0, len(runs), 1, len(runs))
    for row in numbers.mapInArrow(partial(_work, runs, staging), ATTEMPTED_DDL).collect():
        if _files_under(staging / row.folder) != row.files:
            raise StoreError(
                f"{staging.parent}: not all that a task has written there can be seen here; give a folder that every machine reaches "
                "under the same path"
            )
        for made in sorted((staging / row.folder).glob("*/run=*")):
            table = staging / made.parent.name
            table.mkdir(exist_ok=True)
            made.rename(table / made.name)
        _add(done, runs[row.number], [Told(*one) for one in json.loads(row.told)], row.place)
    shutil.rmtree(staging / ATTEMPTS, ignore_errors=True)


def _work(runs: list[Run], staging: Path, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    for some in numbers:
        for number in some.column(0).to_pylist():
            folder = f"{ATTEMPTS}/{number}-{context.taskAttemptId()}"
            told, place = written(runs[number], staging / folder, partial(note_read, staging / READ, number))
            files = _files_under(staging / folder)
            row = {"number": number, "folder": folder, "files": files, "told": json.dumps(told), "place": place}
            yield pa.RecordBatch.from_pylist([row], ATTEMPTED)


def _files_under(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*.parquet"))


def note_read(folder: Path, number: int, done_bytes: int) -> None:
    """Note for `told_now_and_then`, in a file of `folder`, how many bytes of a run are read. The file is replaced as a whole."""
    fresh = folder / f".{number}"
    fresh.write_text(str(done_bytes))
    fresh.replace(folder / str(number))


def read(spark: SparkSession, out: Path, table: str) -> DataFrame:
    """A table with the columns that `schema` declares, whether or not it has a row."""
    columns = [column.name for column in TABLES[table]]
    if not any((out / table).glob("run=*")):
        return spark.createDataFrame([], ddl(table)).select(columns)
    return spark.read.schema(ddl(table)).parquet(str(out / table)).select(columns)


# ---- the command -------------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0; 1 when a file ends in the middle of an entry; 2 when something could not be read or was refused."""
    parser = argparse.ArgumentParser(prog="kafkaproto tables", description="Traces as Parquet tables.")
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

    def spark(runs: list[Run], staging: Path) -> Written:
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
