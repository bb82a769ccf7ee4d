"""Spark batch and streaming reads and writes, timestamps, racks, lost data and quotas ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.pipeline import windowed_counts
from kafkaproto.records.batch import NewRecord
from kafkaproto.records.compression import Compression
from kafkaproto.testing import TestCluster, cluster
from tests.support.clients.replay import FETCH, PRODUCE, bytes_within, charges, lateness_ms, replayed, wrong

# One process has the session, and a failure of Spark is a failed test instead of a hang.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(180),
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

START_MS = 1_700_000_000_000


def source(spark: Any, kafka: TestCluster, topic: str = "t", **options: str) -> Any:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap).option("subscribe", topic)
    for name, value in options.items():
        reader = reader.option(name.replace("_", "."), value)
    return reader.load()


def fill(
    kafka: TestCluster, count: int, partition: int = 0, topic: str = "t", compression: Compression = Compression.NONE
) -> None:
    new_records = [
        NewRecord(b"value %d" % i, b"key %d" % i, START_MS + i * 1000, [("n", b"%d" % i), ("none", None)])
        for i in range(count)
    ]
    kafka.produce(topic, new_records, partition, compression)


@pytest.mark.parametrize("compression", list(Compression), ids=lambda kind: kind.name)
def test_spark_batch_read_returns_every_record_completely(
    spark: Any, kafka: TestCluster, compression: Compression
) -> None:
    for partition in range(3):
        fill(kafka, 40, partition, compression=compression)
    rows = source(spark, kafka, includeHeaders="true").collect()
    assert len(rows) == 120
    records_read = {
        (r.partition, r.offset): (bytes(r.key), bytes(r.value), int(r.timestamp.timestamp() * 1000)) for r in rows
    }
    for stored in kafka.records("t"):
        assert records_read[(stored.partition, stored.offset)] == (stored.key, stored.value, stored.timestamp_ms)
    [first] = [r for r in rows if (r.partition, r.offset) == (0, 7)]
    assert [(h.key, None if h.value is None else bytes(h.value)) for h in first.headers] == [
        ("n", b"7"),
        ("none", None),
    ]


def test_spark_read_starts_and_ends_at_the_given_offsets(spark: Any, kafka: TestCluster) -> None:
    for partition in range(3):
        fill(kafka, 30, partition)
    starting = json.dumps({"t": {"0": 10, "1": -2, "2": 29}})
    ending = json.dumps({"t": {"0": 20, "1": 5, "2": -1}})
    rows = source(spark, kafka, startingOffsets=starting, endingOffsets=ending).groupBy("partition").count().collect()
    assert {r.partition: r["count"] for r in rows} == {0: 10, 1: 5, 2: 1}


@pytest.mark.rule("L-6")
def test_spark_starting_timestamp_finds_the_first_record_at_or_after_that_time(spark: Any, kafka: TestCluster) -> None:
    for partition in range(3):
        fill(kafka, 30, partition)
    times = {"0": START_MS + 10_000, "1": START_MS + 9_001, "2": START_MS}
    rows = (
        source(spark, kafka, startingOffsetsByTimestamp=json.dumps({"t": times})).groupBy("partition").count().collect()
    )
    assert {r.partition: r["count"] for r in rows} == {0: 20, 1: 20, 2: 30}


def test_spark_query_with_strategy_latest_and_start_time_after_all_records_is_empty(
    spark: Any, kafka: TestCluster
) -> None:
    fill(kafka, 5)
    times = json.dumps({"t": {str(p): START_MS * 2 for p in range(3)}})
    frame = source(spark, kafka, startingOffsetsByTimestamp=times, startingOffsetsByTimestampStrategy="latest")
    assert frame.count() == 0


@pytest.mark.rule("N-4")
def test_spark_read_with_a_client_rack_uses_the_replica_in_that_rack(spark: Any, kafka: TestCluster) -> None:
    for partition in range(3):
        fill(kafka, 500, partition)
    assert source(spark, kafka, kafka_client_rack="b").count() == 1500
    fetched = {b: sum(r.response_bytes for r in kafka.journal.requests(api="Fetch", broker=b)) for b in range(3)}
    assert fetched[1] > 10 * (fetched[0] + fetched[2])


def test_restarted_spark_stream_adds_new_records_to_its_counts_per_minute(
    spark: Any, kafka: TestCluster, scratch: Path
) -> None:
    kafka.create_topic("counts")
    checkpoint = str(scratch / "checkpoint")
    for run in (1, 2):
        kafka.produce("t", [NewRecord(b"v", None, START_MS // 60_000 * 60_000 + i * 1000) for i in range(90)])
        query = windowed_counts.start(spark, kafka.bootstrap, "t", "counts", checkpoint)
        assert query.awaitTermination(120)
        assert query.exception() is None
        counts = {r.key: r.value for r in kafka.records("counts")}
        assert sorted(int(value) for value in counts.values()) == [30 * run, 60 * run]


def test_spark_batch_write_keeps_keys_values_headers_and_partitions(spark: Any, kafka: TestCluster) -> None:
    rows = [(f"k{i}".encode(), f"v{i}".encode(), i % 3, [("h", b"1")]) for i in range(200)]
    schema = "key binary, value binary, partition int, headers array<struct<key string, value binary>>"
    frame = spark.createDataFrame(rows, schema)
    (
        frame.write.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .option("topic", "t")
        .option("includeHeaders", "true")
        .save()
    )
    stored = kafka.records("t")
    assert sorted((r.key, r.value, r.partition) for r in stored) == sorted((k, v, p) for k, v, p, _ in rows)
    assert all(r.headers == (("h", b"1"),) for r in stored)


@pytest.mark.rule("P-22")
def test_spark_sink_is_idempotent_and_uses_acks_all(spark: Any, kafka: TestCluster) -> None:
    spark.createDataFrame([(b"v",)], "value binary").write.format("kafka").option(
        "kafka.bootstrap.servers", kafka.bootstrap
    ).option("topic", "t").save()
    assert kafka.journal.requests(api="InitProducerId")
    assert kafka.journal.requests(api="Produce")
    [state] = [s for p in range(3) if (s := kafka.partition("t", p)) and kafka.records("t", p)]
    leader = kafka.state.nodes[state.leader].replicas.partitions[("t", state.index)]
    assert leader.log.high_watermark == 1


def test_spark_query_on_lost_data_fails_unless_fail_on_data_loss_is_false(
    spark: Any, kafka: TestCluster, scratch: Path
) -> None:
    fill(kafka, 20)
    leader = kafka.partition("t", 0).leader
    kafka.run_in_loop(lambda: kafka.state.nodes[leader].replicas.partitions[("t", 0)].log.raise_log_start(10))
    starting = json.dumps({"t": {"0": 5, "1": 0, "2": 0}})
    with pytest.raises(Exception, match=r"(?i)offset"):
        source(spark, kafka, startingOffsets=starting).collect()
    tolerant = source(spark, kafka, startingOffsets=starting, failOnDataLoss="false")
    assert tolerant.count() == 10


@pytest.mark.rule("T-4", "Q-13")
def test_spark_query_under_a_quota_is_throttled_and_loses_no_records(spark: Any, kafka: TestCluster) -> None:
    kafka.set_quota(client_id="etl", consumer_byte_rate=100_000)
    for _ in range(12):
        kafka.produce("t", [NewRecord(b"x" * 1000, None, START_MS)] * 100, 0)
    frame = source(
        spark, kafka, kafka_client_id="etl", kafka_fetch_max_bytes="400000", kafka_max_partition_fetch_bytes="400000"
    )
    assert frame.count() == 1200
    throttles = kafka.journal.throttles("Fetch")
    assert throttles
    assert {t.reason.client_id for t in throttles} == {"etl"}


def test_spark_read_of_a_missing_topic_fails_immediately(spark: Any, kafka: TestCluster) -> None:
    """The driver requests metadata without auto-creation, so the broker does not create the topic."""
    with pytest.raises(Exception, match=r"(?i)unknown|does not|missing|exist|UnknownTopic"):
        source(spark, kafka, "not-there").collect()
    assert "not-there" not in kafka.run_in_loop(lambda: dict(kafka.state.controller.image.topics))


# ---- under a quota -----------------------------------------------------------------------------------------------------------

QUOTA = 300_000
SAMPLES = 3  # quota.window.num: two seconds' worth are unthrottled, so a few seconds are enough
LIMITED_RECORDS, LIMITED_BYTES = 1500, 1000
BATCH_BYTES = 15_000
LIMITED = {"kafka_client_id": "etl", "kafka_max_partition_fetch_bytes": str(BATCH_BYTES)}


@pytest.fixture
def limited() -> Iterator[TestCluster]:
    """Run one broker whose quotas have three samples, with topics t (a hundred batches) and out. Client-id "etl" is limited."""
    with cluster(1, {"t": 1, "out": 1}, {"quota.window.num": SAMPLES}) as kafka:
        values = [(b"%d" % i, b"x" * LIMITED_BYTES) for i in range(LIMITED_RECORDS)]
        a_batch = BATCH_BYTES // LIMITED_BYTES
        for i in range(0, LIMITED_RECORDS, a_batch):
            kafka.produce("t", values[i : i + a_batch])
        kafka.set_quota(client_id="etl", producer_byte_rate=QUOTA, consumer_byte_rate=QUOTA)
        yield kafka


def check_rate(kafka: TestCluster, api: str) -> None:
    """Check that every throttle equals the transcription's, that no mute ended early, and that the moved bytes took as long as the quota demands."""
    all_charges = charges(kafka, api, ["etl"])
    assert any(charge.throttle_ms for charge in all_charges)
    assert wrong(all_charges, QUOTA, SAMPLES) == []
    assert min(lateness_ms(kafka, ["etl"])) >= 0
    moved = [charge for charge in all_charges if charge.given and charge.value > LIMITED_BYTES]
    took_ms = moved[-1].at_ms - moved[0].at_ms
    total = sum(charge.value for charge in moved)
    assert total > LIMITED_RECORDS * LIMITED_BYTES
    assert (
        bytes_within(replayed(all_charges, QUOTA, SAMPLES), moved[-1].at_ms - all_charges[0].at_ms + 1) >= 0.97 * total
    )
    assert took_ms >= (total / QUOTA - SAMPLES) * 1000


