"""The job itself: the journal topic through Spark's Kafka source, a table of clients in windows, alerts through its Kafka sink.

A folder has all that outlives a run: `state` is Spark's checkpoint (offsets, and the windows that may still change), `table` what came of
each micro-batch. Whether a client was told of in a window already is looked up in the table, and so survives what the state survives.
Knows no broker but by its address; what the records say is told in `broker/observe/journal_topic.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

VERSION = 1
"""Of the journal's records; what has another is left alone."""
CLIENT_ID = "kafkaproto-live"
ENTRY = """v int, kind string, client_id string, throttle_ms long, topic string, partition int, next_offset long,
    high_watermark long"""
TABLE = """window_start_ms long, batch long, window_end_ms long, client_id string, throttles long, throttled_ms long, share double,
    longest_ms long, lag_max long, lag_last long, alert boolean"""
SHOWN_ROWS = 20


class FolderError(ValueError):
    """A folder that this job cannot go on with; the text says what can be done."""


@dataclass(frozen=True, slots=True)
class Windows:
    """What the state in a folder depends on. window_s: how long a window is, slide_s: how far apart they begin, late_s: how long one

    may still change after a later record has come.
    """

    window_s: int = 10
    slide_s: int = 10
    late_s: int = 10


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on a client is told of: milliseconds that it was throttled for in a window, records that it was behind."""

    throttled_ms: int = 1000
    lag: int = 10_000


@dataclass(frozen=True, slots=True)
class Told:
    """One micro-batch that changed something: its number, how many rows and windows, how many alerts, and the worst rows."""

    batch: int
    rows: int
    windows: int
    alerts: int
    worst: list[Row]


def entries(spark: SparkSession, bootstrap: str, journal: str) -> DataFrame:
    """The journal as a stream: `timestamp` (the broker's clock), `offset`, and the fields of ENTRY.

    The journal is kept for minutes only: where a job comes back too late, it goes on with what is there.
    """
    value = f.from_json(f.col("value").cast("string"), ENTRY)
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.client.id", CLIENT_ID)
        .option("subscribe", journal)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "false")
        .load()
        .select("timestamp", "offset", value.alias("entry"))
        .select("timestamp", "offset", "entry.*")
        .where(f.col("v") == VERSION)
    )


def by_client(journal: DataFrame, windows: Windows) -> DataFrame:
    """A row for each window and client, "" for one without a name.

    throttled_ms: the throttle times that were decided in the window, of all its connections, so that share may pass 1. lag: records that
    the client had not been given when it was answered, or when others wrote on, of one partition; last: of the partition that was told
    of last. Both are null for who has read nothing.
    """
    throttle_ms = f.when(f.col("kind") == "throttle", f.col("throttle_ms"))
    lag = f.when(
        f.col("kind").isin("fetched", "behind"), f.greatest(f.col("high_watermark") - f.col("next_offset"), f.lit(0))
    )
    window = f.window("timestamp", f"{windows.window_s} seconds", f"{windows.slide_s} seconds")
    return (
        journal.where(f.col("kind").isin("throttle", "fetched", "behind"))
        .withWatermark("timestamp", f"{windows.late_s} seconds")
        .groupBy(window, f.coalesce("client_id", f.lit("")).alias("client_id"))
        .agg(
            f.count(throttle_ms).alias("throttles"),
            f.coalesce(f.sum(throttle_ms), f.lit(0)).alias("throttled_ms"),
            f.coalesce(f.max(throttle_ms), f.lit(0)).alias("longest_ms"),
            f.max(lag).alias("lag_max"),
            f.max_by(lag, f.when(lag.isNotNull(), f.col("offset"))).alias("lag_last"),
        )
        .withColumn("window_start_ms", f.unix_millis("window.start"))
        .withColumn("window_end_ms", f.unix_millis("window.end"))
        .withColumn("share", f.col("throttled_ms") / (windows.window_s * 1000))
    )


def table(spark: SparkSession, folder: Path) -> DataFrame:
    """What a job has found so far: for each window and client the newest row. Columns are those of TABLE."""
    rows = spark.read.schema(TABLE).parquet(str(folder / "table"))
    names = [name for name in rows.columns if name not in ("window_start_ms", "client_id")]
    newest = f.max_by(f.struct(*names), "batch").alias("row")
    return rows.groupBy("window_start_ms", "client_id").agg(newest).select("window_start_ms", "client_id", "row.*")


class Job:
    """`start()` begins. told: is called after each micro-batch that changed something, in a thread of Spark's.

    A client is told of once in a window, in the micro-batch in which it passes a limit. Only where a process dies between the sink's
    write and the end of its micro-batch are the alerts of that batch written again when the job goes on: Spark's sink has no transactions.
    Raises FolderError for a folder whose state is that of another job.
    """

    def __init__(
        self,
        spark: SparkSession,
        bootstrap: str,
        folder: Path,
        journal: str = "__journal",
        alerts_topic: str = "throttle-alerts",
        windows: Windows | None = None,
        limits: Limits | None = None,
        told: Callable[[Told], None] | None = None,
    ) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._folder = folder
        self._journal = journal
        self._alerts_topic = alerts_topic
        self._windows = windows or Windows()
        self._limits = limits or Limits()
        self._told = told
        claim(folder, journal, self._windows)

    def start(self, every_s: float | None = None) -> StreamingQuery:
        """every_s: seconds from one micro-batch to the next; None: end when all that is there now is in the table."""
        passed = (f.col("throttled_ms") >= self._limits.throttled_ms) | self._lags
        journal = entries(self._spark, self._bootstrap, self._journal)
        rows = by_client(journal, self._windows).withColumn("alert", passed)
        writer = (
            rows.writeStream.outputMode("update")
            .queryName("kafkaproto live")
            .option("checkpointLocation", str(self._folder / "state"))
            .foreachBatch(self._take)
        )
        if every_s is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{round(every_s * 1000)} milliseconds").start()

    @property
    def _lags(self) -> Column:
        return f.coalesce(f.col("lag_max"), f.lit(0)) >= self._limits.lag

    def _take(self, changed: DataFrame, batch: int) -> None:
        """One micro-batch; done twice it leaves the same."""
        names = [field.split()[0] for field in TABLE.split(",")]
        rows = changed.withColumn("batch", f.lit(batch).cast("long")).select(*names).persist()
        try:
            counts = rows.groupBy("window_start_ms").agg(
                f.count("*").alias("rows"), f.count_if("alert").alias("passed")
            )
            found = counts.collect()
            if not found:
                return
            writer = rows.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
            writer.partitionBy("window_start_ms", "batch").parquet(str(self._folder / "table"))
            passing = [row.window_start_ms for row in found if row.passed]
            alerts = self._alert(rows, passing, batch) if passing else 0
            if self._told is not None:
                worst = rows.orderBy(f.desc("alert"), f.desc("throttled_ms"), f.desc("lag_max"), "client_id")
                shown = worst.limit(SHOWN_ROWS).collect()
                self._told(Told(batch, sum(row.rows for row in found), len(found), alerts, shown))
        finally:
            rows.unpersist()

    def _alert(self, rows: DataFrame, passing: list[int], batch: int) -> int:
        """Tell of who passes a limit and was not told of in the same window before."""
        base = str(self._folder / "table")
        paths = [f"{base}/window_start_ms={start_ms}" for start_ms in passing]
        earlier = rows.sparkSession.read.schema(TABLE).option("basePath", base).parquet(*paths)
        known = earlier.where((f.col("batch") < batch) & f.col("alert")).select("window_start_ms", "client_id")
        new = rows.where("alert").join(known, ["window_start_ms", "client_id"], "left_anti").persist()
        try:
            count = new.count()
            if count:
                throttled = f.when(f.col("throttled_ms") >= self._limits.throttled_ms, f.lit("throttled"))
                why = f.array_compact(f.array(throttled, f.when(self._lags, f.lit("lag"))))
                facts = [name for name in rows.columns if name not in ("alert", "batch")]
                value = f.to_json(f.struct(f.lit(VERSION).alias("v"), why.alias("why"), *facts))
                sink = new.select(f.col("client_id").alias("key"), value.alias("value")).write.format("kafka")
                sink = sink.option("kafka.bootstrap.servers", self._bootstrap).option("kafka.client.id", CLIENT_ID)
                sink.option("topic", self._alerts_topic).save()
            return count
        finally:
            new.unpersist()


def claim(folder: Path, journal: str, windows: Windows) -> None:
    """Make the folder this job's. Raises FolderError where it is another's, or cannot be written to."""
    path = folder / "job.json"
    mine = {"journal": journal, "window_s": windows.window_s, "slide_s": windows.slide_s, "late_s": windows.late_s}
    try:
        if path.exists():
            theirs = json.loads(path.read_text())
            if theirs != mine:
                raise FolderError(
                    f"{folder} is of a job with {_text(theirs)}, not {_text(mine)}; give another --checkpoint"
                )
            return
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise FolderError(f"{folder} has files that are none of this job's; give an empty or a new --checkpoint")
        path.write_text(json.dumps(mine) + "\n")
    except OSError as error:
        raise FolderError(f"{folder} cannot be used: {error.strerror or error}; give another --checkpoint") from None


def goes_on_at(folder: Path, journal: str) -> int:
    """The offset of the journal at which a job goes on with a folder; 0 for a new one. The format is that of Spark's `OffsetSeqLog`."""
    logs = [path for path in (folder / "state" / "offsets").glob("*") if path.name.isdigit()]
    if not logs:
        return 0
    newest = max(logs, key=lambda path: int(path.name))
    offsets = json.loads(newest.read_text().splitlines()[-1])
    return max(offsets.get(journal, {}).values(), default=0)


def _text(settings: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())
