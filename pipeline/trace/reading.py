"""A run as Arrow batches of its tables: what Spark's tasks do, and who works without Spark.

A run is read in the order of its files, by one reader: later rows need what earlier entries told (fetch sessions, throttles, names).
It is read as far as its files went when they were found, so that a task that is done again makes the same rows; and from the place on
where it was left before, if it has one. Files that cannot be read are told, not raised, so that the others are used, and so is what an entry
says that no table can hold: one bit that fell over on a disk must not cost the other runs. Must never know Spark, nor where tables are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkaproto.pipeline.trace.columns import Row
from kafkaproto.pipeline.trace.place import Place
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.runs import Run, Told
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.trace.format import Entry, Event, TraceError
from kafkaproto.trace.reading import Trace

ROWS_PER_BATCH = 4096
ENTRIES_PER_NOTE = 20_000
TOLD = "told"
"""What is to be said of a file, as if it were a table."""
PLACE = "place"
"""Where a run was left, the same way."""

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
PLACE_SCHEMA = pa.schema([("run", pa.string()), ("text", pa.string())])
_CANNOT_BE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)
"""What comes of values that are not what their names say, or not of their size: `datetime` and Arrow raise these, too."""


class Reading:
    """What is new of a run, read once by `entries()`. Afterwards `told` has what is to be said of its files, and `left` the file, byte and
    header behind which to go on when it has grown: None where the next reader had to tell of a file again, or could not read on.

    note: is told now and then how many bytes are read.
    """

    def __init__(self, run: Run, note: Callable[[int], None] = lambda _: None) -> None:
        self._run = run
        self._note = note
        self.told: list[Told] = []
        self.left: tuple[str, int, dict[str, Any]] | None = None

    def entries(self) -> Iterator[Entry]:
        """The header as an event, if it is not in the tables yet, then every entry that can be read."""
        run = self._run
        if run.place is None:
            begun = {"clock_ms": int(run.meta.get("clock_ms", 0)), "at_ns": int(run.meta.get("at_ns", 0))}
            yield Event("meta", {**run.meta, "seq": 0, "broker": -1, **begun})
        first, begins = run.begins
        done = 0
        for file, size in zip(run.files[first:], run.sizes[first:], strict=True):
            self.left, none_told = None, not self.told
            try:
                trace = Trace(Path(file))
                for number, entry in enumerate(trace.entries(begins, size), 1):
                    yield entry
                    if number % ENTRIES_PER_NOTE == 0:
                        self._note(done + trace.read_bytes - begins)
                if trace.torn:
                    self.told.append(Told(run.name, trace.torn, True))
                if none_told:
                    self.left = trace.path.name, trace.read_bytes, trace.meta
            except (TraceError, OSError) as error:
                self.told.append(Told(run.name, str(error), False))
            done += size - begins
            begins = 0
            self._note(done)


class _LeftOut:
    """What cannot be a row of a run: how much, and what the first one was."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def add(self, seq: Any, error: Exception) -> None:
        self.count += 1
        self.first = self.first or f"of entry {seq}: {type(error).__name__}: {error}"

    def batch(self, table: str, rows: list[Row]) -> pa.RecordBatch:
        """Those that the table can hold."""
        try:
            return pa.RecordBatch.from_pylist(rows, SCHEMAS[table])
        except _CANNOT_BE:
            return pa.RecordBatch.from_pylist([row for row in rows if self._fits(table, row)], SCHEMAS[table])

    def _fits(self, table: str, row: Row) -> bool:
        try:
            pa.RecordBatch.from_pylist([row], SCHEMAS[table])
        except _CANNOT_BE as error:
            self.add(row["seq"], error)
            return False
        return True

    def told(self, run: str) -> Told:
        return Told(
            run, f"run {run}: {self.count} times what no row can hold is left out, the first {self.first}", False
        )


def batches(run: Run, note: Callable[[int], None] = lambda _: None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """(table, rows) of what is new of a run; at the end what has to be said of its files, as table `TOLD`, and where it was left, as table
    `PLACE`. note: as of `Reading`."""
    wall_ms, at_ns = int(run.meta.get("wall_ms", 0)), int(run.meta.get("at_ns", 0))
    if run.place is None:
        rows = Rows(run.name, wall_ms, at_ns)
    else:
        rows = Rows.carrying(run.name, wall_ms, at_ns, run.place.carried)
    reading = Reading(run, note)
    left_out = _LeftOut()
    waiting: dict[str, list[Row]] = {table: [] for table in TABLES}
    for entry in reading.entries():
        try:
            made = list(rows.of(entry))
        except _CANNOT_BE as error:
            left_out.add(entry.facts.get("seq") if isinstance(entry, Event) else entry.seq, error)
            continue
        for table, row in made:
            kept = waiting[table]
            kept.append(row)
            if len(kept) == ROWS_PER_BATCH:
                yield table, left_out.batch(table, kept)
                kept.clear()
    for table, kept in waiting.items():
        if kept:
            yield table, left_out.batch(table, kept)
    if left_out.count:
        reading.told.append(left_out.told(run.name))
    if reading.told:
        yield TOLD, pa.RecordBatch.from_pylist([one._asdict() for one in reading.told], SCHEMAS[TOLD])
    if reading.left is not None and not left_out.count:
        place = Place(*reading.left, rows.carried())
        yield PLACE, pa.RecordBatch.from_pylist([{"run": run.name, "text": place.text()}], PLACE_SCHEMA)
