"""Large fetches: the bytes, their order, and every way in which a connection may end while it sends."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker.log.files import FileRange
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.server import channel as channel_module
from kafkaproto.broker.testing.records import leader_of
from kafkaproto.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from kafkaproto.testing import AsyncTestCluster, async_cluster
from tests.support.memory import memory_within
from tests.support.raw import RawClient, client_of, connect, open_sockets, reads_of, until
from tests.support.wire import fetch, flat, metadata

MIB = 1 << 20
BATCH_BYTES = 900_000
SENDFILE = [pytest.param(True, id="sendfile"), pytest.param(False, id="copies")]


def fill(cluster: AsyncTestCluster, partition: int, total_bytes: int, seed: int = 0) -> None:
    """Fill a partition with records of random bytes, so that a misplaced byte is noticed."""
    rng = random.Random(seed + partition)
    while total_bytes > 0:
        size = min(BATCH_BYTES, total_bytes)
        cluster.produce("t", [rng.randbytes(size)], partition)
        total_bytes -= size


def stored(cluster: AsyncTestCluster, partition: int) -> bytes:
    """Return the bytes of the partition's log in its store."""
    log = leader_of(cluster.state, "t", partition).log
    return b"".join(log.store.read(position, header.size) for position, header in log.batches(0))


def is_sending() -> bool:
    """Return whether the single connection has a sending task; a broker has no other tasks."""
    return len(asyncio.all_tasks()) == 2


@asynccontextmanager
async def large(
    sendfile: bool, *partition_bytes: int, config: dict[str, str] | None = None
) -> AsyncIterator[AsyncTestCluster]:
    """Run a broker with topic `t`, whose partitions contain so many bytes."""
    async with async_cluster(topics={"t": len(partition_bytes)}, config=config, clock="manual") as cluster:
        cluster.server.loop.sendfile = sendfile
        for partition, total in enumerate(partition_bytes):
            fill(cluster, partition, total)
        yield cluster


def everything(*partitions: int, **options: int):
    """Return a fetch of whole partitions from their first offset."""
    return fetch(*[("t", partition, 0) for partition in partitions], partition_max=1 << 30, **options)


@pytest.mark.rule("F-27", "X-1")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_fetch_of_several_large_partitions_returns_every_byte_in_order(sendfile: bool) -> None:
    async with large(sendfile, 3 * MIB, 100, 1_500_000, 70_000) as cluster, client_of(cluster) as client:
        response = await client.ask(everything(2, 0, 1, 3), 11)
        assert [data.partition_index for _, data in flat(response)] == [2, 0, 1, 3]
        for _, data in flat(response):
            assert bytes(data.records) == stored(cluster, data.partition_index)


@pytest.mark.rule("F-10")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_fetch_of_a_large_log_returns_the_first_bytes_up_to_partition_max_bytes(sendfile: bool) -> None:
    async with large(sendfile, 0) as cluster, client_of(cluster) as client:
        for number in range(100):
            cluster.produce("t", [random.Random(number).randbytes(30_000)], 0)
        whole = stored(cluster, 0)
        for limit in (channel_module.SENDFILE_FROM_BYTES - 1, channel_module.SENDFILE_FROM_BYTES, MIB + 1, 2 * MIB):
            [(_, data)] = flat(await client.ask(fetch(("t", 0, 0), partition_max=limit), 11))
            assert bytes(data.records) == whole[:limit]


@contextmanager
def tasks_of_the_broker() -> Iterator[list[str]]:
    """Collect the names of the broker's coroutines that become tasks within the block."""
    names: list[str] = []

    def make(loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **more: Any) -> asyncio.Task[Any]:
        if inspect.getmodule(getattr(coro, "cr_code", None)) is channel_module:
            names.append(coro.__qualname__)
        return asyncio.Task(coro, loop=loop, **more)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(make)
    try:
        yield names
    finally:
        loop.set_task_factory(None)


async def test_small_fetch_response_from_a_log_file_is_sent_without_an_asyncio_task() -> None:
    async with async_cluster(topics={"t": 1}) as cluster, client_of(cluster) as client:
        for number in range(40):
            cluster.produce("t", [bytes([number]) * 5000], 0)
        region = leader_of(cluster.state, "t", 0).log.store.region(0, 100)
        assert isinstance(region, FileRange)
        for limit, tasks in ((60_000, 0), (channel_module.SENDFILE_FROM_BYTES, 1)):
            with tasks_of_the_broker() as broker_tasks:
                response = await client.ask(fetch(("t", 0, 0), partition_max=limit), 11)
            [(_, data)] = flat(response)
            assert bytes(data.records) == stored(cluster, 0)[:limit]
            assert len(broker_tasks) == tasks


