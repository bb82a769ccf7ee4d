"""Tests of partition placement while a broker is stopped: the broker may get replicas of new partitions, but leads none of them."""

from __future__ import annotations

from functools import partial

from kafkaproto.conformance.scene import Topic, brokers_known, created, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from kafkaproto.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest

MANY = 24
"""The number of partitions of the test topic, large enough that each of the two live brokers leads some.

Kafka's choice of leaders is partly random: with only four partitions, one broker would lead all four in 1 of 18 runs.
"""


def requested(subject: Subject, topic: CreatableTopic) -> int:
    [created_topic] = subject.ask_once(CreateTopicsRequest([topic], 10_000), 5).topics
    return int(created_topic.error_code)


def stop(subject: Subject, broker_id: int) -> None:
    subject.stop_broker(broker_id)
    wait_until(
        subject, lambda: broker_id not in brokers_known(subject, 0), f"broker 0 knows that broker {broker_id} is down"
    )


def has_partitions(topic: Topic, count: int) -> bool:
    return len(topic.metadata().partitions) == count


def test_stopped_broker_is_assigned_replicas_if_too_few_brokers_are_running(subject: Subject) -> None:
    name, existing_topic = subject.new_name(), new_topic(subject, replication=3)
    stop(subject, 2)
    assert requested(subject, CreatableTopic(name, MANY, 3)) == 0
    assert requested(subject, CreatableTopic(subject.new_name(), 1, 4)) == 38
    assert created(subject, CreatePartitionsTopic(existing_topic.name, 4, None)) == [(existing_topic.name, 0)]
    for topic, count in ((Topic(subject, name), MANY), (existing_topic, 4)):
        wait_until(subject, partial(has_partitions, topic, count), f"topic {topic.name} has {count} partitions")
        for partition in topic.metadata().partitions:
            assert sorted(partition.replica_nodes) == [0, 1, 2]
            assert sorted(partition.isr_nodes) == [0, 1]
            assert partition.leader_id in (0, 1)
    assert {p.leader_id for p in Topic(subject, name).metadata().partitions} == {0, 1}


def test_stopped_broker_does_not_become_leader_of_new_partitions(subject: Subject) -> None:
    name = subject.new_name()
    stop(subject, 2)
    assert requested(subject, CreatableTopic(name, MANY, 1)) == 0
    topic = Topic(subject, name)
    wait_until(subject, lambda: len(topic.metadata().partitions) == MANY, f"topic {name} has {MANY} partitions")
    assert {p.replica_nodes[0] for p in topic.metadata().partitions} == {0, 1}


def test_replica_assignment_that_has_only_stopped_brokers_is_rejected(subject: Subject) -> None:
    topic = new_topic(subject)
    pair = new_topic(subject, replication=2)
    stop(subject, 2)
    alone = [CreatableReplicaAssignment(0, [2])]
    assert requested(subject, CreatableTopic(subject.new_name(), -1, -1, alone)) == 39
    assert created(subject, CreatePartitionsTopic(topic.name, 2, [CreatePartitionsAssignment([2])])) == [
        (topic.name, 39)
    ]
    arguments = [CreatePartitionsAssignment([2, 1])]
    assert created(subject, CreatePartitionsTopic(pair.name, 2, arguments)) == [(pair.name, 0)]
    wait_until(subject, lambda: len(pair.metadata().partitions) == 2, f"topic {pair.name} has two partitions")
    result = pair.partition(1)
    assert (result.leader_id, result.replica_nodes, result.isr_nodes) == (1, [2, 1], [1])
