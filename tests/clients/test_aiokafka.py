"""aiokafka in the event loop of the brokers (`async_cluster`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import TopicAlreadyExistsError

from kafkaproto.testing import AsyncTestCluster, async_cluster
from tests.support.clients.broker_side import (
    CODECS,
    PATIENCE_SECONDS,
    RACKS,
    START_MS,
    TOPICS,
    batch_headers,
    codecs,
    fetched_bytes,
)

pytestmark = pytest.mark.clients

Make = Callable[..., Awaitable[Any]]


@pytest.fixture
async def kafka() -> AsyncIterator[AsyncTestCluster]:
    """Yield three brokers in racks a, b and c in the test's event loop, with topic "t", whose 3 partitions are on every broker."""
    async with async_cluster(3, TOPICS, RACKS) as running:
        yield running


@pytest.fixture
async def make(kafka: AsyncTestCluster) -> AsyncIterator[Make]:
    """Return a function that starts a client, `await make(AIOKafkaConsumer, …)`; the clients are stopped after the test."""
    clients: list[Any] = []

    async def new(kind: Any, *arguments: Any, **settings: Any) -> Any:
        client = kind(*arguments, bootstrap_servers=kafka.bootstrap, **settings)
        clients.append(client)
        await client.start()
        return client

    yield new
    for client in clients:
        await (client.close() if isinstance(client, AIOKafkaAdminClient) else client.stop())


def all_of(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, i) for i in range(3)]


async def reader(make: Make, **settings: Any) -> Any:
    """Return a consumer at the first offsets of topic t."""
    consumer = await make(AIOKafkaConsumer, **settings)
    consumer.assign(all_of("t"))
    await consumer.seek_to_beginning()
    return consumer


async def read(consumer: Any, count: int) -> list[Any]:
    polled_records: list[Any] = []
    while len(polled_records) < count:
        polled = await consumer.getmany(timeout_ms=10_000)
        assert polled, f"{len(polled_records)} of {count} records arrived, then none for ten seconds"
        polled_records += [record for batch in polled.values() for record in batch]
    assert len(polled_records) == count
    return polled_records


async def eventually(condition: Callable[[], object], description: str) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_SECONDS
    while not condition():
        assert loop.time() < deadline, f"not within {PATIENCE_SECONDS} s: {description}"
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("kind", CODECS)
async def test_aiokafka_consumes_produced_records_unchanged_in_every_compression(
    kafka: AsyncTestCluster, make: Make, kind: str
) -> None:
    producer = await make(AIOKafkaProducer, compression_type=None if kind == "none" else kind, linger_ms=50)
    expected_records = [
        (START_MS + i, b"key %d" % (i % 7), b"value %d " % i * 20, (("n", b"%d" % i), ("empty", b"")))
        for i in range(100)
    ]
    sent = [
        await producer.send("t", key=key, value=value, headers=list(headers), timestamp_ms=timestamp_ms)
        for timestamp_ms, key, value, headers in expected_records
    ]
    sent.append(await producer.send("t", key=b"gone", value=None))
    await asyncio.gather(*sent)
    assert codecs(kafka) == {CODECS[kind]}
    consumed = await read(await reader(make), 101)
    assert [r.value for r in consumed if r.key == b"gone"] == [None]
    assert (
        sorted((r.timestamp, r.key, r.value, tuple(r.headers)) for r in consumed if r.key != b"gone")
        == expected_records
    )


async def test_aiokafka_idempotent_producer_sends_consecutive_sequence_numbers(
    kafka: AsyncTestCluster, make: Make
) -> None:
    producer = await make(AIOKafkaProducer, enable_idempotence=True)
    for i in range(4):
        await producer.send_and_wait("t", b"%d" % i, partition=0)
    headers = batch_headers(kafka)
    assert headers[0].producer_id >= 0
    assert [h.base_sequence for h in headers] == [0, 1, 2, 3]


@pytest.mark.rule("P-1")
@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_aiokafka_producer_stores_its_records_with_every_acks_setting(
    kafka: AsyncTestCluster, make: Make, acks: object
) -> None:
    producer = await make(AIOKafkaProducer, acks=acks)
    for i in range(10):
        await producer.send_and_wait("t", b"%d" % i)
    await eventually(lambda: len(kafka.records("t")) == 10, "all are there")


