"""Writes the Parquet files of a run (a recording).

Their paths are <folder>/<table>/run=<run>/hour=<hour>/part-….parquet. Small batches are combined into row groups of at least 32,768 rows, except the
last of a file. Only a fixed number of files (`OPEN_PARTS`) is open at a time, however many hours a run covers. This module does not depend on Spark
or the content of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafkaproto.pipeline.sources import batches
from kafkaproto.pipeline.trace.reading import NOTICES, PLACE
from kafkaproto.pipeline.trace.runs import Notice, Run
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.pipeline.trace.store import folder_of

PARTITIONED_BY = ("run", "hour")
COMPRESSION = "zstd"
ROWS_PER_GROUP = 32 * 1024
OPEN_HOURS = 2
OPEN_PARTS = OPEN_HOURS * len(TABLES)


class WriteResult(NamedTuple):
    """The result of writing the rows of runs (recordings).

    notices: messages for the user about problems of the files. places: maps a run to the position from which the next job can continue, as JSON.
    """

    notices: list[Notice]
    places: dict[str, str]


class _Part:
    """An open Parquet file of a table, and the Arrow batches that are collected for it until they fill a row group."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(path, schema, compression=COMPRESSION)
        self._pending: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, rows: pa.RecordBatch) -> None:
        self._pending.append(rows)
        self._rows += len(rows)
        if self._rows >= ROWS_PER_GROUP:
            self._flush()

    def close(self) -> None:
        try:
            self._flush()
        finally:
            self._writer.close()

    def _flush(self) -> None:
        if self._pending:
            self._writer.write_table(pa.Table.from_batches(self._pending), row_group_size=self._rows)
            self._pending.clear()
            self._rows = 0


class _Parts:
    """The open files of one run (recording).

    Each table and hour of the run has its own files. If the maximum number of files (`OPEN_PARTS`) is open, the file that was written least recently
    is closed. Further rows of its table and hour go into a new file.
    """

    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self._folder = folder
        self._open: dict[tuple[str, str], _Part] = {}
        self._part_count = 0

    def add(self, table: str, hour: str, rows: pa.RecordBatch) -> None:
        part = self._open.pop((table, hour), None)
        if part is None:
            while len(self._open) >= OPEN_PARTS:
                self._open.pop(next(iter(self._open))).close()
            # The name contains the position in the run, so that files of a later job never replace these.
            name = f"part-{self._run.old_bytes:012d}-{self._part_count:05d}.parquet"
            self._part_count += 1
            part = _Part(self._folder / table / folder_of(self._run.name) / f"hour={hour}" / name, rows.schema)
        self._open[table, hour] = part
        part.add(rows)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


def write_run(run: Run, folder: Path, note: Callable[[int], None] = lambda _: None) -> tuple[list[Notice], str | None]:
    """Write the part of a run (recording) that the Parquet tables lack into `folder`. Returns (notices about files, position reached).

    The position is JSON text; it is None if the next job must read the run from its start again. note: called from time to time with the number of
    bytes read.
    """
    notices: list[Notice] = []
    place = None
    parts = _Parts(run, folder)
    try:
        for table, rows in batches(run, note):
            if table == NOTICES:
                notices += [Notice(**notice) for notice in rows.to_pylist()]
            elif table == PLACE:
                [place] = rows["text"].to_pylist()
            else:
                for hour in pc.unique(rows["hour"]).to_pylist():
                    parts.add(table, hour, rows.filter(pc.equal(rows["hour"], hour)).drop_columns(list(PARTITIONED_BY)))
    finally:
        parts.close()
    return notices, place
