"""`kafka_py` compared with Spark's own connector: equal rows and micro-batches, from the broker and from a real Kafka."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.pipeline.kafka_py.source import KafkaPy
from kafkaproto.records.batch import NewRecord
from kafkaproto.records.compression import Compression
from kafkaproto.testing import TestCluster
from tests.support.conformance.real_kafka import RealKafka

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(180),
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

START_MS = 1_700_000_000_000
CONNECTOR, OURS = "kafka", "kafka_py"
BOTH = (CONNECTOR, OURS)
EARLIEST = {"startingOffsets": "earliest"}
Rows = list[Any]


@pytest.fixture(autouse=True)
def registered(spark: Any) -> None:
    spark.dataSource.register(KafkaPy)


def with_options(builder: Any, servers: str, options: dict[str, str]) -> Any:
    builder = builder.option("kafka.bootstrap.servers", servers)
    for name, value in options.items():
        builder = builder.option(name.replace("__", "."), value)
    return builder


def frame(spark: Any, source: str, servers: str, **options: str) -> Any:
    return with_options(spark.read.format(source), servers, options).load()


def same_rows(spark: Any, servers: str, tasks: int | None = None, **options: str) -> Rows:
    """Return the rows of both sources, which must be equal. tasks: the expected number of tasks."""
    ours, theirs = (frame(spark, source, servers, **options) for source in reversed(BOTH))
    assert ours.schema == theirs.schema
    if tasks is not None:
        assert [data_frame.rdd.getNumPartitions() for data_frame in (ours, theirs)] == [tasks, tasks]
    our_rows, their_rows = (
        data_frame.orderBy("topic", "partition", "offset").collect() for data_frame in (ours, theirs)
    )
    assert our_rows == their_rows
    rows: Rows = our_rows
    return rows


def fill(kafka: TestCluster, count: int, partition: int = 0, topic: str = "t", first: int = 0) -> None:
    """Write records without key, value or headers, one batch for each."""
    new_records = [
        NewRecord(
            None if i % 7 == 3 else b"value %d" % i,
            None if i % 3 == 1 else b"key %d" % i,
            START_MS + i * 1000,
            [("n", b"%d" % i), ("none", None)] if i % 2 else [],
        )
        for i in range(first, first + count)
    ]
    kafka.produce(topic, new_records, partition, list(Compression)[partition])


# ---- batch reads -------------------------------------------------------------------------------------------------------------


def test_spark_kafka_py_batch_read_has_the_rows_and_schema_of_the_spark_connector(
    spark: Any, kafka: TestCluster
) -> None:
    for partition in range(3):
        fill(kafka, 40, partition)
    assert len(same_rows(spark, kafka.bootstrap, 9, subscribe="t", includeHeaders="true", minPartitions="8")) == 120


def test_spark_kafka_py_batch_read_covers_the_same_offsets_as_the_spark_connector(
    spark: Any, kafka: TestCluster
) -> None:
    for partition in range(3):
        fill(kafka, 30, partition)
    starting = json.dumps({"t": {"0": 10, "1": -2, "2": 29}})
    ending = json.dumps({"t": {"0": 20, "1": 5, "2": -1}})
    assert len(same_rows(spark, kafka.bootstrap, subscribe="t", startingOffsets=starting, endingOffsets=ending)) == 16
    times = json.dumps({"t": {"0": START_MS + 10_000, "2": START_MS + 9_001}})
    by_time = {"startingOffsetsByTimestamp": times, "endingTimestamp": str(START_MS + 25_000)}
    assert len(same_rows(spark, kafka.bootstrap, assign='{"t": [2, 0]}', **by_time)) == 15 + 15


@pytest.mark.rule("N-4")
def test_spark_kafka_py_read_with_a_client_rack_uses_the_replica_in_that_rack(spark: Any, kafka: TestCluster) -> None:
    for partition in range(3):
        for i in range(10):
            fill(kafka, 50, partition, first=i * 50)
    options = {"subscribe": "t", "kafka__client__rack": "b", "kafka__max__partition__fetch__bytes": "2000"}
    assert frame(spark, OURS, kafka.bootstrap, **options).count() == 1500
    fetched = {b: sum(r.response_bytes for r in kafka.journal.requests(api="Fetch", broker=b)) for b in range(3)}
    assert fetched[1] > 10 * (fetched[0] + fetched[2])


def test_spark_kafka_py_read_of_lost_data_fails_unless_fail_on_data_loss_is_false(
    spark: Any, kafka: TestCluster
) -> None:
    fill(kafka, 20)
    leader = kafka.partition("t", 0).leader
    kafka.run_in_loop(lambda: kafka.state.nodes[leader].replicas.partitions["t", 0].log.raise_log_start(10))
    options = {"subscribe": "t", "startingOffsets": json.dumps({"t": {"0": 5, "1": 0, "2": 0}})}
    with pytest.raises(Exception, match="t-0 begins at offset 10, but the query reads from offset 5"):
        frame(spark, OURS, kafka.bootstrap, **options).collect()
    assert len(same_rows(spark, kafka.bootstrap, failOnDataLoss="false", **options)) == 10


def test_spark_kafka_py_query_with_an_invalid_option_or_a_missing_topic_fails(spark: Any, kafka: TestCluster) -> None:
    for source in BOTH:
        with pytest.raises(Exception, match=r"(?i)subscribe"):
            frame(spark, source, kafka.bootstrap, subscribe="t", assign='{"t": [0]}').collect()
    with pytest.raises(
        Exception,
        match="option startingOffsets: names t-0, but must name exactly the partitions that the query reads: t-0, t-1, t-2",
    ):
        frame(spark, OURS, kafka.bootstrap, subscribe="t", startingOffsets='{"t": {"0": 1}}').collect()
    with pytest.raises(Exception, match=r"rejected the lookup of topic not-there .*: UNKNOWN_TOPIC_OR_PARTITION"):
        frame(spark, OURS, kafka.bootstrap, subscribe="not-there", fetchOffset__retryIntervalMs="10").collect()
    assert "not-there" not in kafka.run_in_loop(lambda: dict(kafka.state.controller.image.topics))


# ---- streams -----------------------------------------------------------------------------------------------------------------


class Stream:
    """Runs of one query with one checkpoint, and the rows of each batch."""

    def __init__(self, spark: Any, source: str, servers: str, checkpoint: Path, **options: str) -> None:
        self._frame = with_options(spark.readStream.format(source), servers, options).load()
        self._checkpoint = str(checkpoint / source)
        self.batches: list[list[tuple[int, int]]] = []
        """Partition and offset of each row of each batch that had any."""
        self.ends: list[dict[str, Any]] = []

    def run(self, fails: bool = False, **trigger: Any) -> None:
        """Run the query until no data are left, or to its end with a trigger. fails: whether each batch fails before it is read."""

        def take(batch: Any, number: int) -> None:
            if fails:
                raise RuntimeError("as planned")
            places = [(r.partition, r.offset) for r in batch.select("partition", "offset").collect()]
            if places:
                self.batches.append(sorted(places))

        writer = self._frame.writeStream.foreachBatch(take).option("checkpointLocation", self._checkpoint)
        query = writer.trigger(**(trigger or {"processingTime": "200 milliseconds"})).start()
        try:
            if trigger:
                assert query.awaitTermination(100)
            else:
                query.processAllAvailable()
        finally:
            query.stop()
        progress = query.recentProgress
        self.ends += [json.loads(p["sources"][0]["endOffset"]) for p in progress if p["numInputRows"]]

    @property
    def seen(self) -> list[tuple[int, int]]:
        return [row for batch in self.batches for row in batch]


def both(spark: Any, kafka: TestCluster, scratch: Path, **options: str) -> list[Stream]:
    return [Stream(spark, source, kafka.bootstrap, scratch, **options) for source in BOTH]


def test_kafka_py_and_the_spark_connector_read_equal_micro_batches_of_this_broker(
    spark: Any, kafka: TestCluster, scratch: Path
) -> None:
    kafka.create_topic("s", 2)
    streams = both(spark, kafka, scratch, subscribePattern="s.*", maxOffsetsPerTrigger="30", **EARLIEST)
    for turn in range(2):
        fill(kafka, 30, 0, "s", first=turn * 100)
        fill(kafka, 7 + turn, 1, "s", first=turn * 100)
        if turn:
            kafka.produce("s2", [NewRecord(b"v", None, START_MS)] * 20, 0)
        for stream in streams:
            stream.run()
    theirs, ours = streams
    assert ours.batches == theirs.batches and ours.ends == theirs.ends
    assert len(ours.seen) == 30 + 7 + 30 + 8 + 20 and max(map(len, ours.batches)) <= 30 + 1


def test_spark_kafka_py_available_now_stream_reads_all_records_and_ends(
    spark: Any, kafka: TestCluster, scratch: Path
) -> None:
    for partition in range(3):
        fill(kafka, 10 + partition, partition)
    theirs, ours = both(spark, kafka, scratch, subscribe="t", **EARLIEST)
    for stream in (theirs, ours):
        stream.run(availableNow=True)
    assert ours.batches == theirs.batches and ours.ends == theirs.ends
    assert len(ours.batches) == 1 and len(ours.seen) == 33


def test_available_now_query_before_spark_4_2_reads_one_batch_and_then_ends(
    spark: Any, kafka: TestCluster, scratch: Path
) -> None:
    fill(kafka, 30)
    stream = Stream(spark, OURS, kafka.bootstrap, scratch, subscribe="t", maxOffsetsPerTrigger="20", **EARLIEST)
    for _ in range(2):
        stream.run(availableNow=True)
    assert stream.batches == [[(0, i) for i in range(20)], [(0, i) for i in range(20, 30)]]


def test_spark_kafka_py_stream_that_failed_before_its_first_batch_loses_no_records(
    spark: Any, kafka: TestCluster, scratch: Path
) -> None:
    fill(kafka, 5)
    stream = Stream(spark, OURS, kafka.bootstrap, scratch, subscribe="t")
    with pytest.raises(Exception, match="as planned"):
        stream.run(fails=True)
    fill(kafka, 5, first=5)
    stream.run()
    fill(kafka, 5, first=10)
    stream.run()
    assert stream.seen == [(0, i) for i in range(5, 15)]


def test_spark_kafka_py_stream_of_lost_data_fails_unless_fail_on_data_loss_is_false(
    spark: Any, kafka: TestCluster, scratch: Path
) -> None:
    options = {"subscribe": "t", "fetchOffset__retryIntervalMs": "10", **EARLIEST}
    fill(kafka, 30)
    strict, lenient = (
        Stream(spark, OURS, kafka.bootstrap, scratch, failOnDataLoss=lost, **options) for lost in ("true", "false")
    )
    strict.run()
    kafka.delete_topic("t")
    kafka.create_topic("t", 3, 3)
    fill(kafka, 10)
    with pytest.raises(Exception, match="t-0 went back from offset 30 to offset 10"):
        strict.run()
    fill(kafka, 5, first=10)
    lenient.run()
    assert len(strict.seen) == 30 and lenient.seen == [(0, i) for i in range(10, 15)]


# ---- writes ------------------------------------------------------------------------------------------------------------------

WRITTEN = "key binary, value binary, partition int, headers array<struct<key string, value binary>>"


def test_spark_kafka_py_batch_write_stores_the_same_records_as_the_spark_connector(
    spark: Any, kafka: TestCluster
) -> None:
    headers = [("h", b"1"), ("n", None)]
    rows = [
        (None if i % 3 else b"k%d" % i, None if i % 5 == 2 else b"v%d" % i, i % 3, headers if i % 2 else None)
        for i in range(200)
    ]
    data_frame = spark.createDataFrame(rows, WRITTEN)
    for source in BOTH:
        kafka.create_topic(source, 3)
        writer = data_frame.write.format(source).mode("append").option("kafka.bootstrap.servers", kafka.bootstrap)
        writer.option("topic", source).save()
    stored = {
        source: sorted((r.partition, r.key or b"", r.value or b"", r.headers) for r in kafka.records(source))
        for source in BOTH
    }
    assert stored[OURS] == stored[CONNECTOR] and len(stored[OURS]) == 200


@pytest.mark.rule("P-22")
def test_kafka_py_and_the_spark_connector_write_rows_to_equal_topics_and_partitions(
    spark: Any, kafka: TestCluster
) -> None:
    for source in BOTH:
        for name in ("one", "two"):
            kafka.create_topic(f"{source}-{name}", 5)
    for source in BOTH:
        frame = spark.range(300).selectExpr(
            "concat('key-', id) AS key", "concat('value-', id) AS value", f"if(id % 2 = 0, '{source}-one', '{source}-two') AS topic"
        )  # fmt: skip
        writer = frame.write.format(source).mode("append").option("kafka.bootstrap.servers", kafka.bootstrap)
        writer.option("kafka.compression.type", "gzip").option("kafka.batch.size", "1000").save()
    for name in ("one", "two"):
        ours, theirs = (
            {(r.key, r.value): r.partition for r in kafka.records(f"{source}-{name}")} for source in reversed(BOTH)
        )
        assert ours == theirs and len(ours) == 150 and len(set(ours.values())) == 5
    assert len(kafka.records("kafka_py-one")) == 150
    assert len(kafka.journal.requests(api="InitProducerId", client_id="kafka_py")) == 2


def test_spark_kafka_py_sink_rejects_invalid_columns_and_write_modes(spark: Any, kafka: TestCluster) -> None:
    def write(columns: str, mode: str = "append", **options: str) -> None:
        writer = spark.range(1).selectExpr(columns).write.format(OURS).mode(mode)
        with_options(writer, kafka.bootstrap, options).save()

    for refused, because in [
        (lambda: write("'v' AS value"), "option topic: must be given, because the rows have no column named topic"),
        (lambda: write("'v' AS key", topic="t"), "a column named value is required, but the columns are key"),
        (
            lambda: write("id AS value", topic="t"),
            "column value has the type bigint, but the type must be binary or string",
        ),
        (
            lambda: write("'v' AS value", "overwrite", topic="t"),
            r'option mode: a topic can only be appended to; use \.mode\("append"\)',
        ),
        (lambda: write("'v' AS value", "errorifexists", topic="t"), "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
    ]:
        with pytest.raises(Exception, match=because):
            refused()
    assert kafka.records("t") == []


def test_spark_kafka_py_read_and_write_fail_immediately_if_the_server_is_unreachable(spark: Any) -> None:
    servers, start_s = "127.0.0.1:1", time.monotonic()
    writer = spark.range(1).selectExpr("'v' AS value").write.format(OURS).mode("append").option("topic", "t")
    for attempt in (
        lambda: frame(spark, OURS, servers, subscribe="t").collect(),
        lambda: with_options(writer, servers, {}).save(),
    ):
        with pytest.raises(Exception, match=f"no broker can be reached: {servers}: Connection refused") as caught:
            attempt()
        assert str(caught.value).count("kafka_py/") <= 2  # files of this project in the traceback that Spark prints
    assert time.monotonic() - start_s < 30  # it used to take more than a minute for each


def test_spark_kafka_py_stream_writes_each_record_once_across_restarts(
    spark: Any, kafka: TestCluster, scratch: Path
) -> None:
    kafka.create_topic("out", 2)
    for turn in range(2):
        fill(kafka, 40, first=turn * 40)
        source = with_options(
            spark.readStream.format(OURS), kafka.bootstrap, {"subscribe": "t", "includeHeaders": "true", **EARLIEST}
        )
        writer = source.load().select("key", "value", "headers").writeStream.format(OURS).option("topic", "out")
        writer = with_options(writer, kafka.bootstrap, {"checkpointLocation": str(scratch / "out")})
        assert writer.trigger(availableNow=True).start().awaitTermination(100)
    written, read = (
        sorted((r.key or b"", r.value or b"", r.headers) for r in kafka.records(topic)) for topic in ("out", "t")
    )
    assert written == read and len(written) == 80


# ---- a real Kafka ------------------------------------------------------------------------------------------------------------

COMMITTED = {"kafka__isolation__level": "read_committed"}
TRANSACTIONS, OF_EACH = 6, 30
OPEN = "txn-open"
KEYS, COMPACTED = 5, 400


@pytest.fixture(scope="module")
def real() -> Iterator[str]:
    """Yield the address of a Kafka 3.9.1 with topics `txn` (every second transaction aborted), `compacted` (cleaned) and `stamped`."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    cleaned = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "200",
    }
    kafka = RealKafka("maintenance")
    try:
        servers = ",".join(f"{host}:{port}" for host, port in kafka.bootstrap)
        base = {"bootstrap.servers": servers, "log_level": 0}
        admin = AdminClient(base)
        topics = [
            NewTopic("txn", 2, 1),
            NewTopic("compacted", 1, 1, config=cleaned),
            NewTopic("stamped", 1, 1, config={"message.timestamp.type": "LogAppendTime"}),
        ]
        for future in admin.create_topics(topics).values():
            future.result(30)
        _transactions(Producer({**base, "transactional.id": "x"}))
        plain = Producer({**base, "linger.ms": 5, "compression.type": "lz4"})
        for i in range(50):
            plain.produce("stamped", b"v%d" % i)
        plain.flush(30)
        _compacted(plain, servers)
        yield servers
    finally:
        kafka.stop()


