"""The first consumer group of a new cluster is not delayed under profile `test` (A4)."""

from __future__ import annotations

import asyncio
import logging
import statistics
import subprocess
import sys
import time

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient

from kafkaproto.testing import AsyncTestCluster, async_cluster

ROUNDS = 7


async def consume(cluster: AsyncTestCluster, group: str) -> float:
    """Return the seconds from the start of a new group to its first record."""
    start_s = time.perf_counter()
    consumer = AIOKafkaConsumer(
        "orders", bootstrap_servers=cluster.bootstrap, group_id=group, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        assert (await asyncio.wait_for(consumer.getone(), 10)).value == b"first"
    finally:
        await consumer.stop()
    return time.perf_counter() - start_s


async def test_aiokafka_admin_client_lists_no_topics_of_a_new_cluster() -> None:
    async with async_cluster() as cluster:
        admin = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        await admin.start()
        try:
            assert await admin.list_topics() == []
        finally:
            await admin.close()


async def test_first_consumer_group_waits_at_most_twice_as_long_for_a_record_as_the_second(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = [], []
    with caplog.at_level(logging.INFO, "aiokafka"):
        for _ in range(ROUNDS):
            async with async_cluster(topics={"orders": 1}) as cluster:
                cluster.produce("orders", ["first"])
                first.append(await consume(cluster, "one"))
                second.append(await consume(cluster, "two"))
                errors = {error for request in cluster.journal.requests() for error in request.errors}
                assert "COORDINATOR_NOT_AVAILABLE" not in errors
    assert statistics.median(first) <= 2 * statistics.median(second)
    assert [entry.getMessage() for entry in caplog.records if entry.levelno >= logging.WARNING] == []


FIRST_CLIENT = """
import asyncio, gc, sys, time
from aiokafka import AIOKafkaConsumer
from kafkaproto.testing import cluster

async def consume(c, group):
    begun = time.perf_counter()
    consumer = AIOKafkaConsumer("orders", bootstrap_servers=c.bootstrap, group_id=group, auto_offset_reset="earliest")
    await consumer.start()
    await consumer.getone()
    seconds = time.perf_counter() - begun
    await consumer.stop()
    return seconds

with cluster(topics={"orders": 1}) as c:
    c.produce("orders", ["first"])
    loaded = set(sys.modules)
    gc.collect()  # of all imports, which takes longer than a client; it must not fall into one of the two times
    first = asyncio.run(consume(c, "one"))
    late = [name for name in sys.modules.keys() - loaded if name.startswith("kafkaproto")]
    print(first, asyncio.run(consume(c, "two")), *late)
"""


@pytest.mark.slow
def test_first_group_join_in_a_process_takes_at_most_twice_as_long_as_the_second() -> None:
    """Without preloading it took 17 times as long as the second client. The rest is the first use of aiokafka itself."""
    pairs = []
    for _ in range(2 * ROUNDS):
        completed = subprocess.run([sys.executable, "-c", FIRST_CLIENT], capture_output=True, text=True, check=True)
        first, second, *late = completed.stdout.split()
        assert late == []
        pairs.append((float(first), float(second)))
    first_s, second_s = (min(times) for times in zip(*pairs, strict=True))  # other work on the machine only adds time
    assert first_s <= 2 * second_s
