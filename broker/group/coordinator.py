"""The group coordinator of one broker: requests of classic groups (join, sync, heartbeat, leave), and operations on all groups.

A coordinator has the groups whose partition of `__consumer_offsets` this broker leads. Groups are loaded from that partition when the broker becomes
its leader, and dropped from memory when the broker stops leading it (GO-11, GO-12). The result of a join or sync is passed to its callback, either
immediately or later. The callback is called at most once. It is never called if the member sends the same request again while this one waits
(GC-24), or if the member is removed while its sync waits (GC-49).
Corresponds to Kafka's `GroupCoordinator` (3.9). This module does not depend on wire messages, connections or clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from random import Random
from uuid import UUID

from kafkaproto.broker.config.java_text import java_trim
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.causes import CauseKind
from kafkaproto.broker.group.changes import GroupChanges
from kafkaproto.broker.group.commits import Commits
from kafkaproto.broker.group.consumer_coordinator import ConsumerCoordinator
from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.deferred_replies import DeferredReplies
from kafkaproto.broker.group.group import Group, GroupState, Member
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.overview import described, described_any, matching_groups
from kafkaproto.broker.group.rebalance import Rebalance
from kafkaproto.broker.group.records import KAFKA_3_9, RecordVersions
from kafkaproto.broker.group.registry import Registry
from kafkaproto.broker.group.results import (
    UNKNOWN_MEMBER_ID,
    GroupDescription,
    GroupOverview,
    JoinReply,
    JoinRequest,
    JoinResult,
    LeaveReply,
    LeaveResult,
    LeavingMember,
    SyncReply,
    SyncRequest,
    SyncResult,
)
from kafkaproto.broker.group.settings import ConsumerGroupSettings, GroupSettings
from kafkaproto.broker.group.static_members import StaticMembers
from kafkaproto.broker.group.storage import GroupStorage, OffsetsLog
from kafkaproto.broker.group.subscribed_topics import ClusterTopics
from kafkaproto.broker.group.subscription import CONSUMER_PROTOCOL
from kafkaproto.broker.group.transitions import Transitions
from kafkaproto.broker.runtime.events import Events
from kafkaproto.broker.runtime.ownership import Ownership
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.error_codes import ErrorCode

OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8
"""The operations that clients may use on a group, as a bit set: read, delete, describe."""
OPERATIONS_OF_4 = OPERATIONS | 1 << 10 | 1 << 11
"""The operations that clients may use on a group in releases from 4.0 on, as a bit set: those in `OPERATIONS`, describe configs, alter configs."""


class GroupCoordinator:
    """The group coordinator of one broker.

    random: generates member ids. log: the offsets topic on this broker; None keeps groups in memory only. versions: the versions of the record values
    that are written to the offsets topic. load_ms: a function that returns for how many ms loading a partition is delayed; 0 loads it at once.
    consumers: the settings of the new protocol (KIP-848). topics: the topics of the cluster, by default none. broker_id: this broker's id, for the
    reports of changed groups; -1 in tests of the coordinator alone.
    """

    def __init__(
        self,
        settings: GroupSettings,
        timers: Timers,
        random: Random,
        events: Events | None = None,
        log: OffsetsLog | None = None,
        versions: RecordVersions = KAFKA_3_9,
        load_ms: Callable[[], int] = lambda: 0,
        consumers: ConsumerGroupSettings | None = None,
        topics: ClusterTopics | None = None,
        broker_id: int = -1,
    ) -> None:
        self._random = random
        self._replies = DeferredReplies()
        self.ownership = Ownership(timers, self._load, self._unload, load_ms)
        consumers = consumers or ConsumerGroupSettings()
        is_new = self.is_new_coordinator = consumers.has_new_coordinator
        storage = GroupStorage(log, self.ownership.partition_of, versions, is_new_coordinator=is_new)
        changes = GroupChanges(Events() if events is None else events, broker_id)
        self._rebalance = Rebalance(settings, timers, self._replies, changes, storage)
        self._static_members = StaticMembers(self._rebalance, self._replies, storage)
        self.groups = Registry(timers, self._rebalance, storage)
        self._consumer_settings = consumers
        self.is_release_4, self.is_release_4_1 = consumers.is_release_4, consumers.is_release_4_1
        self._transitions = Transitions(self.groups, storage, consumers, timers, topics or ClusterTopics())
        self.consumers = ConsumerCoordinator(self.groups, self._transitions, timers, random, self._replies)
        self.groups.resume_consumer = self.consumers.resume
        self.commits = Commits(self.groups, self._rebalance, storage, consumers)

    @property
    def serves_consumers(self) -> bool:
        """Return whether the settings and the level of the feature `group.version` allow groups of the new protocol (KIP-848, GN-1, AD-36)."""
        return self._consumer_settings.is_on and self._consumer_settings.is_finalized()

    @property
    def settings(self) -> GroupSettings:
        return self._rebalance.settings

    @settings.setter
    def settings(self, settings: GroupSettings) -> None:
        self._rebalance.settings = settings

    @property
    def operations(self) -> int:
        """Return the operations that every client may use on a group, as bits of `AclEntry.supportedOperations` (GC-53)."""
        return OPERATIONS_OF_4 if self.is_release_4 else OPERATIONS

    # Join

    def join(self, request: JoinRequest, now_ms: int, reply: JoinReply) -> None:
        """Handle JoinGroup. `reply` is called at most once, now or later; never if the member joins again while it waits (GC-24)."""
        result = self._join(request, now_ms, reply)
        if result is not None:
            self._replies.put(reply, result)
        self._replies.flush(now_ms)

    def _join(self, request: JoinRequest, now_ms: int, reply: JoinReply) -> JoinResult | None:
        """Handle JoinGroup. Returns the result if it is known now; None if `reply` is called later, at the end of the join phase or after a write."""
        member_id = request.member_id
        if not request.group_id:
            return JoinResult(member_id, ErrorCode.INVALID_GROUP_ID)
        if not self.settings.allows_session_timeout(request.session_timeout_ms):
            return JoinResult(member_id, ErrorCode.INVALID_SESSION_TIMEOUT)
        consumers = self.groups.get_consumer(request.group_id)
        if consumers is not None and consumers.members:
            self.consumers.classic.join(consumers, request, now_ms, reply)
            return None
        if consumers is not None and member_id != UNKNOWN_MEMBER_ID and self._consumer_settings.forgets_empty_groups:
            self.groups.forget(consumers, now_ms)
        if (group := self.groups.get(request.group_id)) is None:
            if member_id != UNKNOWN_MEMBER_ID:
                return JoinResult(member_id, ErrorCode.UNKNOWN_MEMBER_ID)
            error, group = self.groups.create_for_member(request.group_id, now_ms)
            if group is None:
                return JoinResult(member_id, error)
        result = self._admit(group, request, now_ms, reply)
        if group.is_in(GroupState.PREPARING_REBALANCE) and not (self.is_new_coordinator and _found_no_room(result)):
            self._rebalance.complete_join_if_all_are_here(group, now_ms)
        return result

    def _admit(self, group: Group, request: JoinRequest, now_ms: int, reply: JoinReply) -> JoinResult | None:
        member_id = request.member_id
        if not group.accepts(member_id, self.settings.group_max_size):
            self._rebalance.sessions.forget_pending_member(group, member_id)
            if member_id in group.members:
                self._rebalance.drop(group, group.members[member_id])
            return JoinResult(UNKNOWN_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not group.supports(request.protocol_type, request.protocols):
            return JoinResult(member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if member_id == UNKNOWN_MEMBER_ID:
            return self._join_new(group, request, now_ms, reply)
        if member_id in group.pending:
            if request.group_instance_id is not None:
                # Static members are never asked to return with an id, so no static member can have been given this id.
                return JoinResult(UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_SERVER_ERROR)
            self._rebalance.add_member(group, member_id, request, reply, now_ms)
            return None
        if error := group.not_a_member(member_id, request.group_instance_id):
            return JoinResult(member_id, error)
        return self._join_again(group, group.members[member_id], request, now_ms, reply)

    def _join_new(self, group: Group, request: JoinRequest, now_ms: int, reply: JoinReply) -> JoinResult | None:
        instance_id = request.group_instance_id
        uuid = UUID(int=self._random.getrandbits(128), version=4)
        new_id = f"{request.client_id if instance_id is None else instance_id}-{uuid}"
        if instance_id is not None and instance_id in group.static_ids:
            old_member = group.members[group.static_ids[instance_id]]
            self._static_members.restart(group, old_member, new_id, request, now_ms, reply)
            return None
        if instance_id is None and request.requires_member_id:
            self._rebalance.sessions.await_pending_member(group, new_id, request.session_timeout_ms, now_ms)
            return JoinResult(new_id, ErrorCode.MEMBER_ID_REQUIRED)
        self._rebalance.add_member(group, new_id, request, reply, now_ms)
        return None

    def _join_again(
        self, group: Group, member: Member, request: JoinRequest, now_ms: int, reply: JoinReply
    ) -> JoinResult | None:
        """Handle a JoinGroup request from a current member. Returns the result if it is known now; None if `reply` is called with it later.

        a. During the join phase, the member joins the new generation.
        b. During the sync phase, a member with unchanged protocols must have missed its JoinGroup response. It gets this response again.
        c. In a stable group, a member with unchanged protocols gets the current generation and may sync, unless it is the leader.
        d. Otherwise all members must join again. The leader of a stable group forces a rebalance in this way.
        """
        unchanged = member.protocols == request.protocols
        if group.is_in(GroupState.COMPLETING_REBALANCE) and unchanged:
            return group.current_generation(member.member_id)
        if group.is_in(GroupState.STABLE) and unchanged and not group.is_leader(member.member_id):
            return group.current_generation(member.member_id)
        self._rebalance.take_request(group, member, request, reply)
        self._rebalance.prepare_if_possible(group, now_ms)
        return None

    # Sync, heartbeat, leave

    def sync(self, request: SyncRequest, now_ms: int, reply: SyncReply) -> None:
        """Handle SyncGroup. `reply` is called at most once, now or later; never if the member syncs again or leaves while it waits (GC-24, GC-49)."""
        result = self._sync(request, now_ms, reply)
        if result is not None:
            self._replies.put(reply, result)
        self._replies.flush(now_ms)

    def _sync(self, request: SyncRequest, now_ms: int, reply: SyncReply) -> SyncResult | None:
        if not request.group_id:
            return SyncResult(ErrorCode.INVALID_GROUP_ID)
        consumers = self.groups.get_consumer(request.group_id)
        if consumers is not None:
            self.consumers.classic.sync(consumers, request, now_ms, reply)
            return None
        if (group := self.groups.get(request.group_id)) is None:
            return SyncResult(ErrorCode.UNKNOWN_MEMBER_ID)
        error = group.not_a_member(request.member_id, request.group_instance_id)
        if error := error or group.other_generation(request.generation_id):
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
                self._rebalance.store_assignment(group, dict(request.assignments), now_ms)
            return None
        self._rebalance.has_synced(group, member)
        self._rebalance.sessions.restart_timeout(group, member, now_ms)
        return SyncResult(0, group.protocol_type, group.protocol_name, member.assignment)

    def heartbeat(
        self, group_id: str, generation_id: int, member_id: str, group_instance_id: str | None, now_ms: int
    ) -> int:
        """Handle Heartbeat and return its error code. The session timeout restarts even if the error is REBALANCE_IN_PROGRESS.

        generation_id: the generation that the member is in; for a classic member in a group of the new protocol (KIP-848), its member epoch.
        group_instance_id: the instance id of a static member; None for a dynamic one.
        """
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        consumers = self.groups.get_consumer(group_id)
        if consumers is not None:
            return self.consumers.classic.heartbeat(consumers, generation_id, member_id, group_instance_id, now_ms)
        if (group := self.groups.get(group_id)) is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if error := group.not_a_member(member_id, group_instance_id) or group.other_generation(generation_id):
            return error
        self._rebalance.sessions.restart_timeout(group, group.members[member_id], now_ms)
        if group.is_in(GroupState.PREPARING_REBALANCE):
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(self, group_id: str, leaving: Sequence[LeavingMember], now_ms: int, reply: LeaveReply) -> None:
        """Handle LeaveGroup: call `reply` once with a result for each entry of `leaving`. An administrator removes static members by instance id."""
        if not group_id:
            reply(LeaveResult(ErrorCode.INVALID_GROUP_ID), now_ms)
        elif (group := self.groups.get(group_id)) is None:
            self.consumers.remove(group_id, leaving, now_ms, reply)
        else:
            results = [(member, self._leave_one(group, member, now_ms)) for member in leaving]
            self._replies.flush(now_ms)
            self.groups.await_writes(
                group_id, now_ms, lambda error, at_ms: reply(LeaveResult(error, [] if error else results), at_ms)
            )

    def _leave_one(self, group: Group, leaving: LeavingMember, now_ms: int) -> int:
        member_id, instance_id = leaving
        if member_id == UNKNOWN_MEMBER_ID:
            if instance_id is None or instance_id not in group.static_ids:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = group.static_ids[instance_id]
        elif member_id in group.pending:
            self._rebalance.remove_pending_member(group, member_id, now_ms, rebalances=self.is_new_coordinator)
            return ErrorCode.NONE
        if error := group.not_a_member(member_id, instance_id):
            return error
        self._rebalance.remove_member(group, group.members[member_id], now_ms)
        return ErrorCode.NONE

    def expire_member(self, group_id: str, member_id: str, now_ms: int) -> None:
        """Remove a member as if its session timed out, even if it waits for a response. Raises KeyError if the group or the member is unknown."""
        consumer, group = self.groups.get_consumer(group_id), self.groups.get(group_id)
        if consumer is not None:
            self._transitions.expire(consumer, consumer.members[member_id], now_ms)
        elif group is not None:
            self._rebalance.changes.note(group_id, CauseKind.SESSION_TIMED_OUT, member_id)
            self._rebalance.remove_member(group, group.members[member_id], now_ms, answers_sync=True)
            self._replies.flush(now_ms)
        else:
            raise KeyError(group_id)

    def fence_member(self, group_id: str, member_id: str, now_ms: int) -> None:
        """Fence a member, so that its next request gets an error: FENCED_INSTANCE_ID in a classic group, otherwise FENCED_MEMBER_EPOCH.

        In a classic group the member must be static: this method handles a JoinGroup as if a second process with the same instance id had sent it
        (KIP-345). In a group of the new protocol (KIP-848), the member is removed. Raises KeyError for an unknown group or member, ValueError for a
        dynamic member of a classic group, KafkaError if the classic group rejects the join.
        """
        consumer, group = self.groups.get_consumer(group_id), self.groups.get(group_id)
        if consumer is not None:
            member = consumer.members[member_id]
            consumer.fenced.add(member_id)
            self._transitions.expire(consumer, member, now_ms, CauseKind.FENCED)
        elif group is not None:
            results: list[JoinResult] = []
            request = _second_process(group, group.members[member_id])
            self.join(request, now_ms, lambda result, at_ms: results.append(result))
            if results and results[0].error_code:
                raise _fencing_failed(group_id, member_id, request.group_instance_id, results[0].error_code)
        else:
            raise KeyError(group_id)

    # Listing, describing and deleting groups

    def list_groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[GroupOverview]:
        """Return the groups for ListGroups. states, types: filters that ignore case; empty for all."""
        # The coordinator in Java ignores blanks around states, but not around types (GC-56).
        states = [java_trim(state) if self.is_new_coordinator else state for state in states]
        return matching_groups(self.groups.visible.all(), states, types)

    def describe(self, group_id: str) -> GroupDescription:
        """Return the description of a classic group for DescribeGroups. If there is no classic group with this id, its state is Dead."""
        return described(self.groups.visible.get(group_id), group_id, keeps_assignments=self.is_new_coordinator)

    def describe_any(self, group_id: str) -> GroupDescription:
        """Return the description of any group, classic or not, in the form of DescribeGroups. If it does not exist, its state is Dead."""
        return described_any(self.groups.get_any(group_id), group_id, keeps_assignments=self.is_new_coordinator)

    def offsets(self) -> Iterator[tuple[str, str | None, Mapping[PartitionKey, CommittedOffset]]]:
        """Yield (group id, protocol type or None, dict of (topic, partition) to offset) of every group that has committed offsets."""
        for group in self.groups:
            if group.offsets:
                protocol_type = CONSUMER_PROTOCOL if isinstance(group, ConsumerGroup) else group.protocol_type
                yield group.group_id, protocol_type, group.offsets

    def stop(self, now_ms: int) -> None:
        """Drop all groups from memory because the broker stops: respond to their waiting requests and cancel all timers."""
        self.ownership.change((), 0, now_ms)
        self.groups.unload_all(now_ms)
        self._replies.flush(now_ms)

    def _load(self, index: int, now_ms: int) -> None:
        self.groups.load(index, now_ms)
        self._replies.flush(now_ms)

    def _unload(self, index: int, now_ms: int) -> None:
        self.groups.unload_partition(index, now_ms)
        self._replies.flush(now_ms)


def _found_no_room(result: JoinResult | None) -> bool:
    """Return whether a JoinGroup was rejected because the group is full. result: the result of the JoinGroup; None if it is not known yet.

    After such a rejection, the join phase continues if the broker emulates Kafka's group coordinator in Java (GC-30).
    """
    return result is not None and result.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def _fencing_failed(group_id: str, member_id: str, instance_id: str | None, error_code: int) -> KafkaError:
    """Return the error for a static member that cannot be fenced: its group rejects a second process with its instance id, with `error_code`."""
    return KafkaError(
        error_code,
        f"Cannot fence static member {member_id}: a second process must join group {group_id} with the same instance id {instance_id}, "
        f"but the group rejected this join with {ErrorCode(error_code).name}.",
    )


def _second_process(group: Group, member: Member) -> JoinRequest:
    """Return the JoinGroup request that a second process would send with the `group.instance.id` of a static member.

    Raises ValueError for a dynamic member.
    """
    if member.group_instance_id is None:
        raise ValueError(
            f"member {member.member_id} of group {group.group_id} has no group.instance.id; "
            "only a static member of a classic group can be fenced"
        )
    return JoinRequest(
        group.group_id,
        UNKNOWN_MEMBER_ID,
        member.session_timeout_ms,
        member.rebalance_timeout_ms,
        group.protocol_type or "",
        member.protocols,
        member.client_id,
        member.client_host,
        member.group_instance_id,
    )
