"""The two streaming queries with stored checkpoints: one that reads with kafka_py, and the live job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkaproto.broker.observe.journal_topic import DEFAULT_TOPIC
from kafkaproto.pipeline.kafka_py.source import KafkaPy
from kafkaproto.pipeline.live.job import Job, Limits, Windows, table
from kafkaproto.testing import TestCluster

JOURNAL = DEFAULT_TOPIC
ALERTS = "throttle-alerts"
WINDOWS = Windows(window_s=10, slide_s=10, late_s=10)
LIMITS = Limits(throttled_ms=1000, lag=10_000)


def write(kafka: TestCluster, client_id: str, count: int) -> None:
    """Produce `count` kB to each partition of `t`, as a client that may have a quota."""
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, client_id=client_id, linger_ms=1000, batch_size=1 << 20)
    sent = [producer.send("t", b"x" * 1000, partition=number % 2) for number in range(count)]
    producer.flush(30)
    for entry in sent:
        entry.get(30)
    producer.close(0)


def run_kafka_py(spark: Any, bootstrap: str, checkpoint: Path) -> list[tuple[int, int]]:
    """Return (partition, offset) of everything that the query had not read yet."""
    spark.dataSource.register(KafkaPy)
    read: list[tuple[int, int]] = []

    def take(rows: Any, number: int) -> None:
        read.extend((r.partition, r.offset) for r in rows.select("partition", "offset").collect())

    source = spark.readStream.format("kafka_py").option("kafka.bootstrap.servers", bootstrap)
    source = source.option("subscribe", "t").option("startingOffsets", "earliest").load()
    writer = source.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120) and query.exception() is None
    return sorted(read)


def run_live(spark: Any, bootstrap: str, folder: Path) -> None:
    """Run the live job until its table contains everything in the journal."""
    query = Job(spark, bootstrap, folder, journal=JOURNAL, alerts_topic=ALERTS, windows=WINDOWS, limits=LIMITS).start()
    assert query.awaitTermination(120) and query.exception() is None


def table_rows(spark: Any, folder: Path) -> list[list[Any]]:
    """Return window, client, batch, throttles and throttled ms of each row of the live job's table."""
    rows = table(spark, folder).collect()
    return sorted([r.window_start_ms, r.client_id, r.batch, r.throttles, r.throttled_ms] for r in rows)
