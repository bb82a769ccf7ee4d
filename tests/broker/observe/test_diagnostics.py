"""Log lines about clients that use unsupported features: one line per client and minute."""

from __future__ import annotations

import http.client
import logging
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafkaproto.api import ApiKey
from kafkaproto.broker.observe import diagnostics
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.client import request_frame
from kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkaproto.messages.fetch import FetchRequest
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.messages.sasl_handshake import SaslHandshakeRequest
from kafkaproto.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kafkaproto.messages.streams_group_describe import StreamsGroupDescribeRequest
from kafkaproto.testing import cluster as running_cluster
from tests.support.wire import fetch

MINUTE_MS = 60_000
TLS_HELLO = bytes.fromhex("160301020001fc0303")
Lines = Callable[[], list[str]]


@pytest.fixture
def cluster() -> VirtualCluster:
    return VirtualCluster(2, clock=None)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """Return a function that returns and clears the log lines at INFO level and above."""
    caplog.set_level(logging.INFO, "kafkaproto")

    def taken() -> list[str]:
        messages = [record.getMessage() for record in caplog.records if record.levelno >= logging.INFO]
        caplog.clear()
        return messages

    return taken


def sent(client: MemoryClient, data: bytes) -> None:
    """Send bytes that the broker refuses."""
    client.send_bytes(data)
    assert client.closed_ms is not None


ONLY_PLAINTEXT = "listener PLAINTEXT accepts only Kafka clients with security.protocol=PLAINTEXT"
NO_SASL = "SASL is not served; set security.protocol=PLAINTEXT in the client"
REFUSED = {
    "TLS": (
        TLS_HELLO,
        "a TLS connection of client-id unknown at 10.0.0.7: listener PLAINTEXT has no TLS; "
        "set security.protocol=PLAINTEXT in the client",
    ),
    "HTTP": (
        b"GET / HTTP/1.1\r\n\r\n",
        "an HTTP request of client-id unknown at 10.0.0.7: listener PLAINTEXT speaks the Kafka protocol; "
        "use its address as bootstrap.servers of a Kafka client",
    ),
    "too long": (
        bytes.fromhex("7fffffff"),
        "a frame of client-id unknown at 10.0.0.7: a frame of 2147483647 bytes was announced; 0 to 104857600 are allowed; "
        f"{ONLY_PLAINTEXT}",
    ),
    "large request": (
        bytes.fromhex("7fffffff 0000 0009 00000001 ffff"),
        "a frame of client-id unknown at 10.0.0.7: a frame of 2147483647 bytes was announced; 0 to 104857600 are allowed; "
        "raise socket.request.max.bytes, or send smaller requests",
    ),
    "SSH": (b"SSH-2.0-OpenSSH_9.2\r\n", f"an SSH connection of client-id unknown at 10.0.0.7: {ONLY_PLAINTEXT}"),
    "garbage": (
        b"hello, is anybody there?\r\n",
        "a frame of client-id unknown at 10.0.0.7: a frame of 1751477356 bytes was announced; 0 to 104857600 are allowed; "
        f"{ONLY_PLAINTEXT}",
    ),
    "negative": (
        b"\xff\xff\xff\xff\0\0\0\x09",
        f"a frame of client-id unknown at 10.0.0.7: a frame of -1 bytes was announced; 0 to 104857600 are allowed; {ONLY_PLAINTEXT}",
    ),
    "SASL token": (
        b"\0\0\0\x0c\0user\0secret",
        f"API key 117 v29541 of client-id unknown at 10.0.0.7: no such API; {ONLY_PLAINTEXT}",
    ),
    "KIP-932": (
        request_frame(ShareGroupHeartbeatRequest("g"), 1, client_id=None),
        "ShareGroupHeartbeat v1 of client-id (none) at 10.0.0.7: share groups (KIP-932) are not served; use a consumer group",
    ),
    "API": (
        request_frame(StreamsGroupDescribeRequest(), 0, client_id="me"),
        "StreamsGroupDescribe v0 of client-id 'me' at 10.0.0.7: this broker, as Kafka 3.9, does not serve it; "
        "`kafkaproto apis --release 3.9` lists what is served",
    ),
    "version": (
        request_frame(FetchRequest(), 18, client_id="me"),
        "Fetch v18 of client-id 'me' at 10.0.0.7: with release 3.9 only v0 to v17 are served; use a client that asks for "
        "versions (ApiVersions), or start the broker with another --release",
    ),
    "damaged": (
        b"\0\0\0\x11" + request_frame(MetadataRequest([]), 9, client_id="me")[4:21],
        "Metadata v9 of client-id 'me' at 10.0.0.7: Metadata request v9 cannot be read: "
        "MetadataRequest.(tags) at byte 17: the value takes 1 bytes, but only 0 are left; "
        "the request is damaged, or its client has a bug",
    ),
    "short": (
        b"\0\0\0\2xx",
        "a connection of client-id unknown at 10.0.0.7: a frame of 2 bytes is too short for a request header; "
        f"at least 4 bytes are needed; {ONLY_PLAINTEXT}",
    ),
}


