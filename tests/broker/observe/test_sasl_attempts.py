"""Log lines for clients that look for SASL: they find no SaslHandshake in ApiVersions and close the connection."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest

from kafkaproto.broker.observe import sasl_attempts
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.client import request_frame
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.fetch import FetchRequest
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.messages.sasl_handshake import SaslHandshakeRequest
from kafkaproto.testing import cluster as running_cluster

MINUTE_MS = 60_000
VERSIONS = ApiVersionsRequest("software", "1")
ADVICE = "if it has security.protocol=SASL_PLAINTEXT: SASL is not served; set security.protocol=PLAINTEXT in the client"
LINE = f"broker 0: client-id 'me' at 10.0.0.7 sent only ApiVersions and closed {{}}; {ADVICE}"
Lines = Callable[..., list[str]]


@pytest.fixture
def cluster() -> VirtualCluster:
    return VirtualCluster(2, clock=None)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """Return and forget what the log has at a level and above."""
    caplog.set_level(logging.INFO, "kafkaproto")

    def taken(level: int = logging.INFO) -> list[str]:
        messages = [record.getMessage() for record in caplog.records if record.levelno >= level]
        caplog.clear()
        return messages

    return taken


def attempt(cluster: VirtualCluster, client_id: str | None = "me", broker_id: int = 0) -> None:
    """Do what a client with SASL does."""
    client = cluster.connect(broker_id, client_id, address="10.0.0.7")
    client.ask(VERSIONS, 3)
    client.finish()


def test_third_sasl_attempt_within_ten_seconds_logs_a_warning_once_per_minute(
    cluster: VirtualCluster, lines: Lines
) -> None:
    attempt(cluster)
    attempt(cluster, broker_id=1)
    assert lines() == []
    attempt(cluster)
    assert lines(logging.WARNING) == [LINE.format("3 connections")]
    for _ in range(59):
        cluster.advance(1000)
        attempt(cluster)
    assert lines() == []
    cluster.advance(1000)
    for _ in range(3):
        attempt(cluster)
    assert lines(logging.WARNING) == [LINE.format("3 connections")]


def test_single_sasl_attempt_of_a_client_is_logged_at_info_level(cluster: VirtualCluster, lines: Lines) -> None:
    attempt(cluster)
    cluster.advance(1999)
    assert lines() == []
    cluster.advance(1)
    assert lines() == [LINE.format("the connection")]
    attempt(cluster)
    cluster.advance(2000)
    assert lines() == []
    cluster.advance(MINUTE_MS)
    attempt(cluster)
    cluster.advance(2000)
    assert lines() == [LINE.format("the connection")]


def test_two_sasl_attempts_are_counted_in_one_log_line(cluster: VirtualCluster, lines: Lines) -> None:
    attempt(cluster, None)
    attempt(cluster, None)
    cluster.advance(2000)
    [line] = lines()
    assert "client-id (none) at 10.0.0.7 sent only ApiVersions and closed 2 connections; " in line


def test_slow_sasl_attempts_log_no_warning(cluster: VirtualCluster, lines: Lines) -> None:
    for _ in range(20):
        attempt(cluster)
        cluster.advance(5000)
    assert lines(logging.WARNING) == []


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_client_that_sends_other_requests_is_not_logged_as_a_sasl_attempt(
    cluster: VirtualCluster, lines: Lines, before: bool
) -> None:
    other = cluster.connect(1, "me", address="10.0.0.7")
    if before:
        other.ask(MetadataRequest([]), 9)
    for _ in range(2):
        attempt(cluster)
    if not before:
        other.ask(MetadataRequest([]), 9)
    attempt(cluster)
    attempt(cluster)
    cluster.advance(MINUTE_MS)
    assert lines() == []


def test_sasl_attempt_is_logged_even_if_a_client_with_the_same_id_is_served(
    cluster: VirtualCluster, lines: Lines
) -> None:
    served = cluster.connect(1, "me", address="10.0.0.7")
    for _ in range(5):
        served.ask(MetadataRequest([]), 9)
        attempt(cluster)
    assert lines() == []
    attempt(cluster)
    assert lines(logging.WARNING) == [LINE.format("6 connections")]


def other_client(client: MemoryClient) -> None:
    client.ask(VERSIONS, 3)
    client.ask(MetadataRequest([]), 9)
    client.finish()


def health_check_of_a_port(client: MemoryClient) -> None:
    client.finish()


def metadata_alone(client: MemoryClient) -> None:
    client.ask(MetadataRequest([]), 9)
    client.finish()


def ping(client: MemoryClient) -> None:
    """franz-go's `Ping`: ApiVersions of the connection, and then ApiVersions again."""
    client.ask(VERSIONS, 3)
    client.ask(VERSIONS, 3)
    client.finish()


def refused_handshake(client: MemoryClient) -> None:
    """Java sends SaslHandshake although the response lacks it; `diagnostics` has the line."""
    client.ask(VERSIONS, 3)
    client.send_bytes(request_frame(SaslHandshakeRequest("PLAIN"), 0, client_id="me"))


