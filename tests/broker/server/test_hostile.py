"""Invalid bytes on real sockets are handled as in Kafka, use no memory, and do not affect other clients (W-1 to W-8)."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafkaproto.api import APIS, ApiKey, codec
from kafkaproto.broker.server.channel import Channel
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.testing import AsyncTestCluster, async_cluster, cluster
from tests.support.clients import KAFKA_PYTHON_WARNINGS
from tests.support.memory import memory_within
from tests.support.raw import RawClient, client_of, connect, frame, framed, open_sockets, serving, until
from tests.support.wire import batch, fetch, flat, metadata, produce, produced

MIB = 1 << 20
GIB = 1 << 30
UNSUPPORTED_VERSION = 35


def length(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def header(key: int, version: int, correlation_id: int = 7, client_id: bytes = b"raw") -> bytes:
    """Return a request header v1 followed by bytes of an empty body."""
    numbers = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    return numbers + correlation_id.to_bytes(4, "big") + len(client_id).to_bytes(2, "big") + client_id


async def closed_without_a_word(cluster: AsyncTestCluster, data: bytes) -> None:
    async with client_of(cluster) as client:
        await client.send_bytes(data)
        assert await client.rest() == b"", data[:40]


# ---- lengths ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("W-1")
@pytest.mark.parametrize("announced", [-1, -(2**31), 104857601, GIB, 2**31 - 1])
async def test_invalid_frame_length_without_a_payload_closes_the_connection(announced: int) -> None:
    async with async_cluster() as cluster:
        await closed_without_a_word(cluster, length(announced))


@pytest.mark.rule("W-1", "W-6")
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 7])
async def test_frame_too_short_for_a_header_closes_the_connection(size: int) -> None:
    async with async_cluster() as cluster:
        await closed_without_a_word(cluster, framed(bytes(size)))


@pytest.mark.rule("W-1")
@pytest.mark.parametrize("socket_limit", ["104857600", str(2**31 - 1)])
async def test_huge_announced_frame_length_uses_memory_only_for_the_bytes_received_so_far(socket_limit: int) -> None:
    """50 connections announce 1 GiB, or the default limit of 100 MB, and send 100 KB each; then one sends a megabyte."""
    config = {"socket.request.max.bytes": socket_limit}
    announced = min(GIB, int(socket_limit))
    async with async_cluster(config=config) as cluster, client_of(cluster) as healthy:
        await healthy.ask(metadata(), 1)
        hostile = [await connect(cluster) for _ in range(50)]
        part = bytes(100_000)
        with memory_within(50 * (2 * len(part) + 70_000) + 2 * MIB):
            for client in hostile:
                await client.send_bytes(length(announced) + part)
            await hostile[0].send_bytes(bytes(MIB))
            await cluster.server.loop.settle()
            await healthy.ask(metadata(), 1)
        for client in hostile:
            client.close()
        await until(lambda: open_sockets(cluster) == 1)
        assert cluster.server.loop.buffers.spare_bytes <= 4 * MIB


@pytest.mark.rule("W-1")
async def test_connection_with_a_partial_frame_is_closed_at_the_idle_timeout() -> None:
    async with serving(config={"connections.max.idle.ms": "5000"}, clock="manual") as (cluster, client):
        await client.send_bytes(frame(metadata(), 1)[:-1])
        await cluster.clock.advance(4999)
        assert open_sockets(cluster) == 1
        await cluster.clock.advance(1)
        assert await client.rest() == b""


# ---- headers ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("W-3")
async def test_unknown_api_keys_close_the_connection() -> None:
    async with async_cluster() as cluster:
        offered = set(cluster.state.apis)
        for key in [-1, -32768, 32767, *(key for key in range(100) if key not in offered)]:
            await closed_without_a_word(cluster, framed(header(key, 0) + bytes(20)))


@pytest.mark.rule("W-3")
@pytest.mark.parametrize("version", [99, -1, 32767, -32768])
async def test_unsupported_version_of_any_api_closes_the_connection(version: int) -> None:
    async with async_cluster() as cluster:
        for key in cluster.state.apis:
            if key == ApiKey.API_VERSIONS:
                continue  # the exception, tested below
            await closed_without_a_word(cluster, framed(header(key, version) + bytes(20)))


@pytest.mark.rule("W-3")
@pytest.mark.parametrize("version", [-32768, -1, 5, 99, 32767])
async def test_unsupported_api_versions_request_is_answered_in_version_0(version: int) -> None:
    async with serving() as (_, client):
        await client.send_bytes(framed(header(ApiKey.API_VERSIONS, version, 4711) + b"\x00whatever"))
        size = int.from_bytes(await client.data(4), "big")
        data = memoryview(await client.data(size))
        assert int.from_bytes(data[:4], "big") == 4711
        message, end = codec(ApiKey.API_VERSIONS, 0).decode_response(data, 4, size)
        assert end == size
        assert message.error_code == UNSUPPORTED_VERSION
        assert [(a.api_key, a.min_version, a.max_version) for a in message.api_keys] == [(18, 0, 4)]
        await client.ask(ApiVersionsRequest(), 0)  # the connection stays open


@pytest.mark.rule("W-2", "W-6")
async def test_api_versions_request_v99_gets_a_response_only_if_its_header_is_complete() -> None:
    whole = header(ApiKey.API_VERSIONS, 99) + b"\x00"
    async with async_cluster() as cluster:
        for cut in range(len(whole)):
            await closed_without_a_word(cluster, framed(whole[:cut]))
        async with client_of(cluster) as client:
            await client.send_bytes(framed(whole))
            assert int.from_bytes(await client.data(4), "big") > 4


# ---- bodies -------------------------------------------------------------------------------------------------------------------------


def join() -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="group",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        protocol_type="test",  # not "consumer", because the coordinator decodes the metadata of consumers
        protocols=[JoinGroupRequestProtocol("range", b"subscription")],
    )


REQUESTS = {
    "Produce 3": (produce("t", batch(b"value")), 3),
    "Produce 9": (produce("t", batch(b"value")), 9),
    "Metadata 1": (metadata(["t"]), 1),
    "Metadata 12": (metadata(["t"]), 12),
    "Fetch 4": (fetch(("t", 0, 0), version=4), 4),
    "Fetch 12": (fetch(("t", 0, 0), version=12), 12),
    "JoinGroup 0": (join(), 0),
    "JoinGroup 9": (join(), 9),
}


@pytest.mark.rule("W-1", "W-10")
@pytest.mark.parametrize("name", REQUESTS)
async def test_connection_closed_in_the_middle_of_a_request_leaves_no_records_or_timers(name: str) -> None:
    request, version = REQUESTS[name]
    data = frame(request, version)
    async with async_cluster(topics={"t": 1}) as cluster:
        for cut in range(len(data)):
            async with client_of(cluster) as client:
                await client.send_bytes(data[:cut])
                client.finish()
                assert await client.rest() == b""
        await until(lambda: not open_sockets(cluster))
        assert cluster.journal.requests() == []
        assert cluster.records("t") == []
        assert cluster.server.loop.buffers.spare_bytes <= 4 * MIB
        assert len(cluster.state.timers) == 0


@pytest.mark.rule("W-5")
@pytest.mark.parametrize("name", REQUESTS)
async def test_request_body_cut_at_any_byte_closes_the_connection_without_a_response(name: str) -> None:
    request, version = REQUESTS[name]
    payload = frame(request, version)[4:]
    async with async_cluster(topics={"t": 1}) as cluster:
        for cut in range(len(payload)):
            await closed_without_a_word(cluster, framed(payload[:cut]))
        assert cluster.journal.requests() == []
        assert cluster.records("t") == []


@pytest.mark.rule("W-5")
@pytest.mark.parametrize("name", REQUESTS)
async def test_valid_request_followed_by_extra_bytes_in_its_frame_gets_a_response(name: str) -> None:
    request, version = REQUESTS[name]
    async with serving(topics={"t": 1}) as (_, client):
        await client.send_bytes(framed(client.frame(request, version)[4:] + b"\xff" * 30))
        assert (await client.answer()).correlation_id == 1


@pytest.mark.rule("W-5")
async def test_array_count_of_two_billion_closes_the_connection_and_uses_at_most_4_mib() -> None:
    """Kafka's RequestContextTest.testInvalidRequestForArrayList."""
    async with async_cluster() as cluster:
        await closed_without_a_word(cluster, framed(header(3, 1) + length(5) + bytes(4)))
        with memory_within(4 * MIB):
            await closed_without_a_word(cluster, framed(header(3, 1) + length(2**31 - 1) + bytes(8)))
            await closed_without_a_word(cluster, framed(header(3, 9) + b"\x00" + b"\xff\xff\xff\xff\x07" + bytes(8)))