async def test_fetch_response_of_7_mb_from_many_log_files_uses_at_most_2_mib_of_memory() -> None:
    """Of a 7 MB response in ranges of 60,000 bytes to a client that does not read, only one piece is held in memory."""
    async with async_cluster(topics={"t": 120}) as cluster, client_of(cluster, small_buffer=True) as client:
        for partition in range(120):
            for _ in range(4):
                cluster.produce("t", [bytes([partition]) * 30_000], partition)
        with memory_within(2 * MIB):
            await client.send(fetch(*[("t", p, 0) for p in range(120)], partition_max=60_000), 11)
            await cluster.wait_for(lambda journal: journal.requests("Fetch"))
            await cluster.server.loop.settle()
        assert is_sending()
        response = (await client.answer()).message
        for _, data in flat(response):
            assert bytes(data.records) == stored(cluster, data.partition_index)[:60_000]


async def test_large_response_without_sendfile_is_copied_in_pieces_of_1_mib() -> None:
    """A 6 MB response to a client that does not read uses a piece of 1 MiB and its copy, not 6 MB."""
    async with large(False, 6 * MIB) as cluster, client_of(cluster, small_buffer=True) as client:
        with memory_within(3 * MIB, at_least=channel_module.COPY_BYTES):
            await client.send(everything(0), 11)
            await cluster.wait_for(lambda journal: journal.requests("Fetch"))
            await cluster.server.loop.settle()
        assert is_sending()
        [(_, data)] = flat((await client.answer()).message)
        assert bytes(data.records) == stored(cluster, 0)


@pytest.mark.rule("W-9")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_requests_behind_a_large_fetch_are_answered_in_order(sendfile: bool) -> None:
    async with large(sendfile, 3 * MIB) as cluster, client_of(cluster) as client:
        sent = b"".join(
            client.frame(request, 11 if i % 2 else 1) for i, request in enumerate([metadata(), everything(0)] * 5)
        )
        await client.send_bytes(sent)
        responses = [await client.answer() for _ in range(10)]
        assert [response.correlation_id for response in responses] == list(range(1, 11))
        whole = stored(cluster, 0)
        assert all(bytes(flat(response.message)[0][1].records) == whole for response in responses[1::2])


@pytest.mark.rule("W-8")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_concurrent_large_fetches_each_return_their_own_bytes(sendfile: bool) -> None:
    async with large(sendfile, 2 * MIB, 2 * MIB) as cluster:
        stored_bytes = [stored(cluster, 0), stored(cluster, 1)]

        async def read(number: int) -> None:
            async with client_of(cluster) as client:
                for turn in range(2):
                    partition = (number + turn) % 2
                    [(_, data)] = flat(await client.ask(everything(partition), 11))
                    assert bytes(data.records) == stored_bytes[partition]

        await asyncio.gather(*[read(number) for number in range(16)])


@pytest.mark.rule("W-9")
async def test_broker_reads_no_requests_from_a_client_while_sending_it_a_large_response() -> None:
    async with large(True, 8 * MIB) as cluster, client_of(cluster, small_buffer=True) as client:
        await client.send(everything(0), 11)
        await cluster.wait_for(lambda journal: journal.requests("Fetch"))
        await cluster.server.loop.settle()
        with reads_of(cluster) as reads:
            await client.send(metadata(), 1)
            await cluster.server.loop.settle()
            assert (is_sending(), reads.count) == (True, 0)
        assert cluster.journal.requests("Metadata") == []
        assert (await client.answer()).correlation_id == 1
        assert (await client.answer()).correlation_id == 2


async def test_event_loop_is_marked_as_sending_only_while_it_sends_a_large_response() -> None:
    async with large(True, 8 * MIB) as cluster, client_of(cluster, small_buffer=True) as client:
        await client.ask(metadata(), 1)
        assert not cluster.server.loop.is_sending
        await client.send(everything(0), 11)
        await cluster.wait_for(lambda journal: journal.requests("Fetch"))
        assert cluster.server.loop.is_sending
        await client.answer()
        await until(lambda: not cluster.server.loop.is_sending)


@pytest.mark.rule("W-9")
async def test_broker_reads_nothing_behind_a_parked_fetch_after_sending_a_large_response() -> None:
    """A long poll is parked behind the large fetch, followed by one complete frame: the broker reads no more."""
    async with large(True, 3 * MIB) as cluster, client_of(cluster) as client:
        end = leader_of(cluster.state, "t", 0).log.log_end_offset
        await client.send_bytes(
            client.frame(everything(0), 11)
            + client.frame(fetch(("t", 0, end), max_wait_ms=60_000), 11)
            + client.frame(metadata(), 1)
        )
        assert (await client.answer()).correlation_id == 1
        await cluster.wait_for(lambda journal: journal.events("parked"))
        await until(lambda: not is_sending())
        with reads_of(cluster) as reads:
            await client.send(metadata(), 1)
            await cluster.server.loop.settle()
            assert reads.count == 0
        await cluster.clock.advance(60_000)
        assert [(await client.answer()).correlation_id for _ in range(3)] == [2, 3, 4]


