"""Where new partitions go while a broker is down: it is registered, so it may get replicas, but it leads nothing."""

from __future__ import annotations

from functools import partial

from kafkaproto.conformance.scene import Topic, brokers_known, created, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from kafkaproto.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest

MANY = 24
"""Partitions, so that two brokers lead some each: Kafka shuffles racks after as many as there are living brokers, and with four of them one
time in 18 the same broker leads all."""


def asked(subject: Subject, topic: CreatableTopic) -> int:
    [made] = subject.ask_once(CreateTopicsRequest([topic], 10_000), 5).topics
    return int(made.error_code)


def stop(subject: Subject, broker_id: int) -> None:
    subject.stop_broker(broker_id)
    wait_until(subject, lambda: broker_id not in brokers_known(subject, 0), "it is known to be down")


def has_partitions(topic: Topic, count: int) -> bool:
    return len(topic.metadata().partitions) == count


def test_a_broker_that_is_down_gets_replicas_where_the_others_are_too_few(subject: Subject) -> None:
    name, old = subject.new_name(), new_topic(subject, replication=3)
    stop(subject, 2)
    assert asked(subject, CreatableTopic(name, MANY, 3)) == 0
    assert asked(subject, CreatableTopic(subject.new_name(), 1, 4)) == 38
    assert created(subject, CreatePartitionsTopic(old.name, 4, None)) == [(old.name, 0)]
    for topic, count in ((Topic(subject, name), MANY), (old, 4)):
        wait_until(subject, partial(has_partitions, topic, count), "all of them")
        for partition in topic.metadata().partitions:
            assert sorted(partition.replica_nodes) == [0, 1, 2]
            assert sorted(partition.isr_nodes) == [0, 1]
            assert partition.leader_id in (0, 1)
    assert {p.leader_id for p in Topic(subject, name).metadata().partitions} == {0, 1}


def test_a_broker_that_is_down_leads_nothing_new(subject: Subject) -> None:
    name = subject.new_name()
    stop(subject, 2)
    assert asked(subject, CreatableTopic(name, MANY, 1)) == 0
    topic = Topic(subject, name)
    wait_until(subject, lambda: len(topic.metadata().partitions) == MANY, "all of them")
    assert {p.replica_nodes[0] for p in topic.metadata().partitions} == {0, 1}


def test_replicas_that_are_all_down_are_refused(subject: Subject) -> None:
    topic = new_topic(subject)
    pair = new_topic(subject, replication=2)
    stop(subject, 2)
    alone = [CreatableReplicaAssignment(0, [2])]
    assert asked(subject, CreatableTopic(subject.new_name(), -1, -1, alone)) == 39
    assert created(subject, CreatePartitionsTopic(topic.name, 2, [CreatePartitionsAssignment([2])])) == [
        (topic.name, 39)
    ]
    given = [CreatePartitionsAssignment([2, 1])]
    assert created(subject, CreatePartitionsTopic(pair.name, 2, given)) == [(pair.name, 0)]
    wait_until(subject, lambda: len(pair.metadata().partitions) == 2, "another")
    found = pair.partition(1)
    assert (found.leader_id, found.replica_nodes, found.isr_nodes) == (1, [2, 1], [1])