@pytest.mark.rule("W-5")
async def test_random_request_bodies_of_every_api_and_version_never_crash_the_broker() -> None:
    """A valid header with random bytes gets a response or a close, but no error in the log (checked by the fixture).

    Zeros are a valid UnregisterBroker request for broker 0 (AD-26), so there is a second broker.
    """
    rng = random.Random(5)
    async with async_cluster(brokers=2, topics={"t": 1}) as cluster, client_of(cluster) as healthy:
        for key, offered in cluster.state.apis.items():
            for version in range(offered.min_version, offered.max_version + 1):
                tags = b"\x00" if codec(key, version).request_header_version == 2 else b""
                async with client_of(cluster) as client:
                    noise = rng.choice([rng.randbytes(rng.randrange(200)), bytes(rng.randrange(200))])
                    await client.send_bytes(framed(header(key, version) + tags + noise))
                    client.finish()
                    await cluster.server.loop.settle()
        assert (await healthy.ask(metadata(), 1)).brokers


@pytest.mark.rule("W-5")
async def test_flipped_bytes_in_valid_requests_of_every_api_never_crash_the_broker() -> None:
    rng = random.Random(6)
    async with async_cluster(topics={"t": 1}, clock="manual") as cluster:
        for request, version in REQUESTS.values():
            payload = frame(request, version)[4:]
            for _ in range(60):
                broken = bytearray(payload)
                for _ in range(rng.randrange(1, 4)):
                    broken[rng.randrange(8, len(broken))] = rng.randrange(256)
                async with client_of(cluster) as client:
                    await client.send_bytes(framed(bytes(broken)))
                    await cluster.server.loop.settle()
        async with client_of(cluster) as healthy:
            assert (await healthy.ask(metadata(["t"]), 1)).topics[0].error_code == 0


