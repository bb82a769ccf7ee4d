"""`kafkaproto proxy` with real clients: all requests go through the proxy, and its trace matches the broker's trace."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.proxy.connection import UNANSWERED
from kafkaproto.broker.proxy.server import CLIENT_ID, Proxy
from kafkaproto.conformance.client import Closed, SocketConnection
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.pipeline.trace import tables as job
from kafkaproto.testing import TestCluster, async_cluster, cluster
from kafkaproto.trace.decoded import Decoded
from kafkaproto.trace.format import Event, Exchange
from kafkaproto.trace.reading import Trace, files_of
from tests.support.clients import KAFKA_PYTHON_WARNINGS
from tests.support.pipeline.alike import OF_RECORDS, assert_same
from tests.support.pipeline.tables import rows
from tests.support.programs import program
from tests.support.proxied import proxied
from tests.support.wire import batch, fetch, metadata, produce

pytestmark = [pytest.mark.clients, pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS)]

ROOT = Path(__file__).resolve().parents[3]
WAIT_SECONDS = 20


def entries(folder: Path) -> list[Exchange | Event]:
    return [entry for file in files_of(folder) for entry in Trace(file).entries()]


def kinds(folder: Path) -> list[str]:
    return [entry.kind for entry in entries(folder) if isinstance(entry, Event)]


def ask(connection: SocketConnection, request: Any, version: int) -> Any:
    connection.send_bytes(connection.frame(request, version))
    received = connection.take(WAIT_SECONDS)
    assert received is not None
    return connection.decode(*received, 0.0).message


def connect(address: str, client_id: str = "raw") -> SocketConnection:
    host, port = address.split(":")
    return SocketConnection(host, int(port), client_id)


def kafka_python(bootstrap: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, client_id="kp", batch_size=4000, transactional_id="kp")
    producer.init_transactions()
    producer.begin_transaction()
    for i in range(120):
        producer.send("t", b"x" * 300, partition=i % 6)
    producer.commit_transaction()
    producer.close()
    consumer = KafkaConsumer(
        "t", bootstrap_servers=bootstrap, client_id="kc", group_id="g", auto_offset_reset="earliest"
    )
    read_count = 0
    while read_count < 120:
        read_count += sum(map(len, consumer.poll(500).values()))
    consumer.close()


def confluent(bootstrap: str) -> None:
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "cp", "transactional.id": "cp"})
    producer.init_transactions(WAIT_SECONDS)
    producer.begin_transaction()
    for i in range(120):
        producer.produce("t", b"y" * 300, partition=i % 6)
    producer.commit_transaction(WAIT_SECONDS)
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "client.id": "cc", "group.id": "h", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    read_count = 0
    while read_count < 120:
        message = consumer.poll(1)
        read_count += message is not None and message.error() is None
    consumer.close()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("clients", [kafka_python, confluent])
def test_tables_of_proxy_trace_and_broker_trace_have_equal_rows_of_answered_requests(
    clients: Callable[[str], None], tmp_path: Path
) -> None:
    with (
        cluster(3, {"t": 6}, trace=tmp_path / "broker") as c,
        proxied(c.bootstrap_servers[0], tmp_path / "proxy") as bootstrap,
    ):
        clients(bootstrap)
    for name in ("broker", "proxy"):
        job.build(tmp_path / name, tmp_path / f"{name}-out", job.without_spark)
    both = assert_same(tmp_path / "proxy-out", tmp_path / "broker-out", own=CLIENT_ID)
    assert min(both[table] for table in OF_RECORDS) > 10 and min(both.values()) > 2
    opened = [sum(kind == "opened" for kind in kinds(tmp_path / name)) for name in ("broker", "proxy")]
    connections = {row["conn"] for row in rows(tmp_path / "proxy-out", "requests") if row["problem"] is None}
    # A client may disconnect before its connection has reached a broker: then no response was sent on it.
    assert len(connections) <= opened[0] - 2 <= opened[1], "only the proxy's own two requests bypass it"
    assert {row["broker"] for row in rows(tmp_path / "proxy-out", "requests")} == {0, 1, 2}
    assert all(row["clock_ms"] is row["held"] is None for row in rows(tmp_path / "proxy-out", "requests"))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[tuple[TestCluster, str]]:
    with cluster(1, {"t": 1}) as c, proxied(c.bootstrap, tmp_path / "proxy") as bootstrap:
        yield c, bootstrap


def test_every_metadata_version_returns_the_proxy_address_to_clients_of_the_proxy(
    bench: tuple[TestCluster, str],
) -> None:
    _, bootstrap = bench
    connection = connect(bootstrap)
    for version in range(13):
        response = ask(connection, MetadataRequest([] if version == 0 else None), version)
        assert [f"{broker.host}:{broker.port}" for broker in response.brokers] == [bootstrap]
    connection.close()


def test_proxy_uses_one_port_for_a_broker_whose_bootstrap_and_advertised_host_differ(tmp_path: Path) -> None:
    with cluster(1, {"t": 1}, {"advertised.listeners": "PLAINTEXT://localhost:0"}) as c:
        [(_, port)] = c.server.bound_addresses(0)
        with proxied(f"127.0.0.1:{port}", tmp_path / "proxy") as bootstrap:
            connection = connect(bootstrap)
            [broker] = ask(connection, metadata(["t"]), 9).brokers
            assert f"{broker.host}:{broker.port}" == bootstrap
            connection.close()
    assert {e.broker for e in entries(tmp_path / "proxy") if isinstance(e, Exchange)} == {0}


def test_proxy_keeps_the_order_of_pipelined_requests_with_and_without_responses(bench: tuple[TestCluster, str]) -> None:
    _, bootstrap = bench
    connection = connect(bootstrap)
    connection.send_bytes(
        connection.frame(produce("t", batch(b"x"), acks=0), 9)
        + b"".join(connection.frame(metadata(["t"]), version) for version in (9, 12, 1))
        + connection.frame(produce("t", batch(b"z" * 900_000)), 9)
        + connection.frame(fetch(("t", 0, 0), max_bytes=1 << 24, partition_max=1 << 24), 11)
    )
    connection.socket.shutdown(socket.SHUT_WR)
    responses = [connection.take(WAIT_SECONDS) for _ in range(5)]
    assert [response[0] for response in responses if response] == [2, 3, 4, 5, 6]
    assert responses[-1] is not None and len(responses[-1][1]) > 900_000
    with pytest.raises(Closed):
        connection.take(WAIT_SECONDS)
    connection.close()


def test_proxy_answers_requests_sent_before_invalid_bytes_and_then_disconnects(bench: tuple[TestCluster, str]) -> None:
    _, bootstrap = bench
    connection = connect(bootstrap)
    connection.send_bytes(connection.frame(metadata(["t"]), 9) + b"\x7f\xff\xff\xff")
    response = connection.take(WAIT_SECONDS)
    assert response is not None and response[0] == 1
    with pytest.raises(Closed):
        connection.take(WAIT_SECONDS)
    connection.close()


def test_proxy_forwards_undecodable_requests_unchanged(tmp_path: Path) -> None:
    """The broker is newer than the proxy: it has an unknown API and Metadata version 99, and ApiVersions offers both."""
    forwarded: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(sock,), daemon=True).start()

        def answer(sock: socket.socket) -> None:
            with sock, sock.makefile("rwb") as file:
                while length := file.read(4):
                    data = file.read(int.from_bytes(length, "big"))
                    forwarded.append(data)
                    body = b"future"
                    if data[:2] == b"\0\x12":  # ApiVersions: Metadata up to version 99, API 999
                        body = b"\0\0" + b"\0\0\0\2" + b"\0\3\0\0\0\x63" + b"\3\xe7\0\0\0\1"
                    elif data[:4] == b"\0\3\0\1":
                        return  # report no brokers
                    file.write((4 + len(body)).to_bytes(4, "big") + data[4:8] + body)
                    file.flush()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        to = f"127.0.0.1:{listener.getsockname()[1]}"
        with proxied(to, tmp_path / "proxy") as bootstrap:
            connection = connect(bootstrap)
            for start in (b"\3\xe7\0\0", b"\0\3\0\x63", b"\0\x12\0\0", b"\0\x12\0\x63"):
                request = start + b"\0\0\0\7" + b"\xff\xff"
                connection.send_bytes(len(request).to_bytes(4, "big") + request)
                received = connection.take(WAIT_SECONDS)
                assert received is not None and received[0] == 7
                if start in (b"\3\xe7\0\0", b"\0\3\0\x63"):
                    assert forwarded[-1] == request and received[1][4:] == b"future"
                elif start == b"\0\x12\0\0":
                    assert received[1][4:] == b"\0\0" + b"\0\0\0\2" + b"\0\3\0\0\0\x0d" + b"\3\xe7\0\0\0\1"
                else:
                    assert forwarded[-1][:4] == b"\0\x12\0\0", (
                        "the proxy itself responds, so that the client uses no later version"
                    )
                    assert received[1][4:6] == b"\0\x23"
            connection.close()
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    assert next(e.request for e in entries(tmp_path / "proxy") if isinstance(e, Exchange))[:2] == b"\3\xe7"
    job.build(tmp_path / "proxy", tmp_path / "out", job.without_spark)
    outcomes = [(row["problem"] is None, row["has_response"]) for row in rows(tmp_path / "out", "requests")]
    assert outcomes == [(False, True), (False, True), (True, True), (False, True)]


@pytest.mark.parametrize(
    ("first", "log_line"),
    [(b"\x16\x03\x01\x02\x00\x01", "TLS"), (b"GET / HTTP/1.1\r\n", "does not use Kafka's protocol")],
)
def test_proxy_closes_connections_of_another_protocol_and_logs_the_reason(
    bench: tuple[TestCluster, str], first: bytes, log_line: str, caplog: pytest.LogCaptureFixture
) -> None:
    _, bootstrap = bench
    connection = connect(bootstrap)
    with caplog.at_level(logging.WARNING, "kafkaproto.proxy"):
        connection.send_bytes(first)
        with pytest.raises(Closed):
            connection.take(WAIT_SECONDS)
    assert log_line in caplog.text
    connection.close()


def test_proxy_closes_client_connections_of_a_stopped_broker(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with cluster(2, {"t": 1}) as c, proxied(c.bootstrap_servers[0], tmp_path / "proxy") as bootstrap:
        first = connect(bootstrap)
        [other] = {f"{b.host}:{b.port}" for b in ask(first, metadata(["t"]), 9).brokers} - {bootstrap}
        raw = connect(other)
        ask(raw, metadata(["t"]), 9)
        with caplog.at_level(logging.WARNING, "kafkaproto.proxy"):
            c.broker(1).stop()
            with pytest.raises(Closed):
                raw.take(WAIT_SECONDS)
            again = connect(other)
            with pytest.raises(Closed):
                again.take(WAIT_SECONDS)
        assert f"no broker at {c.bootstrap_servers[1]}" in caplog.text
        ask(first, metadata(["t"]), 9)
        for connection in (first, raw, again):
            connection.close()
    events = [e.facts for e in entries(tmp_path / "proxy") if isinstance(e, Event) and e.kind == "closed"]
    assert next(facts["why"] for facts in events if facts["broker"] == 1) == "the broker closed the connection"


def test_client_that_reads_nothing_does_not_block_the_proxy_or_fill_its_memory(
    bench: tuple[TestCluster, str],
) -> None:
    """Responses wait in the broker, because the proxy stops reading when its client does."""
    c, bootstrap = bench
    slow, quick = connect(bootstrap, "slow"), connect(bootstrap, "quick")
    ask(quick, produce("t", batch(b"z" * 900_000)), 9)
    count = 200
    slow.send_bytes(
        b"".join(slow.frame(fetch(("t", 0, 0), max_bytes=1 << 24, partition_max=1 << 24), 11) for _ in range(count))
    )
    served, unchanged = -1, 0
    while unchanged < 100:
        ask(quick, metadata(["t"]), 9)
        now = len(c.journal.requests(client_id="slow"))
        served, unchanged = now, unchanged + 1 if now == served else 0
    assert served < count / 2
    for number in range(count):
        received = slow.take(WAIT_SECONDS)
        assert received is not None and received[0] == number + 1 and len(received[1]) > 900_000
    slow.close()
    quick.close()


@pytest.mark.parametrize("client_goes", [True, False])
def test_proxy_trace_contains_a_request_whose_response_was_not_delivered(client_goes: bool, tmp_path: Path) -> None:
    """The client disconnects before the broker responds, or the proxy is stopped; in both cases the broker has received the request."""
    with cluster(1, {"t": 1}, clock="manual") as c, proxied(c.bootstrap, tmp_path / "proxy") as bootstrap:
        connection = connect(bootstrap)
        ask(connection, metadata(["t"]), 9)
        connection.send_bytes(connection.frame(fetch(("t", 0, 0), max_wait_ms=1000), 11))
        c.wait_for(lambda journal: journal.events("parked"))
        if client_goes:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # with a reset
            connection.close()
            while "closed" not in kinds(tmp_path / "proxy"):
                pass
    if not client_goes:
        connection.close()
    job.build(tmp_path / "proxy", tmp_path / "out", job.without_spark)
    requests = [
        (row["api"], row["has_response"], row["partial"], row["problem"]) for row in rows(tmp_path / "out", "requests")
    ]
    assert requests == [("Metadata", True, False, None), ("Fetch", False, True, UNANSWERED)]
    assert kinds(tmp_path / "proxy") == ["opened", "problem", "closed"]
    closed = next(e for e in entries(tmp_path / "proxy") if isinstance(e, Event) and e.kind == "closed")
    assert closed.facts["why"] == ("Connection reset by peer" if client_goes else "the proxy stops")
    numbers = [e.facts["seq"] if isinstance(e, Event) else e.seq for e in entries(tmp_path / "proxy")]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("rounds", range(7))
async def test_connection_opened_while_the_proxy_stops_is_closed(rounds: int, tmp_path: Path) -> None:
    """rounds: turns of the event loop between connecting and stopping. A connection left open fails this test."""
    async with async_cluster(1, {"t": 1}) as c:
        host, _, port = c.bootstrap.rpartition(":")
        tasks = len(asyncio.all_tasks())
        proxy = Proxy((host, int(port)), tmp_path / "proxy")
        await proxy.start()
        host, _, port = proxy.bootstrap.rpartition(":")
        with socket.create_connection((host, int(port))) as client:
            client.setblocking(False)
            for _ in range(rounds):
                await asyncio.sleep(0)
            await proxy.stop()
            assert len(asyncio.all_tasks()) == tasks
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1), WAIT_SECONDS) == b""
    assert kinds(tmp_path / "proxy") in ([], ["opened", "closed"])
    gc.collect()


def test_proxy_without_a_reachable_broker_exits_with_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        free_address = f"127.0.0.1:{free.getsockname()[1]}"
    with (
        pytest.raises(ConfigError, match=f"no Kafka broker answers at {free_address}"),
        proxied(free_address, tmp_path / "proxy"),
    ):
        pass
    assert not (tmp_path / "proxy").exists()


def test_proxy_command_prints_its_address_and_exits_with_status_0_on_sigterm(tmp_path: Path) -> None:
    with cluster(1, {"t": 1}) as c:
        command = [sys.executable, "-m", "kafkaproto.cli", "proxy", "--listen", "0", "--to", c.bootstrap]
        with program([*command, "--trace", str(tmp_path / "proxy")], stderr=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stderr is not None
            bootstrap = process.stdout.readline().strip()
            connection = connect(bootstrap)
            ask(connection, metadata(["t"]), 9)
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_SECONDS) == 0
            stderr_text = process.stderr.read()
            connection.close()
    assert "Traceback" not in stderr_text and "Warning" not in stderr_text
    assert [Decoded(e).api for e in entries(tmp_path / "proxy") if isinstance(e, Exchange)] == ["Metadata"]
    assert kinds(tmp_path / "proxy") == ["opened", "closed"]


@pytest.mark.parametrize("options", [[], ["--listen", "x", "--to", "a:1"], ["--listen", "0", "--to", "nowhere"]])
def test_proxy_command_with_invalid_options_prints_1_error_line_and_exits_with_2(
    options: list[str], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "kafkaproto.cli", "proxy", *options, "--trace", str(tmp_path / "t")]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (
        completed.returncode == 2
        and completed.stderr.count("\n") == 1
        and completed.stderr.startswith("kafkaproto proxy: ")
    )
