"""Computes the target assignments of a consumer group with the assignor that its members prefer (`TargetAssignmentBuilder` in Kafka)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group import consumer_records as stored_as
from kafkaproto.broker.group.assignment import Assignment, replayed
from kafkaproto.broker.group.assignors import assignors
from kafkaproto.broker.group.consumer_group import ConsumerGroup, ConsumerMember
from kafkaproto.broker.group.member_subscription import AssignmentFailed, MemberSubscription
from kafkaproto.broker.group.records import Entry
from kafkaproto.broker.group.settings import ConsumerGroupSettings
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import copy_order, hash_order, timeline_order
from kafkaproto.hash_table import JavaTable
from kafkaproto.partitioner import java_hash_bits

logger = logging.getLogger("kafkaproto.groups")


class Targets:
    """Chooses the assignor of a consumer group, and computes the group's target assignments with it."""

    def __init__(self, settings: ConsumerGroupSettings) -> None:
        self._default = settings.assignors[0]
        self._assignors = assignors(is_release_4=settings.is_release_4, is_release_4_1=settings.is_release_4_1)

    def assignor_of(self, group: ConsumerGroup, member: ConsumerMember | None = None) -> str:
        """Return the name of the assignor that most members prefer; the first of `group.consumer.assignors` if none has a preference (GN-36).

        If several assignors are preferred by the same number of members, uniform wins. Exception: if each is preferred by one member, the assignor
        that `member` prefers wins. member: the member whose request computes new targets; None if there is none.
        """
        votes = Counter(member.assignor for member in group.members.values() if member.assignor is not None)
        if not votes:
            return self._default
        names = [*self._assignors]
        if member is not None and member.assignor is not None and votes[member.assignor] == 1:
            names.insert(
                0, member.assignor
            )  # Kafka counts this vote last, in a hash table whose newest entry comes first
        return max(names, key=lambda name: votes[name])

    def assign(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        names: Sequence[str] | None,
        entries: list[Entry],
        *,
        were_equal: bool,
    ) -> Assignment:
        """Compute the target assignment of the current epoch, and add its records to `entries` (GN-18, GN-48). Returns the target of `member`.

        In the returned target, topics and partitions have the order in which the assignor put them. In the targets that the group keeps, they have
        another order: that of Kafka's hash tables after the records are replayed.

        member: the member that sent the current request. names: the topic names in this request, None if it has none. were_equal: whether to treat
        all members as if they had the same subscription, as Kafka does if this request has made equal subscriptions different (GN-38). Raises
        KafkaError UNKNOWN_SERVER_ERROR (-1) if the assignor fails (GN-47).
        """
        targets = self.compute(group, member, names, were_equal=were_equal)
        stored_targets: dict[str, Assignment] = {}
        for member_id, target in targets.items():
            before = group.targets.get(member_id)
            is_successor = group.replaced is not None and member_id == group.replaced.successor_id
            if before == target and not is_successor:
                stored_targets[member_id] = before
            else:
                stored_targets[member_id] = replayed(target)
                entries.append(stored_as.target_entry(group.group_id, member_id, target))
        group.set_target(stored_targets, group.epoch)
        entries.append(stored_as.assignment_epoch_entry(group.group_id, group.epoch))
        return targets[member.member_id]

    def compute(
        self, group: ConsumerGroup, requester: ConsumerMember, names: Sequence[str] | None, *, were_equal: bool
    ) -> dict[str, Assignment]:
        """Return the target assignment of each member for the current epoch, by member id, in the order in which Kafka stores them.

        requester: the member that sent the current request. names: the topic names in this request, None if it has none; the order of topics in the
        same bucket of a hash table depends on the order of these names. were_equal: whether to treat all members as if they had the subscription of
        one member, the first in Kafka's hash table (GN-38). Kafka does this if the current request has made equal subscriptions different. Raises
        KafkaError UNKNOWN_SERVER_ERROR (-1) if the assignor fails (GN-47).
        """
        topics_of: dict[tuple[frozenset[str], str], dict[bytes, None]] = {}
        members = [
            _subscription(group, member, {}, names)
            if member is requester
            else _subscription(group, member, topics_of, None)
            for member in _in_order(group)
        ]
        if were_equal:
            first = members[0]
            members = [
                member._replace(topic_ids=first.topic_ids, names=first.names, regex="", subscribed=first.subscribed)
                for member in members
            ]
        counts = {topic.topic_id: topic.partition_count for topic in group.topics.values()}
        try:
            return self._assignors[self.assignor_of(group, requester)](members, counts)
        except AssignmentFailed as error:
            logger.error(
                "group %s: the assignor of this release cannot compute targets for epoch %d: %s; let all members subscribe to the same topics, "
                "or use the assignor range",
                group.group_id,
                group.epoch,
                error,
            )
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error


def _subscription(
    group: ConsumerGroup,
    member: ConsumerMember,
    topics_of: dict[tuple[frozenset[str], str], dict[bytes, None]],
    names: Iterable[str] | None,
) -> MemberSubscription:
    """Return the subscription and the current target of a member, as an assignor gets them.

    topics_of: a cache that maps (topic names, regular expression) to the ids of the subscribed topics, in Kafka's order. names: the topic names that
    the member subscribes to, in the order in which Kafka adds them to a hash table; None for the order of the stored record.
    """
    subscribed = group.topics_of(member)
    subscription = member.topic_names, member.topic_regex
    if subscription not in topics_of:
        own = copy_order(list(dict.fromkeys(sorted(member.topic_names) if names is None else names)))
        resolved = group.regexes.get(member.topic_regex)
        others = [] if resolved is None else copy_order(sorted(resolved.topics))
        in_order = dict.fromkeys([*own, *others] if len(own) > len(others) else [*others, *own])
        topics_of[subscription] = dict.fromkeys(
            group.topics[name].topic_id for name in in_order if name in group.topics
        )
    return MemberSubscription(
        member.member_id,
        member.instance_id,
        topics_of[subscription],
        group.target_of(member.member_id),
        member.topic_names,
        member.topic_regex,
        len(subscribed),
    )


def _in_order(group: ConsumerGroup) -> list[ConsumerMember]:
    """Return the members in the order in which Kafka's assignors visit them (GN-45).

    Kafka adds the members to a Java `HashMap`: first those with a target assignment, in the order of its `TimelineHashMap`, then a new member, which
    has no target assignment yet. If the request replaces a static member, Kafka finally adds the new member and removes the old one. Which of these
    steps comes first depends on the order of another `HashMap`.
    """
    replaced = group.replaced
    known_ids = [m for m in group.members if m in group.targets] if replaced is None else replaced.member_ids
    most = max(group.most_members, len(known_ids)) + 1  # a member's second record needs room for one more
    added = JavaTable(java_hash_bits)
    for member_id in timeline_order(known_ids, java_hash_bits, most):
        added.add(member_id)
    if replaced is None:
        for member_id in group.members:
            added.add(member_id)
    else:
        for member_id in hash_order([replaced.successor_id, replaced.member_id]):
            if member_id == replaced.member_id:
                added.discard(member_id)
            else:
                added.add(member_id)
    return [group.members[member_id] for member_id in added]
