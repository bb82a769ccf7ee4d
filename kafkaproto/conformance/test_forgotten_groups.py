"""Tests of empty consumer groups that Kafka removes from the coordinator's memory because of a rejected JoinGroup (GN-63).

Some requests then no longer find the group and its committed offsets. Other requests, such as ListGroups, find both until the next record in the
group's partition of the offsets topic is replicated. A broker with the setting `semantics=kip`, which makes it follow the KIPs instead of Kafka's
code, keeps the group, because a rejected request must not hide committed offsets.
"""

from __future__ import annotations

import pytest

from kafkaproto.conformance.consumer_groups import ALL, ConsumerGroup, refusal
from kafkaproto.conformance.groups import commit
from kafkaproto.conformance.scene import wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.list_groups import ListGroupsRequest

PROFILE = "consumer"
pytestmark = [pytest.mark.needs(offsets_topic=True), pytest.mark.rule("D12", "GN-63")]

NOT_FOUND, UNKNOWN_MEMBER = 69, 25
NO_OFFSET = -1


def empty_group(subject: Subject) -> ConsumerGroup:
    """Return a group of the new protocol without members, with the committed offset 5 for partition 0 and with group epoch 2."""
    group = ConsumerGroup(subject)
    assert group.enter("A") == (1, ALL)
    place = {group.topic.name: {0: (5, None)}}
    assert commit(group, place, 9, member_id="A", generation_id_or_member_epoch=1) == {(group.topic.name, 0): 0}
    assert group.beat("A", -1) == (-1, None)
    return group


def reject_join(group: ConsumerGroup) -> None:
    """Send JoinGroup with an unknown member id, which is rejected."""
    response = group.client(member_id="X").join()
    assert (response.error_code, response.member_id) == (UNKNOWN_MEMBER, "X")


def listed(group: ConsumerGroup) -> tuple[str, str] | None:
    """Return (group type, state) of the group from a ListGroups response; None if the group is not listed."""
    types_and_states = [
        (g.group_type, g.group_state) for g in group.ask(ListGroupsRequest(), 5).groups if g.group_id == group.id
    ]
    return types_and_states[0] if types_and_states else None


def write_record(group: ConsumerGroup) -> None:
    """Commit an offset of another group, whose record is in the same partition of the offsets topic as the records of `group`.

    ListGroups and similar requests see a group's state up to the high watermark. The removal of `group` writes no record, so these requests see the
    removal only when a later record, such as this one, is replicated.
    """
    other = ConsumerGroup(group.subject, group.index)
    assert commit(other, {other.topic.name: {0: (1, None)}}) == {(other.topic.name, 0): 0}


def hidden_group(subject: Subject) -> ConsumerGroup:
    """Return an empty group to which a client has sent a rejected JoinGroup. The group has the committed offset 5 for partition 0.

    Because of this JoinGroup, Kafka has removed the group from the coordinator's memory, so no request finds the group. A cluster that follows the
    KIPs keeps the group.
    """
    group = empty_group(subject)
    reject_join(group)
    write_record(group)
    if subject.semantics == "kafka":
        wait_until(subject, lambda: listed(group) is None, f"ListGroups no longer returns group {group.id}")
    return group


def test_kafka_drops_an_empty_kip_848_group_if_a_join_group_has_an_unknown_member_id(subject: Subject) -> None:
    forgets = subject.semantics == "kafka"
    group = empty_group(subject)
    place, key = {group.topic.name: [0]}, (group.topic.name, 0)
    reject_join(group)
    assert listed(group) == ("consumer", "Empty")
    assert (group.described().error_code, group.epochs) == (0, ("Empty", 2, 1))
    assert group.committed() == {key: 5}
    [stable] = group.fetch(place, require_stable=True).topics[0].partitions
    assert stable.committed_offset == (NO_OFFSET if forgets else 5)
    write_record(group)
    if forgets:
        wait_until(subject, lambda: listed(group) is None, f"ListGroups no longer returns group {group.id}")
    assert group.described().error_code == (NOT_FOUND if forgets else 0)
    assert group.committed() == ({} if forgets else {key: 5})
    assert group.committed(place) == {key: NO_OFFSET if forgets else 5}


def test_requests_for_a_group_dropped_from_coordinator_memory_get_group_id_not_found(subject: Subject) -> None:
    forgets = subject.semantics == "kafka"
    group = empty_group(subject)
    place, key = {group.topic.name: [0]}, (group.topic.name, 0)
    reject_join(group)
    assert refusal(group.heartbeat("A", 1))[0] == (NOT_FOUND if forgets else UNKNOWN_MEMBER)
    assert commit(group, {group.topic.name: {0: (6, None)}}, 9, member_id="A", generation_id_or_member_epoch=1) == {
        key: NOT_FOUND if forgets else UNKNOWN_MEMBER
    }
    assert group.delete_offsets(place) == ((NOT_FOUND, {}) if forgets else (0, {key: 0}))
    [result] = group.ask(DeleteGroupsRequest([group.id]), 2).results
    assert result.error_code == (NOT_FOUND if forgets else 0)


def test_join_to_a_group_dropped_from_memory_gets_epoch_1_and_the_old_offsets(subject: Subject) -> None:
    group = hidden_group(subject)
    assert group.enter("B") == (1 if subject.semantics == "kafka" else 3, ALL)
    assert group.committed() == {(group.topic.name, 0): 5}


def test_rejected_heartbeat_does_not_restore_a_group_dropped_from_coordinator_memory(subject: Subject) -> None:
    forgets = subject.semantics == "kafka"
    group = hidden_group(subject)
    name, value = ("subscribed_topic_regex", "(") if group.version else ("server_assignor", "unknown")
    assert group.join("B", group.topic.name, **{name: value}).error_code != 0  # type: ignore[arg-type]
    assert listed(group) == (None if forgets else ("consumer", "Empty"))
    assert group.committed() == ({} if forgets else {(group.topic.name, 0): 5})


def test_offset_commit_makes_a_group_dropped_from_coordinator_memory_visible_again(subject: Subject) -> None:
    group = hidden_group(subject)
    topic = group.topic.name
    assert commit(group, {topic: {1: (8, None)}}) == {(topic, 1): 0}
    kind = "classic" if subject.semantics == "kafka" else "consumer"
    wait_until(
        subject,
        lambda: listed(group) == (kind, "Empty"),
        f"ListGroups returns group {group.id} with type {kind} and state Empty",
    )
    assert group.committed() == {(topic, 0): 5, (topic, 1): 8}


def test_classic_join_restores_offsets_of_a_group_dropped_from_coordinator_memory(subject: Subject) -> None:
    group = hidden_group(subject)
    client = group.client(version=3)
    response = client.join()
    assert (response.error_code, response.generation_id) == (0, 1)
    assert client.sync({client.member_id: b"a"}).error_code == 0
    assert listed(group) == ("classic", "Stable")
    assert group.committed() == {(group.topic.name, 0): 5}
