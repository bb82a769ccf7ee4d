"""Listeners of a broker: names, advertised addresses, ports kept over restarts, and ports in use."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.server import server as server_module
from kafkaproto.broker.server.server import Server
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.testing import AsyncTestCluster, async_cluster, cluster
from tests.support.raw import buffer_sizes, client_of, connect_to, open_sockets, until
from tests.support.wire import batch, metadata, produce, produced

TWO_LISTENERS = {
    "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
    "advertised.listeners": "INSIDE://broker.internal:19092",
    "1.advertised.listeners": "INSIDE://second.internal:29092,OUTSIDE://localhost:0",
}


def bound(cluster: AsyncTestCluster, broker_id: int = 0) -> list[tuple[str, int]]:
    return cluster.server.bound_addresses(broker_id)


async def advertised(host: str, port: int, version: int = 9) -> list[tuple[int, str, int]]:
    """Return the broker addresses in the Metadata response to a client that connects to this listener."""
    client = await connect_to(host, port)
    try:
        response = await client.ask(metadata(), version)
        return [(b.node_id, b.host, b.port) for b in response.brokers]
    finally:
        client.close()


@pytest.mark.rule("M-5")
async def test_metadata_on_each_listener_returns_the_addresses_of_that_listener() -> None:
    async with async_cluster(2, config=TWO_LISTENERS) as cluster:
        first, second = bound(cluster, 0), bound(cluster, 1)
        inside = [(0, "broker.internal", 19092), (1, "second.internal", 29092)]
        outside = [(0, "127.0.0.1", first[1][1]), (1, "localhost", second[1][1])]
        for broker in (first, second):
            assert await advertised(*broker[0]) == inside
            assert await advertised(*broker[1]) == outside
        assert cluster.bootstrap == "broker.internal:19092,second.internal:29092"


@pytest.mark.rule("M-8")
async def test_find_coordinator_returns_the_address_of_the_listener_of_the_request() -> None:
    async with async_cluster(config={"listeners": TWO_LISTENERS["listeners"]}) as cluster:
        client = await connect_to(*bound(cluster)[1])
        response = await client.ask(FindCoordinatorRequest(key="g"), 1)
        assert (response.error_code, response.host, response.port) == (0, *bound(cluster)[1])
        client.close()


@pytest.mark.rule("M-5", "M-4")
async def test_metadata_omits_brokers_without_the_listener_of_the_request() -> None:
    config = {
        "0.listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "1.listeners": "INSIDE://127.0.0.1:0",
    }
    async with async_cluster(2, {"t": 2}, config) as cluster:
        outside = bound(cluster)[1]
        assert [broker[0] for broker in await advertised(*outside)] == [0]
        client = await connect_to(*outside)
        [topic] = (await client.ask(metadata(["t"]), 9)).topics
        assert sorted((p.error_code, p.leader_id) for p in topic.partitions) == [(0, 0), (72, -1)]
        client.close()


async def test_restarted_broker_keeps_its_ports_and_topics() -> None:
    async with async_cluster(topics={"t": 1}, config={"listeners": TWO_LISTENERS["listeners"]}) as cluster:
        before = bound(cluster)
        for turn in range(5):
            async with client_of(cluster) as client:
                assert produced(await client.ask(produce("t", batch(b"a")), 9)).base_offset == turn
            cluster.broker(0).stop()
            for address in before:
                with pytest.raises(ConnectionRefusedError):
                    await connect_to(*address)
            cluster.broker(0).start()
            await cluster.settled()
            assert bound(cluster) == before
            assert await advertised(*before[1]) == [(0, *before[1])]


async def test_broker_stopped_before_its_listeners_have_opened_refuses_connections() -> None:
    async with async_cluster(2) as cluster:
        address = bound(cluster)[0]
        for _ in range(3):
            cluster.broker(0).stop()
            cluster.broker(0).start()
        cluster.broker(0).stop()
        await cluster.settled()
        with pytest.raises(ConnectionRefusedError):
            await connect_to(*address)
        cluster.broker(0).start()
        await cluster.settled()
        assert (0, *address) in await advertised(*address)


async def test_cluster_stopped_while_opening_its_listeners_does_not_listen_afterwards() -> None:
    async with async_cluster(2) as cluster:
        address = bound(cluster)[0]
        cluster.broker(0).stop()
        cluster.broker(0).start()
    with pytest.raises(ConnectionRefusedError):
        await connect_to(*address)
    assert len(asyncio.all_tasks()) == 1


@contextmanager
def taken_port() -> Iterator[int]:
    """Return a port in use whose preceding port is free, below the kernel's range of client ports."""
    for port in range(20_001 + os.getpid() % 1000 * 10, 32_000, 2):
        with socket.socket() as sock:
            try:
                with socket.socket() as before:
                    before.bind(("127.0.0.1", port - 1))
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            sock.listen()
            yield port
            return
    raise AssertionError("no two ports in a row are free")


async def test_broker_port_in_use_raises_a_single_line_error_and_leaves_no_socket_open() -> None:
    with taken_port() as port:
        with pytest.raises(
            ConfigError, match=rf"broker 0 cannot listen on 127\.0\.0\.1:{port}: the port is in use"
        ) as raised:
            async with async_cluster(port=port):
                pass
        assert "\n" not in str(raised.value)
        free = port - 1  # broker 0 gets it, broker 1 does not
        with pytest.raises(ConfigError, match=f"broker 1 cannot listen on .*:{port}: the port is in use"):
            async with async_cluster(2, port=free):
                pass
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("127.0.0.1", free))
    assert len(asyncio.all_tasks()) == 1