# ---- a scripted handler: responses that no current handler gives -------------------------------------------------------------------


def answer_fetches_with(
    cluster: AsyncTestCluster, *records: bytes | FileRange, also: Callable[[Exchange], object] = lambda _: None
) -> None:
    """Let the broker answer fetches with these records, one partition each, even if the client is throttled.

    also: a function that the handler calls.
    """

    def handler(exchange: Exchange, _: FetchRequest) -> Reply:
        also(exchange)
        partitions = [
            PartitionData(index, records=partition_records) for index, partition_records in enumerate(records)
        ]
        return Reply(FetchResponse(responses=[FetchableTopicResponse("t", partitions=partitions)]))

    node = cluster.state.nodes[0]
    node.apis = {**node.apis, ApiKey.FETCH: replace(node.apis[ApiKey.FETCH], handler=handler)}


def file_range(cluster: AsyncTestCluster, length: int) -> FileRange:
    region = leader_of(cluster.state, "t", 0).log.store.region(0, length)
    assert isinstance(region, FileRange)
    return region


@pytest.mark.rule("T-6", "T-7")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_broker_reads_nothing_from_a_throttled_client_for_5_s_after_a_large_response(sendfile: bool) -> None:
    async with large(sendfile, 3 * MIB) as cluster, client_of(cluster) as client:
        answer_fetches_with(cluster, file_range(cluster, 2 * MIB), b"behind")
        cluster.force_throttle(5000, api="Fetch")
        response = await client.ask(everything(0), 11)
        assert response.throttle_time_ms == 5000
        assert [bytes(data.records) for _, data in flat(response)] == [stored(cluster, 0)[: 2 * MIB], b"behind"]
        await until(lambda: not is_sending())
        with reads_of(cluster) as reads:
            await client.send(metadata(), 1)
            await cluster.clock.advance(4000)
            assert reads.count == 0
        assert cluster.journal.requests("Metadata") == []
        await cluster.clock.advance(1000)
        assert (await client.answer()).correlation_id == 2
        [fetched], [metadata_request] = cluster.journal.requests("Fetch"), cluster.journal.requests("Metadata")
        assert metadata_request.at_ms == fetched.at_ms + 5000  # T-8


@pytest.mark.rule("T-6")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_request_behind_a_throttled_large_fetch_waits_until_the_response_is_sent(sendfile: bool) -> None:
    """Behind the fetch is a request that the broker has already read: only the mute keeps it from being handled."""
    async with large(sendfile, 8 * MIB) as cluster, client_of(cluster, small_buffer=True) as client:
        answer_fetches_with(cluster, file_range(cluster, 8_000_000))
        cluster.force_throttle(500, api="Fetch")
        await client.send_bytes(client.frame(everything(0), 11) + client.frame(metadata(), 1))
        await cluster.wait_for(lambda journal: journal.requests("Fetch"))
        await cluster.clock.advance(501)
        assert is_sending()
        assert cluster.journal.requests("Metadata") == []
        [(_, data)] = flat((await client.answer()).message)
        assert bytes(data.records) == stored(cluster, 0)[:8_000_000]
        assert (await client.answer()).correlation_id == 2


@pytest.mark.rule("W-8")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_fetch_of_bytes_missing_in_a_log_file_closes_only_the_fetching_connection(sendfile: bool) -> None:
    async with large(sendfile, 3 * MIB) as cluster, client_of(cluster) as client, client_of(cluster) as other:
        await other.ask(metadata(), 1)
        answer_fetches_with(cluster, FileRange(file_range(cluster, 3 * MIB).file, 3 * MIB, 100_000))
        await client.send(everything(0), 11)
        assert len(await client.rest()) < 100_000
        await until(lambda: open_sockets(cluster) == 1)
        await other.ask(metadata(), 1)


@pytest.mark.rule("W-8")
async def test_fetch_of_100_unreadable_log_bytes_closes_the_connection_without_a_response(
    errors_expected: list[str],
) -> None:
    errors_expected.append("a request failed")
    async with large(True, 3 * MIB) as cluster, client_of(cluster) as client:
        answer_fetches_with(cluster, FileRange(file_range(cluster, 3 * MIB).file, 4 * MIB, 100))
        await client.send(everything(0), 11)
        assert await client.rest() == b""


# ---- the connection ends during the response ---------------------------------------------------------------------------------------


