"""aiokafka against the broker, both in one loop or each in its own: records, groups, transactions' absence, quotas."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from broker.testing import AsyncTestCluster, async_cluster

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(60),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]


@pytest.fixture
async def kafka() -> AsyncIterator[AsyncTestCluster]:
    async with async_cluster(3, {"t": {"partitions": 3, "replication_factor": 3}}) as c:
        yield c


async def read(kafka: AsyncTestCluster, count: int, **options: Any) -> list[Any]:
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest", **options)
    await consumer.start()
    try:
        consumer.assign([TopicPartition("t", p) for p in range(3)])
        got: list[Any] = []
        while len(got) < count:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                got += records
        return got
    finally:
        await consumer.stop()


@pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
async def test_records_come_back_as_they_went(kafka: AsyncTestCluster, compression: str | None) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, compression_type=compression, acks="all")
    await producer.start()
    sent = [
        await producer.send(
            "t", b"v%d" % i, key=b"k%d" % i, headers=[("h", b"%d" % i)], timestamp_ms=1_700_000_000_000 + i
        )
        for i in range(100)
    ]
    await asyncio.gather(*sent)
    await producer.stop()
    got = {r.key: r for r in await read(kafka, 100)}
    for i in range(100):
        record = got[b"k%d" % i]
        assert (record.value, record.headers, record.timestamp) == (
            b"v%d" % i,
            (("h", b"%d" % i),),
            1_700_000_000_000 + i,
        )


async def test_P18_an_idempotent_producer(kafka: AsyncTestCluster) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, enable_idempotence=True)
    await producer.start()
    places = [await producer.send_and_wait("t", b"%d" % i, partition=0) for i in range(10)]
    await producer.stop()
    assert [p.offset for p in places] == list(range(10))
    assert kafka.journal.requests(api="InitProducerId")


async def test_a_group_shares_commits_and_resumes(kafka: AsyncTestCluster) -> None:
    def member() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            "t", bootstrap_servers=kafka.bootstrap, group_id="g", auto_offset_reset="earliest", enable_auto_commit=False,
            heartbeat_interval_ms=100, session_timeout_ms=10_000,
        )  # fmt: skip

    first, second = member(), member()
    await first.start()
    await second.start()
    while sorted(len(m.assignment()) for m in (first, second)) != [1, 2]:
        await asyncio.gather(*(m.getmany(timeout_ms=100) for m in (first, second)))
    kafka.produce("t", [f"v{i}" for i in range(30)])
    seen: list[tuple[int, int]] = []

    async def take(*members: AIOKafkaConsumer) -> None:
        for many in await asyncio.gather(*(m.getmany(timeout_ms=100) for m in members)):
            seen.extend((r.partition, r.offset) for records in many.values() for r in records)

    while len(set(seen)) < 30:
        await take(first, second)
    await first.commit()
    await second.commit()
    await first.stop()
    await second.stop()
    kafka.produce("t", [f"w{i}" for i in range(6)])
    third = member()
    await third.start()
    while len(seen) < 36:
        await take(third)
    await third.stop()
    assert len(set(seen)) == len(seen) == 36


async def test_L6_offsets_for_times(kafka: AsyncTestCluster) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap)
    await producer.start()
    for i in range(10):
        await producer.send_and_wait("t", b"v", partition=1, timestamp_ms=1000 + 10 * i)
    await producer.stop()
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap)
    await consumer.start()
    place = TopicPartition("t", 1)
    assert (await consumer.offsets_for_times({place: 1035}))[place].offset == 4
    assert (await consumer.beginning_offsets([place]), await consumer.end_offsets([place])) == ({place: 0}, {place: 10})
    await consumer.stop()


async def test_topics_are_made_and_deleted(kafka: AsyncTestCluster) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic("made", 2, 2)])
    assert "made" in await admin.list_topics()
    await admin.delete_topics(["made"])
    assert "made" not in await admin.list_topics()
    await admin.close()


async def test_T1_over_its_quota_a_producer_is_muted_and_loses_nothing(kafka: AsyncTestCluster) -> None:
    kafka.set_quota(client_id="limited", producer_byte_rate=50_000)
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, client_id="limited", max_request_size=2_000_000)
    await producer.start()
    for _ in range(6):
        await producer.send_and_wait("t", b"x" * 100_000, partition=0)
    await producer.stop()
    assert len(kafka.records("t")) == 6
    assert kafka.journal.throttles("Produce")