def _create(servers: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic(topic, 2, 1)]).values():
        future.result(30)


def _transactions(producer: Any, topic: str = "txn") -> None:
    producer.init_transactions(30)
    for turn in range(TRANSACTIONS):
        producer.begin_transaction()
        for i in range(OF_EACH):
            producer.produce(
                topic, b"v%d-%d" % (turn, i), b"k%d" % i, headers=[("turn", b"%d" % turn)] if i % 2 else None
            )
        producer.flush(30)
        end: Callable[[float], None] = producer.abort_transaction if turn % 2 else producer.commit_transaction
        end(30)


def _compacted(producer: Any, servers: str) -> None:
    """Write the same few keys repeatedly until the log cleaner has run."""
    from kafkaproto.pipeline.kafka_py.client import Client
    from kafkaproto.pipeline.kafka_py.fetching import fetch
    from kafkaproto.pipeline.kafka_py.offsets import Range
    from kafkaproto.pipeline.kafka_py.options import source_settings
    from kafkaproto.records.entries import records

    source = source_settings({"kafka.bootstrap.servers": servers, "subscribe": "compacted"}, streaming=False)
    for i in range(COMPACTED):
        producer.produce("compacted", b"v%d" % i, b"k%d" % (i % KEYS))
        if i % 100 == 99:
            producer.flush(30)
            time.sleep(0.15)  # a segment is rolled when it is older than segment.ms
    producer.produce("compacted", b"last", b"last")
    producer.flush(30)
    deadline = time.monotonic() + 60
    with Client(source.client) as client:
        while True:
            pieces = fetch(client, source, Range("compacted", 0, 0, COMPACTED + 1))
            if sum(1 for piece in pieces for _ in records(piece.entry.view)) < COMPACTED // 2:
                return
            assert time.monotonic() < deadline, "the log cleaner did not run"
            time.sleep(0.2)


