"""The test API of groups while their newest changes are not replicated, with the group coordinator of Kafka 4."""

from __future__ import annotations

from kafkaproto.conformance.consumer_groups import TIMEOUT_MS, ConsumerGroup
from kafkaproto.conformance.groups import Group, commit
from kafkaproto.conformance.scene import wait_until
from kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.testing import cluster
from tests.support.broker.subject import subject_of


def test_method_groups_lists_a_new_group_before_its_first_offsets_are_replicated() -> None:
    settings = {"offsets.topic.replication.factor": 2, "offsets.topic.num.partitions": 1}
    with cluster(2, release="4.2", topics={"orders": 1}, config=settings) as c:
        subject = subject_of(c)
        old, new = Group(subject), Group(subject)
        assert commit(old, {"orders": {0: (5, "")}}) == {("orders", 0): 0}
        coordinator = c.group(old.id).coordinator
        follower = c.follower("__consumer_offsets", 0, 1 - (coordinator or 0))
        follower.hold()
        clients = []
        for group in (old, new):
            partition = OffsetCommitRequestPartition(0, 6)
            request = OffsetCommitRequest(group.id, topics=[OffsetCommitRequestTopic("orders", partitions=[partition])])
            clients.append(group.client())
            subject.send(clients[-1].connection, request, 8)
            assert clients[-1].is_parked()
        assert c.committed(old.id) == c.group(old.id).committed == {("orders", 0): 5}
        assert c.lag(old.id) == {("orders", 0): 0}
        assert c.committed(new.id) == {}
        assert {old.id, new.id} == c.groups().keys() and c.groups()[new.id].state == "Empty"
        follower.release()
        for client in clients:
            assert subject.answer(client.connection).message.topics[0].partitions[0].error_code == 0
        assert c.committed(old.id) == c.committed(new.id) == {("orders", 0): 6}


def test_topics_of_a_group_member_include_topics_that_match_the_subscribed_regex() -> None:
    with cluster(release="4.2", topics={"orders": 1, "other": 1, "payments": 1}) as c:
        group = ConsumerGroup(subject_of(c))
        request = ConsumerGroupHeartbeatRequest(
            group.id,
            "A",
            0,
            rebalance_timeout_ms=TIMEOUT_MS,
            subscribed_topic_names=["payments"],
            subscribed_topic_regex="o.*",
            topic_partitions=[],
        )
        assert group.ask(request, 1).error_code == 0
        expected = ("orders", "other", "payments")
        wait_until(group.subject, lambda: c.group(group.id).members[0].topics == expected, "the expression is resolved")
