"""Members of consumer groups that use the classic protocol: their JoinGroup, SyncGroup and Heartbeat requests (KIP-848, GN-56 to GN-60).

For such a member, JoinGroup has the effect of a ConsumerGroupHeartbeat: the member reports its subscription and the partitions that it owns, and
moves towards its target assignment. SyncGroup returns its assignment. Corresponds to `classicGroupJoinToConsumerGroup` and related methods in Kafka's
`GroupMetadataManager` (Java).
"""

from __future__ import annotations

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.consumer_group import ConsumerGroup, ConsumerMember
from kafkaproto.broker.group.consumer_members import Membership
from kafkaproto.broker.group.migration import decode_subscription, encode_assignment, partitions_by_id
from kafkaproto.broker.group.reconciliation import MemberState
from kafkaproto.broker.group.records import Entry
from kafkaproto.broker.group.regex_subscriptions import RegexSubscriptions
from kafkaproto.broker.group.results import (
    UNKNOWN_MEMBER_ID,
    JoinReply,
    JoinRequest,
    JoinResult,
    SyncReply,
    SyncRequest,
    SyncResult,
)
from kafkaproto.broker.group.sessions import cancel
from kafkaproto.broker.group.subscription import CONSUMER_PROTOCOL
from kafkaproto.broker.group.transitions import Transitions
from kafkaproto.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError


