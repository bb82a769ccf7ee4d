"""Tests of fetching from the closest replica (KIP-392). The brokers' racks are r0, r1 and r2, and broker 0 leads all partitions."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.needs import SESSION_SLOTS
from kafkaproto.conformance.scene import Topic, follow, held, new_topic, read, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, fetch, flat, produce


def scene(subject: Subject, replication: int = 3) -> Topic:
    """Create a topic with five records that every follower has, and return it.

    Waits until the leader knows that the followers have the records. replication: the number of replicas.
    """
    topic = new_topic(subject, replication=replication)
    topic.fill(*[batch(b"v")] * 5)
    for broker_id in range(1, replication):
        wait_until(
            subject,
            lambda b=broker_id: prefers(topic, 5, f"r{b}") == b,  # type: ignore[misc]
            f"the leader of {topic.name}-0 knows that broker {broker_id} has all records of the partition",
        )
        wait_until(
            subject,
            lambda b=broker_id: read(topic, 5, broker_id=b).high_watermark == 5,  # type: ignore[misc]
            f"the replica of {topic.name}-0 on broker {broker_id} has the high watermark 5",
        )
    return topic


def prefers(topic: Topic, offset: int, rack: str, version: int = 11, **more: Any) -> int:
    return int(read(topic, offset, version, rack=rack, **more).preferred_read_replica)


@pytest.mark.needs("replica.selector.class", racks=True)
@pytest.mark.rule("N-1", "N-2", "N-3", "N-4", "N-5", "N-6")
def test_leader_returns_the_in_sync_replica_in_the_client_rack_as_preferred_replica(subject: Subject) -> None:
    topic = scene(subject)
    for rack, expected in (("r0", -1), ("r1", 1), ("r2", 2), ("r3", -1), ("R1", -1), ("", -1)):
        result = read(topic, 0, rack=rack)
        assert (result.error_code, result.preferred_read_replica) == (0, expected)
        assert (result.high_watermark, result.last_stable_offset, result.log_start_offset) == (5, 5, 0)
        assert (len(result.records) == 0) == (expected >= 0) and result.aborted_transactions is None
    assert prefers(topic, 0, "r1", 17) == 1
    assert len(read(topic, 0, 10, rack="").records) > 0
    epoch = topic.leader_epoch
    assert read(topic, 0, rack="r1", epoch=epoch + 1).error_code == 75
    assert (read(topic, 9, rack="r1").error_code, prefers(topic, 9, "r1")) == (1, -1)  # no replica has this offset
    assert prefers(topic, 5, "r1") == 1  # computed for each fetch
    connection = topic.connect()
    subject.send(connection, fetch((topic.name, 0, 5), rack="r1", max_wait_ms=5000), 11)
    subject.assert_took(subject.answer(connection), 0)


@pytest.mark.needs("replica.selector.class", racks=True)
@pytest.mark.rule("N-3", "N-11", "N-12")
def test_leader_redirects_consumers_only_to_followers_that_have_the_fetch_offset(subject: Subject) -> None:
    """The leader redirects consumers to a follower only for offsets up to the offset of the follower's last fetch.

    The test stops the follower from fetching, and sends fetches with the follower's broker id instead.
    """
    topic = scene(subject, 2)
    with held(subject, topic, 1):
        topic.fill(*[batch(b"v")] * 3, acks=1)
        assert [prefers(topic, offset, "r1") for offset in (0, 5)] == [1, 1]
        follow(topic, 1, 7)
        assert read(topic, 0, rack="r0").high_watermark == 7
        assert [prefers(topic, offset, "r1") for offset in (6, 7)] == [1, 1]
        follow(topic, 1, 3)  # the follower has lost records
        assert [prefers(topic, offset, "r1") for offset in (3, 4, 7)] == [1, -1, -1]
        waiting = topic.connect()
        subject.send(waiting, fetch((topic.name, 0, 3), replica_id=1, max_wait_ms=300, min_bytes=2**30), 11)
        subject.answer(waiting)
        assert prefers(topic, 4, "r1") == -1  # sending records does not prove that the follower has them
        follow(topic, 1, 8)
        assert read(topic, 0, rack="r0").high_watermark == 8 and prefers(topic, 8, "r1") == 1


@pytest.mark.needs(at_least={"max.incremental.fetch.session.cache.slots": SESSION_SLOTS})
@pytest.mark.needs("replica.selector.class", racks=True)
@pytest.mark.rule("N-6", "S-6")
def test_every_fetch_of_a_fetch_session_returns_the_preferred_read_replica(subject: Subject) -> None:
    topic = scene(subject)
    connection = topic.connect()
    opened = subject.ask(connection, fetch((topic.name, 0, 0), session=(0, 0), rack="r2"), 11)
    for epoch in (1, 2):
        response = subject.ask(connection, fetch(session=(opened.session_id, epoch), rack="r2"), 11)
        assert [data.preferred_read_replica for _, data in flat(response)] == [2]


@pytest.mark.needs("replica.selector.class", racks=True)
@pytest.mark.rule("N-2", "N-8", "D2")
def test_fetch_from_a_follower_returns_records_up_to_the_follower_high_watermark(subject: Subject) -> None:
    topic = scene(subject)
    at_follower = read(topic, 0, broker_id=1, rack="r2")
    assert (at_follower.preferred_read_replica, at_follower.high_watermark) == (-1, 5)
    assert len(at_follower.records) == 5 * len(batch(b"v"))
    assert read(topic, 0, 10, broker_id=1).error_code == 6
    assert [read(topic, offset, broker_id=1).error_code for offset in (-1, 5, 6)] == [1, 0, 1]
    epoch = topic.leader_epoch
    assert [read(topic, 5, broker_id=1, epoch=e).error_code for e in (epoch, epoch + 1)] == [0, 75]
    connection = subject.connect(1)
    subject.send(connection, fetch((topic.name, 0, 5), max_wait_ms=300), 11)
    subject.assert_took(subject.answer(connection), 300)


@pytest.mark.needs("replica.selector.class", racks=True)
@pytest.mark.rule("N-9", "N-10", "F-29")
def test_fetch_parked_on_a_follower_completes_when_the_high_watermark_advances(subject: Subject) -> None:
    """A consumer's fetch from a follower waits, because there is no record to return.

    A record is produced, and the fetch returns the record long before the maximum wait time of the fetch has passed.

    Corresponds to Kafka's test `FetchFromFollowerIntegrationTest.testFollowerCompleteDelayedFetchesOnReplication`.
    """
    topic = scene(subject, 2)
    waiting = subject.connect(1)
    subject.send(waiting, fetch((topic.name, 0, 5), max_wait_ms=20_000), 11)
    assert subject.answer_or_none(waiting, 50) is None
    subject.ask(topic.connect(), produce(topic.name, batch(b"v")), 9)
    response = subject.answer(waiting, 5000)
    [(_, data)] = flat(response.message)
    assert (data.error_code, data.high_watermark, len(data.records)) == (0, 6, len(batch(b"v")))
    assert response.elapsed_ms < 2000