# ---- other clients are not affected -------------------------------------------------------------------------------------------------


async def be_hostile(cluster: AsyncTestCluster, rng: random.Random, connections: int) -> None:
    """Send random bytes, random bytes with a plausible length, and the start of a valid request, one after the other."""
    for _ in range(connections):
        kind = rng.randrange(4)
        noise = rng.randbytes(rng.choice([1, 10, 1000, 60_000]))
        data = [
            noise,
            length(rng.randrange(100_000)) + noise,
            framed(header(rng.choice(list(APIS)), rng.randrange(-1, 20)) + noise),
            frame(metadata(), 1) + noise,
        ][kind]
        async with client_of(cluster) as client:
            try:
                await client.send_bytes(data)
                if rng.randrange(2):
                    client.finish()
                    await client.rest()
                else:
                    await cluster.server.loop.settle()
            except ConnectionError:
                pass  # closed while it was sending


async def work(client: RawClient, rounds: int) -> None:
    for number in range(rounds):
        assert produced(await client.ask(produce("t", batch(b"%d" % number)), 9)).base_offset == number
        [(_, data)] = flat(await client.ask(fetch(("t", 0, number)), 11))
        assert (data.error_code, data.high_watermark) == (0, number + 1)


@pytest.mark.rule("W-8")
async def test_client_can_produce_with_24_mib_memory_while_50_clients_send_random_bytes() -> None:
    async with serving(topics={"t": 1}) as (cluster, client):
        await be_hostile(cluster, random.Random(1), 20)
        await work_and_be_hostile(cluster, client)
        await until(lambda: open_sockets(cluster) == 1)
        assert cluster.server.loop.buffers.spare_bytes <= 4 * MIB
        assert len(cluster.records("t")) == 200


async def work_and_be_hostile(cluster: AsyncTestCluster, client: RawClient) -> None:
    rng = random.Random(2)
    with memory_within(24 * MIB):  # 50 clients of up to 60 KB on both sides, spares, and a journal that grows
        await asyncio.gather(work(client, 200), *[be_hostile(cluster, rng, 4) for _ in range(50)])


