"""The streaming query reads the journal topic with Spark, writes a table of the clients' throttles and lag, and sends alerts to a Kafka topic.

The table has one row for each client and time window. A client that exceeds a limit causes an alert, at most one in a window.

In the journal topic, the broker of this project publishes throttles, and the offsets that clients have read and written;
`broker/observe/journal_topic.py` describes the records. One folder holds everything that the job needs to continue after a restart: `state` is
Spark's checkpoint (offsets and open windows), `table` has the rows of each micro-batch. These rows also show which clients already have an alert in
a window.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from kafkaproto.pipeline.live.limits import Limits as Limits
from kafkaproto.pipeline.live.limits import Windows as Windows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

VERSION = 1
"""The version of the records in the broker's journal topic that the live job reads; it ignores records of other versions."""
CLIENT_ID = "kafkaproto-live"
ENTRY = """v int, kind string, client_id string, throttle_ms long, topic string, partition int, next_offset long,
    high_watermark long"""
TABLE = """window_start_ms long, batch long, window_end_ms long, client_id string, throttles long, throttled_ms long, share double,
    longest_ms long, lag_max long, lag_last long, alert boolean"""
SHOWN_ROWS = 20


class FolderError(ValueError):
    """Raised if the checkpoint folder of a live job cannot be used. The message says what to do.

    The folder belongs to another live job or to another program, or it is not writable.
    """


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """A summary of one micro-batch that added rows to the live job's table of clients by window.

    batch: number of the micro-batch. rows: number of written rows. windows: number of windows to which these rows belong. alerts: number of new
    alerts. worst: at most 20 rows, sorted so that rows with alerts come first, then those with the longest throttle times, then those with the
    largest lags.
    """

    batch: int
    rows: int
    windows: int
    alerts: int
    worst: list[Row]


def entries(spark: SparkSession, bootstrap: str, journal: str) -> DataFrame:
    """Return the broker's journal topic as a stream of rows with the columns `timestamp` (the broker's clock) and `offset`.

    Further columns are the fields of the record's JSON value that this job uses, such as `kind`, `client_id` and `throttle_ms`. The broker keeps the
    journal for some minutes only; a job that restarts later continues with the records that remain. bootstrap: host:port of brokers, separated by
    commas. journal: name of the journal topic.
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
    """Return the throttle times and the lag of each client in each window. The client id is "" for a client without one.

    journal: the rows that `entries` returns, one for each record of the journal topic. windows: length of the windows, and the time between their
    starts. The lag of a client in a partition is the high watermark minus the next offset that the client reads.

    Columns:

    - window (struct of start and end), window_start_ms, window_end_ms, client_id: the window and the client.
    - throttles: how often the client was throttled. longest_ms: the longest throttle time.
    - throttled_ms: sum of the throttle times of all connections. A throttle counts in full in each window that contains its timestamp.
    - share: `throttled_ms` divided by the length of the window. It may exceed 1, because several connections can be throttled at the same time.
    - lag_max: the largest lag in any partition. lag_last: the lag that was recorded last, in whichever partition. Both are null if no record in the
      window has a lag of the client.
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
    """Return the table that a job has written into its folder so far: the newest row of each client in each window. folder: the job's folder."""
    rows = spark.read.schema(TABLE).parquet(str(folder / "table"))
    names = [name for name in rows.columns if name not in ("window_start_ms", "client_id")]
    newest = f.max_by(f.struct(*names), "batch").alias("row")
    return rows.groupBy("window_start_ms", "client_id").agg(newest).select("window_start_ms", "client_id", "row.*")


