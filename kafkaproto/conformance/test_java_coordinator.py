"""Tests of Kafka's group coordinator in Java: how its classic groups and offsets differ from those of Kafka's coordinator in Scala.

Kafka 4 always uses the coordinator in Java; Kafka 3.9 uses it if the new protocol (KIP-848) is enabled.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kafkaproto.conformance.consumer_groups import ConsumerGroup
from kafkaproto.conformance.groups import Group, subscription
from kafkaproto.conformance.pending_members import (
    LEAVES,
    Leave,
    Outcome,
    described_in_rebalances,
    group_after_offset_delete_without_commit,
    outcome_in_stable_group,
    outcome_in_sync_phase,
)
from kafkaproto.conformance.scene import new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_topic_ids import UNKNOWN_PARTITION, Parts, commit, committed
from kafkaproto.conformance.test_transactions import begun
from kafkaproto.conformance.transactions import Producer
from kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

PROFILE = "consumer"
pytestmark = pytest.mark.needs(offsets_topic=True)

UNKNOWN, NOT_COORDINATOR, ILLEGAL_GENERATION, NO_COMMON_PROTOCOL, UNKNOWN_MEMBER = -1, 16, 22, 23, 25
INVALID_SESSION_TIMEOUT, INVALID_REQUEST, NOT_FOUND, FENCED_INSTANCE, UNSUPPORTED_ASSIGNOR = 26, 42, 69, 82, 112
BY_NAME = 9


def commit_in_transaction(group: Group, producer: Producer, *parts: Parts) -> list[Parts]:
    topics = [
        TxnOffsetCommitRequestTopic(str(key), [TxnOffsetCommitRequestPartition(*pair) for pair in pairs])
        for key, pairs in parts
    ]
    numbers = producer.producer_id, producer.epoch
    response = group.ask(TxnOffsetCommitRequest(producer.id, group.id, *numbers, topics=topics), 3)
    return [(t.name, [(p.partition_index, p.error_code) for p in t.partitions]) for t in response.topics]


@pytest.fixture
def java(subject: Subject) -> Subject:
    """Return the cluster under test. Skips the test if its group coordinator is not Kafka's coordinator in Java."""
    ConsumerGroup(subject)
    return subject


@pytest.mark.rule("GO-15", "GO-32")
def test_offset_commit_and_fetch_responses_repeat_topics_that_the_request_repeats(java: Subject) -> None:
    first, second, group = new_topic(java, partitions=2), new_topic(java, partitions=2), Group(java)
    producer = begun(java, first)
    assert producer.add_offsets(group) == 0
    first_name, second_name = first.name, second.name
    offsets: list[Parts] = [(first_name, [(0, 1)]), (second_name, [(1, 1)]), (first_name, [(0, 2), (1, 3)])]
    expected: list[Parts] = [(first_name, [(0, 0)]), (second_name, [(1, 0)]), (first_name, [(0, 0), (1, 0)])]
    assert commit(group, *offsets, version=BY_NAME) == expected
    assert commit_in_transaction(group, producer, *offsets) == expected
    unknown: Parts = (first_name, [(9, 1)])
    merged = [(first_name, [(9, UNKNOWN_PARTITION), (0, 0), (0, 0), (1, 0)]), (second_name, [(1, 0)])]
    assert commit(group, *offsets, unknown, version=BY_NAME) == merged
    assert commit_in_transaction(group, producer, *offsets, unknown) == merged
    committed_offsets = committed(
        group, [(second_name, [1]), (first_name, [0, 0]), ("nope", [4]), (second_name, [1]), (first_name, [])], BY_NAME
    )
    assert committed_offsets == [
        (second_name, [(1, 1, 0)]),
        (first_name, [(0, 2, 0)] * 2),
        ("nope", [(4, -1, 0)]),
        (second_name, [(1, 1, 0)]),
        (first_name, []),
    ]


