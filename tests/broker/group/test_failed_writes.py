"""Changes of groups whose records cannot be written, or are not replicated yet, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
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
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kafkaproto.partitioner import java_hash
from tests.support.broker.consumer_group import FENCED_EPOCH, UNKNOWN_MEMBER, Group
from tests.support.broker.group_bench import subscription
from tests.support.scene import elect, hold, release

OFFSETS = "__consumer_offsets"
NOT_LEADER, NOT_COORDINATOR = 6, 16


@contextmanager
def refused(group: Group) -> Iterator[None]:
    """Let the log of the coordinator refuse records that wait for no replica."""
    log = group.cluster.state.nodes[group.cluster.state.coordinator_of("g")].groups.groups._storage._log
    assert log is not None
    with patch.object(log, "append_only", lambda index, entries, now_ms: NOT_LEADER):
        yield


def index_of(group: Group) -> int:
    return java_hash("g") % len(group.cluster.state.controller.image.topics[OFFSETS].partitions)


def join(group: Group) -> Any:
    protocols = [JoinGroupRequestProtocol("range", subscription("T"))]
    return group.client.ask(JoinGroupRequest("g", 45_000, 60_000, "", None, "consumer", protocols), 3)


def kind(group: Group) -> tuple[str, str]:
    [listed] = group.client.ask(ListGroupsRequest(), 5).groups
    return listed.group_type, listed.group_state


def delete_groups(group: Group) -> int:
    return int(group.client.ask(DeleteGroupsRequest(["g"]), 2).results[0].error_code)


def delete_offset(group: Group) -> Any:
    topic = OffsetDeleteRequestTopic("T", [OffsetDeleteRequestPartition(0)])
    return group.client.ask(OffsetDeleteRequest("g", [topic]), 0)


def committed(group: Group) -> int:
    fetched = group.client.ask(OffsetFetchRequest("g", [OffsetFetchRequestTopic("T", [0])]), 5)
    return int(fetched.topics[0].partitions[0].committed_offset)


def with_offset(release_name: str) -> Group:
    """Return an empty group with the committed offset 7."""
    group = Group(release_name, group_initial_rebalance_delay_ms="0")
    partition = OffsetCommitRequestPartition(0, committed_offset=7)
    commit = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("T", partitions=[partition])])
    assert group.client.ask(commit, 8).topics[0].partitions[0].error_code == 0
    return group


@pytest.mark.rule("GO-9", "GC-59", "GC-60")
@pytest.mark.parametrize("is_consumer", [False, True])
def test_delete_groups_and_offset_delete_change_nothing_if_the_log_append_fails(is_consumer: bool) -> None:
    group = with_offset("4.2")
    if is_consumer:
        group.join("A")
        group.beat("A", -1)
    with refused(group):
        assert delete_groups(group) == NOT_COORDINATOR
        assert delete_offset(group).error_code == NOT_COORDINATOR
    assert committed(group) == 7
    assert delete_offset(group).topics[0].partitions[0].error_code == 0
    assert committed(group) == -1
    assert delete_groups(group) == 0


@pytest.mark.rule("GN-63")
def test_empty_consumer_group_does_not_become_classic_if_a_join_cannot_be_stored() -> None:
    group = with_offset("4.2")
    group.join("A")
    group.beat("A", -1)
    with refused(group):
        assert join(group).error_code == NOT_COORDINATOR
    assert kind(group) == ("consumer", "Empty")
    assert join(group).error_code == 0
    assert kind(group)[0] == "classic"
    assert committed(group) == 7


@pytest.mark.rule("GN-62")
def test_leave_group_of_a_consumer_group_is_answered_only_after_replication() -> None:
    group = Group("4.2", 3)
    assert group.join("A").error_code == 0
    coordinator = group.cluster.state.coordinator_of("g")
    followers = [n for n in range(3) if n != coordinator]
    hold(group.cluster, *followers, topic=OFFSETS, index=index_of(group))
    client = group.cluster.connect(coordinator)
    client.send(LeaveGroupRequest("g", members=[MemberIdentity("A")]), 4)
    group.cluster.run()
    assert client.answers == []
    release(group.cluster, *followers, topic=OFFSETS, index=index_of(group))
    group.cluster.advance(1_000)
    assert [(m.member_id, m.error_code) for m in client.latest.members] == [("A", 0)]
    assert group.described().members == []


@pytest.mark.rule("GN-12")
@pytest.mark.parametrize(("moves", "error"), [(False, FENCED_EPOCH), (True, UNKNOWN_MEMBER)])
def test_fenced_member_gets_error_fenced_member_epoch_until_the_coordinator_moves(moves: bool, error: int) -> None:
    group = Group("4.2", 3)
    assert group.join("A").error_code == 0
    coordinator = group.cluster.state.coordinator_of("g")
    group.cluster.state.nodes[coordinator].groups.fence_member("g", "A", group.cluster.now_ms)
    group.cluster.run()
    if moves:
        elect(group.cluster, (coordinator + 1) % 3, OFFSETS, index_of(group))
        group.reconnect()
    assert group.beat("A", 1).error_code == error


@pytest.mark.rule("GO-25")
@pytest.mark.parametrize("release_name", ["3.9", "4.2"])
def test_recreated_topic_has_no_committed_offsets_even_if_writing_tombstones_failed(release_name: str) -> None:
    group = with_offset(release_name)
    with refused(group):
        group.cluster.state.controller.delete_topic("T")
        group.cluster.run()
    group.cluster.topic("T", 6, 1)
    assert committed(group) == -1
