"""A test that groups get no coordinator while there are fewer brokers than the three replicas that the offsets topic needs."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.groups import OFFSETS_TOPIC, Group
from kafkaproto.conformance.scene import Topic, brokers_known, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.unregister_broker import UnregisterBrokerRequest

PROFILE = "replicated-offsets"
pytestmark = pytest.mark.needs("offsets.topic.replication.factor", brokers=3)
UNKNOWN_TOPIC, NOT_AVAILABLE, INVALID_REPLICATION_FACTOR = 3, 15, 38


def stop(subject: Subject, broker_id: int) -> None:
    subject.stop_broker(broker_id)
    wait_until(subject, lambda: broker_id not in brokers_known(subject, 0), f"broker {broker_id} is known to be down")


@pytest.mark.rule("GO-2", "AD-26")
def test_groups_have_no_coordinator_while_too_few_brokers_are_registered(subject: Subject) -> None:
    """A stopped broker is still registered and gets replicas of the offsets topic. An unregistered broker gets none, so two brokers are too few."""
    topic = Topic(subject, OFFSETS_TOPIC)
    if topic.metadata().error_code == 0:
        pytest.skip("not prepared: needs a cluster without the offsets topic")
    stop(subject, 2)
    assert subject.ask_once(UnregisterBrokerRequest(2), 0).error_code == 0

    def coordinator() -> Any:
        request = FindCoordinatorRequest(key=subject.new_name("g"))
        return subject.ask_once(request, subject.version(ApiKey.FIND_COORDINATOR, 3))

    for _ in range(3):
        refused = coordinator()
        assert (refused.error_code, refused.node_id, refused.host, refused.port) == (NOT_AVAILABLE, -1, "", -1)
        subject.pass_ms(200)
    assert topic.metadata().error_code == UNKNOWN_TOPIC
    other = CreateTopicsRequest([CreatableTopic(subject.new_name(), 1, 3)], 10_000)
    assert subject.ask_once(other, 5).topics[0].error_code == INVALID_REPLICATION_FACTOR
    subject.start_broker(2)
    wait_until(subject, lambda: brokers_known(subject, 0) == {0, 1, 2}, "broker 2 is back")
    stop(subject, 2)
    Group(subject)  # waits for its coordinator
    for partition in topic.metadata().partitions:
        assert (sorted(partition.replica_nodes), sorted(partition.isr_nodes)) == ([0, 1, 2], [0, 1])
