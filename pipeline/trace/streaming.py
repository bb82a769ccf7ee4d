"""`kafkaproto stream TRACE OUT --checkpoint DIR`: the same tables while a trace is still being written.

A structured stream over the folder: its offset is how large each file was. Each micro-batch brings the tables up to the folder by the job
of `tables`, which commits at once or not at all: a batch that Spark does again finds nothing new. Of a trace only what is new is read, and
its rows are added, in files of their own: a long trigger makes fewer and larger ones. A capture that grows is read again from its
beginning. Must never know what is in a file.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from kafkaproto.pipeline.capture.files import NAMED
from kafkaproto.pipeline.session import local_session
from kafkaproto.pipeline.sources import runs_of
from kafkaproto.pipeline.trace.store import Store, StoreError
from kafkaproto.pipeline.trace.tables import build, with_spark
from kafkaproto.trace.format import SUFFIX, TraceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

EVERY = "10 seconds"
LOOK_S = 0.2
"""How often it is looked whether the query still runs: whoever waits inside the JVM cannot be interrupted."""


class TraceFolder(DataSource):
    """`readStream.format("kafkaproto_trace").option("path", DIR)`: a row for each piece by which a file of a trace has grown."""

    @classmethod
    def name(cls) -> str:
        return "kafkaproto_trace"

    def schema(self) -> str:
        return "file string, begins bigint, ends bigint"

    def streamReader(self, schema: StructType) -> FolderReader:
        if "path" not in self.options:
            raise TraceError("kafkaproto_trace needs the folder of a trace: load(DIR), or option path")
        return FolderReader(self.options["path"])


class Grown(InputPartition):
    """A piece of a file, in bytes."""

    def __init__(self, file: str, begins: int, ends: int) -> None:
        super().__init__((file, begins, ends))


class FolderReader(DataSourceStreamReader):
    """Offsets: {file: bytes}. A file that is gone, or is smaller than it was, is nothing new."""

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
        return [Grown(file, start.get(file, 0), size) for file, size in end.items() if size > start.get(file, 0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        yield partition.value


def start(spark: SparkSession, trace: Path, out: Path, checkpoint: Path, every: str = EVERY) -> StreamingQuery:
    """The running query; `stop()` it. Raises StoreError for an `out` that holds something else."""
    Store(out)
    spark.dataSource.register(TraceFolder)

    def follow(grown: DataFrame, number: int) -> None:
        if grown.isEmpty():
            return
        counts, told = build(trace, out, partial(with_spark, grown.sparkSession))
        for run, rows in counts.items():
            sys.stderr.write(f"batch {number}: run {run}: {', '.join(f'{n:,} {table}' for table, n in rows.items())}\n")
        for one in told:
            if not one.torn:  # an end that is torn is written on
                sys.stderr.write(f"batch {number}: {one.text}\n")

    stream = spark.readStream.format(TraceFolder.name()).load(str(trace)).writeStream.foreachBatch(follow)
    return stream.option("checkpointLocation", str(checkpoint)).trigger(processingTime=every).start()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until it is interrupted. Exit status 0; 2 when the tables cannot be written or the trace is none."""
    parser = argparse.ArgumentParser(
        prog="kafkaproto stream",
        description="The tables of a trace while it is written.",
        allow_abbrev=False,
    )
    parser.add_argument("trace", type=Path, help="the folder into which a broker or a proxy writes with --trace")
    parser.add_argument("out", type=Path, help="the folder of the tables")
    parser.add_argument("--checkpoint", type=Path, required=True, help="a folder in which Spark notes how far it is")
    parser.add_argument("--every", default=EVERY, help=f"how long a micro-batch waits for the next ({EVERY})")
    options = parser.parse_args(arguments)
    try:
        if not options.trace.is_dir():
            runs_of(options.trace)
            raise TraceError(f"{options.trace} is a file: give the folder that grows, or use kafkaproto tables")
        ends = Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: ends.set())
        with local_session("kafkaproto streaming") as spark:
            query = start(spark, options.trace, options.out, options.checkpoint, options.every)
            sys.stdout.write(f"following {options.trace}; interrupt it to end\n")
            sys.stdout.flush()
            while query.isActive and not ends.wait(LOOK_S):
                pass
            query.stop()
            failure = query.exception()
            if failure is not None:
                raise StoreError(str(failure).splitlines()[0])
    except (TraceError, StoreError, OSError) as error:
        sys.stderr.write(f"streaming: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
