"""Tests of requests while a change of a group is not replicated, with Kafka's group coordinator in Java (GC-66).

Requests that only read, such as DescribeGroups, see the state up to the high watermark. Other requests, such as Heartbeat, wait until the records
of earlier requests are replicated, even if they happen to write no record themselves. They also wait for records of other groups in the same
partition of the offsets topic.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.consumer_groups import ALL, TIMEOUT_MS, ConsumerGroup
from kafkaproto.conformance.groups import Client, Group, commit, make_stable, moving, two_replicas
from kafkaproto.conformance.internal_topics import topic_setting
from kafkaproto.conformance.scene import held, make_lead, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_group_migration import Consumer, member_types
from kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

PROFILE = "consumer"
pytestmark = [pytest.mark.needs(offsets_topic=True), pytest.mark.rule("GC-66")]

TIMED_OUT, METADATA_TOO_LARGE, NOT_AVAILABLE, NOT_COORDINATOR, UNKNOWN_MEMBER = 7, 12, 15, 16, 25
NON_EMPTY, NOT_FOUND = 68, 69
ILLEGAL_GENERATION = 22
COMMIT_TIMEOUT_MS = 5_000
"""The default of `offsets.commit.timeout.ms`: the time in ms after which an offset commit fails if its record is not replicated."""
TOO_LARGE = "x" * 5000


def send(group: Group, request: Any, version: int) -> Client:
    """Send a request to the coordinator on a connection of its own. Returns the client that waits for the response."""
    client = group.client()
    group.subject.send(client.connection, request, version)
    return client


def commit_of(group: Group, topic: str, offset: int, metadata: str = "") -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(0, offset, committed_metadata=metadata)
    return OffsetCommitRequest(group.id, topics=[OffsetCommitRequestTopic(topic, partitions=[partition])])


def join_of(group: ConsumerGroup, member_id: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group.id,
        member_id,
        0,
        rebalance_timeout_ms=TIMEOUT_MS,
        subscribed_topic_names=[group.topic.name],
        topic_partitions=[],
    )


def listed_state(group: Group) -> str | None:
    """Return the state of the group in ListGroups, None if it is not listed."""
    states = {entry.group_id: entry.group_state for entry in group.ask(ListGroupsRequest(), 4).groups}
    return states.get(group.id)


def _parked(group: Group, request: Any, version: int) -> Client:
    """Send a request that the coordinator parks, and return the client that waits for the response.

    The function also sends ListGroups and waits for its response, so the coordinator has processed the parked request when the function returns.
    """
    client = send(group, request, version)
    assert client.is_parked()
    listed_state(group)
    return client


def test_member_with_unreplicated_join_is_not_described_and_cannot_fetch_offsets(subject: Subject) -> None:
    group = ConsumerGroup(subject, 0)
    with two_replicas(group) as follower:
        assert group.enter("A") == (1, ALL)
        with held(subject, group.offsets, follower):
            joining = send(group, join_of(group, "B"), group.version)
            assert joining.is_parked()
            assert (group.epochs, [member.member_id for member in group.described().members]) == (
                ("Stable", 1, 1),
                ["A"],
            )
            assert listed_state(group) == "Stable"
            fetch = group.fetch_request({group.topic.name: [0]})
            fetch.groups[0].member_id, fetch.groups[0].member_epoch = "B", 2
            assert group.ask(fetch, 9).groups[0].error_code == UNKNOWN_MEMBER
        assert subject.answer(joining.connection).message.member_epoch == 2
        assert {member.member_id for member in group.described().members} == {"A", "B"}


def test_heartbeats_and_errors_wait_for_replication_of_another_groups_offset_commit(subject: Subject) -> None:
    ConsumerGroup(subject)  # skips the test unless the broker has the coordinator in Java
    topic, group, other = new_topic(subject).name, Group(subject, 0), Group(subject, 0)
    with two_replicas(group) as follower:
        member = group.client()
        make_stable(member)
        assert commit(group, {topic: {0: (5, "")}}, member_id=member.member_id, generation_id_or_member_epoch=1) == {
            (topic, 0): 0
        }
        with held(subject, group.offsets, follower):
            earlier = send(other, commit_of(other, topic, 6), 8)
            assert earlier.is_parked()
            heartbeat = send(group, HeartbeatRequest(group.id, member.generation, member.member_id, None), 3)
            fetch = send(group, group.fetch_request({topic: [0]}, require_stable=True), 8)
            too_large = send(other, commit_of(other, topic, 7, TOO_LARGE), 8)
            unknown = LeaveGroupRequest(group.id, members=[MemberIdentity("unknown", None)])
            leave = send(group, unknown, 4)
            delete = send(group, DeleteGroupsRequest([group.id]), 2)
            assert all(client.is_parked() for client in (heartbeat, fetch, too_large, leave, delete))
        assert subject.answer(earlier.connection).message.topics[0].partitions[0].error_code == 0
        assert subject.answer(heartbeat.connection).message.error_code == 0
        [offsets] = subject.answer(fetch.connection).message.groups
        assert (offsets.topics[0].partitions[0].committed_offset, offsets.topics[0].partitions[0].error_code) == (5, 0)
        assert subject.answer(too_large.connection).message.topics[0].partitions[0].error_code == METADATA_TOO_LARGE
        assert subject.answer(leave.connection).message.members[0].error_code == UNKNOWN_MEMBER
        assert subject.answer(delete.connection).message.results[0].error_code == NON_EMPTY


def test_rejoin_and_unknown_member_heartbeat_do_not_wait_for_an_unreplicated_commit(subject: Subject) -> None:
    ConsumerGroup(subject)
    topic, group, other = new_topic(subject).name, Group(subject, 0), Group(subject, 0)
    with two_replicas(group) as follower:
        member = group.client()
        make_stable(member)
        with held(subject, group.offsets, follower):
            earlier = send(other, commit_of(other, topic, 6), 8)
            assert earlier.is_parked()
            assert group.client("unknown").heartbeat(generation_id=1) == UNKNOWN_MEMBER
            assert member.join().error_code == 0
        assert subject.answer(earlier.connection).message.topics[0].partitions[0].error_code == 0


@pytest.mark.rule("GN-57", "GN-60")
def test_classic_join_and_sync_in_a_kip_848_group_wait_for_an_unreplicated_commit(subject: Subject) -> None:
    group, topic, other = ConsumerGroup(subject, 0), new_topic(subject).name, Group(subject, 0)
    with two_replicas(group) as follower:
        assert group.enter("A") == (1, ALL)
        member = Consumer(group)
        assert (member.enter().error_code, member.sync().error_code, member.generation) == (0, 0, 2)
        joining = Consumer(group, member_id=member.member_id)
        with held(subject, group.offsets, follower):
            earlier = send(other, commit_of(other, topic, 6), 8)
            assert earlier.is_parked()
            assert member.sync(generation_id=1).error_code == ILLEGAL_GENERATION
            member.send_sync()
            joining.send_join()
            assert member.is_parked() and joining.is_parked()
        assert subject.answer(earlier.connection).message.topics[0].partitions[0].error_code == 0
        assert member.synced().error_code == 0
        assert (joining.joined().error_code, joining.generation) == (0, 2)


@pytest.mark.rule("GN-59", "GN-60")
def test_classic_member_is_removed_if_an_unreplicated_commit_delays_sync_too_long(subject: Subject) -> None:
    group, topic, other = ConsumerGroup(subject, 0), new_topic(subject).name, Group(subject, 0)
    with two_replicas(group) as follower:
        assert group.enter("A") == (1, ALL)
        member = Consumer(group, session_ms=30_000, rebalance_ms=3_000)
        assert (member.enter().error_code, set(member_types(group))) == (0, {"A", member.member_id})
        with held(subject, group.offsets, follower):
            assert send(other, commit_of(other, topic, 6), 8).is_parked()
            member.send_sync()
            assert member.is_parked()
            assert member.synced().error_code == NOT_AVAILABLE
        wait_until(
            subject,
            lambda: set(member_types(group)) == {"A"},
            f"the removal of classic member {member.member_id} from group {group.id} is replicated",
        )


def test_deleted_offset_and_group_are_returned_until_tombstones_are_replicated(subject: Subject) -> None:
    ConsumerGroup(subject)
    topic, group = new_topic(subject).name, Group(subject, 0)
    with two_replicas(group) as follower:
        assert commit(group, {topic: {0: (5, "")}}) == {(topic, 0): 0}
        with held(subject, group.offsets, follower):
            deletion = OffsetDeleteRequest(
                group.id, [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(0)])]
            )
            offset = send(group, deletion, 0)
            assert offset.is_parked()
            deleted = send(group, DeleteGroupsRequest([group.id]), 2)
            assert deleted.is_parked()
            assert (group.committed(), listed_state(group)) == ({(topic, 0): 5}, "Empty")
        assert subject.answer(offset.connection).message.error_code == 0
        assert subject.answer(deleted.connection).message.results[0].error_code == 0
        assert (group.committed(), listed_state(group)) == ({}, None)


def test_offset_delete_and_delete_groups_also_delete_an_unreplicated_offset_commit(subject: Subject) -> None:
    ConsumerGroup(subject)
    topic, group, other = new_topic(subject).name, Group(subject, 0), Group(subject, 0)
    with two_replicas(group) as follower:
        with held(subject, group.offsets, follower):
            commits = [send(each, commit_of(each, topic, 6), 8) for each in (group, other)]
            assert all(client.is_parked() for client in commits)
            deletion = OffsetDeleteRequest(
                group.id, [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(0)])]
            )
            offset = send(group, deletion, 0)
            deleted = send(other, DeleteGroupsRequest([other.id]), 2)
            assert offset.is_parked() and deleted.is_parked()
        for client in commits:
            assert subject.answer(client.connection).message.topics[0].partitions[0].error_code == 0
        assert subject.answer(offset.connection).message.error_code == 0
        assert subject.answer(deleted.connection).message.results[0].error_code == 0
        assert (group.committed(), listed_state(group)) == ({}, "Empty")
        assert (other.committed(), listed_state(other)) == ({}, None)


def test_parked_offset_fetch_with_require_stable_ignores_a_commit_sent_afterwards(subject: Subject) -> None:
    ConsumerGroup(subject)
    topic, group = new_topic(subject).name, Group(subject, 0)
    with two_replicas(group) as follower:
        with held(subject, group.offsets, follower):
            earlier = send(group, commit_of(group, topic, 5), 8)
            assert earlier.is_parked()
            fetch = send(group, group.fetch_request({topic: [0]}, require_stable=True), 8)
            assert fetch.is_parked()
            later = send(group, commit_of(group, topic, 6), 8)
            assert later.is_parked()
        [offsets] = subject.answer(fetch.connection).message.groups
        assert offsets.topics[0].partitions[0].committed_offset == 5
        for client in (earlier, later):
            assert subject.answer(client.connection).message.topics[0].partitions[0].error_code == 0
        assert group.committed() == {(topic, 0): 6}


@pytest.mark.rule("GO-23")
def test_timed_out_offset_commit_takes_effect_when_its_record_is_replicated_later(subject: Subject) -> None:
    ConsumerGroup(subject)
    topic, group = new_topic(subject).name, Group(subject, 0)
    with two_replicas(group) as follower:
        assert commit(group, {topic: {0: (5, "")}}) == {(topic, 0): 0}
        with held(subject, group.offsets, follower):
            late = send(group, commit_of(group, topic, 6), 8)
            assert late.is_parked()
            error = subject.answer(late.connection).message.topics[0].partitions[0].error_code
            assert (error, group.committed()) == (NOT_AVAILABLE, {(topic, 0): 5})
        wait_until(
            subject,
            lambda: group.committed() == {(topic, 0): 6},
            f"the timed-out commit of offset 6 for {topic}-0 in group {group.id} takes effect",
        )


@pytest.mark.rule("GO-23", "GO-29")
def test_commits_and_joins_below_min_isr_time_out_but_take_effect_after_replication(subject: Subject) -> None:
    """The coordinator in Java appends records whatever `min.insync.replicas` says, and waits for their replication."""
    consumers, topic, classic = ConsumerGroup(subject, 0), new_topic(subject).name, Group(subject, 0)
    unstable = NOT_COORDINATOR if consumers.is_release_4 else TIMED_OUT
    with two_replicas(classic) as follower:
        member = classic.client()
        make_stable(member)
        assert commit(consumers, {topic: {0: (5, "")}}) == {(topic, 0): 0}
        with topic_setting(classic.offsets, "min.insync.replicas", "2"):
            subject.stop_broker(follower)
            wait_until(
                subject,
                lambda: len(classic.offsets.partition().isr_nodes) == 1,
                "only the leader of __consumer_offsets-0 is in sync",
            )
            committing = send(consumers, commit_of(consumers, topic, 6), 8)
            heartbeat = send(classic, HeartbeatRequest(classic.id, member.generation, member.member_id, None), 3)
            fetch = send(consumers, consumers.fetch_request({topic: [0]}, require_stable=True), 8)
            waiting = committing, heartbeat, fetch
            assert all(client.is_parked() for client in waiting)
            responses = [subject.answer(client.connection) for client in waiting]
            for response in responses:
                subject.assert_took(response, COMMIT_TIMEOUT_MS)
            committed, alive, offsets = (response.message for response in responses)
            assert committed.topics[0].partitions[0].error_code == NOT_AVAILABLE
            assert alive.error_code == NOT_AVAILABLE
            assert offsets.groups[0].error_code == unstable
            assert consumers.committed() == {(topic, 0): 5}
            joining = send(consumers, join_of(consumers, "A"), consumers.version)
            assert subject.answer(joining.connection).message.error_code == NOT_AVAILABLE
            subject.start_broker(follower)
            wait_until(
                subject,
                lambda: len(classic.offsets.partition().isr_nodes) == 2,
                "both replicas of __consumer_offsets-0 are in sync",
            )
        wait_until(
            subject,
            lambda: consumers.committed() == {(topic, 0): 6},
            f"the timed-out commit of offset 6 for {topic}-0 in group {consumers.id} takes effect",
        )
        assert [entry.member_id for entry in consumers.described().members] == ["A"]


@pytest.mark.rule("GO-11")
def test_new_coordinator_does_not_return_an_offset_commit_before_it_is_replicated(subject: Subject) -> None:
    ConsumerGroup(subject)
    topic, group = new_topic(subject).name, Group(subject, 0)
    with moving(group) as (after, follower):
        assert commit(group, {topic: {0: (5, "")}}) == {(topic, 0): 0}
        with held(subject, group.offsets, follower):
            unreplicated_commit = send(group, commit_of(group, topic, 6), 8)
            assert unreplicated_commit.is_parked()
            make_lead(group.offsets, after)
            wait_until(
                subject, lambda: group.coordinator() == after, f"broker {after} is the coordinator of group {group.id}"
            )
            stable = send(group, group.fetch_request({topic: [0]}, require_stable=True), 8)
            assert stable.is_parked()
            assert group.committed() == {(topic, 0): 5}
        [offsets] = subject.answer(stable.connection).message.groups
        assert offsets.topics[0].partitions[0].committed_offset == 6
        assert group.committed() == {(topic, 0): 6}


@pytest.mark.rule("GC-59")
@pytest.mark.parametrize(
    ("second_error", "is_kept"),
    [
        pytest.param(NOT_FOUND, True, marks=pytest.mark.releases(before="4.1"), id="one-stage"),
        pytest.param(0, False, marks=pytest.mark.releases(first="4.1"), id="two-stages"),
    ],
)
def test_commit_after_two_unreplicated_delete_groups_survives_only_before_kafka_4_1(
    subject: Subject, second_error: int, is_kept: bool
) -> None:
    ConsumerGroup(subject)
    topic, group = new_topic(subject).name, Group(subject, 0)
    with two_replicas(group) as follower:
        assert commit(group, {topic: {0: (5, "")}}) == {(topic, 0): 0}
        with held(subject, group.offsets, follower):
            deletions = [_parked(group, DeleteGroupsRequest([group.id]), 2) for _ in range(2)]
            later = _parked(group, commit_of(group, topic, 6), 8)
        errors = [subject.answer(client.connection).message.results[0].error_code for client in deletions]
        assert errors == [0, second_error]
        assert subject.answer(later.connection).message.topics[0].partitions[0].error_code == 0
        assert (group.committed(), listed_state(group)) == (({(topic, 0): 6}, "Empty") if is_kept else ({}, None))


@pytest.mark.releases(first="4.1")
@pytest.mark.rule("GC-59")
def test_group_is_not_deleted_if_its_coordinator_moves_while_delete_groups_waits(subject: Subject) -> None:
    topic, group, other = new_topic(subject).name, Group(subject, 0), Group(subject, 0)
    with moving(group) as (after, follower):
        assert commit(group, {topic: {0: (5, "")}}) == {(topic, 0): 0}
        with held(subject, group.offsets, follower):
            earlier = send(other, commit_of(other, topic, 6), 8)
            assert earlier.is_parked()
            deletion = send(group, DeleteGroupsRequest([group.id]), 2)
            assert deletion.is_parked()
            make_lead(group.offsets, after)
            assert subject.answer(deletion.connection).message.results[0].error_code == NOT_COORDINATOR
            wait_until(
                subject, lambda: group.coordinator() == after, f"broker {after} is the coordinator of group {group.id}"
            )
        wait_until(
            subject,
            lambda: other.committed() == {(topic, 0): 6},
            f"the commit of offset 6 for {topic}-0 in group {other.id} is replicated and takes effect",
        )
        assert (group.committed(), listed_state(group)) == ({(topic, 0): 5}, "Empty")


@pytest.mark.releases(first="4.1")
@pytest.mark.rule("GC-59")
def test_delete_groups_that_times_out_behind_an_unreplicated_commit_keeps_the_group(subject: Subject) -> None:
    topic, group, other = new_topic(subject).name, Group(subject, 0), Group(subject, 0)
    with two_replicas(group) as follower:
        assert commit(group, {topic: {0: (5, "")}}) == {(topic, 0): 0}
        with held(subject, group.offsets, follower):
            assert send(other, commit_of(other, topic, 6), 8).is_parked()
            deletion = send(group, DeleteGroupsRequest([group.id]), 2)
            assert deletion.is_parked()
            assert subject.answer(deletion.connection).message.results[0].error_code == NOT_AVAILABLE
        wait_until(
            subject,
            lambda: other.committed() == {(topic, 0): 6},
            f"the commit of offset 6 for {topic}-0 in group {other.id} is replicated and takes effect",
        )
        assert (group.committed(), listed_state(group)) == ({(topic, 0): 5}, "Empty")
