"""Writing with kafka_py: records are stored once and completely, and failed writes are reported."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from kafkaproto.pipeline.kafka_py.errors import KafkaError, OptionError
from kafkaproto.pipeline.kafka_py.options import sink_settings
from kafkaproto.pipeline.kafka_py.producing import Producer
from kafkaproto.records.record import NewRecord
from kafkaproto.testing import TestCluster, cluster


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    with cluster(3, {"t": {"partitions": 4, "replication_factor": 3}}) as c:
        yield c


def producer(kafka: TestCluster, **options: str) -> Producer:
    kafka_options = {f"kafka.{name.replace('__', '.')}": value for name, value in options.items()}
    base = {"kafka.bootstrap.servers": kafka.bootstrap, "topic": "t", "kafka.retry.backoff.ms": "10"}
    return Producer(sink_settings({**base, **kafka_options}))


def record(i: int, key: bytes | None = None) -> NewRecord:
    return NewRecord(b"v%d" % i, key, 1000 + i, [("h", b"%d" % i)])


def test_spark_sink_writes_records_with_key_value_timestamp_and_headers(kafka: TestCluster) -> None:
    with closing(producer(kafka, batch__size="500", compression__type="zstd")) as sink:
        for i in range(100):
            sink.send("t", i % 4, record(i, b"k"))
        sink.flush()
    stored = sorted(kafka.records("t"), key=lambda r: r.timestamp_ms)
    assert [(r.partition, r.key, r.value, r.timestamp_ms, r.headers) for r in stored] == [
        (i % 4, b"k", b"v%d" % i, 1000 + i, (("h", b"%d" % i),)) for i in range(100)
    ]


def test_spark_sink_spreads_records_without_a_key_over_partitions(kafka: TestCluster) -> None:
    with closing(producer(kafka, batch__size="200")) as sink:
        for i in range(300):
            sink.send("t", None, record(i))
        sink.flush()
    assert len({r.partition for r in kafka.records("t")}) == 4
    assert len(kafka.records("t")) == 300


@pytest.mark.rule("P-22")
def test_spark_sink_writes_no_duplicates_when_a_leader_changes(kafka: TestCluster) -> None:
    with closing(producer(kafka, batch__size="200")) as sink:
        for i in range(90):
            sink.send("t", 0, record(i))
            leader = kafka.partition("t", 0).leader
            if i == 30:
                kafka.elect("t", 0, (leader + 1) % 3)
            if i == 60:
                kafka.broker(leader).stop()
        sink.flush()
    assert [r.value for r in kafka.records("t", 0)] == [b"v%d" % i for i in range(90)]


@pytest.mark.rule("P-22")
def test_batch_that_spark_sink_resends_after_a_request_timeout_is_stored_only_once(kafka: TestCluster) -> None:
    leader = kafka.partition("t", 0).leader
    follower = kafka.follower("t", 0, (leader + 1) % 3)
    with closing(producer(kafka, request__timeout__ms="200")) as sink:
        sink.send("t", 0, record(0))
        sink.flush()
        follower.hold()  # so that acks=all waits
        sink.send("t", 0, record(1))
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(sink.flush)
            kafka.wait_for(lambda journal: len(journal.requests("Produce")) >= 4)
            follower.release()
            future.result(30)
        sink.send("t", 0, record(2))
        sink.flush()
    assert [r.value for r in kafka.records("t", 0)] == [b"v0", b"v1", b"v2"]


def test_spark_sink_raises_an_error_for_a_missing_partition_or_a_too_large_record(kafka: TestCluster) -> None:
    kafka.alter_topic("t", **{"max.message.bytes": 300})
    with closing(producer(kafka, max__request__size="1000")) as sink:
        with pytest.raises(ValueError, match="topic t has partitions 0 to 3, but a row names partition 4"):
            sink.send("t", 4, record(0))
        with pytest.raises(OptionError, match=r"option kafka\.max\.request\.size: a record of 20\d\d bytes"):
            sink.send("t", 0, NewRecord(bytes(2000)))
        sink.send("t", 0, NewRecord(bytes(500)))
        with pytest.raises(KafkaError, match=r"cannot write to t-0 .*MESSAGE_TOO_LARGE"):
            sink.flush()
    assert kafka.records("t") == []


def test_spark_sink_without_idempotence_requests_no_producer_id(kafka: TestCluster) -> None:
    with closing(producer(kafka, acks="1")) as sink:
        sink.send("t", 0, record(0))
        sink.flush()
    assert kafka.journal.requests(api="InitProducerId") == []
    assert len(kafka.records("t", 0)) == 1


def test_spark_sink_creates_a_missing_topic_and_writes_the_record_to_it(kafka: TestCluster) -> None:
    with closing(producer(kafka)) as sink:
        sink.send("new", None, record(0))
        sink.flush()
    assert [r.value for r in kafka.records("new")] == [b"v0"]


def test_spark_sink_raises_timeout_error_if_it_reaches_no_broker_in_the_api_timeout() -> None:
    settings = sink_settings({"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "50"})
    with pytest.raises(TimeoutError, match=r"none of 127\.0\.0\.1:1 can be reached"):
        Producer(settings)
