"""Tests of group coordinators that restart or move to another broker, together with the leadership of the group's offsets partition."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.groups import Group, commit, has_new_coordinator, make_stable, two_replicas
from kafkaproto.conformance.internal_topics import reassign
from kafkaproto.conformance.scene import held, make_lead, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
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

pytestmark = pytest.mark.needs("group.initial.rebalance.delay.ms", offsets_topic=True)


@pytest.mark.rule("GC-7", "GO-11", "GO-12", "SN-20")
def test_members_get_error_not_coordinator_and_continue_at_the_new_coordinator(subject: Subject) -> None:
    """Parked joins get NOT_COORDINATOR from the previous coordinator. Members then continue at the next coordinator (scenario SN-20)."""
    topic = new_topic(subject).name
    joining, stable = Group(subject, 0), Group(subject, 0)
    before = joining.coordinator()
    after = (before + 1) % len(subject.bootstrap)
    subject.need_broker(1)
    member, waiting, late = stable.client(), joining.client(), joining.client()
    make_stable(member)
    assert member.commit({topic: {0: (5, "x")}}) == {(topic, 0): 0}
    make_stable(waiting)
    late.send_enter()
    assert late.is_parked()

    reassign(joining.offsets, before, after)
    try:
        make_lead(joining.offsets, after)
        response = late.joined()
        assert (response.error_code, response.generation_id) == (16, -1)
        assert (member.heartbeat(), member.join().error_code, member.sync().error_code) == (16, 16, 16)
        assert stable.describe(before).error_code == 16
        group_ids = [g.group_id for g in subject.ask_once(ListGroupsRequest(), 4, before).groups]
        assert stable.id not in group_ids
        assert stable.coordinator() == after
        member.connection = stable.connect()
        assert (member.heartbeat(), member.sync().assignment) == (0, b"a0")
        assert stable.committed() == {(topic, 0): 5}
        assert stable.state() == ("Stable", 1)
    finally:
        reassign(joining.offsets, before)
    assert stable.coordinator() == before
    member.connection = stable.connect()
    assert member.heartbeat() == 0


@pytest.mark.rule("GO-4", "GO-29")
def test_offset_fetch_does_not_return_a_commit_that_is_not_replicated_yet(subject: Subject) -> None:
    topic = new_topic(subject).name
    group = Group(subject, 0)
    with two_replicas(group) as follower:
        client, stable = group.client(), group.client()
        assert commit(group, {topic: {0: (5, "x")}}) == {(topic, 0): 0}
        with held(subject, group.offsets, follower):
            partition = OffsetCommitRequestPartition(0, 6)
            request = OffsetCommitRequest(group.id, topics=[OffsetCommitRequestTopic(topic, partitions=[partition])])
            subject.send(client.connection, request, 8)
            assert client.is_parked()
            assert group.committed() == {(topic, 0): 5}
            subject.send(stable.connection, group.fetch_request({topic: [0]}, require_stable=True), 8)
            if has_new_coordinator(subject):
                assert stable.is_parked()
            else:
                assert _only_result(subject.answer(stable.connection).message) == (-1, 88)
        [topic_result] = subject.answer(client.connection).message.topics
        assert topic_result.partitions[0].error_code == 0
        if has_new_coordinator(subject):
            assert _only_result(subject.answer(stable.connection).message) == (6, 0)
        assert group.committed() == {(topic, 0): 6}
        assert _only_result(group.ask(group.fetch_request({topic: [0]}, require_stable=True), 8)) == (6, 0)


@pytest.mark.rule("GC-59", "GC-60")
def test_kip_848_coordinator_replicates_offset_and_group_deletions_before_it_replies(subject: Subject) -> None:
    """OffsetDelete and DeleteGroups are parked until their tombstones are replicated. Kafka's group coordinator in Scala responds at once."""
    topic = new_topic(subject, partitions=2).name
    group = Group(subject, 0)
    with two_replicas(group) as follower:
        client = group.client()
        offsets = OffsetDeleteRequest(group.id, [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(0)])])
        for request, version in ((offsets, 0), (DeleteGroupsRequest([group.id]), 2)):
            assert commit(group, {topic: {0: (5, ""), 1: (5, "")}}) == {(topic, 0): 0, (topic, 1): 0}
            with held(subject, group.offsets, follower):
                subject.send(client.connection, request, version)
                if has_new_coordinator(subject):
                    assert client.is_parked()
            response = subject.answer(client.connection).message
            assert (response.error_code if version == 0 else response.results[0].error_code) == 0
            expected = {(topic, 1): 5} if version == 0 else {}
            assert group.committed() == expected


def _only_result(response: Any) -> tuple[int, int]:
    """Return (offset, error) of the only partition in an OffsetFetch response."""
    [group] = response.groups
    [topic] = group.topics
    [partition] = topic.partitions
    return partition.committed_offset, partition.error_code


@pytest.mark.rule("GC-14", "GO-7", "GO-11", "SN-27")
def test_group_members_and_offsets_survive_a_restart_of_the_coordinator(subject: Subject) -> None:
    """The broker is stopped and started again; members keep their generation, and committed offsets can be fetched (scenario SN-27)."""
    topic = new_topic(subject).name
    group, empty = Group(subject, 0), Group(subject, 0)
    client, leaving_client = group.client(session_ms=60_000), empty.client()
    make_stable(client)
    make_stable(leaving_client)
    empty.leave((leaving_client.member_id, None))
    client.commit({topic: {0: (5, "x")}})
    broker_id = group.coordinator()
    subject.stop_broker(broker_id)
    subject.start_broker(broker_id)
    assert group.coordinator() == broker_id
    assert group.committed() == {(topic, 0): 5}
    client.connection = group.connect()
    assert client.heartbeat() == 0
    assert client.sync().assignment == b"a0"
    description = empty.describe()
    assert (description.group_state, description.protocol_type) == ("Empty", "consumer")
    assert empty.client().enter().generation_id == 3


@pytest.mark.releases(before="4.0")
@pytest.mark.rule("GC-7")
def test_non_coordinator_before_4_0_ignores_invalid_session_timeouts_of_join_group(subject: Subject) -> None:
    subject.need_broker(1)
    group = Group(subject)
    join = JoinGroupRequest(group.id, 1, 10_000, "m", None, "consumer", [JoinGroupRequestProtocol("range", b"")])
    response = subject.ask_once(join, 5, (group.coordinator() + 1) % len(subject.bootstrap))
    assert (response.error_code, response.member_id) == (16, "m")


@pytest.mark.rule("M-14")
def test_parked_join_group_gets_not_coordinator_when_the_coordinator_is_stopped(subject: Subject) -> None:
    group = Group(subject)
    make_stable(group.client())
    late = group.client()
    late.send_enter()
    assert late.is_parked()
    subject.stop_broker(group.coordinator())
    assert late.joined().error_code == 16
