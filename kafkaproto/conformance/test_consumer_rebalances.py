"""Tests of rebalances of the new protocol (KIP-848): members revoke partitions before others are assigned them."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.consumer_groups import ALL, TIMEOUT_MS, ConsumerGroup, refusal
from kafkaproto.conformance.scene import created, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_consumer_groups import UNKNOWN_MEMBER, fenced, unknown
from kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequestTopicPartitions
from kafkaproto.messages.create_partitions import CreatePartitionsTopic

PROFILE = "consumer"
pytestmark = pytest.mark.needs(offsets_topic=True)

REVOKE_WITHIN_MS = 1500
AWAY_EPOCH = -2
"""The member epoch with which a static member leaves its group for a while."""


def split(group: ConsumerGroup, **fields: Any) -> tuple[list[int], list[int]]:
    """Let members A and B join a group, A first. Returns (partitions that A keeps, partitions that A must revoke for B).

    fields: further fields of A's first heartbeat.
    """
    assert group.enter("A", **fields) == (1, ALL)
    assert group.enter("B") == (2, [])
    assert group.epochs == ("Reconciling", 2, 2)
    target = group.targets()
    kept, moved = (target[member_id][group.topic.name] for member_id in "AB")
    assert (len(kept), sorted(kept + moved)) == (3, ALL)
    assert group.beat("A", 1) == (1, kept)
    return kept, moved


@pytest.mark.rule("GN-12", "GN-21", "GN-22", "GN-23", "GN-24", "GN-25", "GN-26", "GN-42", "GN-43", "SN-30")
def test_partitions_are_revoked_from_one_member_before_another_member_gets_them(subject: Subject) -> None:
    """Three members join one after another, and none gets a partition before its previous owner has revoked it (scenario SN-30)."""
    group = ConsumerGroup(subject)
    kept, moved = split(group)
    assert group.beat("A", 1, ALL) == (1, None)
    assert group.beat("B", 2, []) == (2, None)
    assert group.enter("C") == (3, [])
    assert group.epochs == ("Reconciling", 3, 3)
    target = {member_id: topics[group.topic.name] for member_id, topics in group.targets().items()}
    assert {member_id: len(indexes) for member_id, indexes in target.items()} == {"A": 2, "B": 2, "C": 2}
    assert set(target["A"]) < set(kept) and set(target["B"]) < set(moved)
    [unrevoked] = set(kept) - set(target["A"])
    [free] = set(moved) - set(target["B"])
    assert target["C"] == sorted([unrevoked, free])

    reached = 1 if group.is_release_4_2 else 2
    assert group.beat("A", 1, kept) == (reached, target["A"])
    assert group.beat("B", 2, []) == (3, target["B"])
    assert group.beat("C", 3, []) == (3, [free])
    assert group.beat("A", 1, target["A"][:1]) == (3, None)
    assert refusal(group.heartbeat("A", 1, moved)) == fenced(1, 3)
    assert group.beat("C", 3, [free]) == (3, target["C"])
    assert group.epochs == ("Stable", 3, 3)


@pytest.mark.rule("GN-22", "GN-26")
def test_heartbeat_that_lists_a_topic_twice_owns_the_partitions_of_both_entries(subject: Subject) -> None:
    """A heartbeat has two entries of one topic in `topic_partitions`. The member owns the partitions of both, in either order of the entries."""
    group = ConsumerGroup(subject)
    kept, moved = split(group)
    for entries in ([ALL, []], [[], ALL], [moved, kept], [kept, moved]):
        places = [ConsumerGroupHeartbeatRequestTopicPartitions(group.topic.topic_id, indexes) for indexes in entries]
        assert group.result(group.heartbeat("A", 1, topic_partitions=places)) == (1, None), entries
        assert group.beat("B", 2, []) == (2, None), entries
    assert group.beat("A", 1, kept) == (2, None)
    assert group.beat("B", 2, []) == (2, moved)


@pytest.mark.rule("GN-12", "SN-30")
def test_heartbeat_with_the_previous_epoch_is_fenced_if_it_claims_moved_partitions(subject: Subject) -> None:
    """A heartbeat with the previous epoch is accepted only if all partitions that it reports as owned are in the assignment (SN-30, steps 10, 11)."""
    group = ConsumerGroup(subject)
    kept, moved = split(group)
    assert group.beat("A", 1, kept) == (2, None)
    assert refusal(group.heartbeat("A", 1, moved[:1])) == fenced(1, 2)
    assert refusal(group.heartbeat("A", 1)) == fenced(1, 2)
    assert group.beat("A", 1, kept[:1]) == (2, None)
    assert group.beat("A", 2, kept) == (2, None)


@pytest.mark.rule("GN-27", "SN-31")
def test_response_to_a_heartbeat_with_all_fields_repeats_an_unchanged_assignment(subject: Subject) -> None:
    """A heartbeat with all fields gets the member's unchanged assignment. A heartbeat without optional fields gets no assignment (SN-31)."""
    group = ConsumerGroup(subject)
    kept, moved = split(group)
    assert group.beat("A", 1, kept) == (2, None)
    assert group.beat("B", 2, []) == (2, moved)
    full = group.heartbeat("B", 2, [], [group.topic.name], TIMEOUT_MS)
    assert group.result(full) == (2, moved)
    assert group.beat("B", 2) == (2, None)