@pytest.mark.java
@pytest.mark.timeout(300)
def test_spark_kafka_py_rows_from_a_real_kafka_equal_those_of_the_spark_connector(spark: Any, real: str) -> None:
    all_of_it = same_rows(spark, real, subscribe="txn,compacted,stamped", includeHeaders="true")
    assert {r.topic for r in all_of_it} == {"txn", "compacted", "stamped"}
    txn = [r for r in all_of_it if r.topic == "txn"]
    assert len(txn) == TRANSACTIONS * OF_EACH and max(r.offset for r in txn) > len(txn) // 3
    assert {r.timestampType for r in all_of_it if r.topic == "stamped"} == {1}


@pytest.mark.java
@pytest.mark.timeout(300)
def test_kafka_py_and_the_spark_connector_skip_aborted_records_and_offset_gaps(spark: Any, real: str) -> None:
    rows = same_rows(spark, real, subscribePattern="(txn|compacted)", minPartitions="9", **COMMITTED)
    assert len([r for r in rows if r.topic == "txn"]) == TRANSACTIONS // 2 * OF_EACH
    compacted = [r.offset for r in rows if r.topic == "compacted"]
    assert len(compacted) < COMPACTED // 2 and compacted[-1] == COMPACTED
    in_gap = {
        "startingOffsets": '{"compacted": {"0": 3}}',
        "endingOffsets": f'{{"compacted": {{"0": {compacted[0]}}}}}',
    }
    assert same_rows(spark, real, subscribe="compacted", **in_gap) == []


