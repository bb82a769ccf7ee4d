"""Tests of JoinGroup requests after which Kafka cannot end the join phase, and of group requests to a broker that is not the coordinator."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kafkaproto.conformance.groups import Group, commit, has_new_coordinator, subscription
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.describe_groups import DescribeGroupsRequest
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

pytestmark = pytest.mark.needs(offsets_topic=True)

NOT_COORDINATOR, INCONSISTENT, SUBSCRIBED, NOT_AVAILABLE, INVALID_REQUEST, UNKNOWN = 16, 23, 86, 15, 42, -1
LONGEST_ID = "c" * 32_760
PREPARING = "PreparingRebalance"
BROKERS, PARKED_MS = 3, 1000
MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an incompatible broker. "
    "See the broker logs for more details."
)
SHARE = 2


def join(group: Group, *protocols: tuple[str, bytes], kind: str = "consumer", version: int = 3) -> Any:
    """Send the first JoinGroup of a member, and return the response, or None if there is none within a second.

    protocols: (name, metadata) of each protocol that the member offers. kind: the protocol type.
    """
    offered = [JoinGroupRequestProtocol(*protocol) for protocol in protocols]
    connection = group.connect()
    group.subject.send(connection, JoinGroupRequest(group.id, 10_000, 10_000, "", None, kind, offered), version)
    response = group.subject.answer_or_none(connection, PARKED_MS)
    return None if response is None else response.message


@pytest.mark.rule("GC-27")
@pytest.mark.parametrize("names", ["aa", "abab", "abba"])
def test_join_group_that_offers_each_protocol_twice_gets_no_response(subject: Subject, names: str) -> None:
    """Kafka chooses a protocol only if the number of offers for it equals the number of members. Two offers of one member count as two.

    So Kafka cannot choose a protocol for a group whose only member offers each protocol twice. names: the offered protocols, each with a name of one
    letter.
    """
    group = Group(subject)
    assert join(group, *((name, b"") for name in names)) is None
    assert group.state()[0] == PREPARING
    assert join(group, ("a", b"")).error_code == INCONSISTENT


@pytest.mark.rule("GC-27")
def test_join_group_protocol_listed_twice_is_not_chosen_if_another_is_listed_once(subject: Subject) -> None:
    group = Group(subject)
    response = join(group, ("a", b"1"), ("b", b"2"), ("a", b"3"))
    assert (response.error_code, response.protocol_name) == (0, "b")
    assert [bytes(member.metadata) for member in response.members] == [b"2"]
    assert join(group, ("a", b"")).error_code == INCONSISTENT


@pytest.mark.rule("GC-65")
@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">hi", 0, 1000),
        struct.pack(">hi", 0, -1),
        struct.pack(">hi", 9, 1000),
        struct.pack(">hih", 0, 1, -1),
        subscription("abc")[:9],
        struct.pack(">hii", 0, 0, 1000),
    ],
    ids=["topics", "negative", "version-9", "null-topic", "topic", "user-data"],
)
def test_join_group_with_an_invalid_array_length_in_a_subscription_gets_no_response(
    subject: Subject, data: bytes
) -> None:
    group = Group(subject)
    assert join(group, ("range", data)) is None
    assert group.state()[0] == PREPARING


@pytest.mark.rule("GC-61", "GC-65")
@pytest.mark.parametrize(
    ("data", "is_read"),
    [
        (b"", True),
        (b"\0\1", True),
        (struct.pack(">h", -1), True),
        (struct.pack(">hih", 0, 1, 0)[:7], True),
        (struct.pack(">hi", 0, 0), True),
        (b"\0\1" + subscription("other")[2:], False),
        (struct.pack(">hiii", 1, 0, -1, 1000), False),
    ],
    ids=["empty", "version", "negative-version", "no-topic", "no-user-data", "no-owned-partitions", "owned-partitions"],
)
def test_offset_delete_fails_for_every_topic_if_a_members_subscription_is_truncated(
    subject: Subject, data: bytes, is_read: bool
) -> None:
    """The only member of a group joins with an invalid subscription. OffsetDelete then names a topic that the subscription does not name.

    If the subscription ends before the end of its user data, or has a negative version, the group counts as subscribed to every topic, so
    OffsetDelete gets GROUP_SUBSCRIBED_TO_TOPIC. If only fields after the user data are missing or invalid, OffsetDelete gets no error, because the
    coordinator does not decode these fields. data: the subscription. is_read: whether the coordinator decodes the missing or invalid part of `data`.
    """
    group = Group(subject)
    assert join(group, ("range", data)).error_code == 0
    topic = new_topic(subject).name
    assert group.delete_offsets({topic: [0]}) == (0, {(topic, 0): SUBSCRIBED if is_read else 0})


@pytest.mark.rule("GC-65")
def test_join_group_with_protocol_type_connect_accepts_undecodable_member_metadata(subject: Subject) -> None:
    assert join(Group(subject), ("p", struct.pack(">hi", 0, 1000)), kind="connect").error_code == 0


@pytest.mark.rule("W-7", "GC-26")
@pytest.mark.parametrize(
    ("version", "client_id", "instance_id"), [(3, LONGEST_ID, None), (9, LONGEST_ID, None), (9, "pc", LONGEST_ID)]
)
def test_join_group_gets_unknown_server_error_if_the_new_member_id_is_too_long(
    subject: Subject, version: int, client_id: str, instance_id: str | None
) -> None:
    """A new member id consists of the client id or the group instance id, and a UUID. One of these two ids is very long in this test.

    The member id is therefore too long for the response, whose strings have at most 32,767 bytes. The connection stays open. DescribeGroups of a
    group with such a member gets the same error.
    """
    group = Group(subject)
    connection = subject.connect(group.coordinator(), client_id)
    protocols = [JoinGroupRequestProtocol("range", subscription("t"))]
    request = JoinGroupRequest(group.id, 10_000, 10_000, "", instance_id, "consumer", protocols)
    response = subject.ask(connection, request, version)
    assert (response.error_code, response.leader, response.member_id, response.members) == (UNKNOWN, "", "", [])
    [described] = subject.ask(connection, DescribeGroupsRequest([group.id]), 5).groups
    assert described.error_code == (0 if version == 9 and instance_id is None else UNKNOWN)


@pytest.mark.rule("GC-26")
def test_not_coordinator_error_of_join_group_has_no_member_id_if_kip_848_is_enabled(subject: Subject) -> None:
    group = Group(subject)
    member_id = "" if has_new_coordinator(subject) else "M"
    for version in (3, 7, 9):
        request = JoinGroupRequest(group.id, 10_000, 10_000, "M", None, "consumer")
        response = subject.ask(subject.connect((group.coordinator() + 1) % BROKERS), request, version)
        assert (response.error_code, response.member_id) == (NOT_COORDINATOR, member_id)


@pytest.mark.rule("GO-32")
def test_offset_fetch_v1_at_a_non_coordinator_returns_partition_errors_from_4_0_on(subject: Subject) -> None:
    group = Group(subject)
    topic = new_topic(subject).name
    assert commit(group, {topic: {0: (5, None)}}) == {(topic, 0): 0}
    connection = subject.connect((group.coordinator() + 1) % BROKERS)
    request = OffsetFetchRequest(group.id, [OffsetFetchRequestTopic(topic, [0])])
    for version in (2, 7):
        response = subject.ask(connection, request, version)
        assert (response.topics, response.error_code) == ([], NOT_COORDINATOR)
    errors = [p.error_code for t in subject.ask(connection, request, 1).topics for p in t.partitions]
    assert errors == ([NOT_COORDINATOR] if has_new_coordinator(subject) else [])


@pytest.mark.rule("M-8")
def test_find_coordinator_error_for_an_unknown_key_type_says_malformed_request(subject: Subject) -> None:
    for version in (1, 3):
        coordinator = subject.ask(subject.connect(), FindCoordinatorRequest("g", 7), version)
        assert (coordinator.error_code, coordinator.error_message) == (INVALID_REQUEST, MALFORMED)
    for version in (4, 5, 6):
        [coordinator] = subject.ask(
            subject.connect(), FindCoordinatorRequest(key_type=7, coordinator_keys=["g"]), version
        ).coordinators
        assert (coordinator.error_code, coordinator.error_message) == (INVALID_REQUEST, MALFORMED)


@pytest.mark.rule("M-8")
def test_find_coordinator_v4_of_a_share_group_gets_invalid_request_and_empty_message(subject: Subject) -> None:
    coordinator = subject.ask(subject.connect(), FindCoordinatorRequest("g:t:0", SHARE), 3)
    assert (coordinator.error_code, coordinator.error_message) == (INVALID_REQUEST, MALFORMED)
    for version in (4, 5):
        request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=["g:t:0"])
        [coordinator] = subject.ask(subject.connect(), request, version).coordinators
        assert (coordinator.error_code, coordinator.error_message) == (INVALID_REQUEST, "")


@pytest.mark.rule("M-8")
@pytest.mark.releases(before="4.0")
def test_find_coordinator_v6_of_a_share_group_gets_coordinator_not_available_in_3_9(subject: Subject) -> None:
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=["g:t:0"])
    [coordinator] = subject.ask(subject.connect(), request, 6).coordinators
    assert (coordinator.error_code, coordinator.error_message) == (NOT_AVAILABLE, "")


@pytest.mark.rule("M-8")
@pytest.mark.releases(first="4.0")
def test_find_coordinator_v6_of_a_share_group_gets_invalid_request_from_4_0_on(subject: Subject) -> None:
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=["g:t:0"])
    [coordinator] = subject.ask(subject.connect(), request, 6).coordinators
    assert (coordinator.error_code, coordinator.error_message) == (INVALID_REQUEST, "")
