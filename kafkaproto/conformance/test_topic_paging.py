"""Tests of DescribeTopicPartitions: pages of partitions, and the cursor for the next page."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kafkaproto.conformance.scene import Topic, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)

ALL_OPERATIONS, NO_OPERATIONS = 0b1101_1111_1000, -(2**31)
Page = tuple[list[tuple[int, str, list[int]]], tuple[str, int] | None]
"""One page of a DescribeTopicPartitions response: [(error code, topic name, partitions)], and the cursor (topic, partition) or None."""


def describe(subject: Subject, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    first = None if cursor is None else DescribeTopicPartitionsRequestCursor(*cursor)
    request = DescribeTopicPartitionsRequest([TopicRequest(name) for name in names], limit, first)
    return subject.ask_once(request, 0)


def page(subject: Subject, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Page:
    response = describe(subject, *names, limit=limit, cursor=cursor)
    topics = [(t.error_code, t.name, [p.partition_index for p in t.partitions]) for t in response.topics]
    following = response.next_cursor
    return topics, None if following is None else (following.topic_name, following.partition_index)


def two_topics(subject: Subject) -> tuple[str, str]:
    """Create two topics, the first with six partitions and the second with one.

    Returns their names, which are in alphabetical order.
    """
    first = new_topic(subject, 6, name=subject.new_name("pa"))
    second = new_topic(subject, name=subject.new_name("pb"))
    return first.name, second.name


@pytest.mark.needs(racks=True)
@pytest.mark.rule("AD-7", "AD-8")
def test_describe_topic_partitions_returns_replica_lists_and_empty_elr_lists(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [0, 1], 1: [2, 0]})
    topic_id = topic.topic_id
    [description] = describe(subject, topic.name).topics
    assert (description.error_code, description.topic_id, description.is_internal) == (0, topic_id, False)
    assert description.topic_authorized_operations == ALL_OPERATIONS
    partitions = description.partitions
    assert [(p.error_code, p.partition_index, p.leader_id, p.leader_epoch) for p in partitions] == [
        (0, 0, 0, 0),
        (0, 1, 2, 0),
    ]
    assert [(p.replica_nodes, sorted(p.isr_nodes)) for p in partitions] == [([0, 1], [0, 1]), ([2, 0], [0, 2])]
    for p in partitions:
        assert (p.eligible_leader_replicas, p.last_known_elr, p.offline_replicas) == ([], [], [])


@pytest.mark.rule("AD-1", "AD-2", "AD-3", "AD-4", "SN-65")
def test_describe_topic_partitions_stops_at_the_partition_limit_with_a_cursor(subject: Subject) -> None:
    pa, pb = two_topics(subject)
    assert page(subject, pb, pa, pa) == ([(0, pa, [0, 1, 2, 3, 4, 5]), (0, pb, [0])], None)
    assert page(subject, pb, pa, limit=2) == ([(0, pa, [0, 1])], (pa, 2))
    assert page(subject, pa, pb, limit=2, cursor=(pa, 5)) == ([(0, pa, [5]), (0, pb, [0])], None)
    assert page(subject, pa, pb, limit=6) == ([(0, pa, [0, 1, 2, 3, 4, 5])], (pb, 0))
    assert page(subject, pa, pb, limit=7) == ([(0, pa, [0, 1, 2, 3, 4, 5]), (0, pb, [0])], None)
    for limit in (0, -5):
        assert page(subject, pa, limit=limit) == ([(0, pa, [0])], (pa, 1))
    for index in (6, 99):
        assert page(subject, pa, pb, cursor=(pa, index)) == ([(0, pa, []), (0, pb, [0])], None)


@pytest.mark.rule("AD-1", "AD-2")
def test_describe_topic_partitions_of_all_topics_starts_at_the_requested_cursor(subject: Subject) -> None:
    pa, _ = two_topics(subject)
    assert page(subject, limit=1, cursor=(pa, 4)) == ([(0, pa, [4])], (pa, 5))
    topics, following = page(subject, limit=1, cursor=(pa[:-1], 4))
    assert topics[0][1] >= pa[:-1] and topics[0][2] == [0] and following is not None
    assert page(subject, cursor=("zzz", 0)) == ([], None)
    assert page(subject, cursor=(pa, -1)) == ([], None)


@pytest.mark.rule("AD-5", "AD-8", "SN-65")
def test_topics_with_errors_do_not_count_towards_the_limit_of_described_partitions(subject: Subject) -> None:
    pa, pb = two_topics(subject)
    assert page(subject, "no-topic", pa, limit=1) == ([(3, "no-topic", []), (0, pa, [0])], (pa, 1))
    assert page(subject, "bad name", pb, ".") == ([(17, ".", []), (17, "bad name", []), (0, pb, [0])], None)
    assert page(subject, pa, "zz-none", limit=6) == ([(0, pa, [0, 1, 2, 3, 4, 5])], ("zz-none", 0))
    [missing, illegal] = describe(subject, "no-topic", "no topic").topics[::-1]
    for topic in (missing, illegal):
        assert topic.topic_authorized_operations == ALL_OPERATIONS and topic.topic_id == bytes(16)
    assert page(subject, "", pb) == ([(-1, "", []), (-1, pb, [])], None)


@pytest.mark.rule("AD-5")
def test_describe_topic_partitions_skips_an_empty_name_that_sorts_before_the_cursor(subject: Subject) -> None:
    pa, pb = two_topics(subject)
    assert page(subject, "", pb, cursor=("", 0)) == ([(17, "", []), (0, pb, [0])], None)
    assert page(subject, "", pb, cursor=("", 5)) == ([(17, "", []), (0, pb, [0])], None)
    assert page(subject, "", pa, pb, cursor=(pb, 0)) == ([(0, pb, [0])], None)
    assert page(subject, "", pb, cursor=(pa, 0)) == ([(42, "", []), (42, pb, [])], None)


@pytest.mark.rule("AD-6", "SN-65")
def test_describe_topic_partitions_rejects_a_cursor_at_an_unrequested_topic(subject: Subject) -> None:
    pa, pb = two_topics(subject)
    assert page(subject, pb, cursor=(pa, 0)) == ([(42, pb, [])], None)
    assert page(subject, pa, "a b", "none", cursor=(pa, -1)) == (
        [(42, pa, []), (42, "a b", []), (42, "none", [])],
        None,
    )
    [topic_response] = describe(subject, pb, cursor=(pa, 0)).topics
    assert topic_response.topic_authorized_operations == NO_OPERATIONS


def replicas_of(subject: Subject, topic: Topic, broker_id: int) -> tuple[int, list[int], list[int], list[int]]:
    """Send DescribeTopicPartitions to the broker `broker_id`, and return the leader and the replicas of partition 0.

    The result is (id of the leader, in-sync replicas, eligible leader replicas, last known eligible leader replicas). The last three are sorted lists
    of broker ids.
    """
    request = DescribeTopicPartitionsRequest([TopicRequest(topic.name)], 10)
    [partition] = subject.ask_once(request, 0, broker_id).topics[0].partitions
    lists = partition.isr_nodes, partition.eligible_leader_replicas, partition.last_known_elr
    isr, eligible, last_known = (sorted(brokers) for brokers in lists)
    return partition.leader_id, isr, eligible, last_known


def _is(subject: Subject, topic: Topic, broker_id: int, expected: tuple[Any, ...]) -> bool:
    return replicas_of(subject, topic, broker_id) == expected


@pytest.mark.releases("4.2")
@pytest.mark.needs(brokers=3)
@pytest.mark.rule("AD-7")
def test_replica_that_leaves_the_isr_enters_the_elr_if_the_isr_is_then_too_small(subject: Subject) -> None:
    two, three = (new_topic(subject, assignment={0: [0, 1, 2]}, min_insync_replicas=minimum) for minimum in ("2", "3"))

    def become(broker_id: int, of_two: tuple[Any, ...], of_three: tuple[Any, ...]) -> None:
        for topic, expected in ((two, of_two), (three, of_three)):
            text = f"broker {broker_id} reports {topic.name}-0 with (leader, ISR, ELR, last known ELR) {expected}"
            wait_until(subject, partial(_is, subject, topic, broker_id, expected), text)

    subject.stop_broker(2)
    become(0, (0, [0, 1], [], []), (0, [0, 1], [2], []))
    subject.stop_broker(1)
    become(0, (0, [0], [1], []), (0, [0], [1, 2], []))
    subject.start_broker(2)
    become(0, (0, [0, 2], [], []), (0, [0, 2], [1], []))
    subject.stop_broker(0)
    become(2, (2, [2], [0], []), (2, [2], [0, 1], []))
    subject.start_broker(1)
    become(2, (2, [1, 2], [], []), (2, [1, 2], [0], []))
    subject.stop_broker(1)
    become(2, (2, [2], [1], []), (2, [2], [0, 1], []))


@pytest.mark.releases("4.2")
@pytest.mark.needs(brokers=3)
@pytest.mark.rule("AD-7")
def test_replica_in_the_elr_becomes_leader_of_a_partition_without_in_sync_replicas(subject: Subject) -> None:
    two, three = (new_topic(subject, assignment={0: [0, 1, 2]}, min_insync_replicas=minimum) for minimum in ("2", "3"))
    for broker_id in (1, 2):
        subject.stop_broker(broker_id)
    subject.start_broker(2)
    wait_until(subject, lambda: replicas_of(subject, two, 0)[1] == [0, 2], f"broker 2 is in the ISR of {two.name}-0")
    wait_until(
        subject, lambda: replicas_of(subject, three, 0)[1] == [0, 2], f"broker 2 is in the ISR of {three.name}-0"
    )
    for broker_id in (0, 2):
        subject.stop_broker(broker_id)
    subject.start_broker(1)
    wait_until(
        subject, lambda: replicas_of(subject, three, 1) == (1, [1], [0, 2], []), f"broker 1 leads {three.name}-0"
    )
    assert replicas_of(subject, two, 1) == (-1, [], [0, 2], [2])
    assert two.partition(broker_id=1).isr_nodes == []
    subject.start_broker(0)
    wait_until(subject, lambda: replicas_of(subject, two, 1) == (0, [0, 1], [], []), f"broker 0 leads {two.name}-0")


@pytest.mark.needs(brokers=3)
@pytest.mark.rule("AD-7")
def test_described_partition_without_a_leader_has_offline_replicas(subject: Subject) -> None:
    alone, shared = new_topic(subject, assignment={0: [2]}), new_topic(subject, assignment={0: [2, 0]})

    def partition(topic: Topic) -> Any:
        [description] = describe(subject, topic.name).topics
        return description.partitions[0]

    subject.stop_broker(2)
    wait_until(
        subject,
        lambda: partition(alone).leader_id == -1,
        f"{alone.name}-0, whose only replica is on broker 2, has no leader",
    )
    wait_until(
        subject, lambda: partition(shared).leader_id == 0, f"broker 0 leads {shared.name}-0, whose replicas are [2, 0]"
    )
    for topic, replicas in ((alone, [2]), (shared, [2, 0])):
        description = partition(topic)
        assert (description.error_code, description.replica_nodes, description.offline_replicas) == (0, replicas, [2])
        assert description.leader_epoch == 1
    assert partition(shared).isr_nodes == [0]