class Job:
    """Reads a broker's journal topic with Spark, writes a table of clients by time window, and sends alerts; `start()` starts its query.

    A row of the table says how long one client was throttled in one window, and by how many offsets it was behind the high watermarks. bootstrap:
    host:port of brokers, separated by commas. folder: the folder for Spark's checkpoint and the table. journal: the topic to read.
    alerts_topic: the topic that receives the alerts. on_batch: a function that is called in a thread of Spark, with a `BatchSummary`, after each
    micro-batch that changed the table.

    A client causes an alert if it reaches one of the limits on throttles and lag (`Limits`), but at most one alert per window. Spark's sink has no
    transactions: if the process ends after writing alerts but before the end of their micro-batch, the alerts are written again after a restart.
    Raises FolderError if the folder holds the state of another job.
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
        on_batch: Callable[[BatchSummary], None] | None = None,
    ) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._folder = folder
        self._journal = journal
        self._alerts_topic = alerts_topic
        self._windows = windows or Windows()
        self._limits = limits or Limits()
        self._on_batch = on_batch
        claim(folder, journal, self._windows)

    def start(self, every_s: float | None = None) -> StreamingQuery:
        """Start the query and return it.

        every_s: seconds between micro-batches; with None, the query stops once all records that exist now are in the table.
        """
        is_alert = (f.col("throttled_ms") >= self._limits.throttled_ms) | self._lags
        journal = entries(self._spark, self._bootstrap, self._journal)
        rows = by_client(journal, self._windows).withColumn("alert", is_alert)
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
        """Write the changed rows of one micro-batch to the table, and alerts for clients that newly reach a limit.

        changed: the rows that the micro-batch changed. batch: number of the micro-batch. Repeating a micro-batch leaves the table unchanged.
        """
        names = [field.split()[0] for field in TABLE.split(",")]
        rows = changed.withColumn("batch", f.lit(batch).cast("long")).select(*names).persist()
        try:
            counts = rows.groupBy("window_start_ms").agg(
                f.count("*").alias("rows"), f.count_if("alert").alias("alerts")
            )
            window_counts = counts.collect()
            if not window_counts:
                return
            writer = rows.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
            writer.partitionBy("window_start_ms", "batch").parquet(str(self._folder / "table"))
            alert_windows = [row.window_start_ms for row in window_counts if row.alerts]
            alerts = self._alert(rows, alert_windows, batch) if alert_windows else 0
            if self._on_batch is not None:
                worst = rows.orderBy(f.desc("alert"), f.desc("throttled_ms"), f.desc("lag_max"), "client_id")
                worst_rows = worst.limit(SHOWN_ROWS).collect()
                self._on_batch(
                    BatchSummary(batch, sum(row.rows for row in window_counts), len(window_counts), alerts, worst_rows)
                )
        finally:
            rows.unpersist()

    def _alert(self, rows: DataFrame, alert_windows: list[int], batch: int) -> int:
        """Write an alert for each row whose client reaches a limit in the row's window. Returns the number of new alerts.

        An alert that an earlier micro-batch has already written for this client and window is not written again. rows: the rows of the micro-batch,
        one per client and window. alert_windows: the starts, in ms, of the windows in which a client reaches a limit, whether its alert was written
        before or not. batch: number of the micro-batch.
        """
        base = str(self._folder / "table")
        paths = [f"{base}/window_start_ms={start_ms}" for start_ms in alert_windows]
        earlier = rows.sparkSession.read.schema(TABLE).option("basePath", base).parquet(*paths)
        alerted = earlier.where((f.col("batch") < batch) & f.col("alert")).select("window_start_ms", "client_id")
        new = rows.where("alert").join(alerted, ["window_start_ms", "client_id"], "left_anti").persist()
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
    """Reserve the checkpoint folder of a live job: write a file `job.json` with the name of its journal topic and its windows.

    folder: the checkpoint folder. journal: the name of the journal topic. Raises FolderError if the folder belongs to a job with another journal
    topic or other windows, contains other files, or cannot be written to.
    """
    path = folder / "job.json"
    this_job = {"journal": journal, "window_s": windows.window_s, "slide_s": windows.slide_s, "late_s": windows.late_s}
    try:
        if path.exists():
            other_job = json.loads(path.read_text())
            if other_job != this_job:
                raise FolderError(
                    f"checkpoint folder {folder} belongs to a job with {_text(other_job)}, but this job has {_text(this_job)}; "
                    "give another --checkpoint"
                )
            return
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise FolderError(
                f"checkpoint folder {folder} contains files that do not belong to a job; give an empty or new folder as --checkpoint"
            )
        path.write_text(json.dumps(this_job) + "\n")
    except OSError as error:
        raise FolderError(
            f"checkpoint folder {folder} cannot be used: {error.strerror or error}; give another --checkpoint"
        ) from None


def resume_offset(folder: Path, journal: str) -> int:
    """Return the offset in the journal topic at which a job with this checkpoint folder continues; 0 for a new folder.

    journal: name of the journal topic. The offset is read from Spark's `OffsetSeqLog` in the folder.
    """
    logs = [path for path in (folder / "state" / "offsets").glob("*") if path.name.isdigit()]
    if not logs:
        return 0
    newest = max(logs, key=lambda path: int(path.name))
    offsets = json.loads(newest.read_text().splitlines()[-1])
    return max(offsets.get(journal, {}).values(), default=0)


def _text(settings: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())
