"""The rebalance of a group from one generation to the next: for which members it waits, how long, and which members are removed.

The join phase collects the members' JoinGroup requests, the sync phase distributes the leader's assignment. This module sets the timers of a group
and responds to its waiting requests. `coordinator` decides whether a request is allowed. Corresponds to the second half of Kafka's
`GroupCoordinator`, with `DelayedJoin`, `InitialDelayedJoin`, `DelayedSync` and `DelayedHeartbeat`.
"""

from __future__ import annotations

from kafkaproto.broker.group.causes import CauseKind
from kafkaproto.broker.group.changes import GroupChanges
from kafkaproto.broker.group.deferred_replies import DeferredReplies
from kafkaproto.broker.group.group import Group, GroupState, Member
from kafkaproto.broker.group.results import (
    UNKNOWN_MEMBER_ID,
    JoinReply,
    JoinRequest,
    JoinResult,
    SyncReply,
    SyncResult,
)
from kafkaproto.broker.group.sessions import Sessions, cancel, cancel_all
from kafkaproto.broker.group.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from kafkaproto.broker.group.storage import GroupStorage
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.error_codes import ErrorCode


def _stop_sync_timer_if_settled(group: Group) -> None:
    if not group.owing_sync:
        cancel(group.sync_timer)
        group.sync_timer = None


