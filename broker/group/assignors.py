"""The assignors of consumer groups (KIP-848): they decide which member reads which partitions.

`assign_range` corresponds to Kafka's `RangeAssignor`, `assign_uniform` to `UniformAssignor` with its two builders. This module does not depend on
groups: an assignor gets the subscriptions and current targets of the members, and returns new targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kafkaproto.broker.group.assignment import NOTHING, Assignment, Place

MOST_ROUNDS = 16
"""The maximum number of passes in which `assign_uniform` moves single partitions between members (`MAX_ITERATION_COUNT`)."""


class MemberSubscription(NamedTuple):
    """The subscription and the current target of a member, from which an assignor computes its new target.

    topic_ids: the existing topics that the member subscribes to. target: its current target assignment. instance_id: the `group.instance.id` of a
    static member, None for a dynamic one. names, regex: the topic names and the regular expression in the member's subscription; a topic in `names`
    need not exist.
    """

    member_id: str
    instance_id: str | None
    topic_ids: frozenset[bytes]
    target: Assignment = NOTHING
    names: frozenset[str] = frozenset()
    regex: str = ""


Assignor = Callable[[Sequence[MemberSubscription], Mapping[bytes, int]], dict[str, Assignment]]
"""A function of (members, partition counts by topic id) that returns the new target of each member by member id."""


def assign_range(members: Sequence[MemberSubscription], counts: Mapping[bytes, int]) -> dict[str, Assignment]:
    """Give each subscriber of a topic a consecutive range of its partitions (GN-40).

    Static members come first, in the order of their instance ids, then dynamic members in the order of their member ids. The result does not depend
    on the current targets. counts: maps topic ids to numbers of partitions. Returns the target assignments by member id.
    """
    ordered = sorted(members, key=lambda m: (m.instance_id is None, m.instance_id or m.member_id))
    targets: dict[str, dict[bytes, frozenset[int]]] = {member.member_id: {} for member in members}
    for topic_id, count in counts.items():
        subscribers = [member for member in ordered if topic_id in member.topic_ids]
        begin = 0
        for position, member in enumerate(subscribers):
            size = count // len(subscribers) + (position < count % len(subscribers))
            if size:
                targets[member.member_id][topic_id] = frozenset(range(begin, begin + size))
            begin += size
    return dict(targets)


def assign_uniform(members: Sequence[MemberSubscription], counts: Mapping[bytes, int]) -> dict[str, Assignment]:
    """Give each member about the same number of partitions, and move as few as possible.

    If all members have the same subscription, their numbers of partitions differ by at most one (GN-42). Otherwise the partitions of each topic are
    balanced among its subscribers by moving single partitions (GN-46). counts: maps topic ids to numbers of partitions. Returns the target
    assignments by member id.
    """
    ordered = sorted(members, key=lambda member: member.member_id)
    if _is_homogeneous(ordered):
        held = _homogeneous(ordered, counts)
    else:
        held = _heterogeneous(ordered, counts)
    return {member_id: _by_topic(places) for member_id, places in held.items()}


def _is_homogeneous(members: Sequence[MemberSubscription]) -> bool:
    """Return whether all members subscribe to the same names, or to the same regular expression and no names (GN-38)."""
    subscriptions = {(member.topic_ids, member.names, member.regex) for member in members}
    return len(subscriptions) <= 1 and not any(names and regex for _, names, regex in subscriptions)


def _homogeneous(members: Sequence[MemberSubscription], counts: Mapping[bytes, int]) -> dict[str, list[Place]]:
    if not members:
        return {}
    places = [place for topic_id in sorted(members[0].topic_ids) for place in _places(topic_id, counts)]
    kept = {member.member_id: _still_held(member, counts) for member in members}
    free = _without(places, kept.values())
    quota, extra = divmod(len(places), len(members))
    limits: dict[str, int] = {}
    for position, member in enumerate(members):
        held = kept[member.member_id]
        # A member that needs a new partition to use the extra one leaves it to later members, who may have one already (GN-43).
        takes_extra = extra > 0 and (len(held) > quota or extra > len(members) - position - 1)
        extra -= takes_extra
        limit = limits[member.member_id] = quota + takes_extra
        free += held[limit:]
        del held[limit:]
    taken = 0
    for member in members:
        held = kept[member.member_id]
        missing = limits[member.member_id] - len(held)
        held += free[taken : taken + missing]
        taken += missing
    return kept


def _heterogeneous(members: Sequence[MemberSubscription], counts: Mapping[bytes, int]) -> dict[str, list[Place]]:
    held = {member.member_id: _still_held(member, counts) for member in members}
    subscribers = {
        topic_id: [member.member_id for member in members if topic_id in member.topic_ids]
        for topic_id in {topic_id for member in members for topic_id in member.topic_ids}
    }
    # Topics with the most partitions for each subscriber come first: they have the least choice.
    topics = sorted(subscribers, key=lambda t: (-counts[t] / len(subscribers[t]), len(subscribers[t]), t))
    for topic_id in topics:
        for place in _without(_places(topic_id, counts), held.values()):
            held[min(subscribers[topic_id], key=lambda member_id: len(held[member_id]))].append(place)
    for _ in range(MOST_ROUNDS):
        # Every topic is balanced in every round, also after one that moved partitions.
        if not sum([_balance(topic_id, subscribers[topic_id], held) for topic_id in topics]):
            break
    return held


def _balance(topic_id: bytes, subscribers: Sequence[str], held: Mapping[str, list[Place]]) -> int:
    """Move partitions of one topic, one by one, from the owner with the highest load to the subscriber with the lowest. Returns the number of moves.

    Owners are the subscribers that have a partition of this topic. The load of a subscriber is the number of its partitions of all topics. The moves
    end when the highest and the lowest load differ by at most 1. held: maps each subscriber to its partitions of all topics; each move changes this
    dict.
    """
    moved = 0
    while True:
        givers = [m for m in subscribers if any(place[0] == topic_id for place in held[m])]
        if not givers:
            return moved
        giver = max(givers, key=lambda member_id: len(held[member_id]))
        taker = min(subscribers, key=lambda member_id: len(held[member_id]))
        if len(held[giver]) - len(held[taker]) <= 1:
            return moved
        place = next(place for place in reversed(held[giver]) if place[0] == topic_id)
        held[giver].remove(place)
        held[taker].append(place)
        moved += 1


def _places(topic_id: bytes, counts: Mapping[bytes, int]) -> list[Place]:
    return [(topic_id, index) for index in range(counts[topic_id])]


def _still_held(member: MemberSubscription, counts: Mapping[bytes, int]) -> list[Place]:
    """Return the partitions of a member's current target that the member may keep: they exist, and the member still subscribes to their topics.

    counts: maps topic ids to numbers of partitions.
    """
    return [
        (topic_id, index)
        for topic_id in sorted(member.target)
        if topic_id in member.topic_ids
        for index in sorted(member.target[topic_id])
        if index < counts[topic_id]
    ]


def _without(places: Iterable[Place], held: Iterable[Iterable[Place]]) -> list[Place]:
    taken = {place for places_of_member in held for place in places_of_member}
    return [place for place in places if place not in taken]


def _by_topic(places: Iterable[Place]) -> Assignment:
    indexes: dict[bytes, set[int]] = {}
    for topic_id, index in places:
        indexes.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(partition_indexes) for topic_id, partition_indexes in indexes.items()}


ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
"""Maps the names of assignors, as members send them, to the assignors.

If several assignors are preferred by the same number of members, the first of them in this dict is chosen (GN-36). Kafka chooses the first in a hash
table (`TimelineHashMap`), where uniform comes before range, too.
"""
