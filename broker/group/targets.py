"""Computes the target assignments of a consumer group with the assignor that its members prefer (`TargetAssignmentBuilder` in Kafka)."""

from __future__ import annotations

import logging
from collections import Counter

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.assignment import Assignment
from kafkaproto.broker.group.assignors import assignors
from kafkaproto.broker.group.consumer_group import ConsumerGroup, ConsumerMember
from kafkaproto.broker.group.member_subscription import AssignmentFailed, MemberSubscription
from kafkaproto.broker.group.settings import ConsumerGroupSettings
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import copy_order, java_order, timeline_order
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

    def compute(self, group: ConsumerGroup, requester: ConsumerMember, *, were_equal: bool) -> dict[str, Assignment]:
        """Return the target assignment of each member for the current epoch, by member id, in the order in which Kafka stores them.

        requester: the member that sent the current request. were_equal: whether to treat all members as if they had the subscription of one member,
        the first in Kafka's hash table (GN-38). Kafka does this if the current request has made equal subscriptions different. Raises KafkaError
        UNKNOWN_SERVER_ERROR (-1) if the assignor fails (GN-47).
        """
        topics_of: dict[frozenset[str], dict[bytes, None]] = {}
        members = [_subscription(group, member, topics_of) for member in _in_order(group)]
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
    group: ConsumerGroup, member: ConsumerMember, topics_of: dict[frozenset[str], dict[bytes, None]]
) -> MemberSubscription:
    """Return the data of a member that an assignor gets. topics_of: a cache of the ordered topic ids for each set of topic names."""
    names = group.topics_of(member)
    if names not in topics_of:
        existing = (group.topics[name].topic_id for name in copy_order(sorted(names)) if name in group.topics)
        topics_of[names] = dict.fromkeys(existing)
    return MemberSubscription(
        member.member_id,
        member.instance_id,
        topics_of[names],
        group.target_of(member.member_id),
        member.topic_names,
        member.topic_regex,
        len(names),
    )


def _in_order(group: ConsumerGroup) -> list[ConsumerMember]:
    """Return the members in the order in which Kafka's assignors visit them (GN-45).

    Kafka adds the members to a Java `HashMap`: first those with a target assignment, in the order of its `TimelineHashMap`, then a new member, which
    has no target assignment yet.
    """
    bits = {member_id: java_hash_bits(member_id) for member_id in group.members}
    ids_with_target = [member_id for member_id in group.members if member_id in group.targets]
    ids_without_target = [member_id for member_id in group.members if member_id not in group.targets]
    most = max(group.most_members, len(ids_with_target)) + 1  # after a member is added, its second record replaces it
    added = [*timeline_order(ids_with_target, bits.__getitem__, most), *ids_without_target]
    return [group.members[member_id] for member_id in java_order(added, bits.__getitem__)]