@pytest.mark.java
@pytest.mark.timeout(300)
def test_kafka_py_and_the_spark_connector_read_equal_micro_batches_of_a_real_kafka(
    spark: Any, real: str, scratch: Path
) -> None:
    options = {"subscribe": "txn,compacted", "maxOffsetsPerTrigger": "150", **EARLIEST, **COMMITTED}
    streams = [Stream(spark, source, real, scratch, **options) for source in BOTH]
    for stream in streams:
        stream.run()
    theirs, ours = streams
    assert ours.batches == theirs.batches and ours.ends == theirs.ends and len(ours.batches) > 2


@pytest.fixture
def undecided(kafka: TestCluster, real: str) -> Iterator[tuple[str, str]]:
    """Yield the addresses of this broker and of Kafka 3.9.1, with topic `txn-open`: committed, aborted and open transactions."""
    from confluent_kafka import Producer

    producers = []
    for servers in (kafka.bootstrap, real):
        _create(servers, OPEN)
        producer = Producer({"bootstrap.servers": servers, "transactional.id": OPEN, "log_level": 0})
        _transactions(producer, OPEN)
        producer.begin_transaction()
        for partition in range(2):
            producer.produce(OPEN, b"undecided", partition=partition)
        producer.flush(30)
        producers.append(producer)
    yield kafka.bootstrap, real
    for producer in producers:
        producer.abort_transaction(30)


@pytest.mark.java
@pytest.mark.timeout(300)
def test_spark_reads_the_same_transactions_from_this_broker_and_from_a_real_kafka(
    spark: Any, undecided: tuple[str, str]
) -> None:
    columns = ("key", "value", "topic", "partition", "offset", "timestampType", "headers")
    for isolation, transactions, open_records in ((COMMITTED, TRANSACTIONS // 2, 0), ({}, TRANSACTIONS, 2)):
        ours, theirs = (
            [
                [row[name] for name in columns]
                for row in same_rows(spark, servers, subscribe=OPEN, includeHeaders="true", **isolation)
            ]
            for servers in undecided
        )
        assert ours == theirs
        assert len(ours) == transactions * OF_EACH + open_records
