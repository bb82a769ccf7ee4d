"""The coordinator of consumer groups of the new protocol (KIP-848): heartbeats, epochs, target assignments, reconciliation.

Every heartbeat may change the group: the member joins or changes its subscription, which starts a new epoch and a new target assignment. The member
also moves towards its target. All changes of a heartbeat are one batch of records, and its response is sent when they are replicated. Corresponds to
the half of Kafka's `GroupMetadataManager` (Java) that handles consumer groups. This module does not depend on wire messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group import consumer_records as stored_as
from kafkaproto.broker.group.assignment import NOTHING
from kafkaproto.broker.group.classic_members import ClassicMembers
from kafkaproto.broker.group.consumer_group import ConsumerGroup, ConsumerMember
from kafkaproto.broker.group.consumer_members import Membership
from kafkaproto.broker.group.consumer_requests import (
    AWAY,
    JOINING,
    LEAVING,
    ConsumerGroupDescription,
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    DescribedConsumer,
    HeartbeatReply,
    check,
)
from kafkaproto.broker.group.deferred_replies import DeferredReplies
from kafkaproto.broker.group.group import GroupState
from kafkaproto.broker.group.migration import sort_as_stored
from kafkaproto.broker.group.reconciliation import MemberState
from kafkaproto.broker.group.records import Entry
from kafkaproto.broker.group.regex_subscriptions import RegexSubscriptions
from kafkaproto.broker.group.registry import Registry
from kafkaproto.broker.group.results import LeaveReply, LeaveResult, LeavingMember
from kafkaproto.broker.group.sessions import cancel, cancel_all
from kafkaproto.broker.group.topic_patterns import compile_topic_pattern
from kafkaproto.broker.group.transitions import Transitions
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import copy_order


class ConsumerCoordinator:
    """Handles the requests of consumer groups of the new protocol (KIP-848). random: generates member ids.

    replies: the queue of JoinGroup and SyncGroup results. The results wait in the queue until the coordinator has finished changing the group. After
    that they are sent.
    """

    def __init__(
        self, groups: Registry, transitions: Transitions, timers: Timers, random: Random, replies: DeferredReplies
    ) -> None:
        self._groups = groups
        self._replies = replies
        self._transitions = transitions
        self._settings = transitions.settings
        self._members = Membership(random, self._settings)
        self._regexes = RegexSubscriptions(groups, transitions, timers)
        self.classic = ClassicMembers(transitions, self._members, self._regexes)
        """Handles the requests of members that use the classic protocol."""

    # ---- requests ------------------------------------------------------------------------------------------------------------

    def check_at_any_broker(self, request: ConsumerHeartbeat) -> None:
        """Check the fields of a heartbeat, even if this broker does not coordinate the group (GC-7). Before Kafka 4.1, do nothing.

        Raises KafkaError for the first invalid field.
        """
        if self._settings.is_release_4_1:
            self._check(request)

    def heartbeat(self, request: ConsumerHeartbeat, now_ms: int, reply: HeartbeatReply) -> None:
        """Handle ConsumerGroupHeartbeat. `reply` is called once, when the changes are replicated or if the heartbeat is rejected.

        From Kafka 4.1 on, call it only after `check_at_any_broker`.
        """
        group_id = request.group_id
        classic, group = self._groups.get(group_id), self._groups.get_consumer(group_id)
        undo = self._transitions.remember(group, is_steady=_is_steady(group, request))
        entries: list[Entry] = []
        try:
            if not self._settings.is_release_4_1:
                self._check(request)
            if request.member_epoch in (LEAVING, AWAY):
                result = self._leave(request, entries, now_ms)
            else:
                result = self._beat(request, entries, now_ms)
        except KafkaError as error:
            # Nothing of a refused heartbeat stays (GN-14).
            is_there = self._groups.get_consumer(group_id) is not None
            if classic is not None and is_there:
                self._groups.put_back(classic)
            elif undo is not None:
                undo()
            elif entries or (is_there and group is None):
                self._groups.reload(group_id, now_ms, is_new=group is None)
            reply(ConsumerHeartbeatResult(error.error_code, error.message), now_ms)
            self._replies.flush(now_ms)
            return
        group_after = self._groups.get_consumer(group_id)
        if classic is not None:
            cancel_all(classic)
            classic.move_to(GroupState.DEAD, now_ms)  # a write that is under way changes it no more
            if group_after is not None:
                sort_as_stored(group_after, classic)

        def stored(error_code: int, at_ms: int) -> None:
            reply(ConsumerHeartbeatResult(error_code) if error_code else result, at_ms)

        if group_after is not None:
            self._groups.forgotten.take(group_id)
        self._transitions.store(group_id, entries, now_ms, stored)
        self._replies.flush(now_ms)

    def describe(self, group_id: str, *, committed: bool = True) -> ConsumerGroupDescription:
        """Return the description of a group for ConsumerGroupDescribe.

        committed: True describes the state up to the high watermark, with the members in Kafka's order, as Kafka does; False describes the newest
        state, with the members in the order in which they joined. Raises KafkaError GROUP_ID_NOT_FOUND (69) if there is no consumer group with this
        id (GN-66).
        """
        group = self._groups.visible.get(group_id) if committed else self._groups.get_any(group_id)
        if not isinstance(group, ConsumerGroup):
            is_classic = group is not None
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Group {group_id} is not a consumer group." if is_classic else f"Group {group_id} not found.",
            )
        members = [
            DescribedConsumer(
                member.member_id,
                member.instance_id,
                member.rack_id,
                member.current.epoch,
                member.client_id,
                member.client_host,
                copy_order(sorted(member.topic_names)),
                member.topic_regex,
                member.current.assigned,
                group.target_of(member.member_id),
                is_classic=member.classic is not None,
            )
            for member in (group.in_table_order() if committed else group.members.values())
        ]
        assignor = self._transitions.targets.assignor_of(group)
        return ConsumerGroupDescription(
            group_id, group.state.value, group.epoch, group.assignment_epoch, assignor, members
        )

    def resume(self, group: ConsumerGroup, now_ms: int) -> None:
        """Start the timers of the members of a group that was loaded from the offsets topic (GO-11).

        As in Kafka, members of the classic protocol get the same timers and timeouts as members of the new protocol (KIP-848).
        """
        for member in group.members.values():
            self._transitions.expect(group, member, now_ms, is_loaded=True)
            if member.current.state is MemberState.UNREVOKED_PARTITIONS:
                self._transitions.expect_revocation(group, member, now_ms)

    def _check(self, request: ConsumerHeartbeat) -> None:
        check(request, self._settings.assignors, is_release_4=self._settings.is_release_4)

    # ---- joining and heartbeats ----------------------------------------------------------------------------------------------

    def _beat(self, request: ConsumerHeartbeat, entries: list[Entry], now_ms: int) -> ConsumerHeartbeatResult:
        group = self._find_or_create(request, entries, now_ms)
        if request.member_id not in group.members and len(group.members) >= self._settings.max_size:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {self._settings.max_size} members.",
            )
        is_known, size = request.member_id in group.members, len(group.members)
        member = self._members.find_or_add(group, request, entries)
        try:
            if request.topic_regex and request.topic_regex not in group.regex_subscribers:
                compile_topic_pattern(request.topic_regex)
        except KafkaError:
            if not is_known and not entries:
                group.remove(member.member_id)
            raise
        current_before = member.current
        changes = self._members.update(group, member, request, entries)._replace(is_new=len(group.members) > size)
        is_resolved = self._regexes.update(group, member, changes, entries, now_ms)
        assigned = self._transitions.advance(
            group, member, changes, request.owned, entries, now_ms, bumps=changes.has_other_names or is_resolved
        )
        self._transitions.expect(group, member, now_ms)
        has_assignment = (
            request.member_epoch == JOINING or request.is_full or current_before.assigned != member.current.assigned
        )
        return ConsumerHeartbeatResult(
            member_id=member.member_id,
            member_epoch=member.current.epoch,
            interval_ms=self._settings.heartbeat_interval_ms(group.group_id),
            assignment=assigned if has_assignment else None,
        )

    def _find_or_create(self, request: ConsumerHeartbeat, entries: list[Entry], now_ms: int) -> ConsumerGroup:
        """Return the group that a heartbeat names. For a joining member, a missing group is created and a classic group converted (GN-10, GN-55).

        entries: the list to which the records of a conversion are added. Raises KafkaError GROUP_ID_NOT_FOUND (69) if the group is missing or classic
        and the member does not join, or if a classic group cannot be converted.
        """
        group = self._groups.get_consumer(request.group_id)
        if group is not None:
            return group
        classic = self._groups.get(request.group_id)
        if request.member_epoch != JOINING:
            kind = "Group {} is not a consumer group." if classic is not None else "Consumer group {} not found."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, kind.format(request.group_id))
        if classic is None:
            return self._groups.create_consumer(request.group_id, now_ms)
        group = self._groups.upgrade(classic, self._settings, self._transitions.topics, entries, now_ms)
        for member in group.members.values():
            self._transitions.expect(group, member, now_ms)
        return group

    # ---- leaving and timeouts ------------------------------------------------------------------------------------------------

    def _leave(self, request: ConsumerHeartbeat, entries: list[Entry], now_ms: int) -> ConsumerHeartbeatResult:
        group = self._groups.get_consumer(request.group_id)
        if group is None:
            kind = (
                "Group {} not found."
                if self._groups.get(request.group_id) is None
                else "Group {} is not a consumer group."
            )
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, kind.format(request.group_id))
        member = self._members.find_leaving(group, request)
        if request.member_epoch == LEAVING:
            self._transitions.fence(group, [member], entries, now_ms)
        else:
            cancel(member.rebalance_timer)
            group.move(member, member.current._replace(epoch=AWAY, pending=NOTHING))
            entries.append(stored_as.current_entry(group.group_id, member.member_id, member.current))
        return ConsumerHeartbeatResult(member_id=request.member_id, member_epoch=request.member_epoch)

    def remove(self, group_id: str, leaving: Sequence[LeavingMember], now_ms: int, reply: LeaveReply) -> None:
        """Remove the members of a LeaveGroup request (GN-62). `reply` is called when the change is replicated or has failed.

        Before 4.0, LeaveGroup removes only members that use the classic protocol; any other member gets UNKNOWN_MEMBER_ID. leaving: the entries of
        the request, each with a member id, an instance id or both.
        """
        group = self._groups.get_consumer(group_id)
        if group is None:
            reply(LeaveResult(0, [(member, ErrorCode.UNKNOWN_MEMBER_ID) for member in leaving]), now_ms)
            return
        results_by_entry = [self._leaving(group, member) for member in leaving]
        members = {member.member_id: member for member in results_by_entry if isinstance(member, ConsumerMember)}
        entries: list[Entry] = []
        if members:
            self._transitions.fence(group, members.values(), entries, now_ms)
        errors = [0 if isinstance(member, ConsumerMember) else int(member) for member in results_by_entry]
        if not self._settings.is_release_4:  # 3.9 fills in the member ids of static members
            leaving = [
                known._replace(member_id=member.member_id) if isinstance(member, ConsumerMember) else known
                for known, member in zip(leaving, results_by_entry, strict=True)
            ]
        results = list(zip(leaving, errors, strict=True))

        def stored(error_code: int, at_ms: int) -> None:
            reply(LeaveResult(error_code) if error_code else LeaveResult(0, results), at_ms)

        self._transitions.store(group_id, entries, now_ms, stored)

    def _leaving(self, group: ConsumerGroup, leaving: LeavingMember) -> ConsumerMember | ErrorCode:
        member = group.find(leaving.member_id, leaving.group_instance_id)
        if isinstance(member, ConsumerMember) and member.classic is None and not self._settings.is_release_4:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return member


def _is_steady(group: ConsumerGroup | None, request: ConsumerHeartbeat) -> bool:
    """Return whether a heartbeat neither adds a member nor changes a subscription.

    True if the sender is a member that repeats its subscription or leaves it out. Also True for an unknown sender that does not join: its heartbeat
    is rejected later. False if the group does not exist or the sender joins.
    """
    if group is None or request.member_epoch == JOINING:
        return False
    member = group.members.get(request.member_id)
    if member is None:
        return True
    has_same_names = request.topic_names is None or member.topic_names == frozenset(request.topic_names)
    return has_same_names and request.topic_regex in (None, member.topic_regex)
