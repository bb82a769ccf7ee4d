"""Pipelined requests of a connection are handled one at a time and in order, however their bytes arrive (W-1, W-9, W-10)."""

from __future__ import annotations

import logging
import random

import pytest

from kafkaproto.broker.network.connection import FRAMES_PER_TURN
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.testing import AsyncTestCluster
from tests.support.memory import memory_left_within, memory_within
from tests.support.raw import RawClient, client_of, connect, frame, open_sockets, reads_of, serving, until
from tests.support.wire import batch, fetch, metadata, produce, produced

PARK_MS = 1000


async def ids(client: RawClient, count: int) -> list[int]:
    return [(await client.answer()).correlation_id for _ in range(count)]


@pytest.mark.rule("W-9")
async def test_parked_fetch_delays_requests_sent_behind_that_fetch() -> None:
    async with serving(topics={"t": 1}, clock="manual") as (cluster, client):
        await client.send_bytes(
            client.frame(metadata(), 1)
            + client.frame(fetch(("t", 0, 0), max_wait_ms=PARK_MS), 11)
            + client.frame(metadata(), 1)
            + client.frame(ApiVersionsRequest(), 0)
        )
        assert await ids(client, 1) == [1]
        await cluster.wait_for(lambda journal: journal.events("parked"))
        start_ms = cluster.state.clock.now_ms()
        await cluster.clock.advance(PARK_MS - 1)
        assert len(cluster.journal.requests()) == 1
        await cluster.clock.advance(1)
        assert await ids(client, 3) == [2, 3, 4]
        assert [request.at_ms - start_ms for request in cluster.journal.requests()] == [0] + [PARK_MS] * 3


@pytest.mark.rule("W-8", "W-9")
async def test_parked_fetch_delays_only_its_own_connection() -> None:
    async with serving(topics={"t": 1}, clock="manual") as (cluster, client):
        await client.send(fetch(("t", 0, 0), max_wait_ms=PARK_MS), 11)
        await cluster.wait_for(lambda journal: journal.events("parked"))
        async with client_of(cluster) as other:
            assert produced(await other.ask(produce("t", batch(b"a")), 9)).error_code == 0
        assert await ids(client, 1) == [1]


