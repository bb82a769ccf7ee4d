"""Tests of groups that are converted between the classic and the new protocol while they have members (KIP-848)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest

from kafkaproto.conformance.consumer_groups import ALL, ConsumerGroup, refusal
from kafkaproto.conformance.groups import Client, commit, make_stable, subscription
from kafkaproto.conformance.scene import wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.coordinator_records import write_value
from kafkaproto.data.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafkaproto.data.consumer_protocol_assignment import TopicPartition as Assigned
from kafkaproto.data.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition
from kafkaproto.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

PROFILE = "migration"
pytestmark = pytest.mark.needs("group.consumer.migration.policy", offsets_topic=True)

NOT_FOUND, UNKNOWN_MEMBER, ILLEGAL_GENERATION, INCONSISTENT, REBALANCE, STALE_EPOCH = 69, 25, 22, 23, 27, 113
MEMBER_ID_REQUIRED, FENCED_INSTANCE, UNRELEASED_INSTANCE = 79, 82, 111
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
PREPARING = "PreparingRebalance"


def embedded(group: ConsumerGroup, owned: Sequence[int] = (), version: int = 1) -> bytes:
    """Return the encoded subscription of a classic consumer to the group's topic, for use in the metadata of a JoinGroup request.

    owned: the partitions that the consumer reports as owned. version: the version of ConsumerProtocolSubscription.
    """
    listed = [TopicPartition(group.topic.name, list(owned))] if owned else []
    return write_value(ConsumerProtocolSubscription([group.topic.name], owned_partitions=listed), version)


def assignment(group: ConsumerGroup, partitions: Sequence[int], user_data: bytes | None = None) -> bytes:
    """Return an encoded assignment of partitions of the group's topic, as the group leader sends it.

    user_data: the user data that an assignor may add to the assignment; None sends null.
    """
    return write_value(ConsumerProtocolAssignment([Assigned(group.topic.name, list(partitions))], user_data), 1)


def assigned(group: ConsumerGroup, data: bytes) -> tuple[int, list[int]]:
    """Decode the assignment of a member in a SyncGroup response. Returns (version of the encoding, partitions of the group's topic)."""
    [version] = struct.unpack_from(">h", data)
    decoded: Any = ConsumerProtocolAssignment.layout(version).decode_flat(memoryview(data), 2, len(data))[0]
    [*topics] = decoded.assigned_partitions
    assert {topic.topic for topic in topics} <= {group.topic.name}
    return version, sorted(index for topic in topics for index in topic.partitions)


class Consumer(Client):
    """A client of the classic protocol that subscribes to the group's topic."""

    def __init__(self, group: ConsumerGroup, *, version: int = 1, **options: Any) -> None:
        self.mixed = group
        self.subscription_version = version
        options.setdefault("protocols", (("range", embedded(group, (), version)),))
        super().__init__(group, **options)

    def rejoin(self, *owned: int) -> tuple[int, int, list[int]]:
        """Join again with these owned partitions, and sync. Returns (generation, version of the assignment's encoding, assigned partitions)."""
        self.protocols = (("range", embedded(self.mixed, owned, self.subscription_version)),)
        response = self.join()
        assert (response.error_code, response.leader, response.members) == (0, "", []), response
        assert (response.protocol_name, response.member_id) == ("range", self.member_id)
        synced = self.sync()
        assert synced.error_code == 0
        return self.generation, *assigned(self.mixed, synced.assignment)


def stable(group: ConsumerGroup, **options: Any) -> Consumer:
    """Return a client that is the only member of a stable classic group and owns all partitions of the group's topic.

    options: further arguments of `Consumer`.
    """
    member = Consumer(group, **options)
    assert member.enter().error_code == 0
    assert member.sync({member.member_id: assignment(group, ALL)}).error_code == 0
    return member


def listed(group: ConsumerGroup) -> tuple[str, str, str]:
    """Return (group type, protocol type, state) of the group from a ListGroups response."""
    [listed_group] = [g for g in group.ask(ListGroupsRequest(), 5).groups if g.group_id == group.id]
    return listed_group.group_type, listed_group.protocol_type, listed_group.group_state


def member_types(group: ConsumerGroup) -> dict[str, int]:
    [description] = group.ask(ConsumerGroupDescribeRequest([group.id]), group.version).groups
    return {member.member_id: member.member_type for member in description.members}


@pytest.mark.rule("GN-10", "GN-55", "GN-56", "GN-57", "GN-60", "GN-61", "SN-42", "SN-43")
def test_classic_group_can_be_upgraded_and_downgraded_without_losing_its_member(subject: Subject) -> None:
    """A member of the new protocol joins, which upgrades the group, and leaves, which downgrades it (scenarios SN-42 and SN-43).

    The classic member keeps its session and its offsets.
    """
    group = ConsumerGroup(subject)
    member = stable(group)
    assert group.enter("A") == (2, [])
    assert listed(group) == ("consumer", "consumer", "Reconciling")
    assert member.heartbeat() == REBALANCE
    place = {group.topic.name: {0: (5, None)}}
    assert member.commit(place) == {(group.topic.name, 0): 0}
    assert member.commit(place, generation_id_or_member_epoch=2) == {(group.topic.name, 0): ILLEGAL_GENERATION}
    assert member.sync().error_code == REBALANCE
    assert member.rejoin(*ALL) == (1, 1, [0, 1, 2])
    assert member.heartbeat() == REBALANCE
    assert group.beat("A", 2, []) == (2, None)
    assert member.rejoin(0, 1, 2) == (2, 1, [0, 1, 2])
    assert member.heartbeat() == 0
    assert group.beat("A", 2, []) == (2, [3, 4, 5])
    assert group.epochs == ("Stable", 2, 2)
    if group.version:
        assert member_types(group) == {member.member_id: CLASSIC_MEMBER, "A": CONSUMER_MEMBER}
    assert group.beat("A", -1) == (-1, None)
    assert listed(group) == ("classic", "consumer", PREPARING)
    assert member.heartbeat() == REBALANCE
    response = member.join()
    assert (response.error_code, response.generation_id, response.leader) == (0, 3, member.member_id)
    assert [other.member_id for other in response.members] == [member.member_id]
    assert group.committed() == {(group.topic.name, 0): 5}


@pytest.mark.rule("GN-55", "SN-44")
def test_groups_of_another_protocol_type_than_consumer_are_not_upgraded(subject: Subject) -> None:
    """A member of the new protocol cannot join a classic group with another protocol type than "consumer", such as "connect" (scenario SN-44)."""
    group = ConsumerGroup(subject)
    make_stable(group.client(kind="connect"))
    no_consumers = f"Group {group.id} is not a consumer group."
    reason = "the group does not use the consumer embedded protocol."
    message = f"Cannot upgrade classic group {group.id} to consumer group because {reason}"
    assert refusal(group.join("A")) == (NOT_FOUND, message if group.is_release_4 else no_consumers)
    assert listed(group) == ("classic", "connect", "Stable")
    assert refusal(group.heartbeat("A", 1)) == (NOT_FOUND, no_consumers)


@pytest.mark.rule("GN-55")
def test_groups_with_malformed_subscriptions_are_not_upgraded(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    member = stable(group, protocols=(("range", b"m"),))
    assert refusal(group.join("A")) == (NOT_FOUND, malformed(group))
    assert listed(group) == ("classic", "consumer", "Stable")
    assert member.heartbeat() == 0


def malformed(group: ConsumerGroup) -> str:
    article = "" if group.is_release_4 else "the "
    return f"Cannot upgrade {article}classic group {group.id} to consumer group because the embedded consumer protocol is malformed."


@pytest.mark.rule("GN-55")
def test_classic_group_with_a_custom_assignor_rejects_kip_848_members_from_4_0_on(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    member = Consumer(group)
    assert member.enter().error_code == 0
    assert member.sync({member.member_id: assignment(group, ALL, b"custom")}).error_code == 0
    response = group.join("A")
    if group.is_release_4:
        assert refusal(response) == (
            NOT_FOUND,
            f"Cannot upgrade classic group {group.id} to consumer group because an unsupported custom assignor is in use. "
            "Please refer to the documentation or switch to a default assignor before re-attempting the upgrade.",
        )
    else:
        assert group.result(response) == (2, [])
    assert listed(group)[0] == ("classic" if group.is_release_4 else "consumer")


@pytest.mark.rule("GN-55")
def test_waiting_join_gets_rebalance_in_progress_when_a_kip_848_member_joins(subject: Subject) -> None:
    """A member of the new protocol joins while a classic member waits for its JoinGroup response, which then arrives with REBALANCE_IN_PROGRESS.

    In Kafka 4, the group becomes a consumer group. In earlier releases the group stays classic, and the new member gets an error, because the classic
    member has no assignment yet.
    """
    group = ConsumerGroup(subject)
    first, second = stable(group), Consumer(group)
    second.send_enter()
    group.wait_for(PREPARING, 2)
    response = group.join("A")
    join_response = second.joined()
    assert (join_response.error_code, join_response.generation_id) == (REBALANCE, -1)
    assert first.heartbeat() == REBALANCE
    if group.is_release_4:
        assert group.result(response) == (2, [])
        assert first.rejoin(*ALL)[0] == 1
    else:
        assert refusal(response) == (NOT_FOUND, malformed(group))
        assert listed(group) == ("classic", "consumer", PREPARING)


@pytest.mark.rule("GN-57", "GN-58", "SN-44")
def test_new_member_of_the_classic_protocol_joins_a_consumer_group_immediately(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    assert group.enter("A") == (1, ALL)
    member = Consumer(group)
    required = member.join()
    assert required.error_code == MEMBER_ID_REQUIRED
    assert len(required.member_id) == 22 and "-" + "pc" not in required.member_id
    response = member.join()
    assert (response.error_code, response.generation_id, response.protocol_type) == (0, 2, None)
    synced = member.sync()
    assert (synced.error_code, assigned(group, synced.assignment)) == (0, (1, []))
    assert member.heartbeat() == 0
    kept = group.beat("A", 1)[1]
    assert group.beat("A", 1, kept) == (2, None)
    assert member.heartbeat() == REBALANCE
    generation, _, partitions = member.rejoin()
    assert (generation, sorted([*partitions, *kept])) == (2, ALL)
    consumer = Consumer(group, version=0)
    assert consumer.enter().error_code == 0
    assert assigned(group, consumer.sync().assignment)[0] == 0


@pytest.mark.rule("GN-56", "GN-57", "GN-60", "GN-62")
def test_consumer_group_rejects_classic_requests_with_wrong_generation_or_protocol(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    assert group.enter("A") == (1, ALL)
    member = Consumer(group)
    assert member.enter().error_code == 0
    assert member.heartbeat(generation_id=1) == ILLEGAL_GENERATION
    assert member.heartbeat(member_id="nobody") == UNKNOWN_MEMBER
    assert member.heartbeat(member_id="A", generation_id=1) == UNKNOWN_MEMBER
    assert member.sync(generation_id=1).error_code == ILLEGAL_GENERATION
    assert member.sync(member_id="A", generation_id=1).error_code == UNKNOWN_MEMBER
    assert member.sync(version=5, protocol_type="connect").error_code == INCONSISTENT
    assert member.sync(version=5, protocol_name="other").error_code == INCONSISTENT
    synced = member.sync(version=5)
    assert (synced.error_code, synced.protocol_type, synced.protocol_name) == (0, "consumer", "range")
    for other in (
        Consumer(group, kind="connect", version=0),
        Consumer(group, protocols=(("other", subscription(group.topic.name)),)),
    ):
        response = other.join()
        assert (response.error_code, response.member_id) == (INCONSISTENT, "")
    assert group.join("B", instance_id="i1").error_code == 0
    error = 0 if group.is_release_4 else UNKNOWN_MEMBER
    expected = [
        ("A", None, error),
        ("A", "i1", FENCED_INSTANCE),
        ("", "i1", error),
        ("B", "i2", UNKNOWN_MEMBER),
        (member.member_id, None, 0),
        ("nobody", None, UNKNOWN_MEMBER),
    ]
    assert group.leave(*(ids[:2] for ids in expected)) == (0, expected)


@pytest.mark.rule("GN-32", "GN-57")
def test_restarted_static_member_of_the_classic_protocol_keeps_its_partitions(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    assert group.enter("A") == (1, ALL)
    first = Consumer(group, instance="i1")
    assert first.join().error_code == 0
    assert first.sync().error_code == 0
    kept = group.beat("A", 1)[1]
    assert group.beat("A", 1, kept) == (2, None)
    generation, _, partitions = first.rejoin()
    assert (generation, sorted([*partitions, *kept])) == (2, ALL)
    second = Consumer(group, instance="i1")
    assert second.join().error_code == 0
    assert (second.generation, second.member_id != first.member_id) == (2, True)
    assert assigned(group, second.sync().assignment) == (1, partitions)
    assert first.heartbeat() == FENCED_INSTANCE
    assert first.sync().error_code == FENCED_INSTANCE
    assert first.join().error_code == FENCED_INSTANCE
    assert group.epochs == ("Stable", 2, 2)
    assert second.heartbeat(group_instance_id="i2") == UNKNOWN_MEMBER


@pytest.mark.rule("GN-61", "GN-32")
def test_group_is_downgraded_if_its_static_member_rejoins_as_classic_from_4_0_on(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    assert group.enter("A", instance_id="i1") == (1, ALL)
    member = Consumer(group, instance="i1", protocols=(("range", embedded(group, ALL)),))
    join_response = member.join()
    assert (join_response.error_code, join_response.generation_id) == (0, 1)
    assert listed(group) == ("classic" if group.is_release_4 else "consumer", "consumer", "Stable")
    assert assigned(group, member.sync().assignment) == (1, ALL)
    assert member.heartbeat() == 0
    response = group.join("B", instance_id="i1")
    if group.is_release_4:
        assert group.result(response) == (1, ALL)
        assert member.heartbeat() == FENCED_INSTANCE
    else:
        assert refusal(response)[0] == UNRELEASED_INSTANCE
        assert member.heartbeat() == 0
    assert listed(group) == ("consumer", "consumer", "Stable")


@pytest.mark.rule("GN-61")
def test_downgraded_group_rebalances_if_a_subscription_has_changed(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    if not group.is_release_4:
        other = Consumer(group)
        assert group.enter("A") == (1, ALL)
        assert other.enter().error_code == 0
        assert group.beat("A", -1) == (-1, None)
        assert listed(group) == ("classic", "consumer", PREPARING)
        return
    assert group.enter("A", group.topic.name, group.add_topic().name, instance_id="i1")[0] == 1
    member = Consumer(group, instance="i1")
    assert member.join().generation_id == 0
    assert listed(group) == ("classic", "consumer", PREPARING)
    assert member.heartbeat() == ILLEGAL_GENERATION
    assert member.join().generation_id == 2


@pytest.mark.rule("GN-56")
def test_offset_commits_and_fetches_of_classic_members_need_the_current_generation(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    assert group.enter("A") == (1, ALL)
    member = Consumer(group)
    assert member.enter().error_code == 0
    key, place = (group.topic.name, 0), {group.topic.name: {0: (7, None)}}
    assert member.commit(place) == {key: 0}
    assert member.commit(place, version=9) == {key: 0}
    assert member.commit(place, generation_id_or_member_epoch=9) == {key: ILLEGAL_GENERATION}
    assert member.commit(place, version=9, generation_id_or_member_epoch=9) == {key: ILLEGAL_GENERATION}
    assert member.commit(place, version=9, member_id="A", generation_id_or_member_epoch=9) == {key: STALE_EPOCH}
    for member_id, epoch, error in (
        (member.member_id, 2, 0),
        (member.member_id, 1, ILLEGAL_GENERATION),
        ("A", 2, STALE_EPOCH),
    ):
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group.id, member_id, epoch, None)])
        [offsets] = group.ask(request, 9).groups
        assert offsets.error_code == error


@pytest.mark.rule("GN-63")
def test_empty_consumer_group_becomes_classic_with_the_first_classic_member(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    assert group.enter("A") == (1, ALL)
    assert group.beat("A", -1) == (-1, None)
    member = stable(group)
    assert (member.generation, listed(group)) == (1, ("classic", "consumer", "Stable"))


@pytest.mark.rule("GN-63")
def test_empty_consumer_group_rejects_a_classic_join_with_an_unknown_member_id(
    subject: Subject,
) -> None:
    """Joins with an unknown member id are rejected. A join without an id converts the group to a classic group, which keeps its committed offsets."""
    group = ConsumerGroup(subject)
    key, place = (group.topic.name, 0), {group.topic.name: {0: (5, None)}}
    assert group.enter("A") == (1, ALL)
    assert commit(group, place, 9, member_id="A", generation_id_or_member_epoch=1) == {key: 0}
    assert group.beat("A", -1) == (-1, None)
    member = Consumer(group, member_id="X")
    for _ in range(2):
        response = member.join()
        assert (response.error_code, response.member_id) == (UNKNOWN_MEMBER, "X")
    member = stable(group)
    assert (member.generation, listed(group)) == (1, ("classic", "consumer", "Stable"))
    assert group.committed() == {key: 5}


@pytest.mark.rule("GN-63")
@pytest.mark.parametrize(
    ("kind", "instance", "has_protocols"), [("consumer", None, False), ("", None, True), ("consumer", "i1", False)]
)
def test_empty_kip_848_group_becomes_classic_even_if_the_classic_join_is_rejected(
    subject: Subject, kind: str, instance: str | None, has_protocols: bool
) -> None:
    group = ConsumerGroup(subject)
    assert group.enter("A") == (1, ALL)
    assert group.beat("A", -1) == (-1, None)
    protocols = (("range", embedded(group)),) if has_protocols else ()
    response = Consumer(group, kind=kind, instance=instance, protocols=protocols).join()
    assert (response.error_code, response.member_id) == (INCONSISTENT, "")
    wait_until(subject, lambda: listed(group) == ("classic", "", "Empty"), f"group {group.id} is classic and empty")
    assert refusal(group.heartbeat("A", 1)) == (NOT_FOUND, f"Group {group.id} is not a consumer group.")