@pytest.mark.parametrize(("data", "text"), REFUSED.values(), ids=REFUSED)
def test_refused_request_or_connection_logs_one_line_with_its_cause_and_advice(
    cluster: VirtualCluster, lines: Lines, data: bytes, text: str
) -> None:
    sent(cluster.connect(1, address="10.0.0.7"), data)
    assert lines() == [f"broker 1 refused {text}"]


def test_log_never_contains_the_password_of_a_client(cluster: VirtualCluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    sent(cluster.connect(), REFUSED["SASL token"][0])
    assert caplog.records and "secret" not in caplog.text


def test_second_sasl_handshake_of_a_client_within_a_minute_adds_no_log_line(
    cluster: VirtualCluster, lines: Lines
) -> None:
    client = cluster.connect(client_id="me", address="10.0.0.7")
    for _ in range(2):
        client.ask(SaslHandshakeRequest("PLAIN"), 1)
    assert lines() == [f"broker 0 refused SaslHandshake v1 for 'PLAIN' of client-id 'me' at 10.0.0.7: {NO_SASL}"]


def test_repeated_unsupported_requests_of_a_client_log_one_line_per_minute(
    cluster: VirtualCluster, lines: Lines
) -> None:
    for broker_id in (0, 1, 0, 1):
        sent(cluster.connect(broker_id, address="10.0.0.7"), TLS_HELLO)
    cluster.advance(MINUTE_MS - 1)
    sent(cluster.connect(address="10.0.0.7"), TLS_HELLO)
    [first] = lines()
    assert first.startswith("broker 0 refused a TLS connection") and "more since" not in first
    cluster.advance(1)
    sent(cluster.connect(1, address="10.0.0.7"), TLS_HELLO)
    [second] = lines()
    assert second.startswith("broker 1 refused a TLS connection")
    assert second.endswith("; 4 more since the last line")


def test_unsupported_requests_are_logged_separately_for_each_client_and_api(
    cluster: VirtualCluster, lines: Lines
) -> None:
    heartbeat = ShareGroupHeartbeatRequest("g")
    for client_id in ("a", "b"):
        sent(cluster.connect(address="10.0.0.7"), request_frame(heartbeat, 1, client_id=client_id))
    sent(cluster.connect(address="10.0.0.8"), request_frame(heartbeat, 1, client_id="a"))
    sent(cluster.connect(address="10.0.0.7"), request_frame(StreamsGroupDescribeRequest(), 0, client_id="a"))
    sent(cluster.connect(address="10.0.0.7"), request_frame(heartbeat, 1, client_id="a"))
    attempts = [line.partition("refused ")[2].partition(":")[0] for line in lines()]
    assert attempts == [
        "ShareGroupHeartbeat v1 of client-id 'a' at 10.0.0.7",
        "ShareGroupHeartbeat v1 of client-id 'b' at 10.0.0.7",
        "ShareGroupHeartbeat v1 of client-id 'a' at 10.0.0.8",
        "StreamsGroupDescribe v0 of client-id 'a' at 10.0.0.7",
    ]


def test_refused_client_is_logged_again_after_3_newer_clients_replaced_it_in_memory(
    cluster: VirtualCluster, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics, "REMEMBERED_CLIENTS", 3)
    cluster = VirtualCluster()
    for i in (1, 2, 3, 4, 2, 3, 4, 1):
        sent(cluster.connect(address=f"10.0.0.{i}"), TLS_HELLO)
    addresses = [line.partition(" at ")[2].partition(":")[0] for line in lines()]
    assert addresses == ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.1"]


def test_long_client_names_are_shortened_in_the_log(cluster: VirtualCluster, lines: Lines) -> None:
    sent(cluster.connect(), request_frame(ShareGroupHeartbeatRequest("g"), 1, client_id="x" * 32_000))
    [line] = lines()
    assert len(line) < 300


def test_requests_that_the_broker_supports_cause_no_log_line(cluster: VirtualCluster, lines: Lines) -> None:
    client = cluster.connect()
    client.ask(MetadataRequest([]), 9)
    client.ask(InitProducerIdRequest(None), 4)
    client.ask(InitProducerIdRequest("orders-tx", 60_000), 4)
    client.ask(FindCoordinatorRequest("group", 0), 2)
    client.ask(FindCoordinatorRequest("orders-tx", 1), 2)
    assert lines() == []


def test_log_line_about_an_unsupported_api_version_contains_the_supported_range(lines: Lines) -> None:
    cluster = VirtualCluster(release_name="2.8")
    sent(cluster.connect(), request_frame(MetadataRequest([]), 12, client_id="me"))
    [line] = lines()
    assert "with release 2.8 only v0 to v11 are served" in line


def test_refused_tls_connection_is_logged_with_the_port_of_the_client(lines: Lines) -> None:
    with running_cluster() as cluster:
        host, port = cluster.bootstrap.split(":")
        with suppress(OSError), socket.create_connection((host, int(port)), 10) as plain:
            own_port = plain.getsockname()[1]
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            with context.wrap_socket(plain, server_hostname="localhost"):
                pass
        client = http.client.HTTPConnection(host, int(port), timeout=10)
        client.request("GET", "/")
        with pytest.raises((http.client.HTTPException, OSError)):
            client.getresponse()
        client.close()
    tls, web = lines()
    assert f"a TLS connection of client-id unknown at 127.0.0.1:{own_port}: " in tls
    assert "an HTTP request of client-id unknown at 127.0.0.1:" in web


def test_request_of_every_unsupported_api_is_logged(cluster: VirtualCluster, lines: Lines) -> None:
    for key in ApiKey:
        if key not in cluster.state.apis:
            client = cluster.connect(address=f"10.0.1.{int(key)}")
            sent(client, b"\0\0\0\x0a" + int(key).to_bytes(2, "big") + b"\0\0" + b"\0\0\0\1" + b"\xff\xff")
            [line] = lines()
            assert "served" in line


def search(client: MemoryClient, *groups: str) -> None:
    client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=list(groups)), 4)


