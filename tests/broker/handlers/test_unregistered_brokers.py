"""A running broker that is unregistered: this broker and a real Kafka return the same from then on until the broker has restarted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkaproto.conformance.scene import Topic, new_topic, read, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, produce, produced
from kafkaproto.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.describe_cluster import DescribeClusterRequest
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.messages.unregister_broker import UnregisterBrokerRequest
from tests.support.conformance.real_kafka import NewerKafka, RealKafka, as_on_kafka
from tests.support.conformance.virtual import Virtual, VirtualNewer

BROKER = 2
HEARTBEATS_MS = 5_000
"""The time in ms in which a broker of Kafka sends at least two heartbeats."""


def states(topic: Topic, broker_id: int = 0) -> list[tuple[int, int, int, list[int], list[int], list[int]]]:
    """Return index, error, leader, replicas, in-sync replicas and offline replicas of each partition, as one broker knows them."""
    partitions = sorted(topic.metadata(broker_id).partitions, key=lambda p: p.partition_index)
    return [
        (p.partition_index, p.error_code, p.leader_id, p.replica_nodes, sorted(p.isr_nodes), p.offline_replicas)
        for p in partitions
    ]


def brokers(subject: Subject, broker_id: int) -> list[int]:
    return sorted(b.node_id for b in subject.ask_once(MetadataRequest([]), 12, broker_id).brokers)


def unregister(subject: Subject) -> tuple[int, str | None]:
    response = subject.ask_once(UnregisterBrokerRequest(BROKER), 0)
    return response.error_code, response.error_message


def create_on_the_broker(subject: Subject, name: str) -> tuple[int, str | None]:
    request = CreateTopicsRequest([CreatableTopic(name, -1, -1, [CreatableReplicaAssignment(0, [BROKER])])], 5_000)
    [topic] = subject.ask_once(request, 7).topics
    return topic.error_code, topic.error_message


def write(subject: Subject, topic: Topic, index: int, broker_id: int) -> int:
    return int(produced(subject.ask_once(produce(topic.name, batch(b"v"), index, -1), 9, broker_id)).error_code)


def story(subject: Subject) -> Iterator[tuple[str, Any]]:
    """Unregister broker 2 and restart it. Yields what brokers return, each value with a name."""
    topic = new_topic(subject, assignment={0: [2, 0], 1: [1, 2], 2: [0, 1]})
    alone = new_topic(subject, assignment={0: [2]})
    topic.fill(batch(b"v"))
    alone.fill(batch(b"v"))
    yield "before", [states(topic), states(alone)]
    yield "unregister", unregister(subject)
    wait_until(subject, lambda: topic.partition().leader_id == 0, "broker 0 leads")
    wait_until(subject, lambda: topic.partition(1).isr_nodes == [1], "broker 1 is the only in-sync replica")
    subject.pass_ms(HEARTBEATS_MS)
    for broker_id in range(3):
        yield f"states of partitions, broker {broker_id}", [states(t, broker_id) for t in (topic, alone)]
        yield f"known brokers, broker {broker_id}", brokers(subject, broker_id)
    for version in (0, 1):
        described = subject.ask_once(DescribeClusterRequest(), version).brokers
        yield f"DescribeCluster {version}", sorted(broker.broker_id for broker in described)
    yield "write to leader 0", write(subject, topic, 0, 0)
    yield "write to leader 1", write(subject, topic, 1, 1)
    yield "write to the broker", [write(subject, t, 0, BROKER) for t in (topic, alone)]
    yield "read from the broker", [read(t, 0, broker_id=BROKER).error_code for t in (topic, alone)]
    yield "create a topic", create_on_the_broker(subject, f"{topic.name}-new")
    yield "unregister again", unregister(subject)
    if isinstance(subject, RealKafka):
        subject.kill_broker(BROKER)  # its controlled shutdown would wait for minutes, because its heartbeats fail
    else:
        subject.stop_broker(BROKER)
    subject.start_broker(BROKER)
    wait_until(subject, lambda: states(topic)[0][4] == [0, 2] and states(topic)[1][4] == [1, 2], "it caught up")
    wait_until(subject, lambda: alone.partition().leader_id == BROKER, "the broker leads again")
    yield "after the restart", [states(topic), states(alone)]
    yield "known brokers after the restart", [brokers(subject, broker_id) for broker_id in range(3)]


@pytest.mark.java
@pytest.mark.timeout(180)
@pytest.mark.rule("AD-26")
@pytest.mark.parametrize(
    ("real", "ours"), [(RealKafka, lambda: Virtual("default", "kafka")), (NewerKafka, lambda: VirtualNewer("default"))]
)
def test_emulated_and_real_kafka_both_fence_an_unregistered_broker_until_its_restart(real: Any, ours: Any) -> None:
    assert dict(story(ours())) == as_on_kafka(real("default"), story)
