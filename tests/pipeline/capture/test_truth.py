"""A capture and the broker's own trace of the traffic give equal tables, even if packets are reordered or repeated."""

from __future__ import annotations

import json
import socket
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafkaproto.conformance.client import SocketConnection
from kafkaproto.pipeline.capture.connections import NO_KAFKA
from kafkaproto.pipeline.capture.conversation import SEQ_PER_PACKET
from kafkaproto.pipeline.trace import tables as job
from kafkaproto.pipeline.trace.audit.conversation import RULES
from kafkaproto.pipeline.trace.audit.rule import BROKEN, HOLDS, outcome
from kafkaproto.pipeline.trace.audit.rule import Tables as AuditedTables
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.testing import TestCluster, cluster
from tests.support.clients import KAFKA_PYTHON_WARNINGS
from tests.support.pipeline.alike import OF_RECORDS, assert_same
from tests.support.pipeline.exchanges import add_exchanges, fetched, named, versions
from tests.support.pipeline.recorded import traffic, write
from tests.support.pipeline.sniffed import Sniffed, sniffed, written
from tests.support.pipeline.tables import rows
from tests.support.pipeline.tap import LARGEST_SEGMENT_BYTES, Tap, tapped
from tests.support.pipeline.wire import CLIENT, SERVER, Wire
from tests.support.wire import batch, fetch, metadata, produce

pytestmark = [
    pytest.mark.spark,
    pytest.mark.clients,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS),
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]


def ask(connection: SocketConnection, request: Any, version: int) -> Any:
    connection.send_bytes(connection.frame(request, version))
    received = connection.take(20)
    assert received is not None
    return connection.decode(*received, 0.0).message


def kafka_python(c: TestCluster) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=c.bootstrap, client_id="kp", batch_size=4000, max_in_flight_requests_per_connection=5
    )
    for i in range(200):
        producer.send("t", b"x" * (i * 7 % 900), partition=i % 2)
    producer.flush()
    producer.close()
    consumer = KafkaConsumer(
        "t", bootstrap_servers=c.bootstrap, client_id="kc", group_id="g", auto_offset_reset="earliest"
    )
    received = 0
    while received < 200:
        received += sum(map(len, consumer.poll(500).values()))
    consumer.close()