@pytest.mark.parametrize("pause_ms", [0, 600])
def test_client_that_looks_up_its_coordinator_but_never_joins_the_group_is_logged(
    cluster: VirtualCluster, lines: Lines, pause_ms: int
) -> None:
    """librdkafka with group.protocol=consumer does this and logs nothing itself."""
    client = cluster.connect(client_id="me", address="10.0.0.7")
    for _ in range(3):
        search(client, "orders")
        cluster.advance(pause_ms)
    cluster.advance(1999 - pause_ms)
    assert lines() == []
    cluster.advance(1)
    assert lines() == [
        "broker 0: client-id 'me' at 10.0.0.7 looked 3 times for the coordinator of group 'orders' and did not join the group; "
        'if it has group.protocol=consumer: the group protocol "consumer" (KIP-848) needs --release 4.0 or later; '
        "or set group.protocol=classic in the client"
    ]
    for _ in range(90):
        search(client, "orders")
        cluster.advance(600)
    assert lines() == []
    for _ in range(20):
        search(client, "orders")
        cluster.advance(600)
    assert len(lines()) == 1


def test_coordinator_lookups_log_no_advice_to_enable_kip_848_if_it_is_enabled(lines: Lines) -> None:
    cluster = VirtualCluster(2, {"group.coordinator.rebalance.protocols": "classic,consumer"}, clock=None)
    client = cluster.connect(client_id="me")
    for _ in range(4):
        search(client, "orders")
    cluster.advance(10_000)
    assert lines() == []


