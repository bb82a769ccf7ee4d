"""Tests of consumer groups of the new protocol (KIP-848): heartbeats, errors, static members, commits, and requests of the classic protocol."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.consumer_groups import ALL, TIMEOUT_MS, ConsumerGroup, refusal
from kafkaproto.conformance.groups import commit
from kafkaproto.conformance.scene import wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

PROFILE = "consumer"
pytestmark = pytest.mark.needs(offsets_topic=True)

INVALID, UNSUPPORTED_ASSIGNOR, NOT_FOUND, UNKNOWN_MEMBER, FENCED_EPOCH, STALE_EPOCH = 42, 112, 69, 25, 110, 113
FENCED_INSTANCE, UNRELEASED = 82, 111
SET, GROUP = 0, 32


def fenced(received: int, known: int) -> tuple[int, str]:
    """Return the (error code, message) expected if a member sends a heartbeat with epoch `received`, but its current member epoch is `known`."""
    word = "greater" if received > known else "smaller"
    return (
        FENCED_EPOCH,
        f"The consumer group member has a {word} member epoch ({received}) than the one known by the group coordinator "
        f"({known}). The member must abandon all its partitions and rejoin.",
    )


def unknown(member_id: str, group: ConsumerGroup) -> tuple[int, str]:
    """Return the (error, message) expected for a heartbeat of a member that is not in the group."""
    return UNKNOWN_MEMBER, f"Member {member_id} is not a member of group {group.id}."


@pytest.mark.rule("GN-3", "GN-4", "GN-5", "GN-14", "SN-28")
def test_first_heartbeat_of_a_consumer_group_member_needs_all_required_fields(subject: Subject) -> None:
    """A first heartbeat gets an error if a required field is missing, the member already owns partitions, or the assignor is unknown (SN-28)."""
    group = ConsumerGroup(subject)
    topic = [group.topic.name]
    if group.is_release_4:
        no_names = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    else:
        no_names = "SubscribedTopicNames must be set in first request."
    no_timeout, owns = (
        "RebalanceTimeoutMs must be provided in first request.",
        "TopicPartitions must be empty when (re-)joining.",
    )
    no_assignor = "ServerAssignor nope is not supported. Supported assignors: uniform, range."
    for response, expected in (
        (group.join("A", timeout_ms=-1), (INVALID, no_timeout)),
        (group.heartbeat("A", 0, None, topic, 1), (INVALID, owns)),
        (group.heartbeat("A", 0, [1], topic, 1), (INVALID, owns)),
        (group.heartbeat("A", 0, [], None, 1), (INVALID, no_names)),
        (group.join("A", server_assignor="nope"), (UNSUPPORTED_ASSIGNOR, no_assignor)),
    ):
        assert refusal(response) == expected
    assert group.described().error_code == NOT_FOUND


@pytest.mark.rule("GN-4", "GN-5", "GN-10", "GN-31", "SN-28")
def test_consumer_group_heartbeats_with_invalid_ids_and_epochs_are_rejected(subject: Subject) -> None:
    """An unknown group, an invalid epoch, or an empty member id, instance id or rack id gets Kafka's error code and message (scenario SN-28)."""
    group = ConsumerGroup(subject)
    beat, leave = f"Consumer group {group.id} not found.", f"Group {group.id} not found."
    for response, expected in (
        (group.heartbeat("A", 1), (NOT_FOUND, beat)),
        (group.heartbeat("A", -1), (NOT_FOUND, leave)),
        (group.heartbeat("A", -2, instance_id="i"), (NOT_FOUND, leave)),
        (group.heartbeat("A", -3), (INVALID, "MemberEpoch is invalid.")),
        (group.heartbeat("A", -2), (INVALID, "InstanceId can't be null.")),
        (group.heartbeat("", 1), (INVALID, "MemberId can't be empty.")),
        (group.heartbeat("", -1), (INVALID, "MemberId can't be empty.")),
        (group.join("A", instance_id=""), (INVALID, "InstanceId can't be empty.")),
        (group.join("A", rack_id=""), (INVALID, "RackId can't be empty.")),
    ):
        assert refusal(response) == expected
    if group.is_release_4:  # before 4.0, only the coordinator of the empty id checks it
        assert refusal(group.join("A", group_id="")) == (INVALID, "GroupId can't be empty.")
    assert group.described().error_code == NOT_FOUND


