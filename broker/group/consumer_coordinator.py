"""The coordinator of consumer groups of the new protocol (KIP-848): heartbeats, epochs, target assignments, reconciliation.

Every heartbeat may change the group: the member joins or changes its subscription, which starts a new epoch and a new target assignment;
and the member moves towards its target. All changes of a heartbeat are one batch of records, and its response is sent when they are
replicated. Corresponds to the half of Kafka's `GroupMetadataManager` (Java) that handles consumer groups. This module does not
depend on wire messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Protocol

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group import consumer_records as stored_as
from kafkaproto.broker.group.assignment import NOTHING, Assignment
from kafkaproto.broker.group.assignors import ASSIGNORS, MemberSubscription
from kafkaproto.broker.group.consumer_group import ConsumerGroup, ConsumerMember
from kafkaproto.broker.group.consumer_members import Membership, cancel_timers
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
from kafkaproto.broker.group.reconciliation import FencedMember, Goal, MemberState, reconcile
from kafkaproto.broker.group.records import Entry
from kafkaproto.broker.group.registry import Registry
from kafkaproto.broker.group.results import LeavingMember
from kafkaproto.broker.group.sessions import cancel
from kafkaproto.broker.group.settings import ConsumerGroupSettings
from kafkaproto.broker.group.storage import GroupStorage
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.error_codes import ErrorCode


class Topic(Protocol):
    """The part of a topic that this module reads."""

    @property
    def topic_id(self) -> bytes: ...

    @property
    def partitions(self) -> Sequence[object]: ...


class ConsumerCoordinator:
    """Handles the requests of consumer groups. topics: returns the cluster's topics by name, in a new mapping after each change."""

    def __init__(
        self,
        groups: Registry,
        storage: GroupStorage,
        settings: ConsumerGroupSettings,
        timers: Timers,
        random: Random,
        topics: Callable[[], Mapping[str, Topic]],
    ) -> None:
        self._groups = groups
        self._storage = storage
        self._settings = settings
        self._timers = timers
        self._members = Membership(random, may_always_rejoin=settings.is_release_4_2)
        self._topics = topics

    # ---- requests ------------------------------------------------------------------------------------------------------------

    def heartbeat(self, request: ConsumerHeartbeat, now_ms: int, reply: HeartbeatReply) -> None:
        """Handle ConsumerGroupHeartbeat. `reply` is called once, when the changes are replicated or if the heartbeat is refused."""
        existed = self._groups.get_consumer(request.group_id) is not None
        entries: list[Entry] = []
        try:
            check(request, self._settings.assignors, is_release_4=self._settings.is_release_4)
            if request.member_epoch in (LEAVING, AWAY):
                result = self._leave(request, entries, now_ms)
            else:
                result = self._beat(request, entries, now_ms)
        except KafkaError as error:
            if entries or (not existed and self._groups.get_consumer(request.group_id) is not None):
                self._groups.reload_consumer(request.group_id, now_ms)  # nothing of a refused heartbeat stays (GN-14)
            reply(ConsumerHeartbeatResult(error.error_code, error.message), now_ms)
            return
        self._store(request.group_id, entries, now_ms, lambda failed, at_ms: reply(failed or result, at_ms))

    def describe(self, group_id: str) -> ConsumerGroupDescription:
        """Return the description of a group for ConsumerGroupDescribe. Raises KafkaError 69 if it is not a consumer group (GN-66)."""
        group = self._groups.get_consumer(group_id)
        if group is None:
            is_classic = self._groups.get(group_id) is not None
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
                sorted(member.topic_names),
                member.current.assigned,
                group.target_of(member.member_id),
            )
            for member in group.members.values()
        ]
        assignor = self._assignor_of(group)
        return ConsumerGroupDescription(
            group_id, group.state.value, group.epoch, group.assignment_epoch, assignor, members
        )

    def resume(self, group: ConsumerGroup, now_ms: int) -> None:
        """Start the timers of a group that was loaded."""
        for member in group.members.values():
            self._expect(group, member, now_ms)
            if member.current.state is MemberState.UNREVOKED_PARTITIONS:
                self._expect_revocation(group, member, now_ms)

    # ---- joining and heartbeats ----------------------------------------------------------------------------------------------

    def _beat(self, request: ConsumerHeartbeat, entries: list[Entry], now_ms: int) -> ConsumerHeartbeatResult:
        group = self._find_or_create(request, entries, now_ms)
        if request.member_id not in group.members and len(group.members) >= self._settings.max_size:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {self._settings.max_size} members.",
            )
        member = self._members.find_or_add(group, request, entries)
        bumps = self._members.update(group, member, request, entries)
        self._advance_epoch(group, bumps, entries)
        if group.epoch > group.assignment_epoch:
            self._assign(group, entries)
        before = member.current
        self._reconcile(group, member, request.owned, entries, now_ms, is_resubscribed=bumps)
        self._expect(group, member, now_ms)
        has_assignment = (
            request.member_epoch == JOINING or request.is_full or before.assigned != member.current.assigned
        )
        return ConsumerHeartbeatResult(
            member_id=member.member_id,
            member_epoch=member.current.epoch,
            interval_ms=self._settings.heartbeat_interval_ms(group.group_id),
            assignment=member.current.assigned if has_assignment else None,
        )

    def _find_or_create(self, request: ConsumerHeartbeat, entries: list[Entry], now_ms: int) -> ConsumerGroup:
        """Return the group; a member that joins creates it, also in place of an empty classic group (GN-10)."""
        group = self._groups.get_consumer(request.group_id)
        if group is not None:
            return group
        if request.member_epoch != JOINING:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
        return self._groups.create_consumer(request.group_id, entries, now_ms)

    # ---- epochs and targets --------------------------------------------------------------------------------------------------

    def _advance_epoch(self, group: ConsumerGroup, bumps: bool, entries: list[Entry]) -> None:
        """Start a new epoch if a subscription or the subscribed topics changed (GN-16, GN-17)."""
        topics = self._topics()
        if bumps or topics is not group.seen_topics:
            was_loaded, group.seen_topics = group.seen_topics is None and group.epoch > 0, topics
            counts = {
                name: (topics[name].topic_id, len(topics[name].partitions))
                for name in group.subscribers
                if name in topics
            }
            # Releases from 4.0 do not store the counts: those of the target assignment are compared with.
            is_known = was_loaded and dict(counts.values()) == group.assigned_counts()
            if counts != group.partition_counts:
                group.partition_counts = counts
                bumps = bumps or not is_known
                if not self._settings.is_release_4:
                    entries.append(stored_as.topics_entry(group.group_id, counts))
        if bumps or (self._settings.is_release_4 and group.epoch == 0):
            group.epoch += 1
            entries.append(stored_as.group_entry(group.group_id, group.epoch))

    def _assign(self, group: ConsumerGroup, entries: list[Entry]) -> None:
        """Compute the target assignment of the current epoch (GN-18, GN-48)."""
        topic_ids = {name: topic_id for name, (topic_id, _) in group.partition_counts.items()}
        members = [
            MemberSubscription(
                member.member_id,
                member.instance_id,
                frozenset(topic_ids[name] for name in member.topic_names if name in topic_ids),
                group.target_of(member.member_id),
            )
            for member in group.members.values()
        ]
        targets = ASSIGNORS[self._assignor_of(group)](members, dict(group.partition_counts.values()))
        for member_id, target in targets.items():
            if member_id not in group.targets or group.targets[member_id] != target:
                entries.append(stored_as.target_entry(group.group_id, member_id, target))
        group.set_target(targets, group.epoch)
        entries.append(stored_as.assignment_epoch_entry(group.group_id, group.epoch))

    def _assignor_of(self, group: ConsumerGroup) -> str:
        """Return the assignor that most members name; the first of `group.consumer.assignors` if none does (GN-36)."""
        votes = Counter(member.assignor for member in group.members.values() if member.assignor is not None)
        return votes.most_common(1)[0][0] if votes else self._settings.assignors[0]

    def _reconcile(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        owned: Assignment | None,
        entries: list[Entry],
        now_ms: int,
        *,
        is_resubscribed: bool,
    ) -> None:
        """Move a member towards its target. The rebalance timeout runs while it must revoke partitions (GN-29)."""
        before = member.current
        if before.state is MemberState.STABLE and before.epoch == group.assignment_epoch:
            return
        subscribed = None
        if is_resubscribed:
            counts = group.partition_counts
            subscribed = {counts[name][0] for name in member.topic_names if name in counts}
        goal = Goal(
            group.target_of(member.member_id),
            group.assignment_epoch,
            group.owner_epoch,
            self._settings.is_release_4_2,
            subscribed,
        )
        try:
            after = reconcile(before, goal, owned)
        except FencedMember:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
            ) from None
        if after == before:
            return
        group.move(member, after)
        entries.append(stored_as.current_entry(group.group_id, member.member_id, after))
        if after.state is MemberState.UNREVOKED_PARTITIONS:
            self._expect_revocation(group, member, now_ms)
        else:
            cancel(member.rebalance_timer)
            member.rebalance_timer = None

    # ---- leaving and timeouts ------------------------------------------------------------------------------------------------

    def _leave(self, request: ConsumerHeartbeat, entries: list[Entry], now_ms: int) -> ConsumerHeartbeatResult:
        group = self._groups.get_consumer(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        member = self._members.find_leaving(group, request)
        if request.member_epoch == LEAVING:
            self._fence(group, [member], entries)
        else:
            cancel(member.rebalance_timer)
            group.move(member, member.current._replace(epoch=AWAY, pending=NOTHING))
            entries.append(stored_as.current_entry(group.group_id, member.member_id, member.current))
        return ConsumerHeartbeatResult(member_id=request.member_id, member_epoch=request.member_epoch)

    def remove(self, group_id: str, leaving: Sequence[LeavingMember], now_ms: int) -> list[tuple[LeavingMember, int]]:
        """Remove the members of a LeaveGroup request, which only releases from 4.0 on do (GN-62). Returns an error for each."""
        group = self._groups.get_consumer(group_id)
        if group is None or not self._settings.is_release_4:
            return [(member, ErrorCode.UNKNOWN_MEMBER_ID) for member in leaving]
        found = [group.find(member.member_id, member.group_instance_id) for member in leaving]
        members = {member.member_id: member for member in found if isinstance(member, ConsumerMember)}
        if members:
            entries: list[Entry] = []
            self._fence(group, members.values(), entries)
            self._store(group_id, entries, now_ms, lambda failed, at_ms: None)
        errors = [0 if isinstance(member, ConsumerMember) else int(member) for member in found]
        return list(zip(leaving, errors, strict=True))

    def _fence(self, group: ConsumerGroup, members: Iterable[ConsumerMember], entries: list[Entry]) -> None:
        """Remove members, which starts a new epoch; the next heartbeat of another member computes its target (GN-18, GN-31)."""
        for member in members:
            cancel_timers(member)
            group.remove(member.member_id)
            entries += stored_as.member_tombstones(group.group_id, member.member_id)
        counts = {name: known for name, known in group.partition_counts.items() if group.reads(name)}
        if counts != group.partition_counts:
            group.partition_counts = counts
            if not self._settings.is_release_4:
                entries.append(stored_as.topics_entry(group.group_id, counts))
        group.epoch += 1
        entries.append(stored_as.group_entry(group.group_id, group.epoch))

    def _expect(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
        """Restart the session timeout of a member (GN-30)."""
        cancel(member.session_timer)
        timeout_ms = self._settings.session_timeout_ms(group.group_id)
        member.session_timer = self._timers.at(now_ms + timeout_ms, lambda at_ms: self._expire(group, member, at_ms))

    def _expect_revocation(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
        cancel(member.rebalance_timer)
        epoch = member.current.epoch

        def late(at_ms: int) -> None:
            if member.current.epoch == epoch:
                self._expire(group, member, at_ms)

        member.rebalance_timer = self._timers.at(now_ms + member.rebalance_timeout_ms, late)

    def _expire(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
        if self._groups.get_consumer(group.group_id) is not group or group.members.get(member.member_id) is not member:
            return
        entries: list[Entry] = []
        self._fence(group, [member], entries)
        self._store(group.group_id, entries, now_ms, lambda failed, at_ms: None)

    # ---- storing -------------------------------------------------------------------------------------------------------------

    def _store(
        self,
        group_id: str,
        entries: Sequence[Entry],
        now_ms: int,
        done: Callable[[ConsumerHeartbeatResult | None, int], None],
    ) -> None:
        """Write the records of a change; `done` gets an error result, None if they are replicated.

        Without records, `done` waits for earlier changes that the result may show. A change that cannot be written at all is undone by
        loading the group again.
        """
        if not entries:
            self._storage.await_writes(
                group_id, now_ms, lambda error, at_ms: done(ConsumerHeartbeatResult(error) if error else None, at_ms)
            )
            return
        calling = True

        def stored(error_code: int, at_ms: int) -> None:
            if error_code and calling:
                self._groups.reload_consumer(group_id, at_ms)
            done(ConsumerHeartbeatResult(error_code) if error_code else None, at_ms)

        self._storage.append(group_id, entries, now_ms, stored)
        calling = False
