"""Clients that push metrics, and a real Kafka that receives them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rivals.jars import kafka_jars
from benchmarks.rivals.real_kafka import KafkaCluster
from kafkaproto.broker.observe.otlp import read_metrics
from kafkaproto.conformance.client import SocketConnection
from kafkaproto.conformance.subject import settings_of
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.clients.building import java, java_classes

FOLDER = Path(__file__).parent
ENABLED = {"kafkaproto.client.telemetry.enable": "true"}
ANSWER_SECONDS = 10.0
CLIENT_METRICS = 16


class Received(NamedTuple):
    """Metrics that a broker received. names: the names of the metrics in the payload."""

    client_instance_id: str
    client_id: str
    terminating: bool
    names: frozenset[str]


def ask(address: tuple[str, int], request: Any, version: int) -> Any:
    """Send one request to a broker and return the message of its response."""
    with closing(SocketConnection(*address, "telemetry-test")) as connection:
        connection.send_bytes(connection.frame(request, version))
        received = connection.take(ANSWER_SECONDS)
        assert received is not None, f"no response within {ANSWER_SECONDS} s"
        return connection.decode(*received, 0.0).message


def offered(address: tuple[str, int]) -> dict[int, tuple[int, int]]:
    """Return the versions of the APIs that a broker advertises, by API key."""
    response = ask(address, ApiVersionsRequest("test", "1"), 3)
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}


def subscribe(address: tuple[str, int], **settings: str) -> None:
    """Create a subscription to client metrics. The names of settings are written with underscores instead of dots."""
    changes = [AlterableConfig(name.replace("_", "."), 0, value) for name, value in settings.items()]
    resource = AlterConfigsResource(CLIENT_METRICS, "everything", changes)
    [response] = ask(address, IncrementalAlterConfigsRequest([resource], False), 1).responses
    assert response.error_code == 0, response


def push_with_java(bootstrap: str, topic: str, version: str, seconds: int) -> str:
    """Run a Java producer for some seconds and return the client instance id that it printed."""
    command = [*java(FOLDER / "PushingClient.java", version), bootstrap, topic, str(seconds)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return ran.stdout.strip()


class ReceivingKafka:
    """A real Kafka whose brokers have a metrics reporter that receives the metrics of clients."""

    def __init__(self, version: str, folder: Path) -> None:
        self._file = folder / "received"
        reporter = {"metric.reporters": "Receiver", "test.receiver.file": str(self._file)}
        classes = java_classes(FOLDER / "Receiver.java", version, kafka_jars(version))
        self._cluster = KafkaCluster(settings_of("default") | reporter, version, classes)
        self.addresses = self._cluster.bootstrap
        self.bootstrap = ",".join(f"{host}:{port}" for host, port in self.addresses)

    def create_topic(self, name: str) -> None:
        """Create a topic with one partition on one broker."""
        [created] = ask(self.addresses[0], CreateTopicsRequest([CreatableTopic(name, 1, 1)], 10_000), 5).topics
        assert created.error_code == 0, created

    def received(self) -> list[Received]:
        """Return what the reporters of all brokers have received so far."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        fields = [line.split(" ") for line in lines]
        return [Received(i, name, end == "true", names_in(bytes.fromhex(data))) for i, name, end, data in fields]

    def stop(self) -> None:
        self._cluster.stop()


@contextmanager
def receiving_kafka(version: str, folder: Path) -> Iterator[ReceivingKafka]:
    """Run a real Kafka that receives the metrics of clients."""
    kafka = ReceivingKafka(version, folder)
    try:
        yield kafka
    finally:
        kafka.stop()


def names_in(payload: bytes) -> frozenset[str]:
    """Return the names of the metrics in the payload of a push."""
    return frozenset(metric.name for metric in read_metrics(payload))
