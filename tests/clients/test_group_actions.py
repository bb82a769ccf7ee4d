"""librdkafka members that a test expires, fences, or whose coordinator it moves: they join again and continue from the commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaError

from kafkaproto.testing import CauseKind, TestCluster, cluster

CONFIG = {"group.consumer.min.heartbeat.interval.ms": "100", "group.consumer.heartbeat.interval.ms": "100"}
WAIT_SECONDS = 30
PARTITIONS = 4


@pytest.fixture(params=["classic", "consumer"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    with cluster(2, topics={"orders": PARTITIONS}, release="4.2", config=CONFIG) as running:
        yield running


def consumer(kafka: TestCluster, protocol: str, **settings: object) -> Consumer:
    own: dict[str, object] = {"heartbeat.interval.ms": 100, "session.timeout.ms": 6000} if protocol == "classic" else {}
    new_consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": "readers",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            **own,
            **settings,
        }
    )
    new_consumer.subscribe(["orders"])
    return new_consumer


def poll_until(each: Consumer, reached: Callable[[], bool]) -> tuple[list[bytes], set[int]]:
    """Poll a consumer until `reached` returns True. Returns the values that it read, and the codes of its errors."""
    values: list[bytes] = []
    errors: set[int] = set()
    deadline = time.monotonic() + WAIT_SECONDS
    while not reached():
        assert time.monotonic() < deadline, (values, errors)
        message = each.poll(0.05)
        if message is None:
            continue
        if message.error() is None:
            values.append(message.value())
        else:
            errors.add(message.error().code())
    return values, errors


def has_all(kafka: TestCluster, epoch: int) -> Callable[[], bool]:
    """Return a condition: the group is Stable at least at `epoch`, with one member that has all partitions."""

    def check() -> bool:
        group = kafka.groups().get("readers")
        return (
            group is not None
            and group.state == "Stable"
            and group.epoch >= epoch
            and [len(member.assignment) for member in group.members] == [PARTITIONS]
        )

    return check


def test_expired_librdkafka_member_joins_again_and_continues_to_read(kafka: TestCluster, protocol: str) -> None:
    reader = consumer(kafka, protocol)
    poll_until(reader, has_all(kafka, 1))
    before = kafka.group("readers")
    kafka.expire_member("readers", before.members[0].member_id)
    poll_until(reader, has_all(kafka, before.epoch + 2))
    kinds = [cause.kind for entry in kafka.rebalances("readers") for cause in entry.causes]
    assert kinds == [CauseKind.JOINED, CauseKind.SESSION_TIMED_OUT, CauseKind.JOINED]
    kafka.produce("orders", ["after"], partition=0)
    values: list[bytes] = []
    deadline = time.monotonic() + WAIT_SECONDS
    while values != [b"after"]:
        assert time.monotonic() < deadline, values
        message = reader.poll(0.1)
        if message is not None and message.error() is None:
            values.append(message.value())
    reader.close()


def test_fenced_librdkafka_member_of_a_kip_848_group_joins_again(kafka: TestCluster) -> None:
    reader = consumer(kafka, "consumer")
    poll_until(reader, has_all(kafka, 1))
    before = kafka.group("readers")
    kafka.fence_member("readers", before.members[0].member_id)
    poll_until(reader, has_all(kafka, before.epoch + 2))
    refused = [request for request in kafka.journal.requests("ConsumerGroupHeartbeat") if request.errors]
    assert [request.errors for request in refused] == [("FENCED_MEMBER_EPOCH",)]
    reader.close()


def test_fenced_static_librdkafka_member_of_a_classic_group_raises_a_fatal_error(kafka: TestCluster) -> None:
    reader = consumer(kafka, "classic", **{"group.instance.id": "one"})
    poll_until(reader, has_all(kafka, 1))
    kafka.fence_member("readers", kafka.group("readers").members[0].member_id)
    deadline = time.monotonic() + WAIT_SECONDS
    error = None
    while error is None:
        assert time.monotonic() < deadline
        message = reader.poll(0.1)
        error = None if message is None else message.error()
    assert error.code() == KafkaError._FATAL and "same group.instance.id" in error.str()
    assert kafka.journal.requests("Heartbeat")[-1].errors == ("FENCED_INSTANCE_ID",)
    reader.close()


def test_librdkafka_member_sends_heartbeats_to_its_new_coordinator_after_a_move(
    kafka: TestCluster, protocol: str
) -> None:
    reader = consumer(kafka, protocol)
    poll_until(reader, has_all(kafka, 1))
    before = kafka.group("readers")
    assert before.coordinator is not None
    moved = kafka.move_coordinator("readers", 1 - before.coordinator)
    assert (moved.epoch, [m.member_id for m in moved.members]) == (before.epoch, [m.member_id for m in before.members])
    api = "Heartbeat" if protocol == "classic" else "ConsumerGroupHeartbeat"

    def beats_there() -> bool:
        heartbeats = kafka.journal.requests(api, broker=1 - (before.coordinator or 0))
        return any(not heartbeat.errors for heartbeat in heartbeats)

    poll_until(reader, beats_there)
    assert kafka.group("readers").epoch == before.epoch and len(kafka.rebalances("readers")) == 1
    reader.close()
