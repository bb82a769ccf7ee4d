"""The assignors of consumer groups (KIP-848): they decide which member reads which partitions.

`assign_range` corresponds to Kafka's `RangeAssignor`, `assign_uniform` to `UniformAssignor` of Kafka 3.9, 4.0, and 4.1 or later. This module does not
depend on groups: an assignor gets the subscriptions and current targets of the members, and returns new targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kafkaproto.broker.group.assignment import Assignment, Indexes
from kafkaproto.broker.group.different_subscriptions import balance
from kafkaproto.broker.group.different_subscriptions_3_9 import balance_as_3_9
from kafkaproto.broker.group.equal_subscriptions import share_out
from kafkaproto.broker.group.member_subscription import MemberSubscription, topic_order
from kafkaproto.hash_table import table_for

Assignor = Callable[[Sequence[MemberSubscription], Mapping[bytes, int]], dict[str, Assignment]]
"""A function of (members, numbers of partitions by topic id) that returns the new target assignment of each member, by member id."""


def assignors(*, is_release_4: bool, is_release_4_1: bool) -> Mapping[str, Assignor]:
    """Return the assignors of a Kafka release, by name. is_release_4: whether it is 4.0 or later. is_release_4_1: 4.1 or later.

    If several assignors are preferred by the same number of members, the first of the returned names is used (GN-36). Uniform comes before range, as
    in the hash table (`TimelineHashMap`) from which Kafka chooses.
    """
    uniform = partial(assign_uniform, is_release_4=is_release_4, is_release_4_1=is_release_4_1)
    return {"uniform": uniform, "range": assign_range}


def assign_range(members: Sequence[MemberSubscription], counts: Mapping[bytes, int]) -> dict[str, Assignment]:
    """Give each subscriber of a topic a consecutive range of its partitions (GN-40).

    Static members come first, in the order of their instance ids, then dynamic members in the order of their member ids. The result does not depend
    on the current targets. counts: maps topic ids to numbers of partitions. Returns the target assignments by member id.
    """
    ordered_members = sorted(members, key=lambda m: (m.instance_id is None, m.instance_id or m.member_id))
    ranges: dict[str, dict[bytes, Indexes]] = {member.member_id: {} for member in members}
    for topic_id, count in counts.items():
        subscribers = [member for member in ordered_members if topic_id in member.topic_ids]
        begin = 0
        for position, member in enumerate(subscribers):
            size = count // len(subscribers) + (position < count % len(subscribers))
            if size:
                ranges[member.member_id][topic_id] = Indexes(range(begin, begin + size))
            begin += size
    is_homogeneous = _is_homogeneous(members)
    targets: dict[str, Assignment] = {}
    for member in members:
        own = ranges[member.member_id]
        topic_ids = ordered_members[0].topic_ids if is_homogeneous else member.topic_ids
        size = len(topic_ids) if is_homogeneous else max(member.subscribed, len(topic_ids))
        added = (topic_id for topic_id in topic_ids if topic_id in own)
        targets[member.member_id] = {t: own[t] for t in topic_order(added, table_for(size * 4 // 3 + 1))}
    return targets


def assign_uniform(
    members: Sequence[MemberSubscription],
    counts: Mapping[bytes, int],
    *,
    is_release_4: bool = True,
    is_release_4_1: bool = True,
) -> dict[str, Assignment]:
    """Give each member about the same number of partitions, and move as few partitions as possible between members.

    If all members have the same subscription, their numbers of partitions differ by at most one (GN-42). Otherwise the partitions of each topic are
    balanced among its subscribers by moving single partitions (GN-46). Topics are visited in the order of Kafka's hash tables (GN-45). members: in
    the order in which Kafka visits them. counts: maps topic ids to numbers of partitions. is_release_4, is_release_4_1: whether the rules of Kafka
    4.0, 4.1 or later apply. Returns the target assignments by member id. Raises AssignmentFailed for a group that Kafka before 4.0 fails to balance
    (GN-47).
    """
    if _is_homogeneous(members):
        return share_out(members, counts, is_release_4_1=is_release_4_1)
    return balance(members, counts) if is_release_4 else balance_as_3_9(members, counts)


def _is_homogeneous(members: Sequence[MemberSubscription]) -> bool:
    """Return whether all members subscribe to the same topic names, or all to the same regular expression and to no topic names (GN-38)."""
    if not members:
        return True
    first = members[0]
    return not (first.names and first.regex) and all(
        member.names == first.names
        and member.regex == first.regex
        and (member.topic_ids is first.topic_ids or set(member.topic_ids) == set(first.topic_ids))
        for member in members
    )
