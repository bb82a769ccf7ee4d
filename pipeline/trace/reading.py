"""Conversion of a run (one recorded trace, with one or more files) into Arrow batches of its tables, in a Spark task or without Spark.

One reader reads the files of a run in order, because later rows depend on earlier entries (fetch sessions, throttles, topic names). The reader stops
at the file sizes that were measured when the run was listed, so that a repeated task makes the same rows. If the tables already contain the start of
the run, the reader continues after it. A file that cannot be read, and an entry with values that no table can hold, cause a message for the user
(`Notice`) instead of an exception, so that the rest of the run, and other runs, are converted nevertheless. This module does not depend on Spark or
where tables are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkaproto.pipeline.trace.columns import Row
from kafkaproto.pipeline.trace.place import Place
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.runs import Notice, Run
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.trace.format import Entry, Event, TraceError
from kafkaproto.trace.reading import Trace

ROWS_PER_BATCH = 4096
ENTRIES_PER_NOTE = 20_000
NOTICES = "notices"
"""The name in the pair (name, rows) from `batches` whose rows are messages for the user about files (`Notice`). No table has this name."""
PLACE = "place"
"""The name in the last pair (name, rows) from `batches`, which has the position up to which the recording was read. No table has this name.

The pair has one row, with the position as JSON (`Place`). `batches` omits the pair if a later job cannot continue from the position.
"""

_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}
SCHEMAS = {
    name: pa.schema([(column.name, _TYPES[column.type]) for column in columns]) for name, columns in TABLES.items()
} | {NOTICES: pa.schema([("run", pa.string()), ("text", pa.string()), ("torn", pa.bool_())])}
PLACE_SCHEMA = pa.schema([("run", pa.string()), ("text", pa.string())])
_INVALID_VALUE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)
"""Exceptions that values of an unexpected type or size cause in this package, in `datetime` and in Arrow."""


class RunReader:
    """Reads the new part of a run (a recording): what the Parquet tables do not contain yet. Call `entries()` once to read it.

    note: a function called regularly with the number of bytes read. When all entries are read, the attribute `notices` has messages for the user
    about problems of the files. `resume_at` then says where to continue when the run has grown: (name of the last file, byte position in this file,
    header of this file). `resume_at` is None if the run must be read from its start again: the last file could not be read, or an earlier file has a
    problem that the next reader must report again.
    """

    def __init__(self, run: Run, note: Callable[[int], None] = lambda _: None) -> None:
        self._run = run
        self._note = note
        self.notices: list[Notice] = []
        self.resume_at: tuple[str, int, dict[str, Any]] | None = None

    def entries(self) -> Iterator[Entry]:
        """Yield every readable entry of the new part of the run (recording), which the Parquet tables do not contain yet.

        If the new part is the whole run, the first item is an event of kind `meta` with the header of the trace. If it is not, an earlier job has
        already put the header into the tables.
        """
        run = self._run
        if run.place is None:
            start_times = {"clock_ms": int(run.meta.get("clock_ms", 0)), "at_ns": int(run.meta.get("at_ns", 0))}
            yield Event("meta", {**run.meta, "seq": 0, "broker": -1, **start_times})
        first, offset = run.start
        done_bytes = 0
        for file, size in zip(run.files[first:], run.sizes[first:], strict=True):
            self.resume_at, no_notices = None, not self.notices
            try:
                trace = Trace(Path(file))
                for number, entry in enumerate(trace.entries(offset, size), 1):
                    yield entry
                    if number % ENTRIES_PER_NOTE == 0:
                        self._note(done_bytes + trace.read_bytes - offset)
                if trace.torn:
                    self.notices.append(Notice(run.name, trace.torn, True))
                if no_notices:
                    self.resume_at = trace.path.name, trace.read_bytes, trace.meta
            except (TraceError, OSError) as error:
                self.notices.append(Notice(run.name, str(error), False))
            done_bytes += size - offset
            offset = 0
            self._note(done_bytes)


class _Rejected:
    """The rows and entries with values that do not fit into a table: their number (`count`) and a description of the first (`first`)."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def add(self, seq: Any, error: Exception) -> None:
        self.count += 1
        self.first = self.first or f"of entry {seq}: {type(error).__name__}: {error}"

    def batch(self, table: str, rows: list[Row]) -> pa.RecordBatch:
        """Return the rows as an Arrow batch of a table.

        Rows with values that do not fit the types of the columns are left out, and counted in the attribute `count`.
        """
        try:
            return pa.RecordBatch.from_pylist(rows, SCHEMAS[table])
        except _INVALID_VALUE:
            return pa.RecordBatch.from_pylist([row for row in rows if self._fits(table, row)], SCHEMAS[table])

    def _fits(self, table: str, row: Row) -> bool:
        try:
            pa.RecordBatch.from_pylist([row], SCHEMAS[table])
        except _INVALID_VALUE as error:
            self.add(row["seq"], error)
            return False
        return True

    def notice(self, run: str) -> Notice:
        return Notice(
            run,
            f"run {run}: {self.count} values do not fit into a row and are left out; the first is {self.first}",
            False,
        )


def batches(run: Run, note: Callable[[int], None] = lambda _: None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield pairs (table name, rows) for the new part of a run (one recorded trace): what the Parquet tables lack.

    At the end, one or two pairs may follow that belong to no table:
    - ("notices", rows): messages for the user about files (`Notice`), if there are any.
    - ("place", one row): the position up to which the run was read, if the next job can continue at this position.

    note: a function called regularly with the number of bytes read.
    """
    wall_ms, at_ns = int(run.meta.get("wall_ms", 0)), int(run.meta.get("at_ns", 0))
    if run.place is None:
        rows = Rows(run.name, wall_ms, at_ns)
    else:
        rows = Rows.from_carried(run.name, wall_ms, at_ns, run.place.carried)
    reading = RunReader(run, note)
    rejected = _Rejected()
    pending: dict[str, list[Row]] = {table: [] for table in TABLES}
    for entry in reading.entries():
        try:
            entry_rows = list(rows.of(entry))
        except _INVALID_VALUE as error:
            rejected.add(entry.facts.get("seq") if isinstance(entry, Event) else entry.seq, error)
            continue
        for table, row in entry_rows:
            table_rows = pending[table]
            table_rows.append(row)
            if len(table_rows) == ROWS_PER_BATCH:
                yield table, rejected.batch(table, table_rows)
                table_rows.clear()
    for table, table_rows in pending.items():
        if table_rows:
            yield table, rejected.batch(table, table_rows)
    if rejected.count:
        reading.notices.append(rejected.notice(run.name))
    if reading.notices:
        yield NOTICES, pa.RecordBatch.from_pylist([notice._asdict() for notice in reading.notices], SCHEMAS[NOTICES])
    if reading.resume_at is not None and not rejected.count:
        place = Place(*reading.resume_at, rows.carried())
        yield PLACE, pa.RecordBatch.from_pylist([{"run": run.name, "text": place.text()}], PLACE_SCHEMA)
