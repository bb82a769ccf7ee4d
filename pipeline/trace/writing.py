"""Rows of a run as Parquet: <folder>/<table>/run=<run>/hour=<hour>/part-….parquet, as a reader of partitioned tables expects it.

Rows of many small batches are put together to groups that are worth reading, and few files are open at a time, however many hours a run
lasts. Must never know Spark, nor what is in a row.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafkaproto.pipeline.sources import batches
from kafkaproto.pipeline.trace.reading import PLACE, TOLD
from kafkaproto.pipeline.trace.runs import Run, Told
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.pipeline.trace.store import folder_of

PARTITIONED_BY = ("run", "hour")
COMPRESSION = "zstd"
ROWS_PER_GROUP = 32 * 1024
OPEN_HOURS = 2
OPEN_PARTS = OPEN_HOURS * len(TABLES)


class Written(NamedTuple):
    """told: what has to be said of files. places: of runs that can be gone on with, where they were left."""

    told: list[Told]
    places: dict[str, str]


class _Part:
    """A file that is written to, and the rows that wait for more."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(path, schema, compression=COMPRESSION)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, rows: pa.RecordBatch) -> None:
        self._waiting.append(rows)
        self._rows += len(rows)
        if self._rows >= ROWS_PER_GROUP:
            self._flush()

    def close(self) -> None:
        try:
            self._flush()
        finally:
            self._writer.close()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting), row_group_size=self._rows)
            self._waiting.clear()
            self._rows = 0


class _Parts:
    """Those of one run. Of more hours than `OPEN_HOURS` the ones not written to for longest are closed: what comes late has another file."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self._folder = folder
        self._open: dict[tuple[str, str], _Part] = {}
        self._made = 0

    def add(self, table: str, hour: str, rows: pa.RecordBatch) -> None:
        part = self._open.pop((table, hour), None)
        if part is None:
            while len(self._open) >= OPEN_PARTS:
                self._open.pop(next(iter(self._open))).close()
            # Where in the run it begins: another name each time that the run has grown.
            name = f"part-{self._run.old_bytes:012d}-{self._made:05d}.parquet"
            self._made += 1
            part = _Part(self._folder / table / folder_of(self._run.name) / f"hour={hour}" / name, rows.schema)
        self._open[table, hour] = part
        part.add(rows)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


def written(run: Run, folder: Path, note: Callable[[int], None] = lambda _: None) -> tuple[list[Told], str | None]:
    """Write what is new of a run. What has to be said of its files, and where it was left, None if it cannot be gone on with.

    note: is told now and then how many bytes are read.
    """
    told: list[Told] = []
    place = None
    parts = _Parts(run, folder)
    try:
        for table, rows in batches(run, note):
            if table == TOLD:
                told += [Told(**one) for one in rows.to_pylist()]
            elif table == PLACE:
                [place] = rows["text"].to_pylist()
            else:
                for hour in pc.unique(rows["hour"]).to_pylist():
                    parts.add(table, hour, rows.filter(pc.equal(rows["hour"], hour)).drop_columns(list(PARTITIONED_BY)))
    finally:
        parts.close()
    return told, place