async def test_exception_while_sending_a_delayed_response_is_logged_and_closes_connection(
    monkeypatch: pytest.MonkeyPatch, errors_expected: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    errors_expected.append("cannot be sent")
    caplog.set_level(logging.DEBUG, "kafkaproto.connection")
    async with serving(topics={"t": 1}, clock="manual") as (cluster, client):
        await client.send(fetch(("t", 0, 0), max_wait_ms=PARK_MS), 11)
        await cluster.wait_for(lambda journal: journal.events("parked"))
        monkeypatch.setattr(cluster.state.events, "response_ready", lambda *_: 1 / 0)
        await cluster.clock.advance(PARK_MS)
        assert await client.rest() == b""
    assert "closed: the response cannot be sent" in caplog.text


@pytest.mark.rule("W-8")
async def test_broker_serves_other_connections_after_each_64_frames_of_one_connection() -> None:
    async with serving() as (cluster, busy), client_of(cluster, client_id="other") as other:
        await busy.ask(metadata(), 1)
        await other.ask(metadata(), 1)
        count = 10 * FRAMES_PER_TURN
        # Both frames are in the kernel's buffer before the next pass of the broker's event loop.
        assert busy.socket.send(b"".join(busy.frame(metadata(), 1) for _ in range(count)))
        assert other.socket.send(other.frame(metadata(), 1))
        assert (await other.answer()).correlation_id == 2
        assert await ids(busy, count) == list(range(2, count + 2))
        order = [request.client_id for request in cluster.journal.requests()][2:]
        assert order.index("other") <= 2 * FRAMES_PER_TURN


@pytest.mark.rule("W-9")
async def test_thousands_of_requests_in_one_tcp_segment_are_answered_in_order() -> None:
    async with serving() as (_, client):
        await client.send_bytes(b"".join(client.frame(ApiVersionsRequest(), 0) for _ in range(3000)))
        assert await ids(client, 3000) == list(range(1, 3001))


@pytest.mark.rule("W-1")
async def test_requests_sent_byte_by_byte_are_answered_without_error() -> None:
    async with serving(topics={"t": 1}, clock="manual") as (cluster, client):
        data = client.frame(produce("t", batch(b"abc")), 9) + client.frame(metadata(["t"]), 4)
        for at in range(len(data)):
            await client.send_bytes(data[at : at + 1])
            await cluster.server.loop.settle()
        assert produced((await client.answer()).message).error_code == 0
        assert (await client.answer()).message.topics[0].name == "t"
        assert [record.value for record in cluster.records("t")] == [b"abc"]


@pytest.mark.rule("W-1")
async def test_two_requests_split_at_any_byte_are_answered_without_error() -> None:
    async with serving(topics={"t": 1}, clock="manual") as (cluster, client):
        length = len(client.frame(produce("t", batch(b"x")), 9) + client.frame(metadata(["t"]), 4))
        for at in range(1, length):
            data = client.frame(produce("t", batch(b"x")), 9) + client.frame(metadata(["t"]), 4)
            await client.send_bytes(data[:at])
            await cluster.server.loop.settle()
            await client.send_bytes(data[at:])
            assert produced((await client.answer()).message).base_offset == at - 1
            assert (await client.answer()).message.topics[0].error_code == 0


@pytest.mark.rule("W-9")
async def test_large_pipelined_requests_arrive_completely_and_keep_at_most_5_mib_of_memory() -> None:
    """The requests of several megabytes each are pipelined, with a small request after each."""
    config = {"message.max.bytes": str(10 << 20)}
    async with serving(topics={"t": 1}, config=config) as (cluster, client):
        values = [random.Random(i).randbytes(size) for i, size in enumerate((5_000_000, 300_000, 70_000, 7_654_321))]
        frames = [client.frame(produce("t", batch(value)), 9) + client.frame(metadata(), 1) for value in values]
        with memory_left_within(
            5 << 20
        ):  # the spare buffers of the loop, and far less than the largest frame beside them
            for data in frames:
                await client.send_bytes(data)
            assert await ids(client, 8) == list(range(1, 9))
            assert [record.value for record in cluster.records("t")] == values
        assert cluster.server.loop.buffers.spare_bytes <= 4 << 20


# ---- the client closes first ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("W-10")
async def test_half_closed_client_gets_responses_to_all_complete_requests() -> None:
    async with serving() as (cluster, client):
        whole = b"".join(client.frame(metadata(), 1) for _ in range(200))
        await client.send_bytes(whole + frame(metadata(), 1)[:-1])
        client.finish()
        assert await ids(client, 200) == list(range(1, 201))
        assert await client.rest() == b""
        await until(lambda: not open_sockets(cluster))
        assert len(cluster.journal.requests()) == 200


@pytest.mark.rule("W-10")
@pytest.mark.parametrize("trailing", [0, 1])
async def test_half_closed_client_gets_responses_to_its_parked_fetch_and_the_next_request(trailing: int) -> None:
    async with serving(topics={"t": 1}, clock="manual") as (cluster, client):
        requests = [fetch(("t", 0, 0), max_wait_ms=PARK_MS), metadata()][: 1 + trailing]
        await client.send_bytes(b"".join(client.frame(r, 1 if i else 11) for i, r in enumerate(requests)))
        client.finish()
        await cluster.wait_for(lambda journal: journal.events("parked"))
        await cluster.clock.advance(PARK_MS - 1)
        assert open_sockets(cluster) == 1
        await cluster.clock.advance(1)
        assert await ids(client, 1 + trailing) == [1, 2][: 1 + trailing]
        assert await client.rest() == b""
        await until(lambda: not open_sockets(cluster))
        assert len(cluster.state.timers) == 0


@pytest.mark.rule("W-10")
async def test_half_closed_throttled_client_gets_the_next_response_when_the_throttle_ends() -> None:
    async with serving(topics={"t": 1}, clock="manual") as (cluster, client):
        cluster.set_quota(client_id="raw", producer_byte_rate=1000.0)
        await client.send_bytes(client.frame(produce("t", batch(bytes(15_000))), 9) + client.frame(metadata(), 1))
        client.finish()
        response = (await client.answer()).message
        await cluster.clock.advance(response.throttle_time_ms - 1)
        assert len(cluster.journal.requests()) == 1
        await cluster.clock.advance(1)
        assert await ids(client, 1) == [2]
        assert await client.rest() == b""
        await until(lambda: not open_sockets(cluster))


@pytest.mark.rule("W-10")
async def test_ten_acks_0_produces_are_stored_although_the_client_closes_the_connection() -> None:
    """Kafka's SocketServerTest.testGracefulClose."""
    async with serving(topics={"t": 1}) as (cluster, client):
        data = b"".join(client.frame(produce("t", batch(b"%d" % i), acks=0), 9) for i in range(10))
        await client.send_bytes(data)
        client.close()
        await cluster.wait_for(lambda journal: len(journal.requests("Produce")) == 10)
        assert [record.value for record in cluster.records("t")] == [b"%d" % i for i in range(10)]
        await until(lambda: not open_sockets(cluster))


@pytest.mark.rule("W-10")
async def test_client_that_resets_its_connection_with_a_parked_fetch_leaves_no_timers() -> None:
    async with serving(topics={"t": 1}, clock="manual") as (cluster, client):
        await client.send(fetch(("t", 0, 0), max_wait_ms=PARK_MS), 11)
        await cluster.wait_for(lambda journal: journal.events("parked"))
        client.reset()
        await until(lambda: not open_sockets(cluster))
        assert len(cluster.state.timers) == 0
        assert not cluster.state.nodes[0].replicas.partitions[("t", 0)].watchers


@pytest.mark.rule("W-10")
async def test_connection_handles_no_requests_after_a_response_that_cannot_be_written() -> None:
    async with serving(topics={"t": 1}, clock="manual") as (cluster, client):
        await client.send_bytes(
            client.frame(fetch(("t", 0, 0), max_wait_ms=PARK_MS), 11)
            + b"".join(client.frame(produce("t", batch(b"late")), 9) for _ in range(30))
        )
        await cluster.wait_for(lambda journal: journal.events("parked"))
        client.reset()
        # The broker does not read while one frame waits, so that it notices the reset only when it writes.
        await cluster.server.loop.settle()
        assert open_sockets(cluster) == 1
        await cluster.clock.advance(PARK_MS)
        await until(lambda: not open_sockets(cluster))
        assert len(cluster.journal.requests("Produce")) == 0


# ---- the client does not read ----------------------------------------------------------------------------------------------------


def wide(cluster: AsyncTestCluster) -> None:
    """Create topics that make a Metadata response about 100 KB long."""
    for number in range(300):
        cluster.create_topic(f"{number:03}-" + "n" * 240)


@pytest.mark.rule("W-9")
async def test_broker_handles_no_more_requests_of_a_client_that_reads_no_responses() -> None:
    async with serving() as (cluster, healthy):
        wide(cluster)
        client = await connect(cluster, client_id="stalled", small_buffer=True)
        count = 100
        size = len(await answer_bytes(healthy))
        requests = b"".join(client.frame(metadata(None), 1) for _ in range(count))
        with memory_within(10 * size, at_least=size):
            await client.send_bytes(requests)
            await cluster.server.loop.settle()
            await cluster.server.loop.settle()
        served = len(cluster.journal.requests(client_id="stalled"))
        assert 0 < served < count
        await healthy.ask(metadata(), 1)
        assert len(cluster.journal.requests(client_id="stalled")) == served
        assert await ids(client, count) == list(range(1, count + 1))
        client.close()


async def answer_bytes(client: RawClient) -> bytes:
    await client.send(metadata(None), 1)
    return (await client.answer()).data


@pytest.mark.rule("W-9")
async def test_broker_buffers_one_complete_frame_behind_a_parked_request_and_no_more() -> None:
    """Of 20 MB of requests behind a parked fetch, the broker holds one request; the others stay with the sender."""
    async with serving(topics={"t": 1}, clock="manual") as (cluster, client):
        await client.send(fetch(("t", 0, 0), max_wait_ms=PARK_MS), 11)
        await cluster.wait_for(lambda journal: journal.events("parked"))
        frame_bytes = frame(produce("missing", batch(bytes(900_000))), 9, 77)
        rest = memoryview(frame_bytes * 20)
        with reads_of(cluster) as reads, memory_within(2 * len(frame_bytes) + 200_000, at_least=len(frame_bytes)):
            while True:
                before = reads.count
                try:
                    rest = rest[client.socket.send(rest) :]
                except BlockingIOError:
                    await cluster.server.loop.settle()
                    if reads.count == before:
                        break
        assert len(rest) > 5_000_000
        await cluster.clock.advance(PARK_MS)
        assert await ids(client, 1) == [1]
