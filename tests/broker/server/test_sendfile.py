"""Large fetches: the bytes, their order, and every way in which a connection may end while it sends (house §4, "sendfile")."""

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
    """Records of random bytes, so that a byte in a wrong place shows."""
    rng = random.Random(seed + partition)
    while total_bytes > 0:
        size = min(BATCH_BYTES, total_bytes)
        cluster.produce("t", [rng.randbytes(size)], partition)
        total_bytes -= size


def stored(cluster: AsyncTestCluster, partition: int) -> bytes:
    """The partition's log as it lies in its store."""
    log = leader_of(cluster.state, "t", partition).log
    return b"".join(log.store.read(position, header.size) for position, header in log.batches(0))


def is_sending() -> bool:
    """Whether the one connection has a task that sends; nothing else of a broker is a task."""
    return len(asyncio.all_tasks()) == 2


@asynccontextmanager
async def large(
    sendfile: bool, *partition_bytes: int, config: dict[str, str] | None = None
) -> AsyncIterator[AsyncTestCluster]:
    """A broker with topic `t`, its partitions filled with so many bytes."""
    async with async_cluster(topics={"t": len(partition_bytes)}, config=config, clock="manual") as cluster:
        cluster.server.loop.sendfile = sendfile
        for partition, total in enumerate(partition_bytes):
            fill(cluster, partition, total)
        yield cluster


def everything(*partitions: int, **options: int):
    """A fetch of whole partitions from their beginning."""
    return fetch(*[("t", partition, 0) for partition in partitions], partition_max=1 << 30, **options)


@pytest.mark.rule("F-27", "X-1")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_every_byte_of_several_partitions_comes_in_its_place(sendfile: bool) -> None:
    async with large(sendfile, 3 * MIB, 100, 1_500_000, 70_000) as cluster, client_of(cluster) as client:
        answer = await client.ask(everything(2, 0, 1, 3), 11)
        assert [data.partition_index for _, data in flat(answer)] == [2, 0, 1, 3]
        for _, data in flat(answer):
            assert bytes(data.records) == stored(cluster, data.partition_index)


@pytest.mark.rule("F-10")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_a_range_that_is_cut_to_its_limit_is_the_beginning_of_the_log(sendfile: bool) -> None:
    async with large(sendfile, 0) as cluster, client_of(cluster) as client:
        for number in range(100):
            cluster.produce("t", [random.Random(number).randbytes(30_000)], 0)
        whole = stored(cluster, 0)
        for limit in (channel_module.SENDFILE_FROM_BYTES - 1, channel_module.SENDFILE_FROM_BYTES, MIB + 1, 2 * MIB):
            [(_, data)] = flat(await client.ask(fetch(("t", 0, 0), partition_max=limit), 11))
            assert bytes(data.records) == whole[:limit]


@contextmanager
def tasks_of_the_broker() -> Iterator[list[str]]:
    """The names of the coroutines of the broker of which the loop makes tasks meanwhile."""
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


async def test_small_ranges_of_a_file_go_out_in_one_write_without_a_task() -> None:
    async with async_cluster(topics={"t": 1}) as cluster, client_of(cluster) as client:
        for number in range(40):
            cluster.produce("t", [bytes([number]) * 5000], 0)
        region = leader_of(cluster.state, "t", 0).log.store.region(0, 100)
        assert isinstance(region, FileRange)
        for limit, tasks in ((60_000, 0), (channel_module.SENDFILE_FROM_BYTES, 1)):
            with tasks_of_the_broker() as made:
                answer = await client.ask(fetch(("t", 0, 0), partition_max=limit), 11)
            [(_, data)] = flat(answer)
            assert bytes(data.records) == stored(cluster, 0)[:limit]
            assert len(made) == tasks


async def test_so_many_small_ranges_are_not_copied_into_memory_all_at_once() -> None:
    """An answer of 7 MB in ranges of 60,000 bytes to a client that does not read: no more than one piece of it is held."""
    async with async_cluster(topics={"t": 120}) as cluster, client_of(cluster, small_buffer=True) as client:
        for partition in range(120):
            for _ in range(4):
                cluster.produce("t", [bytes([partition]) * 30_000], partition)
        with memory_within(2 * MIB):
            await client.send(fetch(*[("t", p, 0) for p in range(120)], partition_max=60_000), 11)
            await cluster.wait_for(lambda journal: journal.requests("Fetch"))
            await cluster.server.loop.settle()
        assert is_sending()
        answer = (await client.answer()).message
        for _, data in flat(answer):
            assert bytes(data.records) == stored(cluster, data.partition_index)[:60_000]