class Rebalance:
    """Changes the state of classic groups: adds and removes members, starts and ends rebalances.

    `settings` may be replaced at run time. `sessions` has the session timers of members. `changes` reports changes of groups to observers. The code
    for groups of the new protocol (KIP-848) uses the same object.
    """

    def __init__(
        self,
        settings: GroupSettings,
        timers: Timers,
        replies: DeferredReplies,
        changes: GroupChanges,
        storage: GroupStorage,
    ) -> None:
        self.settings = settings
        self.sessions = Sessions(timers, self._session_timed_out, self.remove_pending_member)
        self.changes = changes
        self._timers = timers
        self._replies = replies
        self._storage = storage

    # Members come and change

    def add_member(self, group: Group, member_id: str, request: JoinRequest, reply: JoinReply, now_ms: int) -> None:
        """Add a new member, and start a rebalance unless the group is in its join phase.

        `reply` is called with the result of the member's JoinGroup request when the join phase ends, unless the member joins again before (GC-24).
        """
        if group.is_in(GroupState.PREPARING_REBALANCE) and group.generation_id == 0:
            group.new_member_added = True
        self.sessions.forget_pending_member(group, member_id)
        member = Member(
            member_id,
            request.group_instance_id,
            request.client_id,
            request.client_host,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            request.protocols,
            join_reply=reply,
        )
        group.add(member, request.protocol_type)
        # It has no response yet, so it cannot send heartbeats, and while it waits nothing shows that its connection is
        # closed: a client that gives up and joins again must not leave old members in the group forever.
        self.sessions.expect(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS, now_ms)
        self.prepare_if_possible(group, now_ms)

    def resume(self, group: Group, now_ms: int) -> None:
        """Start the session timeouts of a loaded group. A group with more than `group.max.size` members rebalances (GC-30)."""
        for member in group.members.values():
            self.sessions.restart_timeout(group, member, now_ms)
        if len(group.members) > self.settings.group_max_size:
            self.prepare(group, now_ms)

    def take_request(self, group: Group, member: Member, request: JoinRequest, reply: JoinReply | None) -> None:
        """Store the protocols and timeouts from the JoinGroup request of a current member, and the function `reply` that sends the response later.

        If an earlier JoinGroup of the member still waits, this earlier request never gets a response (GC-24). reply: called at the end of the join
        phase; None if the caller of this method sends the response itself, so that the request does not wait.
        """
        self.changes.note_request(group, member.member_id, member.protocols, request.protocols)
        member.protocols = request.protocols
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.join_reply = reply

    # Members go

    def remove_member(self, group: Group, member: Member, now_ms: int, *, answers_sync: bool = False) -> None:
        """Remove a member that left or expired, and start a rebalance. A waiting JoinGroup of the member gets the error UNKNOWN_MEMBER_ID.

        answers_sync: whether a waiting SyncGroup gets this error, too; otherwise it gets no response (GC-49).
        During the join phase no rebalance starts, but the phase ends if all remaining members have joined.
        """
        self.changes.note(group.group_id, CauseKind.LEFT, member.member_id)
        if answers_sync:
            self.respond_to_sync(member, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        self.drop(group, member)
        if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.prepare_if_possible(group, now_ms)
        elif group.is_in(GroupState.PREPARING_REBALANCE):
            self.complete_join_if_all_are_here(group, now_ms)

    def drop(self, group: Group, member: Member) -> None:
        """Remove a member without starting a rebalance.

        A waiting JoinGroup of the member gets the error UNKNOWN_MEMBER_ID. A waiting SyncGroup never gets a response (GC-49).
        """
        self.respond_to_join(member, JoinResult(UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID))
        member.sync_reply = None
        cancel(member.session_timer)
        member.session_timer = None
        group.remove(member.member_id)
        _stop_sync_timer_if_settled(group)

    def remove_pending_member(self, group: Group, member_id: str, now_ms: int, *, rebalances: bool = False) -> None:
        """Remove a member id that was given to a new member, because the member left or did not join again with this id in time.

        rebalances: whether to start a rebalance if none is in progress, as Kafka's group coordinator in Java does after LeaveGroup (GC-48).
        """
        self.sessions.forget_pending_member(group, member_id)
        if rebalances and group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.changes.note(group.group_id, CauseKind.LEFT, member_id)
            self.prepare_if_possible(group, now_ms)
        elif group.is_in(GroupState.PREPARING_REBALANCE):
            self.complete_join_if_all_are_here(group, now_ms)
        self._replies.flush(now_ms)

    # The join phase

    def prepare_if_possible(self, group: Group, now_ms: int) -> None:
        if group.can_rebalance:
            self.prepare(group, now_ms)

    def prepare(self, group: Group, now_ms: int) -> None:
        """Start a rebalance: all members must join again. Waiting SyncGroup requests get the error REBALANCE_IN_PROGRESS."""
        if group.is_in(GroupState.COMPLETING_REBALANCE):
            for member in group.members.values():
                member.assignment = b""
                self._respond_to_sync_and_restart_timeout(
                    group, member, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS), now_ms
                )
        group.owing_sync.clear()
        _stop_sync_timer_if_settled(group)
        is_first = group.is_in(GroupState.EMPTY)
        _move(self.changes, group, GroupState.PREPARING_REBALANCE, now_ms)
        if is_first:
            group.initial_join = True
            group.new_member_added = False
            delay_ms = self.settings.group_initial_rebalance_delay_ms
            self._wait_initially(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0), now_ms)
        else:
            self._wait_for_joins(group, now_ms)
            self.complete_join_if_all_are_here(group, now_ms)

    def complete_join_if_all_are_here(self, group: Group, now_ms: int) -> None:
        """End the join phase if all members have joined.

        Does nothing in the first rebalance of a previously empty group. That join phase lasts until the timer of group.initial.rebalance.delay.ms
        fires.
        """
        if not group.initial_join and group.all_joined:
            self._complete_join(group, now_ms)

    def _wait_initially(self, group: Group, delay_ms: int, remaining_ms: int, now_ms: int) -> None:
        if delay_ms <= 0:
            self._initial_wait_over(group, delay_ms, remaining_ms, now_ms)
            return

        def over(at_ms: int) -> None:
            self._initial_wait_over(group, delay_ms, remaining_ms, at_ms)
            self._replies.flush(at_ms)

        group.join_timer = self._timers.at(now_ms + delay_ms, over)

    def _initial_wait_over(self, group: Group, delay_ms: int, remaining_ms: int, now_ms: int) -> None:
        if group.new_member_added and remaining_ms > 0:
            group.new_member_added = False
            again_ms = min(self.settings.group_initial_rebalance_delay_ms, remaining_ms)
            self._wait_initially(group, again_ms, max(remaining_ms - delay_ms, 0), now_ms)
        else:
            group.initial_join = False
            self._complete_join(group, now_ms)

    def _wait_for_joins(self, group: Group, now_ms: int, at_least_ms: int = 0) -> None:
        def over(at_ms: int) -> None:
            self._complete_join(group, at_ms)
            self._replies.flush(at_ms)

        cancel(group.join_timer)
        group.join_timer = self._timers.at(now_ms + max(group.rebalance_timeout_ms, at_least_ms), over)

    def _complete_join(self, group: Group, now_ms: int) -> None:
        cancel(group.join_timer)
        group.join_timer = None
        for member in list(group.members.values()):
            # Static members that did not join keep their place until their session times out.
            if member.join_reply is None and member.group_instance_id is None:
                self.changes.note(group.group_id, CauseKind.JOIN_TIMED_OUT, member.member_id)
                self.drop(group, member)
        if group.members and not group.elect_joined_leader():
            # Only static members are left and none joined: wait until one does, or their sessions expire. At least a
            # millisecond, because a client may have sent a timeout of 0.
            self._wait_for_joins(group, now_ms, at_least_ms=1)
            return
        if not group.start_generation(now_ms):
            return
        self.changes.report(group, now_ms)
        if group.is_in(GroupState.COMPLETING_REBALANCE):
            self._tell_the_members(group, now_ms)
        else:
            self._storage.store_group(group, {}, now_ms, lambda error, at_ms: None)

    def _tell_the_members(self, group: Group, now_ms: int) -> None:
        for member in group.members.values():
            self.respond_to_join(member, group.current_generation(member.member_id))
            self.sessions.restart_timeout(group, member, now_ms)
            member.is_new = False
            group.owing_sync[member.member_id] = None
        group.sync_timer = self._timers.at(
            now_ms + max(group.rebalance_timeout_ms, 0), lambda at_ms: self._sync_timed_out(group, at_ms)
        )

    # The sync phase

    def park_sync(self, group: Group, member: Member, reply: SyncReply) -> None:
        """Hold the member's SyncGroup request back until the leader sends the assignment; `reply` is called then.

        If an earlier SyncGroup request of the member still waits, it never gets a response (GC-24).
        """
        member.sync_reply = reply
        self.has_synced(group, member)

    def has_synced(self, group: Group, member: Member) -> None:
        group.owing_sync.pop(member.member_id, None)
        _stop_sync_timer_if_settled(group)

    def store_assignment(self, group: Group, assignments: dict[str, bytes], now_ms: int) -> None:
        """Store the assignment that the leader sent. If it can be stored, the group becomes stable; otherwise the group rebalances (GC-39).

        Each waiting SyncGroup request gets the assignment of its member, or the error of the failed write. assignments: maps member ids to encoded
        assignments; a member without an entry gets empty bytes (GC-38).
        """
        generation_id = group.generation_id

        def stored(error_code: int, at_ms: int) -> None:
            if not group.is_in(GroupState.COMPLETING_REBALANCE) or group.generation_id != generation_id:
                return
            if error_code:
                for member in group.members.values():
                    self._respond_to_sync_and_restart_timeout(group, member, SyncResult(error_code), at_ms)
                self.prepare(group, at_ms)
            else:
                for member in group.members.values():
                    member.assignment = assignments.get(member.member_id, b"")
                    result = SyncResult(0, group.protocol_type, group.protocol_name, member.assignment)
                    self._respond_to_sync_and_restart_timeout(group, member, result, at_ms)
                _move(self.changes, group, GroupState.STABLE, at_ms)
            self._replies.flush(at_ms)

        self._storage.store_group(group, assignments, now_ms, stored)

    # Responses and timeouts

    def respond_to_join(self, member: Member, result: JoinResult) -> None:
        """Respond to the member's waiting JoinGroup request, if there is one."""
        reply, member.join_reply = member.join_reply, None
        if reply is not None:
            self._replies.put(reply, result)

    def respond_to_sync(self, member: Member, result: SyncResult) -> None:
        reply, member.sync_reply = member.sync_reply, None
        if reply is not None:
            self._replies.put(reply, result)

    def _respond_to_sync_and_restart_timeout(
        self, group: Group, member: Member, result: SyncResult, now_ms: int
    ) -> None:
        if member.sync_reply is not None:
            self.respond_to_sync(member, result)
            # Its session timeout may have passed while its sync was parked. That does not count, so the timeout restarts now.
            self.sessions.restart_timeout(group, member, now_ms)

    def _session_timed_out(self, group: Group, member: Member, now_ms: int) -> None:
        member.session_timer = None
        if member.is_waiting and not member.is_new:
            return
        self.changes.note(group.group_id, CauseKind.SESSION_TIMED_OUT, member.member_id)
        self.remove_member(group, member, now_ms)
        self._replies.flush(now_ms)

    def _sync_timed_out(self, group: Group, now_ms: int) -> None:
        group.sync_timer = None
        for member_id in list(group.owing_sync):
            self.changes.note(group.group_id, CauseKind.SYNC_TIMED_OUT, member_id)
            self.drop(group, group.members[member_id])
        self.prepare(group, now_ms)
        self._replies.flush(now_ms)

    def interrupt(self, group: Group, now_ms: int) -> None:
        """Respond to all waiting requests of a group with REBALANCE_IN_PROGRESS, because the group changes to the new protocol (KIP-848, GN-55).

        The responses are queued. They are sent when the change of the group is complete.
        """
        for member in group.members.values():
            if member.is_waiting:
                self.sessions.restart_timeout(group, member, now_ms)
            self.respond_to_join(member, JoinResult(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS))
            self.respond_to_sync(member, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))

    def end(self, group: Group, now_ms: int) -> None:
        """Move a group that this broker drops to the state Dead: cancel its timers, and respond to its waiting requests with NOT_COORDINATOR."""
        for member in list(group.members.values()):
            self.respond_to_join(member, JoinResult(member.member_id, ErrorCode.NOT_COORDINATOR))
            self.respond_to_sync(member, SyncResult(ErrorCode.NOT_COORDINATOR))
        cancel_all(group)
        group.move_to(GroupState.DEAD, now_ms)


def _move(changes: GroupChanges, group: Group, state: GroupState, now_ms: int) -> None:
    group.move_to(state, now_ms)
    changes.report(group, now_ms)
