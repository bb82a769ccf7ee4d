"""A real Kafka behind the proxy, used by real clients, breaks no audit rule.

Each client exercises its expected rules, and a capture of the traffic gives equal tables.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafkaproto.broker.proxy import server as proxy
from kafkaproto.broker.proxy.connection import ProxyConnection
from kafkaproto.conformance.scene import new_topic
from kafkaproto.pipeline.trace import tables as job
from kafkaproto.pipeline.trace.audit.rule import NAMES
from kafkaproto.pipeline.trace.audit.rules import RULES
from kafkaproto.pipeline.trace.report.making import fast_tables
from kafkaproto.pipeline.trace.tables import read
from tests.support.clients import KAFKA_PYTHON_WARNINGS
from tests.support.conformance.real_kafka import RealKafka
from tests.support.pipeline import real_clients
from tests.support.pipeline.alike import OF_RECORDS, assert_same
from tests.support.pipeline.real_clients import CONFLUENT, JAVA, PARTITIONS, PYTHON, SPARK, TRANSACTIONS, Place
from tests.support.pipeline.sniffed import Sniffed, sniffed, written
from tests.support.pipeline.tap import Traffic
from tests.support.pipeline.wire import CLIENT, SERVER, Wire
from tests.support.proxied import proxied

pytestmark = [
    pytest.mark.spark,
    pytest.mark.java,
    pytest.mark.clients,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS),
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

EXERCISED_RULES = {2, *range(6, 10), *range(11, 16), *range(17, 21)}
EVERYBODY = {"2", "6", "7", "8", "9", "12", "13", "14", "15", "15-twice", "17", "19", "20", "20-HW"}
EXERCISED = {
    PYTHON: EVERYBODY | {"13-early", "16-time", "18"},
    CONFLUENT: EVERYBODY | {"13-early", "18"},
    TRANSACTIONS: EVERYBODY | {"11", "11-aborted", "13-early", "24", "25", "26", "28"},
    JAVA: EVERYBODY | {"13-early", "18"},
    SPARK: EVERYBODY,
}
"""Spark requests no invalid offset and does not wait at the end of a partition."""
READERS_RACK = "r2"
"""A rack without partition leaders."""


class Recorded(NamedTuple):
    """Recordings of one run. out: tables of the proxy's trace. traffic: bytes between proxy and brokers. port_of: maps a connection to its port.

    packets: of the kernel, including traffic between brokers. ours: both ports of each connection of the proxy to a broker.
    """

    out: Path
    traffic: Traffic
    port_of: Callable[[int], int]
    packets: Sniffed
    ours: set[frozenset[int]]


@pytest.fixture(scope="module")
def recorded(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    folder = tmp_path_factory.mktemp("real")
    traffic = Traffic()
    brokers: dict[int, Callable[[], int]] = {}
    ours: set[frozenset[int]] = set()

    class Listening(ProxyConnection):
        """Notes requests as sent to the broker, and responses before addresses are replaced."""

        def __init__(self, number: int, broker: Callable[[], int], *more: Any) -> None:
            super().__init__(number, broker, *more)
            self.number = number
            brokers[number] = broker

        def requested(self, data: bytes, now_ns: int) -> tuple[bytes, bytes]:
            on, back = super().requested(data, now_ns)
            if on:
                traffic.chunks.append((time.time_ns(), self.number, CLIENT, on))
            return on, back

        def responded(self, data: bytes, now_ns: int) -> bytes:
            traffic.chunks.append((time.time_ns(), self.number, SERVER, data))
            return super().responded(data, now_ns)

    open_connection = asyncio.open_connection

    async def noted(*address: Any, **options: Any) -> proxy.Ends:
        reader, writer = await open_connection(*address, **options)
        ours.add(frozenset(writer.get_extra_info(end)[1] for end in ("sockname", "peername")))
        return reader, writer

    kafka = RealKafka("default")
    try:
        [first, *_] = kafka.bootstrap
        ports = [port for _, port in kafka.bootstrap]
        with pytest.MonkeyPatch.context() as patch, sniffed(*ports) as packets:
            patch.setattr(proxy, "ProxyConnection", Listening)
            patch.setattr(asyncio, "open_connection", noted)
            with proxied(f"{first[0]}:{first[1]}", folder / "trace") as bootstrap:
                work(spark, kafka, bootstrap)
        job.build(folder / "trace", folder / "out", job.without_spark)
        yield Recorded(folder / "out", traffic, lambda number: ports[brokers[number]()], packets, ours)
    finally:
        kafka.stop()


def work(spark: Any, kafka: RealKafka, bootstrap: str) -> None:
    everybody = {
        PYTHON: real_clients.kafka_python,
        CONFLUENT: real_clients.confluent,
        TRANSACTIONS: real_clients.transactions,
        JAVA: real_clients.java,
        SPARK: lambda at: real_clients.spark(spark, at),
    }
    for client in everybody.values():
        topic = new_topic(kafka, assignment={index: [index % 2, 2] for index in range(PARTITIONS)})
        client(Place(bootstrap, topic.name, READERS_RACK))


class Checked(NamedTuple):
    """The checked and the broken rows of each rule, by client id."""

    rows: dict[str, Counter[str]]
    broken: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def checked(spark: Any, recorded: Recorded) -> Checked:
    checks = Checked({}, {})
    frames = [read(spark, recorded.out, name) for name in NAMES]
    with fast_tables(spark, frames, frames[0].count()) as tables:
        clients = {row.seq: row.client_id for row in tables.requests.select("seq", "client_id").collect()}
        for rule in RULES:
            rows = [row.asDict() for row in rule.check(tables).collect()]
            checks.rows[rule.number] = Counter(clients[row["seq"]] for row in rows)
            checks.broken[rule.number] = [row for row in rows if row["broken"]]
    return checks


def test_traffic_of_a_real_kafka_broker_breaks_no_audit_rule(checked: Checked) -> None:
    assert {number: rows for number, rows in checked.broken.items() if rows} == {}


@pytest.mark.parametrize("client", EXERCISED)
def test_recorded_traffic_of_each_client_library_exercises_its_expected_audit_rules(
    checked: Checked, client: str
) -> None:
    expected_rules = EXERCISED[client]
    assert {number for number in expected_rules if not checked.rows[number][client]} == set(), checked.rows


def test_recorded_traffic_of_all_clients_exercises_each_audit_rule_for_proxy_traces(checked: Checked) -> None:
    exercised = {int(number.split("-")[0]) for number, rows in checked.rows.items() if rows}
    assert exercised >= EXERCISED_RULES


def test_packet_capture_and_proxy_trace_of_a_real_kafka_yield_equal_tables(recorded: Recorded, tmp_path: Path) -> None:
    capture = recorded.traffic.capture(Wire(1), recorded.port_of, tmp_path / "traffic.pcap")
    job.build(capture, tmp_path / "out", job.without_spark)
    both = assert_same(tmp_path / "out", recorded.out)
    assert both["requests"] > 40 and min(both[table] for table in (*OF_RECORDS, "transactions")) > 10


def test_kernel_packet_capture_and_proxy_trace_of_real_kafka_give_the_same_tables(
    recorded: Recorded, tmp_path: Path
) -> None:
    """The proxy is closer to the clients than these packets: a response may arrive after its client has disconnected."""
    recorded.packets.or_skip()
    between = [packet for packet in recorded.packets.packets if frozenset(packet.ports) in recorded.ours]
    job.build(written(between, tmp_path / "lo.pcap"), tmp_path / "out", job.without_spark)
    both = assert_same(recorded.out, tmp_path / "out", own=proxy.CLIENT_ID)
    assert both["requests"] > 40 and min(both[table] for table in (*OF_RECORDS, "transactions")) > 10