@pytest.mark.rule("GO-15", "GO-21")
def test_txn_offset_commit_rejects_only_the_entry_whose_metadata_is_too_long(java: Subject) -> None:
    """A TxnOffsetCommit request has two entries for one partition. The first, the second or both have metadata that is too long.

    An entry with too long metadata gets error OFFSET_METADATA_TOO_LARGE (12). The offset of the other entry is committed.
    """
    topic, long, short = new_topic(java), "x" * 4097, "x"
    for metadata, errors, stored in (
        ((short, long), [0, 12], {(topic.name, 0): 5}),
        ((long, short), [12, 0], {(topic.name, 0): 6}),
        ((long, long), [12, 12], {}),
    ):
        group, producer = Group(java), begun(java, topic)
        assert producer.add_offsets(group) == 0
        offsets = [
            TxnOffsetCommitRequestPartition(0, offset, committed_metadata=text)
            for offset, text in zip((5, 6), metadata, strict=True)
        ]
        topics = [TxnOffsetCommitRequestTopic(topic.name, offsets)]
        request = TxnOffsetCommitRequest(producer.id, group.id, producer.producer_id, producer.epoch, topics=topics)
        [result] = group.ask(request, 3).topics
        assert [p.error_code for p in result.partitions] == errors
        producer.finish(commit=True)
        assert group.committed() == stored


@pytest.mark.rule("GO-17")
def test_offset_commit_to_an_unknown_group_gets_illegal_generation_only_before_v9(java: Subject) -> None:
    topic, group = new_topic(java).name, Group(java)
    for version, error in ((8, ILLEGAL_GENERATION), (BY_NAME, NOT_FOUND)):
        member = {"generation_id_or_member_epoch": 3, "member_id": "none"}
        assert commit(group, (topic, [(0, 1)]), version=version, **member) == [(topic, [(0, error)])]


@pytest.mark.rule("GC-64", "GO-25")
def test_kip_848_coordinator_keeps_an_empty_group_whose_last_offset_is_deleted(java: Subject) -> None:
    topic = new_topic(java).name
    for_offset, for_topic = Group(java), Group(java)
    for group in (for_offset, for_topic):
        assert commit(group, (topic, [(0, 5)]), version=BY_NAME) == [(topic, [(0, 0)])]
    assert for_offset.delete_offsets({topic: [0]}) == (0, {(topic, 0): 0})
    assert java.ask_once(DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000), 3).responses[0].error_code == 0
    wait_until(
        java,
        lambda: not for_topic.committed(),
        f"the committed offsets of group {for_topic.id} for the deleted topic {topic} are deleted",
    )
    for group in (for_offset, for_topic):
        assert group.state() == ("Empty", 0)
        assert group.ask(DeleteGroupsRequest([group.id]), 2).results[0].error_code == 0


@pytest.mark.rule("GC-56")
def test_list_groups_of_the_kip_848_coordinator_ignores_blanks_in_the_state_filter(java: Subject) -> None:
    topic, group = new_topic(java).name, Group(java)
    commit(group, (topic, [(0, 5)]), version=BY_NAME)
    assert group.id in [entry.group_id for entry in group.ask(ListGroupsRequest([" Empty "], []), 5).groups]


def classic_join(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None = None,
    kind: str = "consumer",
    metadata: bytes | None = None,
) -> Any:
    """Send JoinGroup of the classic protocol to a group of the new protocol, and return the response.

    instance_id: the group instance id; None for a dynamic member. kind: the protocol type. metadata: the bytes of the subscription; None for a
    subscription to the group's topic.
    """
    protocols = [JoinGroupRequestProtocol("range", subscription(group.topic.name) if metadata is None else metadata)]
    request = JoinGroupRequest(group.id, 10_000, 10_000, member_id, instance_id, kind, protocols)
    return group.ask(request, 9)


@pytest.mark.rule("GN-57", "GN-58")
def test_rejected_classic_join_to_a_kip_848_group_gets_a_response_without_member_id(java: Subject) -> None:
    group = ConsumerGroup(java)
    group.enter("A")
    response = classic_join(group, "B", kind="connect")
    assert (response.error_code, response.member_id) == (NO_COMMON_PROTOCOL, "")
    assert classic_join(group, "", "i").error_code == 0
    fenced = classic_join(group, "B", "i")
    assert (fenced.error_code, fenced.member_id) == (FENCED_INSTANCE, "")


