"""Tests with a lasting effect on the offsets topic: they create the topic, or add partitions to it.

The test that creates the topic begins with too few brokers for the replicas of the topic.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.groups import OFFSETS_TOPIC, Group, commit
from kafkaproto.conformance.scene import Topic, brokers_known, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import TRANSACTION_TOPIC, Producer
from kafkaproto.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkaproto.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.unregister_broker import UnregisterBrokerRequest
from kafkaproto.partitioner import java_hash

PROFILE = "replicated-offsets"
pytestmark = pytest.mark.needs("offsets.topic.replication.factor", brokers=3)
UNKNOWN_TOPIC, NOT_AVAILABLE, INVALID_REPLICATION_FACTOR = 3, 15, 38


def stop(subject: Subject, broker_id: int) -> None:
    subject.stop_broker(broker_id)
    wait_until(
        subject, lambda: broker_id not in brokers_known(subject, 0), f"broker 0 knows that broker {broker_id} is down"
    )


@pytest.mark.rule("GO-2", "AD-26")
def test_groups_have_no_coordinator_while_too_few_brokers_are_registered(subject: Subject) -> None:
    """The offsets topic needs three registered brokers for its replicas. A stopped broker counts, until it is unregistered with UnregisterBroker."""
    topic = Topic(subject, OFFSETS_TOPIC)
    if topic.metadata().error_code == 0:
        pytest.skip("not prepared: needs a cluster without the offsets topic")
    stop(subject, 2)
    assert subject.ask_once(UnregisterBrokerRequest(2), 0).error_code == 0

    def coordinator() -> Any:
        request = FindCoordinatorRequest(key=subject.new_name("g"))
        return subject.ask_once(request, subject.version(ApiKey.FIND_COORDINATOR, 3))

    for _ in range(3):
        response = coordinator()
        assert (response.error_code, response.node_id, response.host, response.port) == (NOT_AVAILABLE, -1, "", -1)
        subject.pass_ms(200)
    assert topic.metadata().error_code == UNKNOWN_TOPIC
    other = CreateTopicsRequest([CreatableTopic(subject.new_name(), 1, 3)], 10_000)
    assert subject.ask_once(other, 5).topics[0].error_code == INVALID_REPLICATION_FACTOR
    subject.start_broker(2)
    wait_until(
        subject, lambda: brokers_known(subject, 0) == {0, 1, 2}, "broker 0 knows that all three brokers are running"
    )
    stop(subject, 2)
    Group(subject)  # waits for its coordinator
    for partition in topic.metadata().partitions:
        assert (sorted(partition.replica_nodes), sorted(partition.isr_nodes)) == ([0, 1, 2], [0, 1])


def restart(subject: Subject, broker_id: int, observer: int) -> None:
    """Stop and start the broker `broker_id`. observer: the id of another broker, whose Metadata responses show when `broker_id` is down and back."""
    subject.stop_broker(broker_id)
    wait_until(
        subject,
        lambda: broker_id not in brokers_known(subject, observer),
        f"broker {observer} knows that broker {broker_id} is down",
    )
    subject.start_broker(broker_id)
    wait_until(
        subject,
        lambda: broker_id in brokers_known(subject, observer),
        f"broker {observer} knows that broker {broker_id} is running",
    )


def coordinator_at(subject: Subject, group: Group, broker_id: int) -> int:
    """Send FindCoordinator for a group to one broker, and return the id of the coordinator in the response."""
    request = FindCoordinatorRequest(key=group.id)
    response = subject.ask_once(request, subject.version(ApiKey.FIND_COORDINATOR, 3), broker_id)
    assert response.error_code == 0, response
    return int(response.node_id)


@pytest.mark.rule("M-8", "GO-3", "TX-1")
def test_running_brokers_ignore_partitions_added_to_internal_topics_until_a_restart(subject: Subject) -> None:
    """After partitions are added to the internal topics, committed offsets and transactional ids stay known until a broker restarts.

    Running brokers keep the old number of partitions. A broker that is restarted afterwards uses the new number.

    No other test with the same broker settings may run after this test, because the topics keep the new partitions. The test starts with a restart:
    on a cluster whose brokers the suite cannot stop, it is skipped at this point, before it has added partitions.
    """
    restart(subject, 2, 0)
    topic, groups = new_topic(subject).name, [Group(subject) for _ in range(6)]
    producers = [Producer(subject) for _ in range(6)]
    first = [producer.init() for producer in producers]
    offsets = groups[0].offsets
    before = len(offsets.metadata().partitions)
    after = before + 5
    for group in groups:
        assert commit(group, {topic: {0: (7, "")}}) == {(topic, 0): 0}
    grown = [CreatePartitionsTopic(name, after, None) for name in (OFFSETS_TOPIC, TRANSACTION_TOPIC)]
    results = subject.ask_once(CreatePartitionsRequest(grown, 10_000, False), 1).results
    assert [result.error_code for result in results] == [0, 0]
    subject.pass_ms(2_000)
    assert [group.committed({topic: [0]})[topic, 0] for group in groups] == [7] * 6
    assert [producer.init() for producer in producers] == [(producer_id, epoch + 1) for producer_id, epoch in first]
    restart(subject, 0, 1)
    for broker_id, count in ((0, after), (1, before)):
        leaders = [offsets.leader(java_hash(group.id) % count) for group in groups]
        assert [coordinator_at(subject, group, broker_id) for group in groups] == leaders
