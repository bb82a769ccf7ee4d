"""A Spark job that counts the records of a topic in windows of event time and writes the counts to another topic.

`spark-submit --packages … windowed_counts.py --bootstrap HOST:PORT --source TOPIC --target TOPIC --checkpoint FOLDER` counts everything that the
topic contains now, then stops. A later run with the same checkpoint continues where it stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

WINDOW_SECONDS = 60


def start(spark: SparkSession, bootstrap: str, source: str, target: str, checkpoint: str) -> StreamingQuery:
    """Start and return a query that counts the records of a topic in windows of their timestamps, up to the present end of the topic.

    bootstrap: host:port of brokers, separated by commas. source, target: names of the topics to read and to write. checkpoint: folder that stores up
    to which offsets the records were counted. The query writes the count of a window as a record: the key is the start of the window in ms and the
    value is the count, both as decimal text; the header "window" has the length of the window in seconds. When the count of a window grows, the
    query writes another record with the same key, so the last record with a key has the valid count.
    """
    events = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
    )
    header = f.struct(f.lit("window").alias("key"), f.lit(str(WINDOW_SECONDS).encode()).alias("value"))
    counted = events.groupBy(f.window("timestamp", f"{WINDOW_SECONDS} seconds")).count()
    return (
        counted.select(
            f.unix_millis("window.start").cast("string").alias("key"),
            f.col("count").cast("string").alias("value"),
            f.array(header).alias("headers"),
        )
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", target)
        .option("includeHeaders", "true")
        .option("checkpointLocation", checkpoint)
        .outputMode("update")
        .trigger(availableNow=True)
        .start()
    )


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of the job that counts the records of a topic in windows."""
    argument_parser = argparse.ArgumentParser(
        description="Count the records that a topic contains when the job starts, in windows of "
        f"{WINDOW_SECONDS} seconds by the timestamps of the records, and write the counts to another topic."
    )
    argument_parser.add_argument(
        "--bootstrap",
        required=True,
        metavar="HOST:PORT[,HOST:PORT]",
        help="addresses of one or more brokers of the cluster",
    )
    argument_parser.add_argument("--source", required=True, metavar="TOPIC", help="the topic whose records are counted")
    argument_parser.add_argument(
        "--target", required=True, metavar="TOPIC", help="the topic to which the counts are written"
    )
    argument_parser.add_argument(
        "--checkpoint",
        required=True,
        metavar="FOLDER",
        help="the folder in which Spark keeps its progress; a later run with the same folder continues from there",
    )
    return argument_parser


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    spark = SparkSession.builder.appName("windowed counts").getOrCreate()
    try:
        start(spark, options.bootstrap, options.source, options.target, options.checkpoint).awaitTermination()
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