def write(frame: Any, kafka: TestCluster, topic: str = "out") -> None:
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap).option("topic", topic)
    writer.option("kafka.client.id", "etl").option("kafka.batch.size", str(BATCH_BYTES)).save()


def keys(kafka: TestCluster, topic: str) -> list[int]:
    return sorted(int(record.key or b"-1") for record in kafka.records(topic))


@pytest.mark.rule("X-6")
def test_spark_batch_read_runs_at_the_rate_of_its_quota(spark: Any, limited: TestCluster) -> None:
    rows = source(spark, limited, **LIMITED).select("key").collect()
    assert sorted(int(bytes(row.key)) for row in rows) == list(range(LIMITED_RECORDS))
    check_rate(limited, FETCH)


@pytest.mark.rule("X-6")
def test_spark_batch_write_runs_at_the_byte_rate_of_its_producer_quota(spark: Any, limited: TestCluster) -> None:
    values = f"repeat('x', {LIMITED_BYTES}) AS value"
    write(spark.range(LIMITED_RECORDS).selectExpr("CAST(id AS STRING) AS key", values), limited)
    assert keys(limited, "out") == list(range(LIMITED_RECORDS))
    check_rate(limited, PRODUCE)


@pytest.mark.rule("X-6")
def test_spark_stream_reads_and_writes_at_the_rate_of_its_quotas(
    spark: Any, limited: TestCluster, scratch: Path
) -> None:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", limited.bootstrap)
    reader = reader.option("subscribe", "t").option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "500")
    for name, value in LIMITED.items():
        reader = reader.option(name.replace("_", "."), value)
    writer = reader.load().select("key", "value").writeStream.format("kafka").option("topic", "out")
    writer = writer.option("kafka.bootstrap.servers", limited.bootstrap).option("kafka.client.id", "etl")
    writer = writer.option("kafka.batch.size", str(BATCH_BYTES)).option("checkpointLocation", str(scratch / "limited"))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert query.exception() is None
    assert keys(limited, "out") == list(range(LIMITED_RECORDS))
    check_rate(limited, FETCH)
    assert wrong(charges(limited, PRODUCE, ["etl"]), QUOTA, SAMPLES) == []


