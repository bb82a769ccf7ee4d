"""Tests of when ListGroups and similar requests show a change of a group, with Kafka's group coordinator in Java (GC-66).

A response shows a change only when the record of the change is replicated, that is, below the high watermark. If the change writes no record, a
response shows the change when the next record in the group's partition of the offsets topic is replicated.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.consumer_groups import ConsumerGroup
from kafkaproto.conformance.groups import Group, commit
from kafkaproto.conformance.scene import new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_forgotten_groups import empty_group, listed, reject_join, write_record
from kafkaproto.messages.describe_groups import DescribeGroupsRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.list_groups import ListGroupsRequest

PROFILE = "consumer"
pytestmark = [pytest.mark.needs(offsets_topic=True), pytest.mark.rule("GC-66")]

NOT_FOUND, METADATA_TOO_LARGE = 69, 12
TOO_LARGE = "x" * 5000


def described(group: Group) -> Any:
    [described] = group.ask(DescribeGroupsRequest([group.id]), 5).groups
    return described.group_state, described.protocol_type


def write_in(group: Group) -> None:
    """Commit an offset in another group. Its record is in the same partition of the offsets topic as the records of `group`.

    When this record is replicated, ListGroups and DescribeGroups see all earlier changes of `group`.
    """
    other = Group(group.subject, group.index)
    topic = new_topic(group.subject).name
    assert commit(other, {topic: {0: (1, None)}}) == {(topic, 0): 0}


def is_listed(group: Group) -> bool:
    return any(listed_group.group_id == group.id for listed_group in group.ask(ListGroupsRequest(), 4).groups)


def test_rejected_offset_commit_still_creates_an_empty_group_in_list_groups(subject: Subject) -> None:
    ConsumerGroup(subject)  # skips the test unless the broker has the coordinator in Java
    group = Group(subject)
    topic = new_topic(subject).name
    assert commit(group, {topic: {0: (1, TOO_LARGE)}}) == {(topic, 0): METADATA_TOO_LARGE}
    assert (described(group), is_listed(group)) == (("Dead", ""), False)
    write_in(group)
    wait_until(subject, lambda: is_listed(group), f"ListGroups returns group {group.id}")
    assert described(group) == ("Empty", "")


def test_kip_848_coordinator_lists_a_new_classic_group_when_its_join_phase_ends(subject: Subject) -> None:
    ConsumerGroup(subject)
    group = Group(subject)
    connection = group.connect()
    request = JoinGroupRequest(group.id, 10_000, 10_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")])
    subject.send(connection, request, 3)
    assert subject.answer(connection).message.error_code == 0
    wait_until(subject, lambda: is_listed(group), f"ListGroups returns group {group.id}")
    assert described(group) == ("CompletingRebalance", "consumer")


@pytest.mark.rule("D12", "GN-63")
@pytest.mark.parametrize("is_hidden", [False, True])
def test_rejected_offset_commit_recreates_a_dropped_kip_848_group_as_classic_group(
    subject: Subject, is_hidden: bool
) -> None:
    group = empty_group(subject)
    topic, forgets = group.topic.name, subject.semantics == "kafka"
    reject_join(group)
    if is_hidden:
        write_record(group)
    offsets = {} if forgets and is_hidden else {(topic, 0): 5}
    assert commit(group, {topic: {0: (1, TOO_LARGE)}}) == {(topic, 0): METADATA_TOO_LARGE}
    assert group.committed() == offsets
    assert is_listed(group) is bool(offsets)
    write_record(group)
    kind = ("classic" if forgets else "consumer", "Empty")
    wait_until(
        subject,
        lambda: is_listed(group) and listed(group) == kind,
        f"ListGroups returns group {group.id} with (type, state) {kind}",
    )
    assert group.committed() == {(topic, 0): 5}


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("GC-51")
def test_describe_groups_says_that_a_kip_848_group_is_not_classic_from_kafka_4_0_on(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    assert group.enter("A")[0] == 1
    [described] = group.ask(DescribeGroupsRequest([group.id]), 6).groups
    assert (described.error_code, described.error_message, described.group_state) == (
        NOT_FOUND,
        f"Group {group.id} is not a classic group.",
        "Dead",
    )


@pytest.mark.rule("GN-10")
def test_leaving_a_classic_group_by_consumer_group_heartbeat_is_rejected(subject: Subject) -> None:
    group = ConsumerGroup(subject)
    client = group.client(version=3)
    assert client.join().error_code == 0
    response = group.heartbeat("A", -1)
    assert (response.error_code, response.error_message) == (NOT_FOUND, f"Group {group.id} is not a consumer group.")
