"""The assignor `uniform` for members with different subscriptions, from Kafka 4.0 on (`UniformHeterogeneousAssignmentBuilder`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from kafkaproto.broker.group.assignment import Assignment
from kafkaproto.broker.group.member_subscription import MemberSubscription, Share, free_places
from kafkaproto.hash_order import uuid_order
from kafkaproto.hash_table import table_for

MOST_ROUNDS = 16
"""The maximum number of passes over all topics in which partitions move between members (`MAX_ITERATION_COUNT`)."""


def balance(members: Sequence[MemberSubscription], counts: Mapping[bytes, int]) -> dict[str, Assignment]:
    """Keep the current targets, give each unassigned partition to the subscriber with the fewest partitions, then balance topic by topic (GN-46).

    members: in the order in which Kafka visits them. counts: maps topic ids to numbers of partitions. Returns the new target of each member by member
    id.
    """
    shares = {member.member_id: Share(member, counts) for member in members}
    subscribers: dict[bytes, list[str]] = {}
    for member in members:
        for topic_id in member.topic_ids:
            subscribers.setdefault(topic_id, []).append(member.member_id)
    # Topics with the most partitions for each subscriber come first: they have the least choice.
    topics = sorted(subscribers, key=lambda t: (-counts[t] / len(subscribers[t]), len(subscribers[t]), uuid_order(t)))
    # Kafka creates each `HashSet` of a topic's partitions with room for the average number of partitions per subscriber.
    tables = {t: table_for(-(-counts[t] // len(subscribers[t])) * 4 // 3 + 1) for t in topics}
    for topic_id, places in groupby(free_places(topics, counts, shares.values()), key=lambda place: place[0]):
        load = _Load(subscribers[topic_id], shares)
        for place in places:
            shares[load.next_lowest()].add(place, tables[topic_id])
    _balance_topics([topic_id for topic_id in topics if len(subscribers[topic_id]) > 1], subscribers, shares, tables)
    return {member_id: share.assignment() for member_id, share in shares.items()}


def _balance_topics(
    topics: Sequence[bytes],
    subscribers: Mapping[bytes, Sequence[str]],
    held: Mapping[str, Share],
    tables: Mapping[bytes, int],
) -> None:
    """Move partitions between members, topic by topic, until a pass over all topics moves none, or `MOST_ROUNDS` passes are done.

    topics: the ids of the topics with several subscribers. subscribers: maps each topic id to the ids of the subscribed members. held: maps member
    ids to the members' partitions; the moves change these. tables: maps topic ids to the number of buckets of a new `HashSet` of partitions of the
    topic.
    """
    last_changed = None
    for _ in range(MOST_ROUNDS):
        for topic_id in topics:
            if topic_id == last_changed:
                return
            if _balance_topic(topic_id, subscribers[topic_id], held, tables[topic_id]) or last_changed is None:
                last_changed = topic_id


def _balance_topic(topic_id: bytes, subscribers: Sequence[str], held: Mapping[str, Share], table: int) -> int:
    """Move partitions of one topic, one by one, from the owner with the highest load to the subscriber with the lowest. Returns the number of moves.

    The load of a subscriber is the number of its partitions of all topics. No partition moves twice. The moves end when the highest and the lowest
    load differ by at most 1, or when no partition of the topic is left to move. subscribers: the ids of the members that subscribe to the topic.
    held: maps each of these ids to the member's partitions of all topics; each move changes them. table: the number of buckets of a new `HashSet` of
    partitions of the topic.
    """
    load = _Load(subscribers, held)
    if load.difference <= 1:
        return 0
    own = {m: sorted(index for topic, index in held[m].places if topic == topic_id) for m in subscribers}
    moves = 0
    while not load.is_balanced():
        while (giver := load.next_highest()) is not None and not own[giver]:
            load.exclude_highest()
        if giver is None:
            break
        index = own[giver].pop()
        taker = load.next_lowest()
        if load.is_balanced():
            break
        held[giver].remove((topic_id, index))
        held[taker].add((topic_id, index), table)
        moves += 1
    return moves


class _Load:
    """The subscribers of a topic, sorted by load: the number of partitions of all topics that a subscriber owns.

    Corresponds to Kafka's `MemberAssignmentBalancer`. Each call of `next_lowest` returns another of the subscribers with the lowest load. When it has
    returned all of them, it starts with the first one again, and then also returns those with the next higher load. `next_highest` starts with the
    subscribers with the highest load, and later also returns those with the next lower load.
    """

    def __init__(self, subscribers: Iterable[str], held: Mapping[str, Share]) -> None:
        self._held = held
        self._sorted = sorted(subscribers, key=lambda member_id: len(held[member_id]))
        self._low_end = self._low_next = 0
        self._low_size = self._size(0) - 1
        self._high_start = self._high_end = len(self._sorted)
        self._high_next = len(self._sorted) - 1
        self._high_size = self._size(-1) + 1

    def _size(self, position: int) -> int:
        return len(self._held[self._sorted[position]])

    @property
    def difference(self) -> int:
        """Return the difference between the highest and the lowest load."""
        return self._size(-1) - self._size(0)

    def is_balanced(self) -> bool:
        """Return whether no more partitions need to move.

        While partitions move one by one, the highest number of partitions that a subscriber owns falls, and the lowest number rises. No more need to
        move if these two numbers differ by at most 1.
        """
        return self._high_size - self._low_size <= 1

    def next_lowest(self) -> str:
        """Return the next subscriber with the lowest load, which gets a partition."""
        if self._low_next >= self._low_end:
            self._low_size += 1
            while self._low_end < len(self._sorted) and self._size(self._low_end) == self._low_size:
                self._low_end += 1
            self._low_next = 0
        self._low_next += 1
        return self._sorted[self._low_next - 1]

    def next_highest(self) -> str | None:
        """Return the next subscriber with the highest load, which loses a partition; None if `exclude_highest` has excluded all subscribers."""
        if self._high_next < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                self._high_size = self._size(self._high_start - 1)
            else:
                self._high_size -= 1
            while self._high_start > 0 and self._size(self._high_start - 1) == self._high_size:
                self._high_start -= 1
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        self._high_next -= 1
        return self._sorted[self._high_next + 1]

    def exclude_highest(self) -> None:
        """Exclude the subscriber that `next_highest` returned last: later calls of `next_highest` do not return it again."""
        position, last = self._high_next + 1, self._high_end - 1
        self._sorted[position], self._sorted[last] = self._sorted[last], self._sorted[position]
        self._high_end -= 1