@pytest.mark.rule("Q-14")
def test_fetch_throttle_longer_than_the_poll_timeout_fails_the_spark_query(spark: Any, limited: TestCluster) -> None:
    """A throttled fetch is empty, so the reader gives up, and its error does not mention the throttle (rule T-4)."""
    limited.set_quota(client_id="etl", consumer_byte_rate=BATCH_BYTES // 6)  # no batch ever fits into three samples
    with pytest.raises(Exception, match="Cannot fetch record for offset 0 in 3000 milliseconds"):
        source(spark, limited, **{**LIMITED, "kafkaConsumer_pollTimeoutMs": "3000"}).collect()
    throttled = limited.journal.throttles("Fetch", "etl")
    assert throttled and all(request.throttle_time_ms > 3000 for request in throttled)


@pytest.mark.rule("T-1")
def test_list_offsets_throttle_above_the_default_api_timeout_fails_the_spark_query(
    spark: Any, limited: TestCluster
) -> None:
    """The client sends nothing to a throttling broker, so that its next request never leaves the client (KIP-219)."""
    rule = limited.force_throttle(60_000, api="ListOffsets", client_id="etl", times=1)
    timeouts = {"kafka_default_api_timeout_ms": "3000", "kafka_request_timeout_ms": "2000"}
    pattern = r"Timeout of 3000ms expired before the position for partition t-0 could be determined"
    with pytest.raises(Exception, match=pattern):
        source(spark, limited, **LIMITED, **timeouts).collect()
    assert rule.hits == 1
    assert len(limited.journal.requests(api="ListOffsets", client_id="etl")) == 1
