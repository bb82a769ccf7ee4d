"""Changes of consumer groups of the new protocol (KIP-848) by members of both protocols: epochs, target assignments, reconciliation, removal.

Corresponds to the methods of Kafka's `GroupMetadataManager` (Java) that `consumerGroupHeartbeat` and `classicGroupJoinToConsumerGroup` share. All
changes of one request are collected in `entries`, a list of records, which `store` writes as one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group import consumer_records as stored_as
from kafkaproto.broker.group.assignment import NOTHING, Assignment, replayed
from kafkaproto.broker.group.causes import CauseKind
from kafkaproto.broker.group.consumer_group import ConsumerGroup, ConsumerMember
from kafkaproto.broker.group.consumer_members import Changes, cancel_timers
from kafkaproto.broker.group.reconciliation import FencedMember, Goal, MemberState, reconcile
from kafkaproto.broker.group.records import Entry
from kafkaproto.broker.group.registry import Registry
from kafkaproto.broker.group.sessions import cancel
from kafkaproto.broker.group.settings import ConsumerGroupSettings
from kafkaproto.broker.group.storage import GroupStorage
from kafkaproto.broker.group.subscribed_topics import ClusterTopics, in_record_order
from kafkaproto.broker.group.targets import Targets
from kafkaproto.broker.group.undo import remember
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.error_codes import ErrorCode


class Transitions:
    """Changes the state of consumer groups of the new protocol (KIP-848): new epochs, target assignments, reconciliation and removal of members.

    topics: the topics of the cluster.
    """

    def __init__(
        self,
        groups: Registry,
        storage: GroupStorage,
        settings: ConsumerGroupSettings,
        timers: Timers,
        topics: ClusterTopics,
    ) -> None:
        self.settings = settings
        self.topics = topics
        self.targets = Targets(settings)
        self._groups = groups
        self._storage = storage
        self._timers = timers

    # ---- epochs and targets --------------------------------------------------------------------------------------------------

    def advance_epoch(self, group: ConsumerGroup, entries: list[Entry], *, bumps: bool) -> None:
        """Start a new epoch if the subscribed topics changed, or if `bumps` is true, for example for a new subscription (GN-16, GN-17).

        Kafka 4.0 and later also start an epoch if the group has none yet. entries: the list to which the record of the new epoch is added.
        """
        image, before = self.topics.image(), group.seen_topics
        group.seen_topics = image
        if bumps or before is None or (image is not before and _have_changed(group.subscribed_topics(), before, image)):
            bumps = self.update_topics(group, entries) or bumps
        if bumps or (self.settings.is_release_4 and group.epoch == 0):
            self._next_epoch(group, entries)

    def update_topics(self, group: ConsumerGroup, entries: list[Entry]) -> bool:
        """Store in a group which of its subscribed topics exist, and return whether these topics changed.

        From Kafka 4.1 on, only a hash of the topics is compared. Before 4.1, the record of changed topics is added to `entries` (GO-8).
        """
        topics = self.topics.subscribed(group.subscribed_topics())
        before = group.topics, group.metadata_hash
        group.topics, group.metadata_hash = topics, self.topics.hash_of(topics)
        if self.topics.stores_hash:
            return group.metadata_hash != before[1]
        if topics == before[0]:
            return False
        # Topics that only regular expressions match come last.
        names = dict.fromkeys((*group.subscribers, *sorted(group.subscribed_topics())))
        in_order = in_record_order(topics, names, are_new=len(group.members) == 1)
        entries.append(stored_as.topics_entry(group.group_id, in_order))
        return True

    def _next_epoch(self, group: ConsumerGroup, entries: list[Entry]) -> None:
        group.epoch += 1
        entries.append(stored_as.group_entry(group.group_id, group.epoch, group.metadata_hash))

    def advance(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        changes: Changes,
        owned: Assignment | None,
        entries: list[Entry],
        now_ms: int,
        *,
        bumps: bool,
    ) -> Assignment:
        """Start a new epoch if necessary, and compute the current epoch's target assignment if it is missing. Then move `member` towards its target.

        Returns the partitions that the member may read, in the order in which a response lists them (GN-27).

        A new epoch is necessary if `bumps` is true or the subscribed topics changed. changes: what the request changed about `member`. owned: the
        partitions that the request reports as owned, None if it reports none. entries: the list to which the records of the changes are added.
        """
        epoch_before = group.epoch
        self.advance_epoch(group, entries, bumps=bumps)
        if group.has_topics_record and self.topics.stores_hash:
            group.has_topics_record = False
            entries.append(stored_as.topics_entry(group.group_id, None))
        target = group.target_of(member.member_id)
        if group.epoch > group.assignment_epoch:
            were_equal = group.epoch == epoch_before and _were_equal(group, member, changes)
            target = self.targets.assign(group, member, changes.names, entries, were_equal=were_equal)
        elif changes.has_new_instance:  # Kafka looks for the target of the instance, which has none yet (GN-32)
            target = NOTHING
        assigned = self.reconcile(
            group, member, target, owned, entries, now_ms, is_resubscribed=changes.is_resubscribed
        )
        group.releasing, group.replaced = {}, None
        return assigned

    def remember(self, group: ConsumerGroup | None, *, is_steady: bool) -> Callable[[], None] | None:
        """Return a function that restores the present state of the group, to be called if the request fails because the assignor fails (GN-47).

        Returns None if no such function is needed, which is so in three cases: the rules of Kafka 4.0 or later apply, the group is new (`group` is
        None), or the request computes no targets. is_steady: whether the request neither adds a member nor changes a subscription; it then computes
        targets only if the present targets are out of date. The function needs a copy of the state, which costs time for each member of the group.
        """
        if self.settings.is_release_4 or group is None:
            return None
        needs_targets = group.epoch > group.assignment_epoch or group.seen_topics is not self.topics.image()
        return remember(group, self._timers) if needs_targets or not is_steady else None

    def reconcile(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        target: Assignment,
        owned: Assignment | None,
        entries: list[Entry],
        now_ms: int,
        *,
        is_resubscribed: bool,
    ) -> Assignment:
        """Move a member towards a target assignment, and add the record of its new state to `entries`. Returns the partitions that it may read.

        The partitions in the result have the order of Kafka's response (GN-27). In the group they are stored in another order, the one that Kafka has
        after it has replayed the record.

        The rebalance timeout runs while the member must revoke partitions (GN-29). owned: the partitions that the member reports as owned, None if it
        reports none. is_resubscribed: whether the current request changed the member's subscription.
        """
        before = member.current
        is_done = before.state is MemberState.STABLE and before.epoch == group.assignment_epoch
        if is_done and not is_resubscribed:
            return before.assigned
        subscribed = None
        if self.settings.is_release_4_2:
            subscribed = {group.topics[name].topic_id for name in group.topics_of(member) if name in group.topics}
        goal = Goal(
            target,
            group.assignment_epoch,
            group.owner_epoch,
            self.settings.is_release_4_2,
            subscribed,
            is_resubscribed,
        )
        try:
            after = reconcile(before, goal, owned)
        except FencedMember:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
            ) from None
        if after == before:
            return after.assigned
        group.move(member, after._replace(assigned=replayed(after.assigned), pending=replayed(after.pending)))
        entries.append(stored_as.current_entry(group.group_id, member.member_id, after))
        if member.classic is None:  # the timer of a classic member, which only a load starts, is kept
            cancel(member.rebalance_timer)
            if after.state is MemberState.UNREVOKED_PARTITIONS:
                self.expect_revocation(group, member, now_ms)
        return after.assigned

    # ---- removal and timeouts --------------------------------------------------------------------------------------------------

    def fence(
        self, group: ConsumerGroup, members: Collection[ConsumerMember], entries: list[Entry], now_ms: int
    ) -> None:
        """Remove members, start a new epoch, and add the records of these changes to `entries`.

        The next heartbeat of a remaining member computes the target assignment of this epoch (GN-18, GN-31). If only members of the classic protocol
        remain, the group becomes a classic one where the migration policy allows it (GN-61).
        """
        leaving_ids = {member.member_id for member in members}
        for member_id in leaving_ids:
            self._groups.changes.note(group.group_id, CauseKind.LEFT, member_id)
        if self.may_downgrade(group, leaving_ids):
            self._groups.downgrade(group, leaving_ids, self.topics.image(), entries, now_ms)
            return
        for member in members:
            cancel_timers(member)
            group.remove(member.member_id)
            entries += stored_as.member_tombstones(group.group_id, member.member_id)
        self.drop_regexes(group, [member.topic_regex for member in members], entries)
        self.update_topics(group, entries)
        self._next_epoch(group, entries)

    def drop_regexes(self, group: ConsumerGroup, regexes: Iterable[str], entries: list[Entry]) -> None:
        """Remove regular expressions from a group if no member subscribes to them any more, and add their tombstones to `entries`.

        regexes: the expressions to check. An empty text stands for no expression and is ignored.
        """
        for regex in dict.fromkeys(regexes):
            if regex and regex not in group.regex_subscribers:
                group.regexes.pop(regex, None)
                entries.append(stored_as.regex_entry(group.group_id, regex, None))

    def may_downgrade(self, group: ConsumerGroup, leaving: Collection[str], joining: int = 0) -> bool:
        """Return whether a group becomes a classic one, because only members of the classic protocol remain (GN-54, GN-61).

        True only if the migration policy allows it, and the number of remaining members is at least 1 and at most `group.max.size`.

        leaving: the ids of the members that leave. joining: how many members of the classic protocol join at the same time.
        """
        size = len(group.members) - len(leaving) + joining
        return (
            self.settings.may_downgrade
            and 0 < size <= self._groups.classic_max_size
            and all(m.classic is not None for m in group.members.values() if m.member_id not in leaving)
        )

    def downgrade(self, group: ConsumerGroup, entries: list[Entry], now_ms: int, *, rebalances: bool) -> None:
        """Convert a group to a classic one, because a classic member replaced the last member of the new protocol (KIP-848, GN-61).

        entries: the list to which the records of the conversion are added. rebalances: whether all members of the resulting group must join again.
        """
        self._groups.downgrade(group, (), self.topics.image(), entries, now_ms, rebalances=rebalances)

    def expect(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int, *, is_loaded: bool = False) -> None:
        """Restart the session timer, which removes a member that sends no requests for too long (GN-30, GN-59).

        Members of the classic protocol have the session timeout in their JoinGroup request, other members the session timeout in the settings.
        is_loaded: whether the group was just loaded; the session timeout of the settings then applies to classic members, too (GO-11).
        """
        cancel(member.session_timer)
        classic = None if is_loaded else member.classic
        timeout_ms = classic.session_timeout_ms if classic else self.settings.session_timeout_ms(group.group_id)
        member.session_timer = self._timers.at(now_ms + timeout_ms, lambda at_ms: self.expire(group, member, at_ms))

    def has(self, group: ConsumerGroup, member: ConsumerMember) -> bool:
        """Return whether this broker's group with this id is still the object `group`, and the group still contains `member`."""
        return self._groups.get_consumer(group.group_id) is group and group.members.get(member.member_id) is member

    def expect_revocation(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
        """Start the rebalance timeout of a member that must revoke partitions (GN-29)."""
        cancel(member.rebalance_timer)
        epoch = member.current.epoch

        def late(at_ms: int) -> None:
            if member.current.epoch == epoch:
                self.expire(group, member, at_ms, CauseKind.REVOCATION_TIMED_OUT)

        member.rebalance_timer = self._timers.at(now_ms + member.rebalance_timeout_ms, late)

    def expect_join(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
        """Start the timer that removes a member of the classic protocol if it does not join again in time; a running timer is kept (GN-59)."""
        if member.join_timer is None:
            due_ms = now_ms + member.rebalance_timeout_ms
            member.join_timer = self._timers.at(
                due_ms, lambda at_ms: self.expire(group, member, at_ms, CauseKind.JOIN_TIMED_OUT)
            )

    def expect_sync(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
        """Start the timer that removes a member of the classic protocol if it does not sync in time after it has joined (GN-59)."""
        cancel(member.sync_timer)
        due_ms = now_ms + member.rebalance_timeout_ms
        member.sync_timer = self._timers.at(
            due_ms, lambda at_ms: self.expire(group, member, at_ms, CauseKind.SYNC_TIMED_OUT)
        )

    def expire(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        now_ms: int,
        cause: CauseKind = CauseKind.SESSION_TIMED_OUT,
    ) -> None:
        """Remove a member for a `cause` other than its own request, such as a timeout. Does nothing if the member is already removed."""
        if not self.has(group, member):
            return
        self._groups.changes.note(group.group_id, cause, member.member_id)
        entries: list[Entry] = []
        self.fence(group, [member], entries, now_ms)
        self.store(group.group_id, entries, now_ms)

    # ---- storing -------------------------------------------------------------------------------------------------------------

    def store(
        self, group_id: str, entries: Sequence[Entry], now_ms: int, done: Callable[[int, int], None] = lambda *_: None
    ) -> None:
        """Write the records of a change of a group to the offsets topic, as one batch.

        done: a function that is called with an error code and the current time (ms), when the records are replicated or the write fails. If
        `entries` is empty, `done` is called when all earlier changes are replicated, because the response to the current request may show these
        changes. If the records cannot be appended at all, the group is loaded again, which undoes the change.
        """
        if not entries:
            self._storage.await_writes(group_id, now_ms, done)
            return
        self._groups.changes.report(self._groups.get_any(group_id), now_ms)
        calling = True

        def stored(error_code: int, at_ms: int) -> None:
            if error_code and calling:
                self._groups.reload(group_id, at_ms)
            done(error_code, at_ms)

        self._storage.append(group_id, entries, now_ms, stored)
        calling = False


def _have_changed(names: Iterable[str], before: Mapping[str, object], after: Mapping[str, object]) -> bool:
    """Return whether one of the topics in `names` was created, deleted or changed between two states of the cluster.

    before, after: map topic names to topics.
    """
    return any(before.get(name) is not after.get(name) for name in names)


def _were_equal(group: ConsumerGroup, member: ConsumerMember, changes: Changes) -> bool:
    """Return whether subscriptions still count as equal because they were equal before the current request of a member (GN-38).

    This is so in two cases. The request only added `member`, and all other members have equal subscriptions. Or the request changed the regular
    expression of `member`, and with the previous expression all subscriptions were equal. Subscriptions are equal if all members name the same topics
    and no regular expression, or the same regular expression and no topics. changes: what the request changed.
    """
    if changes.regex_before is None and not changes.is_new:
        return False
    subscriptions = {(m.topic_names, m.topic_regex) for m in group.members.values() if m is not member}
    if not changes.is_new:
        subscriptions.add((member.topic_names, changes.regex_before or ""))
    return len(subscriptions) == 1 and not any(names and regex for names, regex in subscriptions)