@pytest.mark.rule("W-8")
@pytest.mark.clients
@pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS)
def test_kafka_python_produces_and_consumes_while_50_connections_send_random_bytes() -> None:
    from kafka import KafkaConsumer, KafkaProducer

    with ThreadPoolExecutor(1) as own_thread, cluster(topics={"t": 2}) as c:
        noise = own_thread.submit(asyncio.run, hostility(c.bootstrap_servers[0]))
        producer = KafkaProducer(bootstrap_servers=c.bootstrap_servers, acks="all")
        sent = [producer.send("t", b"%d" % i) for i in range(500)]
        assert all(future.get(10) for future in sent)
        producer.close()
        consumer = KafkaConsumer("t", bootstrap_servers=c.bootstrap_servers, auto_offset_reset="earliest")
        values = {next(consumer).value for _ in range(500)}
        consumer.close()
        assert values == {b"%d" % i for i in range(500)}
        assert noise.result(20) == 50


async def hostility(address: str) -> int:
    """Open 50 connections that send random bytes in the broker's own event loop, and return their number."""
    host, _, port = address.rpartition(":")
    rng = random.Random(3)

    async def send_garbage() -> None:
        for _ in range(3):
            reader, writer = await asyncio.open_connection(host, int(port))
            try:
                writer.write(length(rng.randrange(50_000)) + rng.randbytes(20_000))
                await writer.drain()
                writer.write_eof()
                await reader.read()
            except ConnectionError:
                pass
            finally:
                writer.transport.abort()

    await asyncio.gather(*[send_garbage() for _ in range(50)])
    return 50


# ---- internal errors -----------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("W-8")
async def test_internal_error_outside_a_handler_closes_only_the_connection_of_its_request(
    monkeypatch: pytest.MonkeyPatch, errors_expected: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    errors_expected.append("a request failed")
    async with serving() as (cluster, client), client_of(cluster, client_id="other") as other:
        await other.ask(metadata(), 1)
        working = cluster.state.events.response_ready
        monkeypatch.setattr(cluster.state.events, "response_ready", lambda *_: 1 / 0)
        await client.send(metadata(), 1)
        assert await client.rest() == b""
        monkeypatch.setattr(cluster.state.events, "response_ready", working)
        await other.ask(metadata(), 1)
    assert [r.name for r in caplog.records if r.levelno >= logging.ERROR] == ["kafkaproto.connection"]


@pytest.mark.rule("W-8")
async def test_exception_in_a_timer_callback_does_not_stop_other_timers(errors_expected: list[str]) -> None:
    errors_expected.append("a timer of the broker failed")
    async with serving(topics={"t": 1}, clock="manual") as (cluster, client):
        now_ms = cluster.state.clock.now_ms()
        cluster.run_in_loop(lambda: cluster.state.timers.at(now_ms + 10, lambda _: 1 / 0))  # type: ignore[arg-type, return-value]
        await client.send(fetch(("t", 0, 0), max_wait_ms=10), 11)
        await cluster.wait_for(lambda journal: journal.events("parked"))
        await cluster.clock.advance(10)
        assert (await client.answer()).correlation_id == 1
    async with serving(topics={"t": 1}, clock="system") as (cluster, client):
        now_ms = cluster.state.clock.now_ms()
        cluster.run_in_loop(lambda: cluster.state.timers.at(now_ms + 1, lambda _: 1 / 0))  # type: ignore[arg-type, return-value]
        await client.send(fetch(("t", 0, 0), max_wait_ms=5), 11)
        assert (await client.answer()).correlation_id == 1


@pytest.mark.rule("W-8")
async def test_connection_accepted_while_the_broker_stops_is_closed() -> None:
    async with async_cluster() as cluster:
        client = await connect(cluster)
        cluster.broker(0).stop()
        assert await client.rest() == b""
        await until(lambda: not open_sockets(cluster))
        client.close()
        channel = Channel(cluster.state.nodes[0], "PLAINTEXT", cluster.server.loop)
        reader_end, broker_end = socket.socketpair()
        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(lambda: channel, broker_end)
        assert transport.is_closing()
        reader_end.close()
