"""A Spark job: how many records a topic got in each window of event time, written to another topic.

`spark-submit --packages … windowed_counts.py --bootstrap HOST:PORT --source TOPIC --target TOPIC --checkpoint FOLDER` runs until all that
is there now is counted; run it again with the same checkpoint, and it goes on where it ended. Knows no broker but by its address.
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
    """Begin counting what is there now.

    A record of the target has the start of its window as key, in milliseconds, the count so far as value, both as decimal text, and a
    header "window" with the length in seconds. The last record of a key is the count.
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
    """The options of the job."""
    made = argparse.ArgumentParser(description="Count a topic's records in windows of event time.")
    made.add_argument("--bootstrap", required=True, metavar="HOST:PORT[,HOST:PORT]")
    made.add_argument("--source", required=True, metavar="TOPIC")
    made.add_argument("--target", required=True, metavar="TOPIC")
    made.add_argument("--checkpoint", required=True, metavar="FOLDER")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    spark = SparkSession.builder.appName("windowed counts").getOrCreate()
    try:
        start(spark, options.bootstrap, options.source, options.target, options.checkpoint).awaitTermination()
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
