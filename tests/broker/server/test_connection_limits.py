"""Connection limits on real sockets, as a client sees them (W-12, W-13)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.quota.entities import QuotaEntity
from kafkaproto.testing import AsyncTestCluster, async_cluster
from tests.support.raw import RawClient, client_of, connect, open_sockets, until
from tests.support.wire import metadata

MANY = 500


async def wait_until_accepted(cluster: AsyncTestCluster, count: int) -> None:
    """Wait until the broker has accepted `count` sockets, whether it serves them or not."""
    await until(lambda: open_sockets(cluster) == count)


async def works(client: RawClient) -> bool:
    return len((await client.ask(metadata(), 1)).brokers) == 1


@pytest.mark.rule("W-12")
async def test_client_above_max_connections_per_ip_is_disconnected() -> None:
    async with async_cluster(config={"max.connections.per.ip": 1}) as cluster, client_of(cluster) as first:
        async with client_of(cluster) as second:
            assert await second.rest() == b""
        assert await works(first)
        first.close()
        await wait_until_accepted(cluster, 0)
        async with client_of(cluster) as third:
            assert await works(third)


@pytest.mark.rule("W-12")
async def test_client_above_max_connections_is_answered_after_another_client_disconnects() -> None:
    async with async_cluster(config={"max.connections": 1}) as cluster, client_of(cluster) as first:
        assert await works(first)
        async with client_of(cluster) as second:
            await wait_until_accepted(cluster, 2)
            await second.send(metadata(), 1)
            assert await works(first)
            assert len(cluster.state.journal.requests("Metadata")) == 2
            first.close()
            assert (await second.answer()).message.brokers
            assert await works(second)


@pytest.mark.rule("W-13")
async def test_client_above_a_connection_rate_of_1_per_second_is_answered_after_1_second() -> None:
    config = {"max.connection.creation.rate": 1, "quota.window.num": 2}
    async with async_cluster(config=config, clock="manual") as cluster, client_of(cluster) as first:
        assert await works(first)
        async with client_of(cluster) as second:
            await wait_until_accepted(cluster, 2)
            await second.send(metadata(), 1)
            await cluster.clock.advance(999)
            assert len(cluster.state.journal.requests("Metadata")) == 1
            await cluster.clock.advance(1)
            assert (await second.answer()).message.brokers


@pytest.mark.rule("W-13")
async def test_connection_above_its_ip_rate_limit_is_closed_unanswered_after_200_ms() -> None:
    async with async_cluster(config={"quota.window.num": 2}, clock="manual") as cluster:
        cluster.state.quota_store.set(QuotaEntity(ip="127.0.0.1"), "connection_creation_rate", 5)
        clients = [await connect(cluster) for _ in range(7)]
        await wait_until_accepted(cluster, 7)
        await clients[5].send(metadata(), 1)
        await cluster.clock.advance(199)
        assert open_sockets(cluster) == 7
        await cluster.clock.advance(1)
        await wait_until_accepted(cluster, 5)
        assert [await client.rest() for client in clients[5:]] == [b"", b""]
        assert [await works(client) for client in clients[:5]] == [True] * 5
        for client in clients:
            client.close()


@pytest.mark.rule("W-12")
async def test_broker_stop_closes_a_connection_waiting_because_max_connections_is_reached() -> None:
    async with async_cluster(config={"max.connections": 1}) as cluster, client_of(cluster) as first:
        assert await works(first)
        async with client_of(cluster) as waiting:
            await wait_until_accepted(cluster, 2)
            cluster.server.loop.call(lambda: cluster.state.stop_broker(0))
            assert await waiting.rest() == b""
        await wait_until_accepted(cluster, 0)


@pytest.mark.rule("W-12")
async def test_disconnected_client_in_max_connections_queue_does_not_block_the_next_client() -> None:
    async with async_cluster(config={"max.connections": 1}) as cluster, client_of(cluster) as first:
        assert await works(first)
        disconnecting = await connect(cluster)
        await wait_until_accepted(cluster, 2)
        disconnecting.reset()
        async with client_of(cluster) as last:
            await wait_until_accepted(cluster, 3)
            first.close()
            assert await works(last)


@pytest.mark.rule("W-12")
async def test_connection_count_is_zero_after_many_clients_connect_and_disconnect() -> None:
    async with async_cluster(config={"max.connections.per.ip": 40}) as cluster:
        quotas = cluster.state.nodes[0].connection_quotas
        for n in range(MANY):
            client = await connect(cluster)
            client.reset() if n % 2 else client.close()
        await wait_until_accepted(cluster, 0)
        assert quotas.total == 0 and quotas.address_has_room("127.0.0.1")
        async with client_of(cluster) as client:
            assert await works(client)
            assert quotas.total == 1