async def test_large_copies_wait_for_the_kernel_piece_by_piece() -> None:
    """Without sendfile an answer of 6 MB to a client that does not read costs a piece of 1 MiB and its copy, not 6."""
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
async def test_requests_behind_a_large_fetch_are_answered_after_it_in_order(sendfile: bool) -> None:
    async with large(sendfile, 3 * MIB) as cluster, client_of(cluster) as client:
        sent = b"".join(client.frame(one, 11 if i % 2 else 1) for i, one in enumerate([metadata(), everything(0)] * 5))
        await client.send_bytes(sent)
        answers = [await client.answer() for _ in range(10)]
        assert [answer.correlation_id for answer in answers] == list(range(1, 11))
        whole = stored(cluster, 0)
        assert all(bytes(flat(answer.message)[0][1].records) == whole for answer in answers[1::2])


@pytest.mark.rule("W-8")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_many_connections_fetch_at_once_and_each_gets_its_own_bytes(sendfile: bool) -> None:
    async with large(sendfile, 2 * MIB, 2 * MIB) as cluster:
        wanted = [stored(cluster, 0), stored(cluster, 1)]

        async def read(number: int) -> None:
            async with client_of(cluster) as client:
                for turn in range(2):
                    partition = (number + turn) % 2
                    [(_, data)] = flat(await client.ask(everything(partition), 11))
                    assert bytes(data.records) == wanted[partition]

        await asyncio.gather(*[read(number) for number in range(16)])


@pytest.mark.rule("W-9")
async def test_while_it_sends_nothing_more_is_read_and_afterwards_it_is() -> None:
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


async def test_the_loop_is_sending_until_the_client_has_read_a_large_response() -> None:
    async with large(True, 8 * MIB) as cluster, client_of(cluster, small_buffer=True) as client:
        await client.ask(metadata(), 1)
        assert not cluster.server.loop.is_sending
        await client.send(everything(0), 11)
        await cluster.wait_for(lambda journal: journal.requests("Fetch"))
        assert cluster.server.loop.is_sending
        await client.answer()
        await until(lambda: not cluster.server.loop.is_sending)


@pytest.mark.rule("W-9")
async def test_a_pause_of_reading_outlives_sendfile_which_resumes_it_by_itself() -> None:
    """Behind the large fetch a long poll parks, and one whole frame waits behind that: no more is read."""
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


# ---- a handler made by hand: responses that no handler of today gives ---------------------------------------------------------------


def answer_fetches_with(
    cluster: AsyncTestCluster, *records: bytes | FileRange, also: Callable[[Exchange], object] = lambda _: None
) -> None:
    """Let the broker answer fetches with these records, one partition each, also if the client is throttled. also: called by the handler."""

    def handler(exchange: Exchange, _: FetchRequest) -> Reply:
        also(exchange)
        partitions = [PartitionData(index, records=of_one) for index, of_one in enumerate(records)]
        return Reply(FetchResponse(responses=[FetchableTopicResponse("t", partitions=partitions)]))

    node = cluster.state.nodes[0]
    node.apis = {**node.apis, ApiKey.FETCH: replace(node.apis[ApiKey.FETCH], handler=handler)}


def file_range(cluster: AsyncTestCluster, length: int) -> FileRange:
    region = leader_of(cluster.state, "t", 0).log.store.region(0, length)
    assert isinstance(region, FileRange)
    return region


@pytest.mark.rule("T-6", "T-7")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_a_mute_is_in_force_again_when_the_range_is_out(sendfile: bool) -> None:
    async with large(sendfile, 3 * MIB) as cluster, client_of(cluster) as client:
        answer_fetches_with(cluster, file_range(cluster, 2 * MIB), b"behind")
        cluster.force_throttle(5000, api="Fetch")
        answer = await client.ask(everything(0), 11)
        assert answer.throttle_time_ms == 5000
        assert [bytes(data.records) for _, data in flat(answer)] == [stored(cluster, 0)[: 2 * MIB], b"behind"]
        await until(lambda: not is_sending())
        with reads_of(cluster) as reads:
            await client.send(metadata(), 1)
            await cluster.clock.advance(4000)
            assert reads.count == 0
        assert cluster.journal.requests("Metadata") == []
        await cluster.clock.advance(1000)
        assert (await client.answer()).correlation_id == 2
        [fetched], [asked] = cluster.journal.requests("Fetch"), cluster.journal.requests("Metadata")
        assert asked.at_ms == fetched.at_ms + 5000  # T-8