def confluent(c: TestCluster) -> None:
    from confluent_kafka import Consumer, Producer

    options = {"bootstrap.servers": c.bootstrap, "client.id": "cp", "linger.ms": 5, "transactional.id": "cp"}
    producer = Producer(options)
    producer.init_transactions(20)
    producer.begin_transaction()
    for i in range(100):
        producer.produce("t", b"y" * (i * 11 % 700), partition=i % 2)
    producer.commit_transaction(20)
    consumer = Consumer(
        {"bootstrap.servers": c.bootstrap, "client.id": "cc", "group.id": "h", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    received = 0
    while received < 300:
        message = consumer.poll(1)
        received += message is not None and message.error() is None
    consumer.close()


def raw(port: int) -> None:
    """Send pipelined requests, requests without responses, by topic id, in sessions, and large ones."""
    connection = SocketConnection("127.0.0.1", port, "raw")
    ask(connection, metadata(["t"]), 12)
    connection.send_bytes(
        connection.frame(produce("t", batch(b"x", b"y"), acks=0), 9) + connection.frame(metadata(["t"]), 9)
    )
    assert connection.take(20) is not None
    ask(connection, produce("t", batch(b"z" * 300_000)), 9)
    ask(connection, produce("none", batch(b"z")), 7)
    session = ask(connection, fetch(("t", 0, 0), session=(0, 0)), 11).session_id
    for step in (1, 2, 3):
        ask(connection, fetch(session=(session, step)), 11)
    ask(connection, fetch(("t", 0, 1_000_000)), 11)
    connection.close()


def web(listening: socket.socket) -> None:
    """Send traffic that is not Kafka's protocol."""
    with socket.create_connection(listening.getsockname()) as client:
        server, _ = listening.accept()
        with server:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert server.recv(1000)
            server.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            assert client.recv(1000)


class Recorded(NamedTuple):
    """Recordings of one run. trace: the broker's own. tap: bytes between clients and the broker.

    packets: of the kernel, between clients and the tap, and of a connection with another protocol at `other_port`.
    """

    trace: Path
    tap: Tap
    packets: Sniffed
    other_port: int


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    trace = tmp_path_factory.mktemp("truth") / "trace"
    with tapped() as tap, socket.create_server(("127.0.0.1", 0)) as other:
        advertised = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{tap.port}"}
        other_port = other.getsockname()[1]
        with sniffed(tap.port, other_port) as packets, cluster(1, {"t": 2}, advertised, trace=trace) as c:
            [(_, tap.to_port)] = c.server.bound_addresses(0)
            web(other)
            kafka_python(c)
            confluent(c)
            raw(tap.port)
        return Recorded(trace, tap, packets, other_port)


@pytest.mark.parametrize("seed", [1, 2])
def test_packet_capture_and_broker_trace_of_the_same_traffic_give_the_same_tables(
    recorded: Recorded, seed: int, tmp_path: Path
) -> None:
    tap, wire = recorded.tap, Wire(seed)
    capture = tap.capture(wire, lambda _: tap.port, tmp_path / "plain.pcap")
    job.build(recorded.trace, tmp_path / "trace-out", job.without_spark)
    job.build(capture, tmp_path / "plain-out", job.without_spark)
    wire.disorder()
    job.build(wire.write(tmp_path / "disorder.pcap"), tmp_path / "disorder-out", job.without_spark)
    for folder in ("plain-out", "disorder-out"):
        both = assert_same(tmp_path / folder, tmp_path / "trace-out")
        assert both["requests"] > 40 and min(both[table] for table in OF_RECORDS) > 10 and min(both.values()) > 2


def test_kernel_packet_capture_and_broker_trace_give_the_same_tables(recorded: Recorded, tmp_path: Path) -> None:
    """Packets are larger than any segment, among others that are not Kafka's protocol, and the port is not given."""
    packets = recorded.packets
    packets.or_skip()
    assert max(len(packet.data) for packet in packets.packets) > 10 * LARGEST_SEGMENT_BYTES, "segments are too small"
    job.build(written(packets.packets, tmp_path / "lo.pcap"), tmp_path / "out", job.without_spark)
    job.build(recorded.trace, tmp_path / "trace-out", job.without_spark)
    both = assert_same(tmp_path / "out", tmp_path / "trace-out")
    assert both["requests"] > 40 and min(both[table] for table in OF_RECORDS) > 10 and min(both.values()) > 2
    recorded_events = rows(tmp_path / "out", "events")
    assert not {"lost", "unreadable"} & {packet["kind"] for packet in recorded_events}
    others = sum(recorded.other_port in packet.ports for packet in packets.packets)
    assert others > 5
    assert [json.loads(packet["facts"])["packets"] for packet in recorded_events if packet["kind"] == "left_out"] == [
        {NO_KAFKA: others}
    ]


def test_capture_that_begins_at_any_packet_yields_all_requests_after_that_packet(
    recorded: Recorded, tmp_path: Path
) -> None:
    """The capture starts while clients and brokers communicate. The first request of each connection may have begun before."""

    def requests(start: int) -> list[dict[str, Any]]:
        packets = recorded.packets.packets[start:]
        name = f"from{start}"
        job.build(written(packets, tmp_path / f"{name}.pcap"), tmp_path / name, job.without_spark)
        return rows(tmp_path / name, "requests")

    def identity(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["client_id"], row["api"], row["correlation_id"], row["bytes_in"], row["bytes_out"]

    recorded.packets.or_skip()
    everything = requests(0)
    for start in range(20, len(recorded.packets.packets), 40):
        later: dict[int, list[tuple[Any, ...]]] = {}
        for row in everything:
            if row["seq"] // SEQ_PER_PACKET > start:
                later.setdefault(row["conn"], []).append(identity(row))
        matched = Counter(identity(row) for row in requests(start))
        assert matched <= Counter(map(identity, everything)), start
        assert Counter(row for of_connection in later.values() for row in of_connection[1:]) <= matched, start


def test_packet_capture_tables_built_with_and_without_spark_are_equal(
    spark: Any, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder with captures: of real clients, with late names of topics and brokers, truncated, invalid; and a trace."""
    tap = recorded.tap
    folder = tmp_path / "in"
    write(folder, traffic())
    wire = Wire(3)
    tap.capture(wire, lambda _: tap.port, folder / "one.pcap")
    wire.disorder()
    wire.write(folder / "one.pcap")
    late = Wire(4)
    add_exchanges(late.connect(40_000), versions(1), fetched(2))
    add_exchanges(late.connect(40_001), named(1))
    late.connect(40_002, server=80).says(0, b"GET / HTTP/1.1\r\n")
    late.write(folder / "late.pcap")
    torn = late.write(folder / "torn.pcap")
    torn.write_bytes(torn.read_bytes()[:-1])
    (folder / "bad.pcapng").write_bytes(b"no capture")
    counts, notices = job.build(folder, tmp_path / "a", job.without_spark)
    monkeypatch.setattr(job, "PROGRESS_INTERVAL_S", 0.01)
    progress: list[str] = []
    again, notices_again = job.build(folder, tmp_path / "b", partial(job.with_spark, spark, progress=progress.append))
    captured_bytes = sum(path.stat().st_size for path in folder.glob("*.pcap"))
    assert f"0 of {captured_bytes / 1e6:,.0f} MB read, 0 %" in progress and "everything is read" in progress[-1]
    assert sorted(counts) == ["late.pcap", "one.pcap", "r", "torn.pcap"]
    assert counts == again and sorted(notices) == sorted(notices_again) and len(notices) == 2
    for table in TABLES:
        assert rows(tmp_path / "a", table) == rows(tmp_path / "b", table)
    partitions = rows(tmp_path / "b", "partitions", "late.pcap")
    assert [(row["topic"], row["broker"]) for row in partitions] == [("t", 3)]


def test_audit_of_a_packet_capture_reports_responses_that_arrive_out_of_order(spark: Any, tmp_path: Path) -> None:
    wire = Wire()
    line = wire.connect()
    add_exchanges(line, versions(1, (18, 0, 4), (3, 0, 12)))
    requests, responses = zip(named(2), named(3), strict=True)
    line.says(CLIENT, b"".join(requests))
    line.says(SERVER, b"".join(reversed(responses)))
    add_exchanges(line, named(4))
    line.close()
    job.build(wire.write(tmp_path / "a.pcap"), tmp_path / "out", job.without_spark)
    tables = AuditedTables.of(spark, tmp_path / "out")
    outcomes = {rule.number: outcome(rule, tables) for rule in RULES if rule.number in ("6", "7")}
    assert sorted(row["correlation_id"] for row in outcomes["6"].sample) == [2, 3]
    assert [
        (rule_outcome.verdict, rule_outcome.checked, rule_outcome.broken) for rule_outcome in outcomes.values()
    ] == [(BROKEN, 4, 2), (HOLDS, 4, 0)]