@pytest.mark.rule("GN-5", "GC-56")
def test_group_requests_treat_ids_of_only_blanks_and_control_characters_as_empty(subject: Subject) -> None:
    """An id that consists only of the characters U+0000 to U+0020 counts as empty. Other kinds of space are ordinary characters.

    ListGroups ignores the characters U+0000 to U+0020 before and after a state in its filter, but not around a group type.
    """
    group = ConsumerGroup(subject)
    for text in ("\0", " \t\x1f\0 "):
        assert refusal(group.join("A", instance_id=text)) == (INVALID, "InstanceId can't be empty.")
        assert refusal(group.join("A", rack_id=text)) == (INVALID, "RackId can't be empty.")
        assert refusal(group.heartbeat(text, 1)) == (INVALID, "MemberId can't be empty.")
    for member_id, text in (("A", "\u2003"), ("B", "\u00a0")):
        assert group.join(member_id, instance_id=text, rack_id=text).error_code == 0
    state = group.described().group_state
    for text, is_listed in ((f"{state}\0", True), (f"\x1f{state.lower()} ", True), (f"\u00a0{state}", False)):
        group_ids = [each.group_id for each in group.ask(ListGroupsRequest([text], []), 5).groups]
        assert (group.id in group_ids) == is_listed, text
    for text, is_listed in (("Consumer", True), ("consumer\0", False)):
        group_ids = [each.group_id for each in group.ask(ListGroupsRequest([], [text]), 5).groups]
        assert (group.id in group_ids) == is_listed, text


