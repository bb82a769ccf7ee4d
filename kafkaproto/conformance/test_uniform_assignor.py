"""Tests of the assignor `uniform` of the new protocol (KIP-848): which member gets which partitions. Its rules changed in Kafka 4.0 and 4.1."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.consumer_groups import LEAVE_EPOCH, ConsumerGroup, refusal
from kafkaproto.conformance.subject import Subject
from kafkaproto.error_codes import ErrorCode

PROFILE = "consumer"
pytestmark = pytest.mark.needs(offsets_topic=True)


def joined(group: ConsumerGroup, partitions: int, *member_ids: str) -> dict[str, list[int]]:
    """Let members subscribe to a new topic, one after the other. Return the target assignment of each member.

    partitions: the number of partitions of the topic.
    """
    topic = group.add_topic(partitions)
    for member_id in member_ids:
        group.enter(member_id, topic.name)
    return {member_id: target.get(topic.name, []) for member_id, target in group.targets().items()}


@pytest.mark.rule("GN-43", "GN-45")
@pytest.mark.parametrize(
    ("member_ids", "before_4_1", "since_4_1"),
    [
        (("B", "A"), {"B": [0], "A": [1, 2]}, {"B": [0, 1], "A": [2]}),
        (("A", "B"), {"A": [0, 1], "B": [2]}, {"A": [0, 1], "B": [2]}),
        # The hash table has Q before B.
        (("B", "Q"), {"B": [0], "Q": [1, 2]}, {"B": [0, 1], "Q": [2]}),
    ],
)
def test_member_that_joined_first_gets_two_of_three_partitions_from_kafka_4_1_on(
    subject: Subject, member_ids: tuple[str, str], before_4_1: dict[str, list[int]], since_4_1: dict[str, list[int]]
) -> None:
    """Two members share three partitions, so one of them gets two: before 4.1 the first in Kafka's hash table, later the first to join.

    member_ids: the members in the order in which they join. before_4_1, since_4_1: the expected target assignments before 4.1 and from 4.1 on.
    """
    group = ConsumerGroup(subject)
    assert joined(group, 3, *member_ids) == (before_4_1 if group.stores_topics else since_4_1)


@pytest.mark.rule("GN-42", "GN-45")
def test_partitions_of_a_leaving_member_go_to_remaining_members_in_hash_table_order(subject: Subject) -> None:
    """Member C leaves. Members Q and B each get one of C's two partitions. Q is before B in the hash table, so Q gets the first partition of C."""
    group = ConsumerGroup(subject)
    before = joined(group, 6, "B", "Q", "C")
    assert group.heartbeat("C", LEAVE_EPOCH).error_code == 0
    group.beat("B", 1)
    after = {member_id: next(iter(target.values())) for member_id, target in group.targets().items()}
    first, second = before["C"]
    assert after == {"B": sorted([*before["B"], second]), "Q": sorted([*before["Q"], first])}


@pytest.mark.rule("GN-46")
def test_uniform_assignor_gives_a_new_member_the_highest_partitions_from_4_0_on(subject: Subject) -> None:
    """Member B subscribes to a topic of five partitions and to a topic of one partition. Member A joins and subscribes only to the first topic.

    A gets three of the five partitions: those with the lowest numbers before 4.0, those with the highest numbers from 4.0 on.
    """
    group = ConsumerGroup(subject)
    five, single = group.add_topic(5).name, group.add_topic(1).name
    group.enter("B", five, single)
    group.enter("A", five)
    if group.is_release_4:
        assert group.targets() == {"A": {five: [2, 3, 4]}, "B": {five: [0, 1], single: [0]}}
    else:
        assert group.targets() == {"A": {five: [0, 1, 2]}, "B": {five: [3, 4], single: [0]}}


@pytest.mark.rule("GN-47")
def test_heartbeat_gets_unknown_server_error_if_the_assignor_fails_before_kafka_4_0(subject: Subject) -> None:
    """Member A unsubscribes from one of its two topics. Before 4.0, A's heartbeat gets an error, and changes no epoch and no target assignment.

    The assignor fails because it moves a partition from one member to another, and then would move another partition of the same topic in the
    opposite direction.
    """
    group = ConsumerGroup(subject)
    six, three, two = (group.add_topic(partitions).name for partitions in (6, 3, 2))
    group.enter("B", six, three, two)
    group.enter("C", six, three)
    group.enter("A", three, two)
    before = group.epochs, group.targets()
    changed = group.heartbeat("A", 3, [], [three])
    if group.is_release_4:
        assert changed.error_code == 0
        return
    assert refusal(changed) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert (group.epochs, group.targets()) == before
    assert group.heartbeat("A", 3, [], [three, two]).error_code == 0
