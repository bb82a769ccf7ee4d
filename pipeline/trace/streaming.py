"""`kafkaproto stream TRACE OUT --checkpoint DIR`: updates the Parquet tables in OUT while a trace is being written.

This is a Structured Streaming query over the folder of the trace. The offset with which Spark counts progress is the size of each file. Each
micro-batch updates the tables as `kafkaproto tables` does, completely or not at all. A committed micro-batch that Spark repeats finds nothing new.
Only the new part of a trace is read, and its rows are added as further files; a longer trigger interval makes fewer and larger files. A capture that
has grown is read again from the start. This module does not depend on the content of files.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from kafkaproto.pipeline.capture.files import NAMED
from kafkaproto.pipeline.options import EVERY, parser
from kafkaproto.pipeline.session import local_session
from kafkaproto.pipeline.sources import runs_of
from kafkaproto.pipeline.trace.store import Store, StoreError
from kafkaproto.pipeline.trace.tables import build, row_counts_text, with_spark
from kafkaproto.trace.format import SUFFIX, TraceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

POLL_INTERVAL_S = 0.2
"""The time in seconds between two checks that the query still runs. `main` polls, because a signal could not interrupt a wait in the JVM."""


class TraceFolder(DataSource):
    """The Spark data source `kafkaproto_trace`, with option `path`: one row for each range of bytes by which a file of a trace has grown."""

    @classmethod
    def name(cls) -> str:
        return "kafkaproto_trace"

    def schema(self) -> str:
        return "file string, begins bigint, ends bigint"

    def streamReader(self, schema: StructType) -> FolderReader:
        if "path" not in self.options:
            raise TraceError("kafkaproto_trace needs the folder of a trace: use load(DIR) or the option path")
        return FolderReader(self.options["path"])


class GrownRange(InputPartition):
    """The bytes by which one file has grown, from `start` (inclusive) to `end` (exclusive)."""

    def __init__(self, file: str, start: int, end: int) -> None:
        super().__init__((file, start, end))


class FolderReader(DataSourceStreamReader):
    """A reader of the growth of a folder: one row (file name, old size, new size) for each file that has grown since the previous offset.

    An offset of the stream maps the name of each file to its size in bytes. A file that has shrunk or disappeared yields no row.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def initialOffset(self) -> dict[str, int]:
        return {}

    def latestOffset(self) -> dict[str, int]:
        return {
            file.name: file.stat().st_size
            for file in sorted(self._path.iterdir() if self._path.is_dir() else ())
            if file.suffix == SUFFIX or NAMED.search(file.name)
        }

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [GrownRange(file, start.get(file, 0), size) for file, size in end.items() if size > start.get(file, 0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        yield partition.value


def start(spark: SparkSession, trace: Path, out: Path, checkpoint: Path, every: str = EVERY) -> StreamingQuery:
    """Start the streaming query and return it; the caller must `stop()` it. Raises StoreError if `out` has only files of other programs.

    trace: the folder of the trace. out: the folder of the tables. checkpoint: the folder of the query's checkpoint. every: the trigger interval as
    a Spark duration.
    """
    Store(out)
    spark.dataSource.register(TraceFolder)

    def follow(growth: DataFrame, number: int) -> None:
        if growth.isEmpty():
            return
        counts, notices = build(trace, out, partial(with_spark, growth.sparkSession))
        for run, rows in counts.items():
            sys.stderr.write(
                f"kafkaproto stream: batch {number} added rows of recording {run}: {row_counts_text(rows)}\n"
            )
        for notice in notices:
            if not notice.torn:  # the rest of a torn file is still being written
                sys.stderr.write(f"kafkaproto stream: batch {number}: {notice.text}\n")

    stream = spark.readStream.format(TraceFolder.name()).load(str(trace)).writeStream.foreachBatch(follow)
    return stream.option("checkpointLocation", str(checkpoint)).trigger(processingTime=every).start()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `kafkaproto stream` until it is interrupted. Returns exit status 0, or 2 if the tables cannot be written or the trace cannot be read."""
    options = parser("stream").parse_args(arguments)
    try:
        if not options.trace.is_dir():
            runs_of(options.trace)
            raise TraceError(
                f"{options.trace} is a file: give the folder of the trace, or read the file with kafkaproto tables"
            )
        stopped = Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        with local_session("kafkaproto stream") as spark:
            query = start(spark, options.trace, options.out, options.checkpoint, options.every)
            sys.stdout.write(f"following {options.trace}; press Ctrl-C to stop\n")
            sys.stdout.flush()
            while query.isActive and not stopped.wait(POLL_INTERVAL_S):
                pass
            query.stop()
            failure = query.exception()
            if failure is not None:
                raise StoreError(str(failure).splitlines()[0])
    except (TraceError, StoreError, OSError) as error:
        sys.stderr.write(f"kafkaproto stream: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