@pytest.mark.rule("GN-1", "GN-6")
def test_coordinator_creates_a_member_id_only_for_consumer_group_heartbeat_v0(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    if group.is_release_4:
        assert refusal(group.join("")) == (INVALID, "MemberId can't be empty.")
    group.version = 0
    response = group.join("")
    assert (response.error_code, len(response.member_id), response.member_epoch) == (0, 22, 1)


@pytest.mark.rule("GN-7")
def test_consumer_group_heartbeat_may_subscribe_to_an_empty_topic_list_from_4_0_on(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    response = group.heartbeat("A", 0, [], [], TIMEOUT_MS)
    if group.is_release_4:
        assert group.result(response) == (1, [])
        assert group.epochs == ("Stable", 1, 1)
    else:
        assert refusal(response) == (INVALID, "SubscribedTopicNames must be set in first request.")


@pytest.mark.rule("GN-12", "GN-15", "GN-20", "GN-27", "GN-64", "GN-65", "SN-29")
def test_single_member_of_a_consumer_group_gets_all_partitions_immediately(subject: Subject) -> None:
    """The response to the only member's first heartbeat has all partitions, and the group is then Stable in epoch 1 (scenario SN-29)."""
    group = ConsumerGroup(subject)
    response = group.join("A")
    assert group.result(response) == (1, ALL)
    assert (response.member_id, response.heartbeat_interval_ms) == ("A", 5000)
    assert group.beat("A", 1, ALL) == (1, None)
    assert refusal(group.heartbeat("A", 9)) == fenced(9, 1)
    assert refusal(group.heartbeat("zzz", 1)) == unknown("zzz", group)
    description = group.described()
    assert group.epochs == ("Stable", 1, 1)
    assert (description.error_code, description.error_message, description.assignor_name) == (0, None, "uniform")
    [member] = description.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("A", None, None)
    assert (member.member_epoch, member.client_id, member.client_host) == (1, "pc", "/127.0.0.1")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == ([group.topic.name], "")
    for assignment in (member.assignment, member.target_assignment):
        [topic] = assignment.topic_partitions
        assert (topic.topic_name, topic.topic_id) == (group.topic.name, group.topic.topic_id)
        assert sorted(topic.partitions) == ALL
    if group.is_release_4:
        assert member.member_type == 1


@pytest.mark.rule("GN-66")
def test_consumer_group_describe_rejects_unknown_and_classic_groups(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    classic = ConsumerGroup(subject)
    classic.client(version=3).join()
    for other in (group, classic):
        result = other.described()
        fields = (result.group_state, result.group_epoch, result.assignment_epoch, result.assignor_name)
        assert (result.error_code, result.members, fields) == (NOT_FOUND, [], ("", 0, 0, ""))
    unknown_message, classic_message = group.described().error_message, classic.described().error_message
    if group.is_release_4:
        assert unknown_message == f"Group {group.id} not found."
        assert classic_message == f"Group {classic.id} is not a consumer group."
    else:
        assert unknown_message is classic_message is None


@pytest.mark.rule("GN-12", "GN-13", "SN-32")
def test_kip_848_member_at_epoch_2_that_rejoins_with_epoch_0_is_fenced_before_4_2(subject: Subject) -> None:
    """A member in epoch 1 that joins again gets its assignment. A member in epoch 2 that joins again is fenced, but only before Kafka 4.2 (SN-32)."""
    group = ConsumerGroup(subject)
    assert group.enter("A") == (1, ALL)
    assert group.enter("A") == (1, ALL)
    assert group.enter("B") == (2, [])
    kept = group.beat("A", 1)[1]
    assert group.beat("A", 1, kept) == (2, None)
    if group.is_release_4_2:
        assert group.enter("A") == (2, kept)
        assert group.epochs == ("Reconciling", 2, 2)
    else:
        assert refusal(group.join("A")) == fenced(0, 2)


@pytest.mark.rule("GN-11", "GN-18", "GN-31", "SN-34")
def test_each_leaving_member_of_a_consumer_group_starts_a_new_group_epoch(subject: Subject) -> None:
    """Members leave by a heartbeat with epoch -1. The empty group can then be deleted (scenario SN-34)."""
    group = ConsumerGroup(subject)
    for member_id in "ABC":
        assert group.join(member_id).error_code == 0
    response = group.heartbeat("C", -1)
    assert group.result(response) == (-1, None)
    assert (response.member_id, response.heartbeat_interval_ms) == ("C", 0)
    assert group.epochs == ("Assigning", 4, 3)
    assert refusal(group.heartbeat("C", -1)) == unknown("C", group)
    for member_id in "AB":
        assert group.beat(member_id, -1) == (-1, None)
    assert group.epochs == ("Empty", 6, 3)
    [result] = group.ask(DeleteGroupsRequest([group.id]), 2).results
    assert result.error_code == 0
    assert group.described().error_code == NOT_FOUND


@pytest.mark.rule("GN-32", "GN-33", "GN-34", "GN-35", "SN-35")
def test_partitions_of_a_static_member_that_left_with_epoch_minus_2_stay_reserved(subject: Subject) -> None:
    """A static member leaves temporarily, with epoch -2. A new member joins with the same instance id (scenario SN-35).

    The new member gets the partitions of the member that left, and the group epoch does not change.
    """
    group = ConsumerGroup(subject)
    assert group.enter("A", instance_id="i1") == (1, ALL)
    for member_id in "BA":
        message = f"Static member {member_id} with instance id i1 cannot join the group because the instance id is owned by A member."
        assert refusal(group.join(member_id, instance_id="i1")) == (UNRELEASED, message)
    fenced_by = "Static member {} with instance id i1 was fenced by member {}."
    assert refusal(group.heartbeat("B", 1, instance_id="i1")) == (FENCED_INSTANCE, fenced_by.format("B", "A"))
    response = group.heartbeat("A", -2, instance_id="i1")
    assert (group.result(response), response.member_id, response.heartbeat_interval_ms) == ((-2, None), "A", 0)
    assert group.epochs == ("Reconciling", 1, 1)
    [member] = group.described().members
    assert (member.member_id, member.instance_id, member.member_epoch) == ("A", "i1", -2)
    assert [sorted(t.partitions) for t in member.assignment.topic_partitions] == [ALL]
    assert group.enter("B", instance_id="i1") == (1, ALL)
    assert group.epochs == ("Stable", 1, 1)
    assert refusal(group.heartbeat("A", 1, instance_id="i1")) == (FENCED_INSTANCE, fenced_by.format("A", "B"))
    assert refusal(group.heartbeat("A", -1, instance_id="i1")) == (FENCED_INSTANCE, fenced_by.format("A", "B"))
    for epoch in (1, -1, -2):
        assert refusal(group.heartbeat("A", epoch, instance_id="i2")) == (UNKNOWN_MEMBER, "Instance id i2 is unknown.")
    assert refusal(group.heartbeat("A", 1)) == unknown("A", group)


@pytest.mark.rule("GN-32")
@pytest.mark.releases(first="4.2")
def test_member_that_rejoins_before_revoking_partitions_gets_an_empty_assignment(subject: Subject) -> None:
    """Members A and B of a consumer group (KIP-848) join. Each joins again with the same member id, now as a static member with an instance id.

    At that time A has not revoked the partitions that B shall get, so the response to A's second join assigns nothing. B has nothing to revoke, so
    the response to B's second join assigns the partitions of its target.
    """
    group = ConsumerGroup(subject)
    assert group.enter("A") == (1, ALL)
    assert group.enter("B") == (2, [])
    assert group.enter("A", instance_id="i1") == (2, [])
    of_a, of_b = [group.targets()[member_id][group.topic.name] for member_id in "AB"]
    assert sorted(of_a + of_b) == ALL and abs(len(of_a) - len(of_b)) <= 1
    assert group.result(group.heartbeat("A", 2, instance_id="i1")) == (2, None)
    assert group.beat("B", 2) == (2, of_b)
    assert group.enter("B", instance_id="i2") == (2, of_b)


def fetch_as(group: ConsumerGroup, member_id: str | None, epoch: int) -> tuple[int, list[Any]]:
    """Fetch all offsets of a group with OffsetFetch version 9. Returns (error code, topics of the response). member_id: None for no member."""
    [group_result] = group.ask(
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group.id, member_id, epoch, None)]), 9
    ).groups
    return group_result.error_code, group_result.topics