async def test_restart_of_a_broker_fails_with_config_error_if_its_port_was_taken_meanwhile() -> None:
    async with async_cluster() as cluster:
        host, port = bound(cluster)[0]
        cluster.broker(0).stop()
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, port))
            sock.listen()
            cluster.broker(0).start()
            for _ in range(10):
                await asyncio.sleep(0)
            with pytest.raises(ConfigError, match=f":{port}: the port is in use"):
                await cluster.settled()


@pytest.mark.parametrize(
    ("host", "why"),
    [("203.0.113.1", "cannot listen on 203.0.113.1:0"), ("no.such.host.invalid", "no.such.host.invalid")],
)
async def test_listener_on_an_address_of_another_machine_is_rejected_with_an_error_line(host: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        async with async_cluster(host=host):
            pass


async def test_consecutive_broker_ports_above_65535_are_rejected() -> None:
    with pytest.raises(ConfigError, match=r"the port of broker 1 must be at most 65535 \(got 65536\)"):
        async with async_cluster(2, port=65535):
            pass


TWO_ADDRESSES = ("127.0.0.1", "127.0.0.2")
OpenServer = Callable[..., Awaitable[asyncio.Server]]


@pytest.fixture
async def two_addresses(monkeypatch: pytest.MonkeyPatch) -> OpenServer:
    """Let every host name stand for TWO_ADDRESSES, as `localhost` may for 127.0.0.1 and ::1."""
    loop = asyncio.get_running_loop()
    create = loop.create_server

    async def on_two(factory: object, host: str, port: int, **options: object) -> asyncio.Server:
        return await create(factory, TWO_ADDRESSES, port, **options)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(loop, "create_server", on_two)
    return on_two


@pytest.mark.usefixtures("two_addresses")
async def test_listener_on_a_host_name_with_two_addresses_uses_one_port_for_both() -> None:
    """Metadata contains one port for both addresses."""
    async with async_cluster(3) as cluster:
        for broker_id in range(3):
            [(_, port)] = bound(cluster, broker_id)
            for host in TWO_ADDRESSES:
                assert len(await advertised(host, port)) == 3


async def test_cluster_start_raises_port_in_use_if_no_port_is_free_on_both_localhost_ips(
    two_addresses: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each port that is free on one address is in use on the other."""
    tries = 0
    with ExitStack() as others:

        async def contended(factory: object, host: str, port: int, **options: object) -> asyncio.Server:
            nonlocal tries
            tries += 1
            assert tries < 100, "it retries forever"
            server = await two_addresses(factory, host, port, **options)
            for host, bound_port in (sock.getsockname() for sock in server.sockets):
                [other] = set(TWO_ADDRESSES) - {host}
                with suppress(OSError):  # the port is in use already
                    others.enter_context(socket.create_server((other, bound_port)))
            return server

        monkeypatch.setattr(asyncio.get_running_loop(), "create_server", contended)
        with pytest.raises(ConfigError, match="the port is in use"):
            async with async_cluster():
                pass


async def test_listener_reachable_from_other_machines_is_logged_as_a_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module.socket, "getfqdn", lambda: "this.machine.example")
    with caplog.at_level("WARNING"):
        async with async_cluster(host="0.0.0.0") as cluster:
            assert cluster.bootstrap == f"this.machine.example:{bound(cluster)[0][1]}"
    assert any("other machines can reach it" in record.getMessage() for record in caplog.records)


async def test_bootstrap_addresses_contain_ipv6_addresses_in_brackets() -> None:
    state = Cluster(1)
    server = Server(state)
    state.set_listeners(0, {"PLAINTEXT": ("::1", 9092)})
    assert server.bootstrap == ["[::1]:9092"]
    await server.stop()


@pytest.mark.rule("W-8")
async def test_stopping_a_broker_closes_only_its_own_connections() -> None:
    async with async_cluster(2) as cluster, client_of(cluster, 0) as first, client_of(cluster, 1) as second:
        await first.ask(metadata(), 1)
        await second.ask(metadata(), 1)
        cluster.broker(0).stop()
        assert await first.rest() == b""
        assert [b.node_id for b in (await second.ask(metadata(), 1)).brokers] == [1]
        await until(lambda: open_sockets(cluster) == 1)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_cluster_that_stops_while_it_accepts_a_connection_leaves_no_socket_open() -> None:
    """With every delay between connecting and stopping, no socket is left to the garbage collector."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sockets left by other tests
        gc.collect()
    for spins in range(60):
        with cluster() as c:
            host, port = c.bootstrap.split(":")
            sock = socket.create_connection((host, int(port)), 5)
            for _ in range(spins * 40):
                pass
            sock.close()
    gc.collect()


async def test_accepted_connections_have_the_buffer_sizes_of_the_socket_buffer_settings() -> None:
    sizes = {"socket.send.buffer.bytes": 50_000, "socket.receive.buffer.bytes": 60_000}
    factor = 2 if sys.platform == "linux" else 1  # Linux doubles the requested size, for its own bookkeeping
    async with async_cluster(config={**sizes, "socket.listen.backlog.size": 3}) as cluster:
        client = await connect_to(*bound(cluster)[0])
        await client.ask(metadata(), 9)
        assert buffer_sizes(cluster) == [(factor * 50_000, factor * 60_000)]
        client.close()
