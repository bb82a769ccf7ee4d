"""Step 6 of the demo: Spark's own Kafka source and sink, in batch and streaming queries.

The queries read by timestamp, with headers, and from the closest replica. The expected results are the records that kafka-python wrote or reads,
never numbers of Spark itself.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from kafkaproto.pipeline import session, windowed_counts
from kafkaproto.pipeline.demo import records
from kafkaproto.pipeline.demo.brokers import RACKS, Brokers
from kafkaproto.pipeline.demo.table import Cell, Progress, same, within

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCE_KIND = "zstd"
EVENTS, COUNTS, COPY = "demo-events", "demo-counts", "demo-spark-copy"
EVENTS_PER_RUN = 500
EVENT_STEP_MS = 250
WINDOW_MS = windowed_counts.WINDOW_SECONDS * 1000
WRITTEN = 1_000
POLL_SECONDS = 10.0


def run(brokers: Brokers, progress: Progress) -> list[Cell]:
    scratch = session.scratch_folder()
    try:
        with tempfile.TemporaryFile("w+") as log:
            try:
                return _with_session(brokers, progress, scratch, log)
            except session.ConnectorMissing:
                raise
            except Exception:
                log.seek(0)
                progress.note("last output of Spark:\n" + "".join(log.readlines()[-30:]))
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _with_session(brokers: Brokers, progress: Progress, scratch: Path, log: Any) -> list[Cell]:
    if not session.is_connector_cached():
        progress.note(f"first run: {session.installed_connector()} and its dependencies are downloaded")
    spark = session.start("kafkaproto demo", scratch, log)
    progress.note(f"Spark {spark.version} with its Kafka connector has started")
    try:
        cells = []
        for part in (_batch_read, _read_by_timestamp, _rack_read, _windowed_counts, _batch_write):
            start = progress.seconds
            cells += part(spark, brokers, scratch)
            progress.note(f"{str(part.__name__).strip('_').replace('_', ' ')}: {progress.seconds - start:.1f} s")
        return cells
    finally:
        spark.stop()


def source(spark: SparkSession, brokers: Brokers, topic: str, **options: str) -> DataFrame:
    """Return a DataFrame that reads a topic with Spark's Kafka source, from the beginning unless `options` give another start.

    options: further options of Spark's source. An underscore in the name stands for a dot: `kafka_client_rack` sets `kafka.client.rack`.
    """
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", brokers.bootstrap).option("subscribe", topic)
    for name, value in options.items():
        reader = reader.option(name.replace("_", "."), value)
    return reader.load()


# ---- batch source ------------------------------------------------------------------------------------------------------------


def _batch_read(spark: SparkSession, brokers: Brokers, scratch: Path) -> list[Cell]:
    frame = source(spark, brokers, records.topic_of(SOURCE_KIND), includeHeaders="true")
    records_read = Counter(
        records.Record(
            bytes(row.key),
            bytes(row.value),
            tuple((h.key, bytes(h.value)) for h in row.headers),
            _milliseconds(row.timestamp),
        )
        for row in frame.select("key", "value", "headers", "timestamp").collect()
    )
    expected = Counter(map(records.record_number, range(records.RECORDS)))
    return [
        same(
            "batch read: records with key, headers and timestamp",
            records.RECORDS,
            (records_read & expected).total() - (records_read - expected).total(),
        )
    ]


def _read_by_timestamp(spark: SparkSession, brokers: Brokers, scratch: Path) -> list[Cell]:
    topic, first = records.topic_of(SOURCE_KIND), records.RECORDS * 3 // 4
    at_ms = records.record_number(first).timestamp_ms
    offsets = {topic: {str(i): at_ms for i in range(records.PARTITIONS)}}
    count = source(spark, brokers, topic, startingOffsetsByTimestamp=json.dumps(offsets)).count()
    return [same("startingOffsetsByTimestamp: records from that time on", records.RECORDS - first, count)]


def _rack_read(spark: SparkSession, brokers: Brokers, scratch: Path) -> list[Cell]:
    group = "demo-spark-rack"
    topic = records.topic_of("none")
    count = source(spark, brokers, topic, kafka_client_rack="b", groupIdPrefix=group).count()
    shares = _received(spark, group)
    return [
        same("kafka.client.rack=b: records", records.RECORDS, count),
        within("kafka.client.rack=b: bytes from the broker in rack b", 90, 100, 100 * shares[1] / sum(shares), "%", 1),
    ]


def _received(spark: SparkSession, group: str) -> list[float]:
    """Return the number of bytes received from each broker, from the metrics of Spark's Java consumers.

    group: the prefix of the group ids of these consumers. The result has one number for each broker, in the order of the broker ids. The metrics
    still exist after a query, because Spark keeps its consumers in a pool for a while.
    """
    jvm: Any = spark.sparkContext._jvm
    pattern = jvm.javax.management.ObjectName("kafka.consumer:type=consumer-node-metrics,*")
    shares = [0.0] * len(RACKS)
    for name in _mbeans(spark, "queryNames", pattern, pattern).toArray():
        if f"consumer-{group}" in name.getKeyProperty("client-id"):
            node = int(name.getKeyProperty("node-id").removeprefix("node-"))
            if 0 <= node < len(RACKS):
                shares[node] += _mbeans(spark, "getAttribute", name, "incoming-byte-total")
    return shares


def _mbeans(spark: SparkSession, method: str, *arguments: object) -> Any:
    """Call a method of the JVM's MBean server by reflection, and return its result as py4j converts it.

    Reflection is necessary because the server's class is not public, and py4j does not see its interface. arguments: those of the method.
    """
    context: Any = spark.sparkContext
    jvm = context._jvm
    mbean_method = next(
        m for m in jvm.java.lang.Class.forName("javax.management.MBeanServer").getMethods() if m.getName() == method
    )
    java_arguments = context._gateway.new_array(jvm.Object, len(arguments))
    for i, argument in enumerate(arguments):
        java_arguments[i] = argument
    return mbean_method.invoke(jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer(), java_arguments)


# ---- streaming source and sink -----------------------------------------------------------------------------------------------


def _windowed_counts(spark: SparkSession, brokers: Brokers, scratch: Path) -> list[Cell]:
    """Make two runs of a job that counts the events of each minute, and return the checks of their results.

    The second run continues from the checkpoint of the first run, and counts only events that were sent after the first run. scratch: the folder in
    which the checkpoint is stored.
    """
    brokers.create_topic(EVENTS, 2)
    brokers.create_topic(COUNTS, 1)
    cells = []
    for turn in (1, 2):
        _send_events(brokers, turn)
        started_ms = time.time() * 1000
        rows = _count_events(spark, brokers, scratch / "checkpoint")
        sent = range(turn * EVENTS_PER_RUN)
        expected = Counter(_event_ms(i) // WINDOW_MS * WINDOW_MS for i in sent)
        latest, headers, timestamp_ms = _counts(brokers)
        cells += [
            same(f"streaming, run {turn}: processed events", EVENTS_PER_RUN, rows),
            same(f"streaming, run {turn}: windows with the right count", len(expected), _equal(expected, latest)),
        ]
    cells += [
        same("streaming write: headers", [("window", b"60")], headers),
        same(
            "streaming write: timestamps are those of the write",
            True,
            started_ms - 1000 <= timestamp_ms <= time.time() * 1000 + 1000,
        ),
    ]
    return cells


def _event_ms(i: int) -> int:
    return records.FIRST_TIMESTAMP_MS + i * EVENT_STEP_MS


def _send_events(brokers: Brokers, turn: int) -> None:
    with _producer(brokers) as producer:
        for i in range((turn - 1) * EVENTS_PER_RUN, turn * EVENTS_PER_RUN):
            producer.send(EVENTS, key=b"%d" % (i % 7), value=b"event", timestamp_ms=_event_ms(i))


def _count_events(spark: SparkSession, brokers: Brokers, checkpoint: Path) -> int:
    """Run the streaming job that counts events per minute, up to the current end of its topic. Returns how many records the job read.

    checkpoint: the job's checkpoint folder, from which a later run continues.
    """
    query = windowed_counts.start(spark, brokers.bootstrap, EVENTS, COUNTS, str(checkpoint))
    query.awaitTermination()
    return sum(progress["numInputRows"] for progress in query.recentProgress)


def _counts(brokers: Brokers) -> tuple[dict[int, int], list[tuple[str, bytes]], int]:
    """Return what the counting job wrote into its target topic, as (counts, headers, timestamp).

    counts: maps the start of each window, in ms, to its last count. headers, timestamp: from the last record; the timestamp is in ms.
    """
    counts = _read_all(brokers, COUNTS)
    return {int(r.key): int(r.value) for r in counts}, list(counts[-1].headers), counts[-1].timestamp


def _equal(expected: dict[int, int], actual: dict[int, int]) -> int:
    return sum(actual.get(key) == value for key, value in expected.items()) - len(actual.keys() - expected.keys())


# ---- batch sink --------------------------------------------------------------------------------------------------------------


def _batch_write(spark: SparkSession, brokers: Brokers, scratch: Path) -> list[Cell]:
    from pyspark.sql import functions as f

    brokers.create_topic(COPY, 3)
    header = f.struct(f.lit("from").alias("key"), f.lit(b"spark").alias("value"))
    (
        spark.range(WRITTEN)
        .select(
            f.concat(f.lit("key-"), "id").alias("key"),
            f.concat(f.lit("value-"), "id").alias("value"),
            (f.col("id") % 3).cast("int").alias("partition"),
            f.array(header).alias("headers"),
            f.lit(COPY).alias("topic"),
        )
        .write.format("kafka")
        .option("kafka.bootstrap.servers", brokers.bootstrap)
        .option("includeHeaders", "true")
        .save()
    )
    expected = {(b"key-%d" % i, b"value-%d" % i, i % 3, (("from", b"spark"),)) for i in range(WRITTEN)}
    read = [(r.key, r.value, r.partition, tuple(r.headers)) for r in _read_all(brokers, COPY)]
    again = source(spark, brokers, COPY, includeHeaders="true").collect()
    by_spark = [
        (bytes(r.key), bytes(r.value), r.partition, tuple((h.key, bytes(h.value)) for h in r.headers)) for r in again
    ]
    return [
        same(
            "batch write: records as kafka-python reads them",
            WRITTEN,
            len(expected & set(read)) if len(read) == WRITTEN else len(read),
        ),
        same(
            "batch write: records as Spark reads them",
            WRITTEN,
            len(expected & set(by_spark)) if len(by_spark) == WRITTEN else len(by_spark),
        ),
    ]


# ---- kafka-python ------------------------------------------------------------------------------------------------------------


@contextmanager
def _producer(brokers: Brokers) -> Iterator[KafkaProducer]:
    producer = KafkaProducer(bootstrap_servers=brokers.addresses, linger_ms=10)
    try:
        yield producer
        producer.flush()
    finally:
        producer.close()


def _read_all(brokers: Brokers, topic: str) -> list[Any]:
    """Return every record of a topic, sorted by partition and offset."""
    consumer = KafkaConsumer(bootstrap_servers=brokers.addresses)
    all_records: list[Any] = []
    try:
        partitions = [TopicPartition(topic, i) for i in consumer.partitions_for_topic(topic) or ()]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        record_count = sum(consumer.end_offsets(partitions).values())
        while len(all_records) < record_count:
            polled = consumer.poll(int(POLL_SECONDS * 1000))
            if not polled:
                break
            all_records += [record for batch in polled.values() for record in batch]
    finally:
        consumer.close()
    return sorted(all_records, key=lambda record: (record.partition, record.offset))


def _milliseconds(moment: datetime) -> int:
    """Convert a local time without a time zone, as Spark returns it, to ms since the epoch."""
    return round(moment.astimezone(UTC).timestamp() * 1000)
