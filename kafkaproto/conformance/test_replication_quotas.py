"""Tests of replication quotas (KIP-73): fetches with the id of an out-of-sync follower, and the duration of a real reassignment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafkaproto.conformance.needs import FETCH_MAX_BYTES, REQUEST_MAX_BYTES
from kafkaproto.conformance.scene import Topic, follow, held, new_topic, read, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch_of_bytes, fetch, flat, produce
from kafkaproto.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

PROFILE = "lag"
FORGIVEN_MS = 2000
"""The minimum time in ms for which sent bytes count towards the quota: replication.quota.window.num (2) windows of one second.

A broker adds the bytes that it sends within a second to one sample. The sample counts until 2 s after the last bytes were added to it, so the first
bytes of a sample may count for 3 s.
"""
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
RATE = 20_000
SETTLED_MS = 200
"""The time in ms for which a Kafka broker may report the new value of a setting before it applies the value."""


def alter(subject: Subject, kind: int, name: str, broker_id: int = 0, **values: str | None) -> int:
    """Set settings of a resource, or delete those whose value is None, and return the error code.

    Dots in names are written as underscores. kind, name: the type and name of the resource. broker_id: the broker that gets the request.
    """
    operations = [
        AlterableConfig(key.replace("_", "."), DELETE if value is None else SET, value) for key, value in values.items()
    ]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, operations)])
    return int(subject.ask_once(request, 1, broker_id).responses[0].error_code)


def described(subject: Subject, kind: int, name: str, key: str, broker_id: int = 0) -> tuple[str | None, int] | None:
    """Return (value, config source) of the setting `key` from DescribeConfigs, or None if the response does not have the setting.

    kind, name: the type and name of the resource. broker_id: the broker that gets the request.
    """
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, [key])])
    result = subject.ask_once(request, 4, broker_id).results[0].configs
    return (result[0].value, result[0].config_source) if result else None


def set_list(topic: Topic, key: str, text: str) -> None:
    subject = topic.subject
    configs: dict[str, Any] = {key.replace(".", "_"): text}
    assert alter(subject, TOPIC, topic.name, **configs) == 0
    wait_until(
        subject, lambda: described(subject, TOPIC, topic.name, key) == (text, 1), f"topic {topic.name} has {key}={text}"
    )
    subject.pass_ms(SETTLED_MS)


@contextmanager
def limited(subject: Subject, key: str, rate: int, broker_id: int | None = 0) -> Iterator[None]:
    """Return a context in which a replication rate is set on one broker, or on every broker if `broker_id` is None.

    key: the name of the setting, such as `leader.replication.throttled.rate`. rate: its value in bytes per second.
    """
    parameter = key.replace(".", "_")
    name, requested, source = ("", 0, 3) if broker_id is None else (str(broker_id), broker_id, 2)
    before = described(subject, BROKER, str(requested), key, requested)
    assert alter(subject, BROKER, name, requested, **{parameter: str(rate)}) == 0
    _wait_for_rate(subject, key, requested, (str(rate), source))
    try:
        yield
    finally:
        assert alter(subject, BROKER, name, requested, **{parameter: None}) == 0
        _wait_for_rate(subject, key, requested, before)


def _wait_for_rate(subject: Subject, key: str, broker_id: int, expected: tuple[str | None, int] | None) -> None:
    wait_until(
        subject,
        lambda: described(subject, BROKER, str(broker_id), key, broker_id) == expected,
        f"broker {broker_id} reports {key} with (value, source) {expected}",
    )
    subject.pass_ms(SETTLED_MS)


@contextmanager
def out_of_sync(subject: Subject) -> Iterator[Topic]:
    """Yield a topic of 8 batches of 100 kB, led by broker 0. Broker 2 is in the ISR. Broker 1 is not: it does not fetch, and has no batch."""
    begun = subject.now_ms()
    topic = new_topic(subject, replication=3)
    with held(subject, topic, 1):
        topic.fill(*[batch_of_bytes(100_000)] * 8, acks=1)
        wait_until(
            subject,
            lambda: set(topic.partition().isr_nodes) == {0, 2},
            f"broker 1 is no longer in the ISR of {topic.name}-0",
        )
        wait_until(
            subject,
            lambda: read(topic, 8).high_watermark == 8,
            f"the high watermark of {topic.name}-0 is 8, after all eight batches",
        )
        subject.pass_ms(
            max(0, begun + FORGIVEN_MS + 1200 - subject.now_ms())
        )  # bytes sent by earlier tests must leave the window
        yield topic


def got(topic: Topic, broker_id: int = 1, offset: int = 0) -> int:
    """Fetch with the id of broker `broker_id`, and return the size of the records in bytes.

    Checks that the response has no error, and that its high watermark is 8, because the topic has 8 committed batches of one record.
    """
    data = follow(topic, broker_id, offset)
    assert (data.error_code, data.high_watermark, data.log_start_offset) == (0, 8, 0)
    return len(data.records)


@pytest.mark.needs(at_least={"socket.request.max.bytes": REQUEST_MAX_BYTES})
@pytest.mark.needs(
    "replica.lag.time.max.ms", "replication.quota.window.num", at_least={"fetch.max.bytes": FETCH_MAX_BYTES}
)
@pytest.mark.rule("R-4", "R-5", "R-8", "D11")
def test_throttled_out_of_sync_follower_gets_no_records_until_the_quota_window_ends(subject: Subject) -> None:
    with out_of_sync(subject) as topic, limited(subject, LEADER_RATE, RATE):
        set_list(topic, LEADERS, "0:0")
        begun = subject.now_ms()
        assert [got(topic), got(topic)] == [800_000, 0]
        assert got(topic, broker_id=2, offset=4) == 400_000  # in sync
        assert len(read(topic, 0).records) == 800_000  # a consumer
        while subject.now_ms() - begun < FORGIVEN_MS - 300:
            assert got(topic) == 0
            subject.pass_ms(300)
        wait_until(
            subject,
            lambda: got(topic) == 800_000,
            f"the follower of {topic.name}-0 is no longer throttled and gets 800000 bytes of records",
        )
        assert subject.now_ms() - begun <= FORGIVEN_MS + 2000


@pytest.mark.needs(at_least={"socket.request.max.bytes": REQUEST_MAX_BYTES})
@pytest.mark.needs(
    "replica.lag.time.max.ms", "replication.quota.window.num", at_least={"fetch.max.bytes": FETCH_MAX_BYTES}
)
@pytest.mark.rule("R-1", "R-2", "R-12", "D10")
def test_changed_list_of_throttled_replicas_takes_effect_at_the_next_fetch(subject: Subject) -> None:
    with out_of_sync(subject) as topic, limited(subject, LEADER_RATE, RATE, None):
        set_list(topic, LEADERS, "*")
        assert [got(topic), got(topic)] == [800_000, 0]
        for text, has_effect in (("0:1", False), ("1:0", False), ("1:0,0:0", True), ("", False), ("*", True)):
            set_list(topic, LEADERS, text)
            # Bytes sent meanwhile count, and none of them has left the window yet.
            assert (got(topic) == 0) is has_effect, text
        with limited(subject, LEADER_RATE, 2**40):  # the broker's own rate overrides the default
            assert got(topic) == 800_000
        assert got(topic) == 0
        set_list(topic, FOLLOWERS, "*")
        set_list(topic, LEADERS, "")
        assert got(topic) == 800_000  # the other list of throttled replicas
        dashes = alter(subject, TOPIC, topic.name, leader_replication_throttled_replicas="0-0")
        assert dashes == (40 if subject.semantics == "kafka" else 0)
        for value in ("a", "0", "0:1:2", "0:1,*", "0: 1"):
            assert alter(subject, TOPIC, topic.name, leader_replication_throttled_replicas=value) == 40, value


@pytest.mark.needs(at_least={"socket.request.max.bytes": REQUEST_MAX_BYTES})
@pytest.mark.needs(
    "replica.lag.time.max.ms", "replication.quota.window.num", at_least={"fetch.max.bytes": FETCH_MAX_BYTES}
)
@pytest.mark.rule("R-6", "R-12")
def test_parked_throttled_follower_fetch_waits_max_wait_even_if_the_quota_is_removed(subject: Subject) -> None:
    with out_of_sync(subject) as topic:
        with limited(subject, LEADER_RATE, RATE):
            set_list(topic, LEADERS, "*")
            assert [got(topic), got(topic)] == [800_000, 0]
            if subject.semantics == "kafka":  # by the documents, the new high watermark completes it (D5)
                connection = topic.connect()
                request = fetch((topic.name, 0, 7), replica_id=1, max_wait_ms=600, min_bytes=150_000)
                subject.send(connection, request, 11)
                subject.ask(topic.connect(), produce(topic.name, batch_of_bytes(100_000)), 9)
                response = subject.answer(connection)
                subject.assert_took(response, 600)
                [(_, data)] = flat(response.message)
                assert (data.error_code, len(data.records), data.high_watermark) == (0, 0, 9)
            connection = topic.connect()
            subject.send(connection, fetch((topic.name, 0, 3), replica_id=1, max_wait_ms=1500), 11)
        # Removing the rate does not complete the fetch, but its response is read when it times out.
        response = subject.answer(connection)
        subject.assert_took(response, 1500)
        [(_, data)] = flat(response.message)
        assert len(data.records) >= 500_000


@pytest.mark.needs(at_least={"socket.request.max.bytes": REQUEST_MAX_BYTES})
@pytest.mark.needs("replication.quota.window.num", brokers=3)
@pytest.mark.rule("R-3", "R-7")
@pytest.mark.parametrize("key", [LEADERS, FOLLOWERS])
def test_throttled_reassignment_of_2_mb_at_250_kb_per_s_takes_1_8_to_7_seconds(subject: Subject, key: str) -> None:
    """The reassignment copies 2 MB at 250 kB/s and takes between 1.8 s and 7 s.

    At 250 kB/s, 2 MB would take 8 s. The reassignment is faster because the first fetch of 1 MB is not throttled: a broker counts the bytes of a
    fetch only after it has read or appended them. They then count for at least 2 s, and the next fetch has to wait for that time.

    key: the topic setting that lists the throttled replicas, either for leaders or for followers.
    """
    topic = new_topic(subject, assignment={0: [0]})
    topic.fill(*[batch_of_bytes(100_000)] * 20)
    set_list(topic, key, "*")
    subject.pass_ms(FORGIVEN_MS + 1000)  # the bytes of earlier tests no longer count
    mover, rate_key = (0, LEADER_RATE) if key == LEADERS else (2, FOLLOWER_RATE)
    with limited(subject, rate_key, 250_000, mover):
        begun = subject.now_ms()
        order = [ReassignableTopic(topic.name, [ReassignablePartition(0, [2])])]
        response = subject.ask_once(AlterPartitionReassignmentsRequest(10_000, topics=order), 0)
        assert response.responses[0].partitions[0].error_code == 0
        wait_until(
            subject, lambda: topic.partition().replica_nodes == [2], f"broker 2 has the only replica of {topic.name}-0"
        )
        assert 1800 <= subject.now_ms() - begun <= 7000
    assert read(topic, 0, partition_max=1 << 22).high_watermark == 20