def parked_request(client: MemoryClient) -> None:
    client.ask(VERSIONS, 3)
    client.send(FetchRequest(max_wait_ms=500, min_bytes=1), 4)
    client.finish()


@pytest.mark.parametrize(
    "use",
    [other_client, health_check_of_a_port, metadata_alone, ping, refused_handshake, parked_request],
    ids=lambda use: use.__name__,
)
def test_connections_that_end_otherwise_are_not_logged_as_sasl_attempts(
    cluster: VirtualCluster, lines: Lines, use: Callable[[MemoryClient], None]
) -> None:
    for _ in range(3):
        use(cluster.connect(client_id="me", address="10.0.0.7"))
        lines()  # the refused handshake has its own line
    cluster.advance(MINUTE_MS)
    assert lines() == []


def test_connection_that_stays_open_is_not_logged_as_a_sasl_attempt(cluster: VirtualCluster, lines: Lines) -> None:
    """Clients keep connections to brokers that they do not use at the moment."""
    clients = [cluster.connect(client_id="me") for _ in range(3)]
    for client in clients:
        client.ask(VERSIONS, 3)
    cluster.advance(1001)
    for client in clients:
        client.finish()
    cluster.advance(MINUTE_MS)
    assert lines() == []


def test_connections_closed_by_a_stopping_broker_are_not_logged_as_sasl_attempts(
    cluster: VirtualCluster, lines: Lines
) -> None:
    for _ in range(3):
        cluster.connect(client_id="me").ask(VERSIONS, 3)
    cluster.state.stop_broker(0)
    cluster.advance(MINUTE_MS)
    assert [line for line in lines() if "ApiVersions" in line] == []


def test_sasl_attempts_are_counted_per_client(cluster: VirtualCluster, lines: Lines) -> None:
    for client_id in ("a", "b", "c", "a", "b", "a"):
        attempt(cluster, client_id)
    [line] = lines(logging.WARNING)
    assert "client-id 'a' " in line


def test_sasl_attempts_are_remembered_for_a_bounded_number_of_clients(
    cluster: VirtualCluster, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sasl_attempts, "REMEMBERED_CLIENTS", 3)
    cluster = VirtualCluster()
    for client_id in ("a", "a", "b", "c", "d", "a", "d", "d"):
        attempt(cluster, client_id)
    [line] = lines(logging.WARNING)
    assert "client-id 'd' " in line


# ---- real clients ----------------------------------------------------------------------------------------------------------------------

SASL = {"mechanism": "PLAIN", "user": "me", "password": "secret"}


def with_confluent_kafka(bootstrap: str, secure: bool) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    settings = {"bootstrap.servers": bootstrap, "client.id": "confluent", "log_level": 0}
    if secure:
        settings |= {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": SASL["mechanism"]}
        settings |= {"sasl.username": SASL["user"], "sasl.password": SASL["password"]}
    producer = confluent.Producer(settings)
    producer.produce("orders", b"value")
    producer.flush(2)


def with_kafka_python(bootstrap: str, secure: bool) -> None:
    kafka = pytest.importorskip("kafka")
    options: dict[str, Any] = {}
    if secure:
        options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": SASL["mechanism"]}
        options |= {"sasl_plain_username": SASL["user"], "sasl_plain_password": SASL["password"]}
    options |= {"bootstrap_servers": bootstrap, "client_id": "kafka-python"}
    with suppress(kafka.errors.KafkaError), closing(kafka.KafkaProducer(**options)) as producer:
        producer.send("orders", b"value").get(5)


def with_aiokafka(bootstrap: str, secure: bool) -> None:
    aiokafka = pytest.importorskip("aiokafka")
    options: dict[str, Any] = {}
    if secure:
        options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": SASL["mechanism"]}
        options |= {"sasl_plain_username": SASL["user"], "sasl_plain_password": SASL["password"]}

    async def produce() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, client_id="aiokafka", **options)
        try:
            await producer.start()
            await producer.send_and_wait("orders", b"value")
        except aiokafka.errors.KafkaError:
            assert secure
        finally:
            await producer.stop()

    asyncio.run(produce())


REAL = {"confluent": with_confluent_kafka, "kafka-python": with_kafka_python, "aiokafka": with_aiokafka}


@pytest.mark.parametrize("client_id", REAL)
def test_real_client_with_sasl_is_logged_with_advice(lines: Lines, client_id: str) -> None:
    with running_cluster(topics={"orders": 1}) as c:
        REAL[client_id](c.bootstrap, True)
        c.clock.advance(2000)
        assert any(f"client-id '{client_id}'" in line and ADVICE in line for line in lines())


@pytest.mark.parametrize("client_id", REAL)
def test_real_client_without_sasl_is_not_logged(lines: Lines, client_id: str) -> None:
    with running_cluster(brokers=3, topics={"orders": 3}) as c:
        for _ in range(3):
            REAL[client_id](c.bootstrap, False)
        c.wait_for_records("orders", 3)
        c.clock.advance(MINUTE_MS)
        host, port = c.bootstrap.split(",")[0].split(":")
        for _ in range(3):
            socket.create_connection((host, int(port))).close()
    assert [line for line in lines() if "ApiVersions" in line] == []