@pytest.mark.rule("GN-16", "GN-18", "GN-46", "SN-33")
def test_member_that_changes_its_subscribed_topics_starts_a_new_group_epoch(subject: Subject) -> None:
    """Members A and B share a topic. B then subscribes to a second topic in addition, which starts a new epoch (scenario SN-33).

    In this epoch, B gets all partitions of the second topic, and A all partitions of the first.
    """
    group = ConsumerGroup(subject)
    other = group.add_topic()
    kept, moved = split(group)
    assert group.beat("A", 1, kept) == (2, None)
    assert group.beat("B", 2, []) == (2, moved)
    changed = group.heartbeat("B", 2, moved, [group.topic.name, other.name])
    assert group.result(changed) == (2, [])
    assert group.epochs == ("Reconciling", 3, 3)
    assert group.targets() == {"A": {group.topic.name: ALL}, "B": {other.name: ALL}}
    assert group.beat("B", 2, []) == (3, {other.name: ALL})
    assert group.beat("A", 2, kept) == (3, ALL)
    assert group.epochs == ("Stable", 3, 3)


@pytest.mark.rule("GN-16", "GN-22")
def test_partitions_of_a_topic_that_a_member_unsubscribes_from_are_revoked(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    other = group.add_topic()
    both = {group.topic.name: ALL, other.name: ALL}
    assert group.enter("A", group.topic.name, other.name) == (1, both)
    changed = group.heartbeat("A", 1, both, [other.name])
    assert group.result(changed) == (1, {other.name: ALL})
    assert group.epochs == ("Reconciling", 2, 2)
    assert group.beat("A", 1, {other.name: ALL}) == (2, None)
    assert group.epochs == ("Stable", 2, 2)


@pytest.mark.rule("GN-16", "GN-22")
def test_heartbeat_that_unsubscribes_from_a_topic_gets_a_new_assignment_from_4_2_on(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    names = [group.topic.name, group.add_topic().name, group.add_topic().name]
    owned = dict.fromkeys(names, ALL)
    assert group.enter("A", *names) == (1, owned)
    assert group.enter("B", *names) == (2, [])
    _, kept = group.beat("A", 1)
    assert len(kept) == 2 and sum(map(len, kept.values())) == 9
    [dropped, *_] = sorted(kept, key=lambda name: name == group.topic.name)
    response = group.heartbeat("A", 1, owned, [name for name in names if name != dropped])
    if group.is_release_4_2:
        epoch, assignment = group.result(response)
        [(name, indexes)] = (item for item in kept.items() if item[0] != dropped)
        assert (epoch, assignment) == (1, indexes if name == group.topic.name else {name: indexes})
    else:
        assert group.result(response) == (1, None)
    assert group.epochs == ("Reconciling", 3, 3)


@pytest.mark.rule("GN-22", "GN-23")
def test_heartbeat_that_confirms_a_revocation_gets_a_new_assignment_from_4_2_on(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    kept, _ = split(group)
    assert group.beat("B", -1) == (-1, None)
    if group.is_release_4_2:
        assert group.beat("A", 1, kept) == (3, ALL)
    else:
        assert group.beat("A", 1, kept) == (3, None)
        assert group.epochs == ("Reconciling", 3, 3)
        assert group.beat("A", 3, kept) == (3, ALL)
    assert group.epochs == ("Stable", 3, 3)


@pytest.mark.rule("GN-36", "GN-40", "GN-41", "SN-39")
def test_range_assignor_assigns_consecutive_partitions_of_each_topic(subject: Subject) -> None:
    """Two members get three consecutive partitions each of their common topic. One of them also gets a whole second topic (scenario SN-39)."""
    group = ConsumerGroup(subject)
    other = group.add_topic()
    first, second = group.topic.name, other.name
    assert group.enter("A", server_assignor="range") == (1, ALL)
    assert group.enter("B", first, second, server_assignor="range") == (2, {second: ALL})
    assert group.targets() == {"A": {first: [0, 1, 2]}, "B": {first: [3, 4, 5], second: ALL}}
    assert group.described().assignor_name == "range"


@pytest.mark.rule("GN-36")
@pytest.mark.parametrize("first", ["uniform", "range"])
def test_last_joined_member_decides_the_assignor_if_members_name_different_assignors(
    subject: Subject, first: str
) -> None:
    """B joins with assignor `first`, then A with the other of the two assignors, `range` and `uniform`. A's assignor computes the assignment.

    `range` gives A the first three partitions, `uniform` the last three. ConsumerGroupDescribe does not show which assignor was used: it always names
    `uniform`.
    """
    group = ConsumerGroup(subject)
    assert group.enter("B", server_assignor=first) == (1, ALL)
    second = "range" if first == "uniform" else "uniform"
    assert group.enter("A", server_assignor=second) == (2, [])
    of_a = ALL[:3] if second == "range" else ALL[3:]
    topic = group.topic.name
    assert group.targets() == {"A": {topic: of_a}, "B": {topic: sorted({*ALL} - {*of_a})}}
    assert group.described().assignor_name == "uniform"


@pytest.mark.rule("GN-14", "GN-29", "SN-40")
def test_member_that_does_not_revoke_in_time_is_fenced_despite_heartbeats(subject: Subject) -> None:
    """A member that does not revoke partitions within the rebalance timeout is fenced, and the other member gets all partitions.

    This is scenario SN-40 of the project's rule pages, with a shorter timeout.
    """
    group = ConsumerGroup(subject)
    split(group, timeout_ms=REVOKE_WITHIN_MS)
    start = subject.now_ms()
    while (passed := subject.now_ms() - start) < REVOKE_WITHIN_MS - 300:
        assert group.beat("A", 1, ALL) == (1, None), passed
        subject.pass_ms(100)
    wait_until(
        subject, lambda: len(group.described().members) == 1, f"member A is fenced and removed from group {group.id}"
    )
    assert subject.now_ms() - start >= REVOKE_WITHIN_MS - 100
    assert group.epochs == ("Assigning", 3, 2)
    assert refusal(group.heartbeat("A", 1)) == unknown("A", group)
    assert group.beat("B", 2, []) == (3, ALL)
    assert group.epochs == ("Stable", 3, 3)


@pytest.mark.rule("GN-29", "GN-35")
def test_absent_static_member_is_not_removed_at_the_end_of_its_rebalance_timeout(subject: Subject) -> None:
    """Static member A leaves with epoch -2 before it has revoked the partitions for member B. A keeps its other partitions for its next instance."""
    group = ConsumerGroup(subject)
    kept, moved = split(group, instance_id="i1", timeout_ms=REVOKE_WITHIN_MS)
    assert group.result(group.heartbeat("A", AWAY_EPOCH, instance_id="i1")) == (AWAY_EPOCH, None)
    subject.pass_ms(REVOKE_WITHIN_MS + 1_000)
    assert {member.member_id: member.member_epoch for member in group.described().members} == {"A": AWAY_EPOCH, "B": 2}
    assert group.beat("B", 2, []) == (2, moved)
    assert group.enter("C", instance_id="i1") == (2, kept)
    assert group.epochs == ("Stable", 2, 2)


@pytest.mark.rule("GN-16", "GN-17", "SN-41")
def test_new_partitions_of_a_topic_are_assigned_with_the_next_heartbeat(subject: Subject) -> None:
    """The topic of the only member gets two more partitions, and the member's next heartbeat returns them (scenario SN-41)."""
    group = ConsumerGroup(subject)
    assert group.enter("A") == (1, ALL)
    assert created(subject, CreatePartitionsTopic(group.topic.name, 8, None)) == [(group.topic.name, 0)]
    # A broker's coordinator may learn of new partitions after its Metadata responses have them.
    results: list[tuple[int, Any]] = []

    def is_assigned() -> bool:
        results.append(group.beat("A", 1, ALL))
        return bool(results[-1][1])

    wait_until(subject, is_assigned, f"member A is assigned the new partitions of topic {group.topic.name}")
    assert results[-1] == (2, list(range(8)))
    assert group.epochs == ("Stable", 2, 2)


@pytest.mark.rule("GN-17", "GN-39")
def test_subscription_to_a_missing_topic_succeeds_and_can_change_to_another_topic(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    later = group.add_topic(2)
    assert group.enter("A", subject.new_name()) == (1, [])
    assert group.epochs == ("Stable", 1, 1)
    changed = group.heartbeat("A", 1, [], [later.name])
    assert group.result(changed) == (2, {later.name: [0, 1]})
    assert refusal(group.heartbeat("B", 1))[0] == UNKNOWN_MEMBER


@pytest.mark.rule("GN-17", "GN-39")
def test_subscribed_topic_that_does_not_exist_is_assigned_after_its_creation(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    name = subject.new_name()
    assert group.enter("A", name) == (1, [])
    topic = group.add_topic(2, name)
    responses: list[Any] = []

    def is_assigned() -> bool:
        responses.append(group.heartbeat("A", 1))
        return responses[-1].assignment is not None

    wait_until(subject, is_assigned, f"member A is assigned the partitions of topic {name}")
    assert group.result(responses[-1]) == (2, {topic.name: [0, 1]})
    assert group.epochs == ("Stable", 2, 2)