@pytest.mark.rule("L-6")
async def test_aiokafka_consumer_finds_first_and_end_offsets_and_offsets_by_timestamp(
    kafka: AsyncTestCluster, make: Make
) -> None:
    producer = await make(AIOKafkaProducer)
    for i in range(10):
        await producer.send_and_wait("t", b"v", partition=0, timestamp_ms=START_MS + i * 100)
    consumer = await reader(make)
    first = TopicPartition("t", 0)
    offsets = await consumer.offsets_for_times({first: START_MS + 350})
    assert (offsets[first].offset, offsets[first].timestamp) == (4, START_MS + 400)
    assert (await consumer.offsets_for_times({first: START_MS + 901}))[first] is None
    assert await consumer.beginning_offsets(all_of("t")) == dict.fromkeys(all_of("t"), 0)
    assert (await consumer.end_offsets(all_of("t")))[first] == 10


async def test_aiokafka_admin_client_creates_describes_lists_and_deletes_topics(
    kafka: AsyncTestCluster, make: Make
) -> None:
    admin = await make(AIOKafkaAdminClient)
    await admin.create_topics([NewTopic("made", 4, 2, topic_configs={"max.message.bytes": "2000"})])
    assert set(await admin.list_topics()) == {"t", "made"}
    [described_topic] = await admin.describe_topics(["made"])
    assert [len(p["replicas"]) for p in described_topic["partitions"]] == [2] * 4
    again = await admin.create_topics([NewTopic("made", 1, 1)])
    assert [error[1] for error in again.topic_errors] == [TopicAlreadyExistsError.errno]
    await admin.delete_topics(["made"])
    assert await admin.list_topics() == ["t"]


async def test_aiokafka_admin_client_describes_configs_and_the_cluster(kafka: AsyncTestCluster, make: Make) -> None:
    admin = await make(AIOKafkaAdminClient)
    kafka.alter_topic("t", max_message_bytes="3000")
    [response] = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "t")])
    configs = {entry[0]: entry[1] for entry in response.resources[0][4]}
    assert configs["max.message.bytes"] == "3000"
    assert configs["cleanup.policy"] == "delete"
    described = await admin.describe_cluster()
    assert [b["rack"] for b in sorted(described["brokers"], key=lambda b: b["node_id"])] == ["a", "b", "c"]


@pytest.mark.rule("M-3")
async def test_aiokafka_producer_creates_a_missing_topic(kafka: AsyncTestCluster, make: Make) -> None:
    producer = await make(AIOKafkaProducer)
    await producer.send_and_wait("new", b"first")
    assert [record.value for record in kafka.records("new")] == [b"first"]


class Assigned(ConsumerRebalanceListener):
    """A rebalance listener that counts how often partitions were assigned."""

    def __init__(self) -> None:
        self.times = 0

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.times += 1


