"""Scenarios with a classic group whose outcome depends on Kafka's group coordinator: the one in Scala or the one in Java.

A pending member is a client that has got a member id with MEMBER_ID_REQUIRED and has not joined with it yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafkaproto.conformance.groups import Group, enter_together, make_stable
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.leave_group import LeaveGroupRequest

PENDING, UNKNOWN_MEMBER = 79, 25
Leave = Callable[[Group, str], None]
"""A function that removes a member from a group. Its arguments are the group and the member id."""


def leave_with_v2(group: Group, member_id: str) -> None:
    assert group.ask(LeaveGroupRequest(group.id, member_id), 2).error_code == 0


def leave_with_v4(group: Group, member_id: str) -> None:
    assert group.leave((member_id, None)) == (0, [(member_id, None, 0)])


def leave_beside_an_unknown_member(group: Group, member_id: str) -> None:
    result = group.leave((member_id, None), ("zz", None))
    assert result == (0, [(member_id, None, 0), ("zz", None, UNKNOWN_MEMBER)])


def leave_of_unknown_members(group: Group, _: str) -> None:
    """Send a LeaveGroup request that names only unknown members, which are all rejected. The second argument, a member id, is ignored."""
    result = group.leave(("zz", None), ("", "i9"))
    assert result == (0, [("zz", None, UNKNOWN_MEMBER), ("", "i9", UNKNOWN_MEMBER)])


LEAVES: list[Leave] = [leave_with_v2, leave_with_v4, leave_beside_an_unknown_member]


class Outcome(NamedTuple):
    """What the members of a group see after a pending member (a client with a member id that has not joined with it yet) has left.

    syncs: the error codes of the members' SyncGroup responses, empty if they sent no SyncGroup. heartbeats: the error codes of the members' Heartbeat
    responses. Both tuples have the order in which the members were created. state: the state of the group.
    """

    syncs: tuple[int, ...]
    heartbeats: tuple[int, ...]
    state: str


def outcome_in_stable_group(subject: Subject, leave: Leave) -> Outcome:
    """Let a pending member leave a stable group of two members, and return what these two members then see.

    A pending member has got its member id, but has not joined with it. leave: a function that removes the pending member from the group.
    """
    group = Group(subject)
    clients = group.client(), group.client()
    pending = group.client()
    make_stable(*clients)
    assert pending.join().error_code == PENDING
    leave(group, pending.member_id)
    return Outcome((), tuple(client.heartbeat() for client in clients), group.state()[0])


def outcome_in_sync_phase(subject: Subject, leave: Leave) -> Outcome:
    """Let a pending member leave while one of two members waits for its SyncGroup response, and return what these two members then see.

    A pending member has got its member id, but has not joined with it. leave: a function that removes the pending member from the group.
    """
    group = Group(subject)
    leader, follower, pending = group.client(), group.client(), group.client()
    enter_together(leader, follower)
    assert pending.join().error_code == PENDING
    follower.send_sync()
    assert follower.is_parked()
    leave(group, pending.member_id)
    syncs = leader.sync({leader.member_id: b"x"}).error_code, follower.synced().error_code
    return Outcome(syncs, (leader.heartbeat(), follower.heartbeat()), group.state()[0])


def described_in_rebalances(subject: Subject) -> list[tuple[str, list[tuple[bytes, bytes]]]]:
    """Return what DescribeGroups shows about a group of an old and a new member in three successive phases of its rebalances.

    1. The group was stable with the old member alone. The new member has sent JoinGroup; the old member has not joined again yet.
    2. Both members have joined, and neither has sent SyncGroup.
    3. Still before any SyncGroup, the old member has sent JoinGroup with new metadata, which starts another rebalance.

    For each phase, the result has (state of the group, [(metadata, assignment) of the old member, (metadata, assignment) of the new member]).
    """
    group = Group(subject)
    old_client, new_client = group.client(), group.client()

    def described() -> tuple[str, list[tuple[bytes, bytes]]]:
        group_now = group.describe()
        members = {member.member_id: (member.member_metadata, member.member_assignment) for member in group_now.members}
        return group_now.group_state, [members[client.member_id] for client in (old_client, new_client)]

    make_stable(old_client)
    new_client.send_enter()
    group.wait_for("PreparingRebalance", 2)
    phases = [described()]
    assert (old_client.join().error_code, new_client.joined().error_code) == (0, 0)
    phases.append(described())
    old_client.protocols = [("range", b"new")]
    old_client.send_join()
    group.wait_for("PreparingRebalance", 2)
    return [*phases, described()]


def group_after_offset_delete_without_commit(subject: Subject) -> str:
    """Send OffsetDelete for an existing partition that has no committed offset in the group. Returns the state of the group afterwards.

    The group has only a pending member: a client that has got its member id, but has not joined with it.
    """
    topic, group = new_topic(subject).name, Group(subject)
    assert group.client().join().error_code == PENDING
    assert group.delete_offsets({topic: [0]}) == (0, {(topic, 0): 0})
    return group.state()[0]
