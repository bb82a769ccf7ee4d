"""The coordinator of classic consumer groups: who may join, sync, beat, leave, and what is known of each group.

One for the cluster: the groups live in memory, whichever broker speaks for them. Knows no wire message, no connection
and no clock; a join or sync is answered through its callback, at once or later, exactly once. Kafka's
`GroupCoordinator` (3.9). It differs in one
thing: where a member sends a second join or sync while the first is parked, Kafka forgets the first and never answers
it; here it gets REBALANCE_IN_PROGRESS, so that its connection is not stuck.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from random import Random
from uuid import UUID

from kafkaproto.broker.group.commits import Commits, GroupKeeper
from kafkaproto.broker.group.deferred_replies import DeferredReplies
from kafkaproto.broker.group.group import Group, GroupState, Member
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.rebalance import Rebalance
from kafkaproto.broker.group.results import (
    UNKNOWN_MEMBER_ID,
    DescribedMember,
    GroupDescription,
    GroupOverview,
    JoinReply,
    JoinRequest,
    JoinResult,
    LeaveResult,
    LeavingMember,
    SyncReply,
    SyncRequest,
    SyncResult,
)
from kafkaproto.broker.group.settings import GroupSettings
from kafkaproto.broker.runtime.events import Events
from kafkaproto.broker.runtime.timers import Timer, Timers
from kafkaproto.error_codes import ErrorCode


class GroupCoordinator:
    """All groups. `random` makes member ids; `commits` is the part that keeps offsets; `keeper` is told what must survive."""

    def __init__(
        self,
        settings: GroupSettings,
        timers: Timers,
        random: Random,
        keeper: GroupKeeper | None = None,
        events: Events | None = None,
    ) -> None:
        self._keeper = keeper
        self._groups: dict[str, Group] = {}
        self._timers = timers
        self._random = random
        self._replies = DeferredReplies()
        self._rebalance = Rebalance(settings, timers, self._replies, Events() if events is None else events)
        self._sweep: Timer | None = None
        self.commits = Commits(
            self._groups, self._create, self._rebalance.sessions.heard_from, lambda: self.settings, keeper
        )

    @property
    def settings(self) -> GroupSettings:
        return self._rebalance.settings

    @settings.setter
    def settings(self, settings: GroupSettings) -> None:
        self._rebalance.settings = settings

    # Join

    def join(self, request: JoinRequest, now_ms: int, reply: JoinReply) -> None:
        """JoinGroup. `reply` is called once: now, when the rebalance is over, or when the member is dropped from it."""
        result = self._join(request, now_ms, reply)
        if result is not None:
            self._replies.put(reply, result)
        self._replies.flush(now_ms)

    def _join(self, request: JoinRequest, now_ms: int, reply: JoinReply) -> JoinResult | None:
        """An answer to be given now, or None if the join is parked or was answered."""
        settings, member_id = self.settings, request.member_id
        if not request.group_id:
            return JoinResult(member_id, ErrorCode.INVALID_GROUP_ID)
        shortest_ms, longest_ms = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not shortest_ms <= request.session_timeout_ms <= longest_ms:
            return JoinResult(member_id, ErrorCode.INVALID_SESSION_TIMEOUT)
        group = self._groups.get(request.group_id)
        if group is None:
            if member_id != UNKNOWN_MEMBER_ID:
                return JoinResult(member_id, ErrorCode.UNKNOWN_MEMBER_ID)
            group = self._create(request.group_id, now_ms)
        result = self._admit(group, request, now_ms, reply)
        if group.is_in(GroupState.PREPARING_REBALANCE):
            self._rebalance.complete_join_if_all_are_here(group, now_ms)
        return result

    def _admit(self, group: Group, request: JoinRequest, now_ms: int, reply: JoinReply) -> JoinResult | None:
        member_id = request.member_id
        if not group.accepts(member_id, self.settings.group_max_size):
            if member_id in group.members:
                self._rebalance.drop(group, group.members[member_id])
            return JoinResult(UNKNOWN_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not group.supports(request.protocol_type, request.protocols):
            return JoinResult(member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if member_id == UNKNOWN_MEMBER_ID:
            return self._join_new(group, request, now_ms, reply)
        if member_id in group.pending:
            if request.group_instance_id is not None:
                # Static members are never asked to come back, so nobody can have been given this id for one.
                return JoinResult(member_id, ErrorCode.UNKNOWN_SERVER_ERROR)
            self._rebalance.add_member(group, member_id, request, reply, now_ms)
            return None
        error = group.not_a_member(member_id, request.group_instance_id)
        if error:
            return JoinResult(member_id, error)
        return self._join_again(group, group.members[member_id], request, now_ms, reply)

    def _join_new(self, group: Group, request: JoinRequest, now_ms: int, reply: JoinReply) -> JoinResult | None:
        instance_id = request.group_instance_id
        new_id = f"{request.client_id if instance_id is None else instance_id}-{self._uuid()}"
        if instance_id is not None and instance_id in group.static_ids:
            old = group.members[group.static_ids[instance_id]]
            return self._restart_static_member(group, old, new_id, request, now_ms, reply)
        if instance_id is None and request.requires_member_id:
            self._rebalance.sessions.await_pending_member(group, new_id, request.session_timeout_ms, now_ms)
            return JoinResult(new_id, ErrorCode.MEMBER_ID_REQUIRED)
        self._rebalance.add_member(group, new_id, request, reply, now_ms)
        return None

    def _join_again(
        self, group: Group, member: Member, request: JoinRequest, now_ms: int, reply: JoinReply
    ) -> JoinResult | None:
        """A member that is known joins.

        a. while members are collected: it is collected;
        b. while the leader assigns, with the same protocols: it missed its answer, and gets it again;
        c. in a stable group, with the same protocols and not as leader: it gets the current generation, and may sync;
        d. else: everybody must join again. A stable leader forces this when something changed that only it sees.
        """
        unchanged = member.protocols == request.protocols
        if group.is_in(GroupState.COMPLETING_REBALANCE) and unchanged:
            return group.current_generation(member.member_id)
        if group.is_in(GroupState.STABLE) and unchanged and not group.is_leader(member.member_id):
            return group.current_generation(member.member_id)
        self._rebalance.take_request(member, request, reply)
        self._rebalance.prepare_if_possible(group, now_ms)
        return None

    def _restart_static_member(
        self, group: Group, member: Member, new_id: str, request: JoinRequest, now_ms: int, reply: JoinReply
    ) -> JoinResult | None:
        """A static member comes with no member id: its process was started anew.

        a. in a stable group whose protocol stays the same: it keeps its assignment, nobody else notices;
        b. in a stable group whose protocol would change, or while the leader assigns (it still knows the old id): a
        rebalance; c. while members are collected: it is collected under its new id.
        """
        leader_before = group.leader_id or ""
        self._rebalance.replace_static_member(group, member, new_id, now_ms)
        self._rebalance.take_request(member, request, reply)
        if group.is_in(GroupState.STABLE) and group.choose_protocol() == group.protocol_name:
            member.join_reply = None
            result = group.current_generation(new_id)
            if request.can_skip_assignment:
                result.skip_assignment = group.is_leader(new_id)
            else:
                # Told its new id as leader's, an older client would assign, and in a stable group nobody would hear of
                # it.
                result.leader_id = leader_before
                result.members = ()
            return result
        self._rebalance.prepare_if_possible(group, now_ms)
        return None

    # Sync, heartbeat, leave

    def sync(self, request: SyncRequest, now_ms: int, reply: SyncReply) -> None:
        """SyncGroup. `reply` is called once: now, when the leader has assigned, or when the rebalance starts again."""
        result = self._sync(request, now_ms, reply)
        if result is not None:
            self._replies.put(reply, result)
        self._replies.flush(now_ms)

    def _sync(self, request: SyncRequest, now_ms: int, reply: SyncReply) -> SyncResult | None:
        if not request.group_id:
            return SyncResult(ErrorCode.INVALID_GROUP_ID)
        group = self._groups.get(request.group_id)
        if group is None:
            return SyncResult(ErrorCode.UNKNOWN_MEMBER_ID)
        error = group.not_a_member(request.member_id, request.group_instance_id)
        error = error or group.other_generation(request.generation_id)
        if error:
            return SyncResult(error)
        if request.protocol_type not in (None, group.protocol_type):
            return SyncResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if request.protocol_name not in (None, group.protocol_name):
            return SyncResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.is_in(GroupState.PREPARING_REBALANCE):
            return SyncResult(ErrorCode.REBALANCE_IN_PROGRESS)
        member = group.members[request.member_id]
        if group.is_in(GroupState.COMPLETING_REBALANCE):
            self._rebalance.park_sync(group, member, reply)
            if group.is_leader(member.member_id):
                self._rebalance.assign(group, dict(request.assignments), now_ms)
            return None
        self._rebalance.has_synced(group, member)
        self._rebalance.sessions.heard_from(group, member, now_ms)
        return SyncResult(0, group.protocol_type, group.protocol_name, member.assignment)

    def heartbeat(
        self, group_id: str, generation_id: int, member_id: str, group_instance_id: str | None, now_ms: int
    ) -> int:
        """Heartbeat: the error code. A member that must join again is told so, and lives on."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = group.not_a_member(member_id, group_instance_id) or group.other_generation(generation_id)
        if error:
            return error
        self._rebalance.sessions.heard_from(group, group.members[member_id], now_ms)
        if group.is_in(GroupState.PREPARING_REBALANCE):
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(self, group_id: str, leaving: Sequence[LeavingMember], now_ms: int) -> LeaveResult:
        """LeaveGroup, of one or of many (an administrator names static members by instance id)."""
        if not group_id:
            return LeaveResult(ErrorCode.INVALID_GROUP_ID)
        group = self._groups.get(group_id)
        if group is None:
            return LeaveResult(0, [(member, ErrorCode.UNKNOWN_MEMBER_ID) for member in leaving])
        results = [(member, self._leave_one(group, member, now_ms)) for member in leaving]
        self._replies.flush(now_ms)
        return LeaveResult(0, results)

    def _leave_one(self, group: Group, leaving: LeavingMember, now_ms: int) -> int:
        member_id, instance_id = leaving
        if member_id == UNKNOWN_MEMBER_ID:
            if instance_id is None or instance_id not in group.static_ids:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = group.static_ids[instance_id]
        elif member_id in group.pending:
            self._rebalance.remove_pending_member(group, member_id, now_ms)
            return ErrorCode.NONE
        error = group.not_a_member(member_id, instance_id)
        if error:
            return error
        self._rebalance.remove_member(group, group.members[member_id], now_ms)
        return ErrorCode.NONE

    # What is known of the groups

    def list_groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[GroupOverview]:
        """ListGroups. states, types: filters without regard to case; empty: all. Every group here is "classic"."""
        wanted = {state.lower() for state in states}
        if types and "classic" not in {kind.lower() for kind in types}:
            return []
        return [
            GroupOverview(group.group_id, group.protocol_type or "", group.state.value)
            for group in self._groups.values()
            if not wanted or group.state.value.lower() in wanted
        ]

    def describe(self, group_id: str) -> GroupDescription:
        """DescribeGroups, one group."""
        group = self._groups.get(group_id)
        if group is None:
            return GroupDescription(group_id, GroupState.DEAD.value)
        return _description(group)

    def delete(self, group_ids: Sequence[str], now_ms: int) -> dict[str, int]:
        """DeleteGroups: an error code for each id. Only groups without members can go; their offsets go with them."""
        results: dict[str, int] = {}
        for group_id in group_ids:
            group = self._groups.get(group_id)
            if group is None:
                results[group_id] = results.get(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
            elif group.is_in(GroupState.EMPTY):
                self._end(group, now_ms)
                results[group_id] = ErrorCode.NONE
            else:
                results[group_id] = ErrorCode.NON_EMPTY_GROUP
        return results

    def close(self, now_ms: int) -> None:
        """Forget everything: parked requests are answered, no timer stays."""
        for group in list(self._groups.values()):
            self._end(group, now_ms)
        self._replies.flush(now_ms)

    def offsets(self) -> Iterator[tuple[str, str | None, Mapping[PartitionKey, CommittedOffset]]]:
        """(group id, protocol type, committed offsets) of every group that has committed."""
        for group in self._groups.values():
            if group.offsets:
                yield group.group_id, group.protocol_type, group.offsets

    def restore(
        self, groups: Mapping[str, tuple[str | None, Mapping[PartitionKey, CommittedOffset]]], now_ms: int
    ) -> None:
        """Begin with the offsets that another process has left, group by group: (protocol type, offsets). Nobody is a member."""
        for group_id, (protocol_type, offsets) in groups.items():
            group = self._create(group_id, now_ms)
            group.protocol_type = protocol_type
            group.offsets.update(offsets)

    # The life of groups

    def _create(self, group_id: str, now_ms: int) -> Group:
        group = self._groups[group_id] = Group(group_id, now_ms)
        if self._sweep is None:
            self._sweep_later(now_ms)
        return group

    def _end(self, group: Group, now_ms: int) -> None:
        self._rebalance.end(group, now_ms)
        del self._groups[group.group_id]
        if self._keeper is not None:
            self._keeper.gone(group.group_id)
        if not self._groups and self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    def _sweep_later(self, now_ms: int) -> None:
        self._sweep = self._timers.at(now_ms + self.settings.offsets_retention_check_interval_ms, self._forget_old)

    def _forget_old(self, now_ms: int) -> None:
        """Offsets past their retention go, and with the last of them a group that has no members."""
        self._sweep = None
        for group in list(self._groups.values()):
            self.commits.expire(group, now_ms)
            if group.is_in(GroupState.EMPTY) and not group.offsets and not group.pending:
                self._end(group, now_ms)
        if self._groups:
            self._sweep_later(now_ms)

    def _uuid(self) -> UUID:
        return UUID(int=self._random.getrandbits(128), version=4)


def _description(group: Group) -> GroupDescription:
    """Describe a group; what its members share is shown only while it is stable, as Kafka does."""
    stable = group.is_in(GroupState.STABLE)
    name = (group.protocol_name or "") if stable else ""
    members = [
        DescribedMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.metadata(name) if stable else b"",
            member.assignment if stable else b"",
        )
        for member in group.members.values()
    ]
    return GroupDescription(group.group_id, group.state.value, 0, group.protocol_type or "", name, members)
