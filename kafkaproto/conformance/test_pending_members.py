"""Tests of pending members, and of DescribeGroups in a rebalance. In these cases, Kafka's two group coordinators (in Scala and in Java) differ.

A pending member is a client that has got a member id, but has not joined with it yet.

These tests run with the default settings. With these, Kafka 3.9 uses the coordinator in Scala, and Kafka 4 the coordinator in Java.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from kafkaproto.conformance.groups import Group, has_new_coordinator, make_stable
from kafkaproto.conformance.pending_members import (
    LEAVES,
    PENDING,
    Leave,
    Outcome,
    described_in_rebalances,
    group_after_offset_delete_without_commit,
    leave_of_unknown_members,
    outcome_in_stable_group,
    outcome_in_sync_phase,
)
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.list_groups import ListGroupsRequest

pytestmark = pytest.mark.needs("group.initial.rebalance.delay.ms", offsets_topic=True)
UNKNOWN_SERVER_ERROR = -1


@pytest.mark.rule("GC-19", "GC-48")
@pytest.mark.parametrize("leave", LEAVES)
def test_kip_848_coordinator_starts_a_rebalance_when_a_pending_member_leaves(subject: Subject, leave: Leave) -> None:
    """A pending member leaves a stable group, or a group in the sync phase. This starts a rebalance only with the coordinator in Java.

    A pending member has got its member id, but has not joined with it. leave: a function that removes the pending member from the group.
    """
    if has_new_coordinator(subject):
        assert outcome_in_stable_group(subject, leave) == Outcome((), (27, 27), "PreparingRebalance")
        assert outcome_in_sync_phase(subject, leave) == Outcome((27, 27), (27, 27), "PreparingRebalance")
    else:
        assert outcome_in_stable_group(subject, leave) == Outcome((), (0, 0), "Stable")
        assert outcome_in_sync_phase(subject, leave) == Outcome((0, 0), (0, 0), "Stable")


@pytest.mark.rule("GC-48", "GC-49")
def test_leave_group_with_only_unknown_member_ids_starts_no_rebalance(subject: Subject) -> None:
    leave = leave_of_unknown_members
    assert outcome_in_stable_group(subject, leave) == Outcome((), (0, 0), "Stable")
    assert outcome_in_sync_phase(subject, leave) == Outcome((0, 0), (0, 0), "Stable")


@pytest.mark.rule("GC-19")
def test_group_is_in_state_empty_after_its_only_pending_member_leaves(subject: Subject) -> None:
    group = Group(subject)
    client = group.client()
    assert client.join().error_code == PENDING
    assert group.leave((client.member_id, None)) == (0, [(client.member_id, None, 0)])
    assert group.state() == ("Empty", 0)
    assert client.join().error_code == 25


@pytest.mark.rule("GC-52")
def test_describe_groups_in_a_rebalance_has_old_assignments_only_in_java_coordinator(subject: Subject) -> None:
    """A new member joins a group of one member. In this rebalance, DescribeGroups has the old member's assignment only with the coordinator in Java.

    When both members have joined, a second rebalance starts before any SyncGroup. In the second rebalance, DescribeGroups has no assignment of any
    member, with the coordinator in Java or in Scala.
    """
    assignment = b"a0" if has_new_coordinator(subject) else b""
    assert described_in_rebalances(subject) == [
        ("PreparingRebalance", [(b"", assignment), (b"", b"")]),
        ("CompletingRebalance", [(b"", assignment), (b"", b"")]),
        ("PreparingRebalance", [(b"", b""), (b"", b"")]),
    ]


@pytest.mark.rule("GC-64")
@pytest.mark.parametrize("partitions", [None, [], [9]])
def test_offset_delete_that_names_no_existing_partition_keeps_an_empty_group(
    subject: Subject, partitions: list[int] | None
) -> None:
    """OffsetDelete names no partition that exists. It deletes neither of two groups without members and without offsets.

    The only client of the first group has got a member id, but has not joined with it yet. The only member of the second group has left.
    partitions: the partitions of an existing topic in the request; None for a request without topics.
    """
    topic, pending, emptied = new_topic(subject).name, Group(subject), Group(subject)
    partitions_by_topic: Mapping[str, Iterable[int]] = {} if partitions is None else {topic: partitions}
    client, leaving_client = pending.client(), emptied.client()
    assert client.join().error_code == PENDING
    make_stable(leaving_client)
    emptied.leave((leaving_client.member_id, None))
    for group in (pending, emptied):
        assert group.delete_offsets(partitions_by_topic) == (0, {(topic, index): 3 for index in partitions or ()})
        assert group.state() == ("Empty", 0)
        assert group.id in [entry.group_id for entry in group.ask(ListGroupsRequest(), 4).groups]
    assert client.join().generation_id == 1
    [result] = emptied.ask(DeleteGroupsRequest([emptied.id]), 2).results
    assert result.error_code == 0


@pytest.mark.rule("GC-64")
def test_only_kip_848_coordinator_keeps_a_group_without_offsets_after_offset_delete(subject: Subject) -> None:
    expected = "Empty" if has_new_coordinator(subject) else "Dead"
    assert group_after_offset_delete_without_commit(subject) == expected


@pytest.mark.rule("GC-20")
@pytest.mark.parametrize(("version", "name"), [(5, ""), (9, None)])
def test_pending_member_id_cannot_join_with_a_group_instance_id(
    subject: Subject, version: int, name: str | None
) -> None:
    """A client that has got a member id, but has not joined with it yet, sends the id together with a group instance id.

    The response has error UNKNOWN_SERVER_ERROR and an empty member id. Afterwards the client can still join with the id it has got, without an
    instance id. name: the expected protocol name in the response.
    """
    group = Group(subject)
    client = group.client(version=version)
    assert client.join().error_code == PENDING
    client.instance = "i1"
    response = client.join()
    assert (response.error_code, response.member_id, response.generation_id) == (UNKNOWN_SERVER_ERROR, "", -1)
    assert (response.protocol_name, response.leader, response.members) == (name, "", [])
    assert group.state() == ("Empty", 0)
    client.instance = None
    assert client.join().generation_id == 1