class Member:
    """A member of group g; the library joins and sends heartbeats itself. `values`: the values read so far."""

    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer
        self.listener = Assigned()
        self.values: list[bytes] = []
        consumer.subscribe(["t"], listener=self.listener)
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for record in self.consumer:
            self.values.append(record.value)

    @property
    def share(self) -> set[TopicPartition]:
        return set(self.consumer.assignment())

    async def stop(self) -> None:
        """Stop reading but stay a member of the group."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@pytest.fixture
async def member(make: Make) -> AsyncIterator[Callable[..., Awaitable[Member]]]:
    members: list[Member] = []

    async def new(**settings: Any) -> Member:
        base = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "heartbeat_interval_ms": 50}
        members.append(Member(await make(AIOKafkaConsumer, group_id="g", **{**base, **settings})))
        return members[-1]

    yield new
    for consumer in members:
        await consumer.stop()


def shared(*members: Member) -> bool:
    """Return whether each member has partitions, and each partition is assigned once."""
    assigned = [p for m in members for p in m.share]
    return len(assigned) == len(set(assigned)) == 3 and all(m.share for m in members)


Join = Callable[..., Awaitable[Member]]


async def test_aiokafka_consumer_group_shares_partitions_and_resumes_from_commits(
    kafka: AsyncTestCluster, make: Make, member: Join
) -> None:
    first, second = await member(), await member()
    await eventually(lambda: shared(first, second), "the two share the three partitions")
    kafka.produce("t", [(None, b"%d" % i) for i in range(300)])
    await eventually(lambda: len(first.values + second.values) >= 300, "all is read")
    assert len(set(first.values + second.values)) == len(first.values + second.values) == 300
    admin = await make(AIOKafkaAdminClient)
    assert await admin.list_consumer_groups() == [("g", "consumer")]
    for consumer in (first, second):
        await consumer.stop()
        await consumer.consumer.commit()
    committed = await admin.list_consumer_group_offsets("g")
    assert {p: o.offset for p, o in committed.items()} == dict.fromkeys(all_of("t"), 100)
    for consumer in (first, second):
        await consumer.consumer.stop()
    third = await member()
    await eventually(lambda: len(third.share) == 3, "the third member has all partitions")
    kafka.produce("t", [(None, b"more %d" % i) for i in range(3)])
    await eventually(lambda: len(third.values) >= 3, "new records arrive")
    assert sorted(third.values) == [b"more 0", b"more 1", b"more 2"]


async def test_aiokafka_static_member_rejoins_without_a_rebalance(kafka: AsyncTestCluster, member: Join) -> None:
    static, other = await member(group_instance_id="one"), await member()
    await eventually(lambda: shared(static, other), "the two share")
    await static.stop()
    share_before, times_before = static.share, other.listener.times
    await static.consumer.stop()
    restarted = await member(group_instance_id="one")
    await eventually(lambda: restarted.share, "it is back")
    assert restarted.share == share_before
    assert other.listener.times == times_before


async def test_aiokafka_member_that_disappears_is_removed_after_its_session_timeout(
    kafka: AsyncTestCluster, member: Join
) -> None:
    stopped, remaining = await member(group_instance_id="gone"), await member()
    await eventually(lambda: shared(stopped, remaining), "the two share")
    await stopped.stop()
    await stopped.consumer.stop()  # a static member does not report that it leaves
    assert len(remaining.share) < 3
    await kafka.clock.advance(10_001)
    await eventually(lambda: len(remaining.share) == 3, "the other member has all partitions")


@pytest.mark.rule("Q-7", "T-7")
async def test_aiokafka_producer_over_quota_waits_until_virtual_time_advances(
    kafka: AsyncTestCluster, make: Make
) -> None:
    kafka.set_quota(client_id="limited", producer_byte_rate=10_000)
    producer = await make(AIOKafkaProducer, client_id="limited")
    await producer.send_and_wait("t", b"x" * 500_000, partition=0)
    [throttled] = [r.throttle_time_ms for r in kafka.journal.requests(api="Produce")]
    assert 40_000 <= throttled <= 40_200  # 500 kB at 10 kB/s, with ten seconds' worth unthrottled
    waiting = asyncio.create_task(producer.send_and_wait("t", b"next", partition=0))
    await asyncio.sleep(0.05)
    assert not waiting.done()  # aiokafka does not wait by itself: the broker does not read
    await kafka.clock.advance(throttled)
    await asyncio.wait_for(waiting, 10)


@pytest.mark.rule("T-4", "Q-3")
async def test_aiokafka_throttled_consumer_continues_when_virtual_time_advances(
    kafka: AsyncTestCluster, make: Make
) -> None:
    for _ in range(12):
        kafka.produce("t", [(None, b"x" * 10_000)] * 10, 0)
    kafka.set_quota(client_id="limited", consumer_byte_rate=100_000)
    consumer = await reader(make, client_id="limited", max_partition_fetch_bytes=110_000)
    await read(consumer, 90)  # ten seconds' worth is unthrottled; a fetch above it is taken back
    await kafka.wait_for(lambda journal: journal.throttles("Fetch"))
    await kafka.clock.advance(12_000)
    await read(consumer, 30)


@pytest.mark.rule("N-4")
async def test_aiokafka_consumer_reads_from_the_follower_in_its_client_rack(
    kafka: AsyncTestCluster, make: Make
) -> None:
    for i in range(3):
        kafka.produce("t", [(None, b"x" * 500)] * 200, i)
    await read(await reader(make, client_rack="b"), 600)
    sent = fetched_bytes(kafka)
    assert sent[1] > 20 * (sent[0] + sent[2])


async def test_aiokafka_producer_loses_no_records_while_a_broker_stops_and_starts(
    kafka: AsyncTestCluster, make: Make
) -> None:
    producer = await make(AIOKafkaProducer, enable_idempotence=True, retry_backoff_ms=20)
    for i in range(300):
        if i == 100:
            kafka.broker(1).stop()
        if i == 200:
            kafka.broker(1).start()
            await kafka.settled()
        await producer.send_and_wait("t", b"%d" % i, partition=i % 3)
    assert sorted(int(r.value) for r in kafka.records("t")) == list(range(300))
    assert sorted(int(r.value) for r in await read(await reader(make), 300)) == list(range(300))


async def test_aiokafka_clients_produce_and_consume_while_virtual_time_advances(
    kafka: AsyncTestCluster, make: Make
) -> None:
    producer, consumer = await make(AIOKafkaProducer), await reader(make)
    for _ in range(3):
        await producer.send_and_wait("t", b"v")
        await kafka.clock.advance(60_000)
    assert len(await read(consumer, 3)) == 3
