"""Trace files as runs, and a run as Arrow batches of its tables: what Spark's tasks do, and who works without Spark.

A run is read in the order of its files, by one reader: later rows need what earlier entries told (fetch sessions, throttles, names).
Files that cannot be read are told, not raised, so that the others are used. Must never know Spark, nor where tables are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from kafkaproto.trace.format import Entry, Event, Trace, TraceError, files_of
from pipeline.trace.rows import Row, Rows
from pipeline.trace.schema import TABLES

ROWS_PER_BATCH = 4096
ENTRIES_PER_NOTE = 20_000
TOLD = "told"
"""What is to be said of a file, as if it were a table."""

_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}
SCHEMAS = {
    name: pa.schema([(column.name, _TYPES[column.type]) for column in columns]) for name, columns in TABLES.items()
} | {TOLD: pa.schema([("run", pa.string()), ("text", pa.string()), ("torn", pa.bool_())])}


class Told(NamedTuple):
    """torn: only the end of a file is missing, as after `kill -9` or while it is written. run: empty for a file of none."""

    run: str
    text: str
    torn: bool


class Run(NamedTuple):
    """The files of one recording. meta: the header of the first. sizes: bytes of each file when it was found. capture: it is one of packets."""

    name: str
    meta: dict[str, Any]
    files: tuple[str, ...]
    sizes: tuple[int, ...]
    capture: bool = False


def runs_of(path: Path) -> tuple[list[Run], list[Told]]:
    """The runs of a trace, and what has to be said of files that are none. Raises TraceError where there is no file at all."""
    found: dict[str, list[tuple[str, dict[str, Any], int]]] = {}
    told = []
    for file in files_of(path):
        try:
            trace = Trace(file)
            meta = trace.meta
            parts = found.setdefault(trace.run, [])
            twin = next((name for name, other, _ in parts if other == meta), None)
            if twin is None:
                parts.append((str(file), meta, file.stat().st_size))
            else:
                told.append(Told("", f"{file} begins as {twin} does: it is a copy, and is left out", False))
        except (TraceError, OSError) as error:
            told.append(Told("", str(error), False))
    runs = []
    for name, parts in found.items():
        files, metas, sizes = zip(*parts, strict=True)
        runs.append(Run(name, metas[0], files, sizes))
    return runs, told


def batches(run: Run, note: Callable[[int], None] = lambda _: None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """(table, rows) of a run; at the end what has to be said of its files, as table `TOLD`. note: is told now and then how many bytes of
    the files are read."""
    wall_ms, at_ns = int(run.meta.get("wall_ms", 0)), int(run.meta.get("at_ns", 0))
    rows = Rows(run.name, wall_ms, at_ns)
    told: list[Told] = []
    waiting: dict[str, list[Row]] = {table: [] for table in TABLES}
    for entry in entries(run, told, note):
        for table, row in rows.of(entry):
            kept = waiting[table]
            kept.append(row)
            if len(kept) == ROWS_PER_BATCH:
                yield table, pa.RecordBatch.from_pylist(kept, SCHEMAS[table])
                kept.clear()
    for table, kept in waiting.items():
        if kept:
            yield table, pa.RecordBatch.from_pylist(kept, SCHEMAS[table])
    if told:
        yield TOLD, pa.RecordBatch.from_pylist([one._asdict() for one in told], SCHEMAS[TOLD])


def entries(run: Run, told: list[Told], note: Callable[[int], None] = lambda _: None) -> Iterator[Entry]:
    """The header as an event, then every entry that can be read. told: what has to be said of its files is added.
    note: as of `batches`."""
    meta = run.meta
    begun = {"seq": 0, "clock_ms": int(meta.get("clock_ms", 0)), "at_ns": int(meta.get("at_ns", 0)), "broker": -1}
    yield Event("meta", {**meta, **begun})
    before = 0
    for file, size in zip(run.files, run.sizes, strict=True):
        try:
            trace = Trace(Path(file))
            for number, entry in enumerate(trace.entries(), 1):
                yield entry
                if number % ENTRIES_PER_NOTE == 0:
                    note(before + trace.read_bytes)
            if trace.torn:
                told.append(Told(run.name, trace.torn, True))
        except (TraceError, OSError) as error:
            told.append(Told(run.name, str(error), False))
        before += size
        note(before)


def meta_text(run: Run) -> str:
    """Tells whether two runs of one name are the same recording."""
    return json.dumps([run.meta.get(key) for key in ("recorder", "cluster_id", "wall_ms", "at_ns")])