@pytest.mark.rule("GN-57")
@pytest.mark.parametrize(
    "metadata",
    [b"", b"m", struct.pack(">h", 1), struct.pack(">hi", -1, 0)],
    ids=["empty", "short", "no-topics", "negative-version"],
)
def test_join_group_reports_a_fenced_instance_id_before_a_malformed_subscription(
    java: Subject, metadata: bytes
) -> None:
    """A JoinGroup with a malformed subscription gets FENCED_INSTANCE_ID if its instance id belongs to a member with another member id.

    A request with a member id, and with an instance id that no member has, gets UNKNOWN_MEMBER_ID. If the member id and the instance id belong to the
    same member, or if the request has only one of the two ids, it gets UNKNOWN_SERVER_ERROR because of the subscription. metadata: the malformed
    subscription.
    """
    group = ConsumerGroup(java)
    group.enter("A", instance_id="i")
    classic_id = classic_join(group, "", "j").member_id
    for member_id, instance_id, error in (
        ("B", "new", UNKNOWN_MEMBER),
        ("A", "new", UNKNOWN_MEMBER),
        ("B", "i", FENCED_INSTANCE),
        ("B", "j", FENCED_INSTANCE),
        ("A", "i", UNKNOWN),
        (classic_id, "j", UNKNOWN),
        ("", "i", UNKNOWN),
        ("", "new", UNKNOWN),
        ("B", None, UNKNOWN),
    ):
        response = classic_join(group, member_id, instance_id, metadata=metadata)
        assert (response.error_code, response.member_id) == (error, ""), (member_id, instance_id)
    assert set(group.targets()) == {"A", classic_id}


@pytest.mark.rule("GC-50")
def test_leave_group_by_instance_id_returns_no_member_id_in_kip_848_groups_since_4_0(java: Subject) -> None:
    group = ConsumerGroup(java)
    group.enter("A")
    join_response = classic_join(group, "", "i")
    leaving = [MemberIdentity("", "i"), MemberIdentity("", "j"), MemberIdentity("B", None)]
    response = group.ask(LeaveGroupRequest(group.id, members=leaving), 5)
    assert [(m.member_id, m.group_instance_id, m.error_code) for m in response.members] == [
        ("" if group.is_release_4 else join_response.member_id, "i", 0),
        ("", "j", UNKNOWN_MEMBER),
        ("B", None, UNKNOWN_MEMBER),
    ]


@pytest.mark.rule("GO-31")
def test_offset_fetch_with_a_member_epoch_but_no_member_id_gets_unknown_server_error(java: Subject) -> None:
    group = ConsumerGroup(java)
    group.enter("A")
    for member_id, epoch, error in ((None, 0, UNKNOWN), (None, -1, 0), ("", 0, UNKNOWN_MEMBER), ("A", 1, 0)):
        topics = [OffsetFetchRequestTopics(group.topic.name, partition_indexes=[0])]
        requested_group = OffsetFetchRequestGroup(group.id, member_id=member_id, member_epoch=epoch, topics=topics)
        [result] = group.ask(OffsetFetchRequest(groups=[requested_group]), 9).groups
        assert result.error_code == error, (member_id, epoch)


@pytest.mark.rule("GO-15", "GC-60")
def test_offset_delete_of_a_repeated_partition_returns_a_result_for_each_repetition(java: Subject) -> None:
    topic, group = new_topic(java).name, Group(java)
    assert commit(group, (topic, [(0, 5)]), version=BY_NAME) == [(topic, [(0, 0)])]
    partitions = [OffsetDeleteRequestPartition(0), OffsetDeleteRequestPartition(0)]
    response = group.ask(OffsetDeleteRequest(group.id, [OffsetDeleteRequestTopic(topic, partitions)]), 0)
    assert [(p.partition_index, p.error_code) for p in response.topics[0].partitions] == [(0, 0), (0, 0)]


@pytest.mark.rule("GC-19", "GC-48")
@pytest.mark.parametrize("leave", LEAVES)
def test_kip_848_coordinator_rebalances_a_classic_group_that_a_pending_member_leaves(
    java: Subject, leave: Leave
) -> None:
    assert outcome_in_stable_group(java, leave) == Outcome((), (27, 27), "PreparingRebalance")
    assert outcome_in_sync_phase(java, leave) == Outcome((27, 27), (27, 27), "PreparingRebalance")