@pytest.mark.rule("T-6")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_a_throttle_that_ends_while_the_range_still_goes_out_waits_for_its_end(sendfile: bool) -> None:
    """Behind the fetch lies a request that the broker has read already: only the mute keeps it from being handled."""
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
async def test_a_range_that_cannot_be_sent_whole_ends_its_connection_only(sendfile: bool) -> None:
    async with large(sendfile, 3 * MIB) as cluster, client_of(cluster) as client, client_of(cluster) as other:
        await other.ask(metadata(), 1)
        answer_fetches_with(cluster, FileRange(file_range(cluster, 3 * MIB).file, 3 * MIB, 100_000))
        await client.send(everything(0), 11)
        assert len(await client.rest()) < 100_000
        await until(lambda: open_sockets(cluster) == 1)
        await other.ask(metadata(), 1)


@pytest.mark.rule("W-8")
async def test_a_small_range_that_cannot_be_read_whole_closes_and_announces_nothing_it_does_not_send(
    errors_expected: list[str],
) -> None:
    errors_expected.append("a request failed")
    async with large(True, 3 * MIB) as cluster, client_of(cluster) as client:
        answer_fetches_with(cluster, FileRange(file_range(cluster, 3 * MIB).file, 4 * MIB, 100))
        await client.send(everything(0), 11)
        assert await client.rest() == b""


# ---- the end comes while it sends ---------------------------------------------------------------------------------------------------


@asynccontextmanager
async def stalled(sendfile: bool, **config: str) -> AsyncIterator[tuple[AsyncTestCluster, RawClient]]:
    """A client that asked for 8 MB and reads nothing; the broker has sent what the kernel took."""
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
    """No socket, no task, no timer of the connection, and no lease on the file that was sent."""
    await until(lambda: not open_sockets(cluster))
    await until(lambda: len(asyncio.all_tasks()) == 1)
    assert not cluster.state.nodes[0].connections
    cluster.state.log_manager.rest()
    assert len(cluster.state.timers) == 0
    if cluster.state.nodes[0].running:
        async with client_of(cluster) as other:
            await other.ask(metadata(), 1)
    cluster.delete_topic("t")
    assert cluster.state.budget.used_bytes == 0


@pytest.mark.rule("W-11")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_an_idle_close_while_it_sends(sendfile: bool) -> None:
    async with stalled(sendfile, connections_max_idle_ms="5000") as (cluster, client):
        await cluster.clock.advance(4999)
        assert open_sockets(cluster) == 1
        await cluster.clock.advance(1)
        await nothing_is_left(cluster)
        assert len(await client.rest()) < 8 * MIB


@pytest.mark.rule("W-8")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_a_broker_that_stops_while_it_sends_and_comes_back(sendfile: bool) -> None:
    async with stalled(sendfile) as (cluster, client):
        cluster.broker(0).stop()
        assert len(await client.rest()) < 8 * MIB
        await until(lambda: not open_sockets(cluster))
        cluster.broker(0).start()
        await cluster.settled()
        await nothing_is_left(cluster)


@pytest.mark.rule("W-10")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_a_client_that_resets_while_it_is_sent_to(sendfile: bool) -> None:
    async with stalled(sendfile) as (cluster, client):
        client.reset()
        await nothing_is_left(cluster)


@pytest.mark.rule("W-10")
@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_a_client_that_closes_with_bytes_unread(sendfile: bool) -> None:
    async with stalled(sendfile) as (cluster, client):
        client.close()
        await nothing_is_left(cluster)


@pytest.mark.parametrize("sendfile", SENDFILE)
async def test_a_cluster_that_ends_while_it_sends_leaves_no_task(sendfile: bool) -> None:
    async with stalled(sendfile) as (cluster, _):
        pass
    assert not open_sockets(cluster)
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("sendfile", SENDFILE)
@pytest.mark.parametrize("way", ["close", "stop"])
async def test_a_close_before_the_first_byte_of_the_answer(sendfile: bool, way: str) -> None:
    """In the same turn in which sending began: its task has not run yet."""
    async with large(sendfile, 3 * MIB) as cluster, client_of(cluster) as client:
        tasks_before_end: list[int] = []

        def end(exchange: Exchange) -> None:
            tasks_before_end.append(len(made))
            if way == "close":
                exchange.peer.refuse("the test ends it")
            else:
                cluster.broker(0).stop()

        in_this_turn = asyncio.get_running_loop().call_soon  # before the task, which is made after it
        answer_fetches_with(
            cluster, file_range(cluster, 2 * MIB), also=lambda exchange: in_this_turn(lambda: end(exchange))
        )
        with tasks_of_the_broker() as made:
            await client.send(everything(0), 11)
            assert await client.rest() == b""
        assert tasks_before_end == [1]
        await until(lambda: not open_sockets(cluster) and len(asyncio.all_tasks()) == 1)


@pytest.mark.parametrize("way", ["close", "reset", "stop"])
async def test_an_end_while_what_stands_before_the_range_is_still_on_its_way(way: str) -> None:
    """asyncio's own sendfile waits for an empty buffer, and raises in the loop when the connection ends meanwhile."""
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