@asynccontextmanager
async def stalled(sendfile: bool, **config: str) -> AsyncIterator[tuple[AsyncTestCluster, RawClient]]:
    """Run a client that has fetched 8 MB and reads nothing; the broker has sent what the kernel accepted."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    async with large(sendfile, 8 * MIB, config=settings) as cluster:
        client = await connect(cluster, small_buffer=True)
        try:
            await client.send(everything(0), 11)
            await cluster.wait_for(lambda journal: journal.requests("Fetch"))
            await cluster.server.loop.settle()
            assert is_sending()
            yield cluster, client
        finally:
            client.close()


async def nothing_is_left(cluster: AsyncTestCluster) -> None:
    """Wait until the connection has no socket, task or timer, and no lease on the file sent."""
    await until(lambda: not open_sockets(cluster))
    await until(lambda: len(asyncio.all_tasks()) == 1)
    assert not cluster.state.nodes[0].connections
    cluster.state.log_manager.cancel_check()
    assert len(cluster.state.timers) == 0
    if cluster.state.nodes[0].running:
        async with client_of(cluster) as other:
            await other.ask(metadata(), 1)
    cluster.delete_topic("t")
    assert cluster.state.budget.used_bytes == 0


@pytest.mark.rule("W-11")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_idle_timeout_disconnects_a_client_that_does_not_read_a_large_response(sendfile: bool) -> None:
    async with stalled(sendfile, connections_max_idle_ms="5000") as (cluster, client):
        await cluster.clock.advance(4999)
        assert open_sockets(cluster) == 1
        await cluster.clock.advance(1)
        await nothing_is_left(cluster)
        assert len(await client.rest()) < 8 * MIB


@pytest.mark.rule("W-8")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_broker_can_stop_and_restart_while_sending_a_large_response(sendfile: bool) -> None:
    async with stalled(sendfile) as (cluster, client):
        cluster.broker(0).stop()
        assert len(await client.rest()) < 8 * MIB
        await until(lambda: not open_sockets(cluster))
        cluster.broker(0).start()
        await cluster.settled()
        await nothing_is_left(cluster)


@pytest.mark.rule("W-10")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_client_that_resets_its_connection_during_a_large_response_leaves_no_tasks(sendfile: bool) -> None:
    async with stalled(sendfile) as (cluster, client):
        client.reset()
        await nothing_is_left(cluster)


@pytest.mark.rule("W-10")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_client_that_closes_its_connection_with_unread_bytes_leaves_no_tasks(sendfile: bool) -> None:
    async with stalled(sendfile) as (cluster, client):
        client.close()
        await nothing_is_left(cluster)


@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_stopping_the_cluster_while_it_sends_a_large_response_leaves_no_asyncio_task(sendfile: bool) -> None:
    async with stalled(sendfile) as (cluster, _):
        pass
    assert not open_sockets(cluster)
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("sendfile", SENDFILE)
@pytest.mark.parametrize("way", ["close", "stop"])
async def test_connection_closed_before_the_first_response_byte_leaves_no_asyncio_task(
    sendfile: bool, way: str
) -> None:
    """The close happens in the turn in which sending started: the sending task has not run yet."""
    async with large(sendfile, 3 * MIB) as cluster, client_of(cluster) as client:
        tasks_before_end: list[int] = []

        def end(exchange: Exchange) -> None:
            tasks_before_end.append(len(broker_tasks))
            if way == "close":
                exchange.peer.refuse("the test ends it")
            else:
                cluster.broker(0).stop()

        in_this_turn = asyncio.get_running_loop().call_soon  # before the task, which is created after it
        answer_fetches_with(
            cluster, file_range(cluster, 2 * MIB), also=lambda exchange: in_this_turn(lambda: end(exchange))
        )
        with tasks_of_the_broker() as broker_tasks:
            await client.send(everything(0), 11)
            assert await client.rest() == b""
        assert tasks_before_end == [1]
        await until(lambda: not open_sockets(cluster) and len(asyncio.all_tasks()) == 1)


@pytest.mark.parametrize("way", ["close", "reset", "stop"])
async def test_connection_closed_while_sendfile_waits_for_buffered_bytes_leaves_no_task(way: str) -> None:
    """asyncio's sendfile waits for an empty buffer, and raises in the event loop if the connection closes meanwhile."""
    async with large(True, 3 * MIB) as cluster:
        client = await connect(cluster, small_buffer=True)
        answer_fetches_with(cluster, bytes(16 * MIB), file_range(cluster, 2 * MIB))
        await client.send(everything(0), 11)
        await cluster.wait_for(lambda journal: journal.requests("Fetch"))
        await cluster.server.loop.settle()
        assert is_sending()
        if way == "close":
            cluster.state.nodes[0].close_connections()
        elif way == "stop":
            cluster.broker(0).stop()
        else:
            client.reset()
        await until(lambda: not open_sockets(cluster) and len(asyncio.all_tasks()) == 1)
        client.close()