class ClassicMembers:
    """Handles JoinGroup, SyncGroup and Heartbeat from members that use the classic protocol in a group of the new protocol (KIP-848)."""

    def __init__(self, transitions: Transitions, members: Membership, regexes: RegexSubscriptions) -> None:
        self._transitions = transitions
        self._members = members
        self._regexes = regexes

    def join(self, group: ConsumerGroup, request: JoinRequest, now_ms: int, reply: JoinReply) -> None:
        """Handle JoinGroup. `reply` is called once: when the changes are replicated, or at once if the request is rejected (GN-57, GN-58).

        The result of a rejected request has an empty member id, as in Kafka.
        """
        entries: list[Entry] = []
        undo = self._transitions.remember(group, is_steady=False)
        try:
            self._check_joining(group, request)
            if request.requires_member_id and not request.member_id and request.group_instance_id is None:
                reply(JoinResult(self._members.new_member_id(), ErrorCode.MEMBER_ID_REQUIRED), now_ms)
                return
            self._members.check_static(group, request)
            subscription = _subscription_of(request)
            member = self._join(group, request, subscription, entries, now_ms)
        except KafkaError as error:
            if undo is not None:
                undo()
            reply(JoinResult(UNKNOWN_MEMBER_ID, error.error_code), now_ms)
            return
        result = JoinResult(
            member.member_id,
            generation_id=member.current.epoch,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=member.protocol_name,
        )

        def stored(error_code: int, at_ms: int) -> None:
            if error_code:
                reply(JoinResult(UNKNOWN_MEMBER_ID, error_code), at_ms)
                return
            if self._transitions.has(group, member):
                cancel(member.join_timer)
                member.join_timer = None
                self._transitions.expect(group, member, at_ms)
                self._transitions.expect_sync(group, member, at_ms)
            reply(result, at_ms)

        self._transitions.store(group.group_id, entries, now_ms, stored)

    def _check_joining(self, group: ConsumerGroup, request: JoinRequest) -> None:
        """Check that the group is not full, and that the member offers a protocol that all members of the classic protocol support.

        Raises KafkaError GROUP_MAX_SIZE_REACHED (81) if a new member finds the group full, INCONSISTENT_GROUP_PROTOCOL (23) if there is no such
        protocol or the protocol type is not "consumer".
        """
        is_known = request.member_id in group.members
        if not is_known and len(group.members) >= self._transitions.settings.max_size:
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if request.protocol_type != CONSUMER_PROTOCOL or not group.supports_classic(request.protocols):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _join(
        self,
        group: ConsumerGroup,
        request: JoinRequest,
        subscription: ConsumerProtocolSubscription,
        entries: list[Entry],
        now_ms: int,
    ) -> ConsumerMember:
        """Add or update the member that sends JoinGroup, and move it towards its target assignment. Its timers start when the records are replicated.

        subscription: the decoded subscription in `request`. entries: the list to which the records of the changes are added.
        """
        is_downgrade = False
        is_restart = request.group_instance_id is not None and request.member_id == UNKNOWN_MEMBER_ID
        if is_restart and self._transitions.settings.is_release_4:  # 3.9 does not downgrade a group for that
            replaced_member = group.members.get(group.static_ids.get(request.group_instance_id or "", ""))
            if replaced_member is not None and replaced_member.classic is None:
                is_downgrade = self._transitions.may_downgrade(group, [replaced_member.member_id], joining=1)
        size = len(group.members)
        member = self._members.find_or_add_classic(group, request, entries)
        changes = self._members.update_classic(group, member, request, subscription, entries)
        changes = changes._replace(is_new=len(group.members) > size)
        self._regexes.update(group, member, changes, entries, now_ms)
        owned = partitions_by_id(
            ((p.topic, p.partitions) for p in subscription.owned_partitions), self._transitions.topics.image()
        )
        if is_downgrade:
            generation_id = group.epoch
            self._transitions.advance_epoch(group, entries, bumps=changes.is_resubscribed)
            if not changes.is_resubscribed:
                target = group.target_of(member.member_id)
                self._transitions.reconcile(group, member, target, owned, entries, now_ms, is_resubscribed=False)
            group.epoch = generation_id  # the generation of the classic group; its rebalance starts the next one
            self._transitions.downgrade(group, entries, now_ms, rebalances=changes.is_resubscribed)
            return member
        self._transitions.advance(group, member, changes, owned, entries, now_ms, bumps=changes.is_resubscribed)
        return member

    def sync(self, group: ConsumerGroup, request: SyncRequest, now_ms: int, reply: SyncReply) -> None:
        """Handle SyncGroup. `reply` is called once, with the member's assignment, encoded as a ConsumerProtocolAssignment, or an error (GN-60).

        An error of the request is returned at once. The assignment is returned when all earlier records in the group's partition of
        `__consumer_offsets` are replicated. Only then does the sync timer stop, and the session timeout restart.
        """
        try:
            member = self._find_syncing(group, request, now_ms)
        except KafkaError as error:
            reply(SyncResult(error.error_code), now_ms)
            return
        assert member.classic is not None
        assigned_partitions, subscription = member.current.assigned, member.classic.protocols[0][1]

        def replicated(error_code: int, at_ms: int) -> None:
            if error_code:
                reply(SyncResult(error_code), at_ms)
                return
            if self._transitions.has(group, member):
                cancel(member.sync_timer)
                member.sync_timer = None
                self._transitions.expect(group, member, at_ms)
            names = {topic.topic_id: name for name, topic in self._transitions.topics.image().items()}
            assignment = encode_assignment(assigned_partitions, names, subscription)
            reply(SyncResult(0, request.protocol_type, request.protocol_name, assignment), at_ms)

        self._transitions.store(group.group_id, (), now_ms, replicated)

    def _find_syncing(self, group: ConsumerGroup, request: SyncRequest, now_ms: int) -> ConsumerMember:
        """Return the member that sends SyncGroup. Raises KafkaError if the request is invalid, or if the member must join again (GN-60)."""
        member = self._members.find_classic(group, request.member_id, request.group_instance_id)
        if request.generation_id != member.current.epoch:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if request.protocol_type not in (None, CONSUMER_PROTOCOL):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if request.protocol_name not in (None, member.protocol_name):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.epoch > member.current.epoch and member.current.state is not MemberState.UNREVOKED_PARTITIONS:
            self._transitions.expect_join(group, member, now_ms)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return member

    def heartbeat(
        self, group: ConsumerGroup, generation_id: int, member_id: str, instance_id: str | None, now_ms: int
    ) -> int:
        """Handle Heartbeat and return its error code; REBALANCE_IN_PROGRESS if the member must join again (GN-56).

        generation_id: the member epoch, which a member of the classic protocol sends as its generation id. instance_id: None for a dynamic member.
        """
        try:
            member = self._members.find_classic(group, member_id, instance_id)
        except KafkaError as error:
            return error.error_code
        if generation_id != member.current.epoch:
            return ErrorCode.ILLEGAL_GENERATION
        self._transitions.expect(group, member, now_ms)
        state = member.current.state
        if (
            member.current.epoch < group.epoch
            or state is MemberState.UNREVOKED_PARTITIONS
            or (state is MemberState.UNRELEASED_PARTITIONS and not group.awaits_release(member))
        ):
            self._transitions.expect_join(group, member, now_ms)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE


def _subscription_of(request: JoinRequest) -> ConsumerProtocolSubscription:
    """Return the subscription of a JoinGroup request, decoded from the metadata of its first protocol.

    Raises KafkaError UNKNOWN_SERVER_ERROR (-1) if it cannot be decoded.
    """
    try:
        return decode_subscription(request.protocols[0][1])
    except DecodeError:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from None
