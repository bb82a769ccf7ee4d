"""librdkafka in groups of the new protocol (KIP-848): members share partitions, and a member that comes later continues from the commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafkaproto.testing import TestCluster, cluster

PARTITIONS, PER_PARTITION = 6, 5
INTERVAL = {"group.consumer.min.heartbeat.interval.ms": "100", "group.consumer.heartbeat.interval.ms": "100"}
WAIT_SECONDS = 30


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    with cluster(3, topics={"orders": PARTITIONS}, release="4.2", config=INTERVAL) as running:
        for index in range(PARTITIONS):
            running.produce("orders", [f"{index}-{n}" for n in range(PER_PARTITION)], partition=index)
        yield running


def consumer(kafka: TestCluster, client_id: str) -> Consumer:
    new_consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": "readers",
            "group.protocol": "consumer",
            "client.id": client_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    new_consumer.subscribe(["orders"])
    return new_consumer


def poll_until(reached: Callable[[], bool], *consumers: Consumer) -> list[bytes]:
    """Poll all consumers in turn until `reached` returns True, and return the values that they read."""
    values: list[bytes] = []
    deadline = time.monotonic() + WAIT_SECONDS
    while not reached():
        assert time.monotonic() < deadline, [sorted(p.partition for p in each.assignment()) for each in consumers]
        for each in consumers:
            message = each.poll(0.05)
            if message is not None:
                assert message.error() is None, message.error()
                values.append(message.value())
    return values


def owned(each: Consumer) -> set[int]:
    return {place.partition for place in each.assignment()}


def test_librdkafka_kip_848_group_shares_partitions_and_resumes_from_commits(kafka: TestCluster) -> None:
    first = consumer(kafka, "first")
    consumed: list[bytes] = []
    consumed += poll_until(lambda: len(owned(first)) == PARTITIONS, first)
    expected = {f"{index}-{n}".encode() for index in range(PARTITIONS) for n in range(PER_PARTITION)}
    deadline = time.monotonic() + WAIT_SECONDS
    while set(consumed) != expected:
        assert time.monotonic() < deadline, sorted(consumed)
        message = first.poll(0.1)
        if message is not None:
            consumed.append(message.value())
    assert len(consumed) == len(expected)
    places = [TopicPartition("orders", index, PER_PARTITION) for index in range(PARTITIONS)]
    first.commit(offsets=places, asynchronous=False)
    assert kafka.committed("readers") == {("orders", index): PER_PARTITION for index in range(PARTITIONS)}
    second = consumer(kafka, "second")
    again = poll_until(lambda: [len(owned(first)), len(owned(second))] == [3, 3], first, second)
    assert again == [] and owned(first) | owned(second) == set(range(PARTITIONS))
    group = kafka.wait_for_group("readers", members=2, state="Stable")
    assert {index for member in group.members for _, index in member.assignment} == set(range(PARTITIONS))
    first.close()
    poll_until(lambda: len(owned(second)) == PARTITIONS, second)
    kafka.produce("orders", ["new"], partition=0)
    values: list[bytes] = []
    while b"new" not in values:
        assert time.monotonic() < deadline + 2 * WAIT_SECONDS
        message = second.poll(0.1)
        if message is not None:
            values.append(message.value())
    assert values == [b"new"]
    second.close()
