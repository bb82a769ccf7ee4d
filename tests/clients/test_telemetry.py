"""Client libraries push their metrics to this broker as they do to a real Kafka, and a test reads them (KIP-714)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION
from kafkaproto.conformance.subject import settings_of
from kafkaproto.testing import TestCluster, cluster
from tests.support.telemetry import (
    ENABLED,
    Received,
    names_in,
    offered,
    push_with_java,
    receiving_kafka,
    subscribe,
)

pytestmark = [pytest.mark.clients, pytest.mark.timeout(180)]

TOPIC = "pushed"
PREFIX = "org.apache.kafka."
INTERVAL_MS = 1000
PUSHING_SECONDS = 4
PATIENCE_SECONDS = 15.0
SUBSCRIPTION = {"interval_ms": str(INTERVAL_MS), "metrics": PREFIX}


def address_of(kafka: TestCluster) -> tuple[str, int]:
    host, _, port = kafka.bootstrap_servers[0].rpartition(":")
    return host, int(port)


def read(kafka: TestCluster, client_id: str) -> list[Received]:
    pushes = kafka.telemetry(client_id)
    return [Received(p.client_instance_id, p.client_id, p.terminating, names_in(p.payload)) for p in pushes]


def shape(received: list[Received], instance_id: str) -> tuple[set[tuple[str, str]], int, bool, frozenset[str]]:
    """Return what must be equal for two brokers: the client, its terminating pushes, whether others came before, and the metrics.

    The client instance id, which is random, is replaced.
    """
    clients = {("own" if r.client_instance_id == instance_id else r.client_instance_id, r.client_id) for r in received}
    terminating = [r.terminating for r in received]
    names = frozenset[str]().union(*(r.names for r in received))
    return clients, sum(terminating), terminating[-1:] == [True] and len(received) > 1, names


@pytest.mark.java
@pytest.mark.kafka
@pytest.mark.rule("AD-10", "AD-15", "AD-37")
@pytest.mark.parametrize("version", [KAFKA_VERSION, NEWER_VERSION])
def test_java_client_pushes_the_same_metrics_to_this_broker_as_to_apache_kafka(version: str, tmp_path: Path) -> None:
    with receiving_kafka(version, tmp_path) as real:
        advertised = offered(real.addresses[0])
        subscribe(real.addresses[0], **SUBSCRIPTION)
        real.create_topic(TOPIC)
        expected_id = push_with_java(real.bootstrap, TOPIC, version, PUSHING_SECONDS)
        expected = shape(real.received(), expected_id)
    release, settings = version.rpartition(".")[0], {**settings_of("default"), **ENABLED}
    with cluster(3, {TOPIC: 1}, settings, profile="kafka", clock="system", release=release) as ours:
        assert {71, 72} <= set(advertised) and {71: (0, 0), 72: (0, 0)}.items() <= offered(address_of(ours)).items()
        subscribe(address_of(ours), **SUBSCRIPTION)
        instance_id = push_with_java(ours.bootstrap, TOPIC, version, PUSHING_SECONDS)
        actual = shape(read(ours, "java-producer"), instance_id)
        compressions = {push.compression for push in ours.telemetry()}
    assert actual == expected
    clients, terminating, ends, names = actual
    assert (clients, terminating, ends) == ({("own", "java-producer")}, 1, True)
    assert "org.apache.kafka.producer.record.send.total" in names
    assert compressions == {"zstd"}


@pytest.mark.rule("AD-37")
def test_method_telemetry_returns_the_metrics_that_librdkafka_pushed() -> None:
    with cluster(1, {TOPIC: 1}, ENABLED, clock="system") as ours:
        subscribe(address_of(ours), **SUBSCRIPTION)
        producer = Producer({"bootstrap.servers": ours.bootstrap, "client.id": "rdkafka-producer"})
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(ours.telemetry("rdkafka-producer")) < 2:
            assert time.monotonic() < deadline, ours.conversations()
            producer.produce(TOPIC, b"value")
            producer.poll(0.1)
        producer.flush(10)
        pushes = ours.telemetry("rdkafka-producer")
        metrics = [metric for push in pushes for metric in push.metrics]
    assert all(metric.name.startswith(PREFIX) for metric in metrics)
    latencies = [m for m in metrics if m.name == "org.apache.kafka.producer.node.request.latency.avg"]
    connections = [m for m in metrics if m.name == "org.apache.kafka.producer.connection.creation.total"]
    assert latencies and {(m.kind, m.delta) for m in latencies} == {("gauge", False)}
    assert all(m.value is not None and m.value > 0 for m in latencies)
    assert connections and {(m.kind, m.delta) for m in connections} == {("sum", True)}
