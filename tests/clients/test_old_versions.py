"""Current clients with brokers of release 0.9 and 0.10: messages of magic 0 and 1 in both directions (F-31, P-4)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from kafkaproto.records.batch import NewRecord
from kafkaproto.testing import TestCluster, cluster
from tests.support.clients import KAFKA_PYTHON_WARNINGS

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS, "ignore:unclosed <socket:ResourceWarning"),
]
COUNT = 200
API_VERSIONS = {"0.9": (0, 9), "0.10.0": (0, 10, 0), "0.10.2": (0, 10, 2)}


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[TestCluster]:
    with cluster(1, {"t": 1}, release=request.param) as running:
        yield running


def values(kafka: TestCluster) -> list[bytes | None]:
    return [record.value for record in kafka.records("t")]


VALUES = [b"value %d " % i * 10 for i in range(COUNT)]


# kafka-python needs a hash package, unused elsewhere, to write lz4 to 0.9.
@pytest.mark.rule("F-31", "P-4")
@pytest.mark.parametrize(
    ("kafka", "codec"),
    [("0.9", codec) for codec in (None, "gzip", "snappy")]
    + [(release, codec) for release in ("0.10.0", "0.10.2") for codec in (None, "gzip", "snappy", "lz4")],
    indirect=["kafka"],
)
def test_kafka_python_produces_and_consumes_with_a_broker_emulating_old_releases(
    kafka: TestCluster, codec: str | None
) -> None:
    # 0.9 closes the connection at ApiVersions, so its clients need the version as a setting.
    settings = {"bootstrap_servers": kafka.bootstrap_servers, "api_version": API_VERSIONS[kafka.state.release_name]}
    producer = KafkaProducer(**settings, compression_type=codec, linger_ms=50)
    for value in VALUES:
        producer.send("t", key=b"k", value=value)
    producer.flush()
    producer.close()
    assert {request.api_version for request in kafka.journal.requests(api="Produce")} <= {0, 1, 2}
    assert values(kafka) == VALUES
    kafka.produce("t", [NewRecord(b"new", b"k", 5, (("header", b"lost"),))], 0)
    consumer = KafkaConsumer(**settings)
    consumer.assign([TopicPartition("t", 0)])
    consumer.seek_to_beginning()
    values_read: list[bytes] = []
    while len(values_read) < COUNT + 1:
        polled = consumer.poll(10_000)
        assert polled, f"{len(values_read)} came"
        values_read += [record.value for records in polled.values() for record in records]
    consumer.close()
    assert values_read == [*VALUES, b"new"]
    assert {request.api_version for request in kafka.journal.requests(api="Fetch")} <= {0, 1, 2, 3}


@pytest.mark.rule("F-31", "P-4")
@pytest.mark.parametrize("kafka", ["0.10.0", "0.10.2"], indirect=True)  # librdkafka no longer supports older releases
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_librdkafka_produces_and_consumes_with_brokers_of_old_kafka_releases(kafka: TestCluster, codec: str) -> None:
    old = {"bootstrap.servers": kafka.bootstrap}
    producer = Producer({**old, "compression.type": codec, "linger.ms": 50})
    for value in VALUES:
        producer.produce("t", value, b"k", 0)
    assert producer.flush(20) == 0
    assert values(kafka) == VALUES
    consumer = Consumer({**old, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([Place("t", 0, 0)])
    values_read = []
    while len(values_read) < COUNT:
        message = consumer.poll(10)
        assert message is not None and message.error() is None, message and message.error()
        values_read.append(message.value())
    consumer.close()
    assert values_read == VALUES
    versions = {request.api_version for request in kafka.journal.requests(api="Fetch")}
    assert versions <= {0, 1, 2, 3}
