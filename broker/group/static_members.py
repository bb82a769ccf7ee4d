"""The restart of static members: a new process with the member's `group.instance.id` replaces the member's old process (KIP-345).

Corresponds to `updateStaticMemberAndRebalance` in Kafka's `GroupCoordinator`.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkaproto.broker.group.deferred_replies import DeferredReplies
from kafkaproto.broker.group.group import Group, GroupState, Member
from kafkaproto.broker.group.rebalance import Rebalance
from kafkaproto.broker.group.results import (
    UNKNOWN_MEMBER_ID,
    JoinReply,
    JoinRequest,
    JoinResult,
    Protocols,
    SyncResult,
)
from kafkaproto.broker.group.storage import GroupStorage
from kafkaproto.error_codes import ErrorCode


class _Before(NamedTuple):
    """The values of a static member before its restart. They are restored if its new member id cannot be stored.

    leader_id: the member id of the group's leader, "" for none.
    """

    member_id: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int
    leader_id: str


class StaticMembers:
    """Replaces the process of a static member when a new process joins with its `group.instance.id` (KIP-345).

    replies: the queue of JoinGroup and SyncGroup results, which are sent to clients when the change of a group is complete.
    """

    def __init__(self, rebalance: Rebalance, replies: DeferredReplies, storage: GroupStorage) -> None:
        self._rebalance = rebalance
        self._replies = replies
        self._storage = storage

    def restart(
        self, group: Group, member: Member, new_id: str, request: JoinRequest, now_ms: int, reply: JoinReply
    ) -> None:
        """Handle a JoinGroup without a member id from a new process of a static member. The member gets the id `new_id`; `reply` gets the result.

        a. In a stable group whose protocol stays the same, the member keeps its assignment. It gets the result when the new id is stored (GC-34).
        b. During the join phase, the request waits until the phase ends, like the requests of the other members.
        c. In a stable group whose protocol would change, a rebalance starts.
        d. During the sync phase a rebalance starts, because the leader would send an assignment for the old id.
        """
        keeps_generation = group.is_in(GroupState.STABLE) and group.keeps_protocol_with(member, request.protocols)
        before = self._replace(group, member, new_id, now_ms)
        self._rebalance.take_request(group, member, request, None if keeps_generation else reply)
        if not keeps_generation:
            self._rebalance.prepare_if_possible(group, now_ms)
            return
        self._rebalance.changes.report(group, now_ms)

        def stored(error_code: int, at_ms: int) -> None:
            if group.is_in(GroupState.DEAD):  # it was converted to the new protocol meanwhile
                result = JoinResult(UNKNOWN_MEMBER_ID, error_code or ErrorCode.REBALANCE_IN_PROGRESS)
            elif error_code:
                result = self._undo(group, member, before, error_code, at_ms)
                self._rebalance.changes.report(group, at_ms)
            else:
                result = _result(group, new_id, before.leader_id, request)
            self._replies.put(reply, result)
            self._replies.flush(at_ms)

        assignments = {m.member_id: m.assignment for m in group.members.values()}
        self._storage.store_group(group, assignments, now_ms, stored)

    def _replace(self, group: Group, member: Member, new_id: str, now_ms: int) -> _Before:
        """Give a static member its new id, and return its previous values.

        A JoinGroup or SyncGroup of its old process that still waits for a response gets FENCED_INSTANCE_ID.
        """
        before = _Before(
            member.member_id,
            member.protocols,
            member.session_timeout_ms,
            member.rebalance_timeout_ms,
            group.leader_id or "",
        )
        self._rebalance.respond_to_join(member, JoinResult(member.member_id, ErrorCode.FENCED_INSTANCE_ID))
        self._rebalance.respond_to_sync(member, SyncResult(ErrorCode.FENCED_INSTANCE_ID))
        group.rename(member, new_id)
        self._rebalance.sessions.restart_timeout(group, member, now_ms)
        return before

    def _undo(self, group: Group, member: Member, before: _Before, error_code: int, now_ms: int) -> JoinResult:
        """Give a static member its previous member id, protocols and timeouts back, because its new member id could not be stored.

        before: the values of the member before its restart. Returns the JoinGroup result with `error_code`.
        """
        if group.members.get(member.member_id) is member:
            member.protocols = before.protocols
            member.session_timeout_ms = before.session_timeout_ms
            member.rebalance_timeout_ms = before.rebalance_timeout_ms
            group.rename(member, before.member_id)
            self._rebalance.sessions.restart_timeout(group, member, now_ms)
        result = group.current_generation(UNKNOWN_MEMBER_ID)
        result.error_code = error_code
        result.leader_id = before.leader_id
        return result


def _result(group: Group, new_id: str, leader_before: str, request: JoinRequest) -> JoinResult:
    """Return the JoinGroup result for a restarted member that keeps its generation (GC-33).

    new_id: the member's new member id. leader_before: the member id of the leader before the restart. A client that does not support
    `skip_assignment` gets `leader_before` as the leader. If this member was the leader, the client thus gets its previous id, does not recognise
    itself as the leader, and computes no assignment.
    """
    result = group.current_generation(new_id)
    if request.can_skip_assignment:
        result.skip_assignment = group.is_leader(new_id)
    else:
        # An older client that is named as the leader would compute an assignment, which a stable group ignores.
        result.leader_id = leader_before
        result.members = ()
    return result