@pytest.mark.rule("GO-18", "SN-36")
def test_offset_commits_and_fetches_with_a_wrong_member_epoch_are_rejected(subject: Subject) -> None:
    """OffsetCommit and OffsetFetch with another epoch than the member's get STALE_MEMBER_EPOCH (scenario SN-36)."""
    group = ConsumerGroup(subject)
    for member_id in "AC":
        assert group.join(member_id).error_code == 0
    kept = group.beat("A", 1)[1]
    assert group.beat("A", 1, kept) == (2, None)
    topic = group.topic.name
    for version, epoch, member_id, error in (
        (8, 2, "C", 35),
        (9, 2, "C", 0),
        (9, 1, "C", STALE_EPOCH),
        (9, 3, "C", STALE_EPOCH),
        (9, 2, "q", UNKNOWN_MEMBER),
        (9, -1, "", UNKNOWN_MEMBER),
    ):
        fields: dict[str, Any] = {"generation_id_or_member_epoch": epoch, "member_id": member_id}
        assert commit(group, {topic: {0: (7, "x")}}, version, **fields) == {(topic, 0): error}
    assert fetch_as(group, "C", 1) == (STALE_EPOCH, [])
    assert fetch_as(group, "C", 3) == (STALE_EPOCH, [])
    assert fetch_as(group, "q", 2) == (UNKNOWN_MEMBER, [])
    for response in (fetch_as(group, None, -1), fetch_as(group, "C", 2)):
        error, [topic_offsets] = response
        assert (error, topic_offsets.name, [p.committed_offset for p in topic_offsets.partitions]) == (0, topic, [7])