def test_client_that_joins_its_group_2_s_after_its_coordinator_lookups_is_not_logged(
    cluster: VirtualCluster, lines: Lines
) -> None:
    client = cluster.connect(client_id="me")
    for _ in range(4):
        search(client, "orders")
    cluster.advance(1900)
    join = JoinGroupRequest("orders", 10_000, 10_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")])
    member = cluster.connect(cluster.state.coordinator_of("orders"), client_id="me")
    member.send(join, 3)
    cluster.advance(200)
    for _ in range(5):
        search(client, "orders")
        cluster.advance(500)
    assert lines() == []


def test_client_that_retries_its_join_while_the_coordinator_loads_is_not_logged(lines: Lines) -> None:
    cluster = VirtualCluster(2, {"kafkaproto.group.load.ms": "60000"}, clock=None)
    join = JoinGroupRequest("orders", 10_000, 10_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")])
    member = cluster.connect(cluster.state.coordinator_of("orders"), client_id="me")
    for _ in range(4):
        search(member, "orders")
        assert member.ask(join, 3).error_code == 14
        cluster.advance(500)
    cluster.advance(2000)
    assert lines() == []


def test_client_that_looks_up_its_coordinator_every_1500_ms_is_not_logged(
    cluster: VirtualCluster, lines: Lines
) -> None:
    client = cluster.connect(client_id="monitor")
    for _ in range(20):
        search(client, "orders")
        cluster.advance(1500)
    assert lines() == []


@pytest.mark.slow
@pytest.mark.clients
def test_tls_attempt_of_librdkafka_and_its_unsupported_kip_848_join_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The clients are librdkafka and kafka-python."""
    confluent = pytest.importorskip("confluent_kafka")
    quiet = {"log_level": 0}
    with running_cluster(clock="system", topics={"t": 1}) as cluster:
        address = {"bootstrap.servers": cluster.bootstrap, **quiet}
        producer = confluent.Producer({**address, "client.id": "tls", "security.protocol": "SSL"})
        start_s = time.monotonic()
        while time.monotonic() - start_s < 15 and not any("TLS" in line for line in caplog.messages):
            producer.poll(0.05)
        group = {"group.id": "g", "group.protocol": "consumer", "client.id": "k848"}
        consumer = confluent.Consumer({**address, **group})
        consumer.subscribe(["t"])
        start_s = time.monotonic()
        while time.monotonic() - start_s < 15 and not any("k848" in line for line in caplog.messages):
            consumer.poll(0.2)
        consumer.close()
    messages = caplog.messages
    assert any("refused a TLS connection" in line for line in messages)
    assert any("client-id 'k848'" in line and "set group.protocol=classic" in line for line in messages)


def test_client_that_fetches_after_looking_up_its_coordinator_is_not_logged(
    cluster: VirtualCluster, lines: Lines
) -> None:
    """librdkafka with `assign` also looks up the coordinator of its group.id several times."""
    cluster.topic("orders")
    client = cluster.connect(client_id="me", address="10.0.0.7")
    for _ in range(3):
        search(client, "readers")
    client.ask(fetch(("orders", 0, 0)), 11)
    cluster.advance(60_000)
    assert lines() == []
    for _ in range(3):
        search(client, "others")  # much later, and it no longer fetches
    cluster.advance(60_000)
    assert len(lines()) == 1


def test_real_consumer_that_calls_assign_is_not_logged_for_never_joining_its_group(lines: Lines) -> None:
    with running_cluster(topics={"orders": 1}) as c:
        c.produce("orders", ["a"])
        settings = {"bootstrap.servers": c.bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
        consumer = Consumer(settings)
        consumer.assign([TopicPartition("orders", 0, 0)])
        message = consumer.poll(10)
        assert message is not None and message.value() == b"a"
        c.clock.advance(10_000)
        consumer.close()
    assert [line for line in lines() if "looked" in line] == []


def test_log_line_about_a_missing_group_coordinator_names_the_setting_to_change(lines: Lines) -> None:
    """Under Kafka's defaults one broker cannot have the offsets topic, and clients try for ever."""
    cluster = VirtualCluster(1, profile="kafka")
    client = cluster.connect(client_id="me", address="10.0.0.7")
    for _ in range(5):
        search(client, "orders")
        cluster.advance(500)
    cluster.advance(5000)
    assert lines() == [
        "broker 0: client-id 'me' at 10.0.0.7 looked 5 times for the coordinator of group 'orders' and did not join the group; "
        "consumer groups cannot work: offsets.topic.replication.factor is 3, but the cluster has 1 broker; "
        "start it with -c offsets.topic.replication.factor=1 or with --brokers 3"
    ]


def test_client_that_uses_kip_848_groups_is_logged_if_kip_848_is_disabled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = VirtualCluster().connect(client_id="me")
    for _ in range(2):
        assert client.ask(ConsumerGroupHeartbeatRequest("g"), 0).error_code == 35
    [line] = [record.getMessage() for record in caplog.records if record.name == "kafkaproto.clients"]
    assert "ConsumerGroupHeartbeat v0 for 'g' of client-id 'me'" in line
    assert 'the group protocol "consumer" (KIP-848) needs --release 4.0 or later; or set group.protocol=classic' in line