@pytest.mark.rule("GC-52")
def test_describe_groups_returns_the_previous_assignment_during_a_rebalance(java: Subject) -> None:
    assert described_in_rebalances(java) == [
        ("PreparingRebalance", [(b"", b"a0"), (b"", b"")]),
        ("CompletingRebalance", [(b"", b"a0"), (b"", b"")]),
        ("PreparingRebalance", [(b"", b""), (b"", b"")]),
    ]


@pytest.mark.rule("GC-64")
def test_kip_848_coordinator_keeps_an_empty_group_if_offset_delete_finds_no_offset(java: Subject) -> None:
    assert group_after_offset_delete_without_commit(java) == "Empty"


def at_another_broker(group: Group, request: Any, version: int) -> Any:
    """Send a request to a broker that does not coordinate the group, and return the response."""
    group.subject.need_broker(1)
    return group.subject.ask_once(request, version, (group.coordinator() + 1) % len(group.subject.bootstrap))


@pytest.mark.rule("GC-7")
@pytest.mark.parametrize(
    ("session_ms", "expected"),
    [
        pytest.param(1, (INVALID_SESSION_TIMEOUT, "m"), id="too-short"),
        pytest.param(99_999_999, (INVALID_SESSION_TIMEOUT, "m"), id="too-long"),
        pytest.param(10_000, (NOT_COORDINATOR, ""), id="valid"),
    ],
)
def test_join_group_at_a_non_coordinator_with_kip_848_checks_its_session_timeout(
    java: Subject, session_ms: int, expected: tuple[int, str]
) -> None:
    group = Group(java)
    join = JoinGroupRequest(
        group.id, session_ms, 10_000, "m", None, "consumer", [JoinGroupRequestProtocol("range", b"")]
    )
    response = at_another_broker(group, join, 5)
    assert (response.error_code, response.member_id) == expected


@pytest.mark.rule("GC-7", "GN-5")
@pytest.mark.parametrize(
    "checks_first",
    [
        pytest.param(False, marks=pytest.mark.releases(before="4.1"), id="last"),
        pytest.param(True, marks=pytest.mark.releases(first="4.1"), id="first"),
    ],
)
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"group_id": ""}, INVALID_REQUEST, id="empty group id"),
        pytest.param({"instance_id": ""}, INVALID_REQUEST, id="empty instance id"),
        pytest.param({"rack_id": ""}, INVALID_REQUEST, id="empty rack id"),
        pytest.param({"member_id": "", "member_epoch": 1}, INVALID_REQUEST, id="empty member id"),
        pytest.param({"member_epoch": -3}, INVALID_REQUEST, id="epoch -3"),
        pytest.param({"member_epoch": -2}, INVALID_REQUEST, id="epoch -2 without instance id"),
        pytest.param({"rebalance_timeout_ms": -1}, INVALID_REQUEST, id="no rebalance timeout"),
        pytest.param({"subscribed_topic_names": None}, INVALID_REQUEST, id="no subscription"),
        pytest.param({"server_assignor": "unknown"}, UNSUPPORTED_ASSIGNOR, id="unknown assignor"),
        pytest.param({"server_assignor": ""}, UNSUPPORTED_ASSIGNOR, id="empty assignor"),
        pytest.param({"member_epoch": 5}, NOT_COORDINATOR, id="unknown epoch"),
    ],
)
def test_non_coordinator_rejects_bad_consumer_group_heartbeat_fields_from_4_1_on(
    subject: Subject, changes: dict[str, Any], error: int, checks_first: bool
) -> None:
    group = ConsumerGroup(subject, 0)  # the empty group id belongs to partition 0, too
    heartbeat = ConsumerGroupHeartbeatRequest(
        group.id, "m", 0, rebalance_timeout_ms=1_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    for name, value in changes.items():
        setattr(heartbeat, name, value)
    response = at_another_broker(group, heartbeat, group.version)
    assert response.error_code == (error if checks_first else NOT_COORDINATOR)
    assert (response.error_message is None) == (response.error_code == NOT_COORDINATOR)
    assert (response.member_id, response.heartbeat_interval_ms) == (None, 0)