@pytest.mark.rule("GN-62", "GC-54", "GC-58", "SN-37")
def test_classic_protocol_requests_of_a_consumer_group_member_are_rejected(subject: Subject) -> None:
    """DescribeGroups and Heartbeat do not find a group of the new protocol or its member (scenario SN-37).

    Other classic requests find the group: OffsetCommit is accepted, and ListGroups lists the group. DeleteGroups and OffsetDelete are rejected
    because the group has a member.
    """
    group = ConsumerGroup(subject)
    topic = group.topic.name
    assert group.enter("C") == (1, ALL)
    fields: dict[str, Any] = {"generation_id_or_member_epoch": 1, "member_id": "C"}
    assert commit(group, {topic: {0: (7, "x")}}, 9, **fields) == {(topic, 0): 0}
    description = group.describe()
    assert (description.error_code, description.group_state, description.members) == (0, "Dead", [])
    assert group.ask(HeartbeatRequest(group.id, 1, "C"), 4).error_code == UNKNOWN_MEMBER
    for types, count in ((["consumer"], 1), (["classic"], 0), ([], 1)):
        entries = [g for g in group.ask(ListGroupsRequest([], types), 5).groups if g.group_id == group.id]
        assert len(entries) == count
        for entry in entries:
            assert (entry.protocol_type, entry.group_state, entry.group_type) == ("consumer", "Stable", "consumer")
    assert group.delete_offsets({topic: [0]}) == (0, {(topic, 0): 86})
    [result] = group.ask(DeleteGroupsRequest([group.id]), 2).results
    assert result.error_code == 68
    if group.is_release_4:
        assert group.leave(("C", None)) == (0, [("C", None, 0)])
        assert group.epochs == ("Empty", 2, 1)
    else:
        assert group.leave(("C", None)) == (0, [("C", None, UNKNOWN_MEMBER)])
        assert group.epochs == ("Stable", 1, 1)


@pytest.mark.rule("GN-10", "GN-63", "SN-44")
def test_empty_group_can_change_its_group_protocol_and_keeps_its_offsets(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    offsets = {group.topic.name: {0: (7, "x")}}
    committed = {(group.topic.name, 0): 7}
    assert commit(group, offsets) == {(group.topic.name, 0): 0}
    assert group.enter("A") == (1, ALL)
    assert group.committed() == committed
    assert group.beat("A", -1) == (-1, None)
    client = group.client(version=3)
    response = client.join()
    assert (response.error_code, response.generation_id) == (0, 1)
    assert client.sync({client.member_id: b"a"}).error_code == 0
    assert group.state() == ("Stable", 1)
    assert (group.described().error_code, group.committed()) == (NOT_FOUND, committed)


@pytest.mark.rule("GN-66")
def test_consumer_group_describe_fails_for_all_groups_if_an_id_is_empty_before_4_0(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    assert group.enter("A") == (1, ALL)
    descriptions = group.ask(ConsumerGroupDescribeRequest([group.id, ""]), group.version).groups
    assert sorted((g.group_id, g.error_code, g.error_message) for g in descriptions) == [
        ("", 24 if group.is_release_4 else -1, None),
        (group.id, 0 if group.is_release_4 else -1, None),
    ]


@pytest.mark.rule("GN-37")
def test_heartbeat_with_a_new_assignor_changes_the_assignor_but_not_the_group_epoch(subject: Subject) -> None:
    """A heartbeat that names another assignor changes the group's assignor at once, but not the group epoch or the assignment."""
    group = ConsumerGroup(subject)
    group.enter("A")
    assert group.result(group.heartbeat("A", 1, server_assignor="range")) == (1, None)
    assert group.epochs == ("Stable", 1, 1)
    assert group.described().assignor_name == "range"


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("GN-69")
def test_changed_heartbeat_interval_of_a_group_is_in_the_next_heartbeat_response(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    assert group.join("A").heartbeat_interval_ms == 5000
    changes = [AlterableConfig(f"consumer.{name}.ms", SET, value) for name, value in (("heartbeat.interval", "6000"),)]
    resources = [AlterConfigsResource(GROUP, group.id, changes)]
    [result] = subject.ask_once(IncrementalAlterConfigsRequest(resources), 1).responses
    assert result.error_code == 0, result
    wait_until(
        subject,
        lambda: group.heartbeat("A", 1).heartbeat_interval_ms == 6000,
        f"the heartbeat interval of group {group.id} is 6000 ms",
    )
