"""The assignor `uniform` for members with different subscriptions before Kafka 4.0 (`UniformHeterogeneousAssignmentBuilder` of 3.9.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kafkaproto.broker.group.assignment import Assignment, Place
from kafkaproto.broker.group.member_subscription import (
    AssignmentFailed,
    MemberSubscription,
    Share,
    still_held,
    topic_order,
)
from kafkaproto.hash_order import ALL_BITS, java_order, uuid_hash_bits

MOVED_BACK: Final = "Mismatch in partition movement record with respect to partition ownership during a rebalance"


def balance_as_3_9(members: Sequence[MemberSubscription], counts: Mapping[bytes, int]) -> dict[str, Assignment]:
    """Keep the current targets, give each unassigned partition to the subscriber with the fewest partitions, then balance all partitions (GN-46).

    members: in the order in which Kafka visits them. counts: maps topic ids to numbers of partitions. Returns the new target of each member by member
    id. Raises AssignmentFailed for a group for which Kafka 3.9 fails (GN-47).
    """
    group = _Group(members, counts)
    for place in group.sorted_places():
        if place not in group.owners:
            # The subscriber with the fewest partitions. One that has all partitions of its topics cannot subscribe to this free one.
            group.add(place, min(group.subscribers[place[0]], key=group.load))
    group.balance()
    return {member_id: share.assignment() for member_id, share in group.held.items()}


class _Group:
    """The partitions of each member while they are balanced.

    held: maps member ids to partitions. owners: maps partitions to member ids. subscribers: maps topic ids to member ids. candidates: the members
    that do not own all partitions of the topics that they subscribe to; Kafka keeps them sorted by load, which is the number of their partitions.
    """

    def __init__(self, members: Sequence[MemberSubscription], counts: Mapping[bytes, int]) -> None:
        self._counts = counts
        self._topics = {member.member_id: member.topic_ids for member in members}
        self._most = {member.member_id: sum(counts[topic_id] for topic_id in member.topic_ids) for member in members}
        self.held = {member.member_id: Share.empty() for member in members}
        self.owners: dict[Place, str] = {}
        self.subscribers: dict[bytes, list[str]] = {}
        for member in members:
            for topic_id in member.topic_ids:
                self.subscribers.setdefault(topic_id, []).append(member.member_id)
        self.candidates = {member_id for member_id, most in self._most.items() if most}
        self._moved: set[Place] = set()
        self._moves: set[tuple[bytes, str, str]] = set()
        for member in members:
            for place in still_held(member, counts):
                self.add(place, member.member_id)

    def load(self, member_id: str) -> tuple[int, str]:
        """Return a key that sorts members by load, which is the number of their partitions, and members with equal loads by member id."""
        return len(self.held[member_id]), member_id

    def sorted_places(self) -> list[Place]:
        """Return all partitions, sorted by their topic's number of partitions per subscriber, the largest number first.

        Partitions with equal numbers are sorted by the number of subscribers of their topic, then by index, both ascending. If these are also equal,
        the partitions are in the order of a Java `HashSet`.
        """
        places = [(topic_id, i) for topic_id in topic_order(self.subscribers) for i in range(self._counts[topic_id])]
        in_table = java_order(places, lambda place: 31 * (31 + uuid_hash_bits(place[0])) + place[1] & ALL_BITS)

        def rank(place: Place) -> tuple[float, int, int]:
            subscribers = len(self.subscribers[place[0]])
            return -self._counts[place[0]] / subscribers, subscribers, place[1]

        return sorted(in_table, key=rank)

    def add(self, place: Place, member_id: str) -> None:
        """Give the partition `place` to a member, which becomes its owner."""
        self.held[member_id].add(place)
        self.owners[place] = member_id
        self._update_candidate(member_id)

    def _update_candidate(self, member_id: str) -> None:
        if len(self.held[member_id]) < self._most[member_id]:
            self.candidates.add(member_id)
        else:
            self.candidates.discard(member_id)

    def balance(self) -> None:
        """Balance the partitions: move each at most once, if its owner has at least two partitions more than another subscriber of the topic.

        The partition moves to the subscriber that has the fewest partitions (`_move`). The moves end when `_is_balanced` is true or no partition can
        move.
        """
        places = [place for place in self.sorted_places() if len(self.subscribers[place[0]]) > 1]
        is_changed = bool(places)
        while is_changed:
            is_changed = was_moved = False
            for place in [place for place in places if place not in self._moved]:
                if was_moved and self._is_balanced():
                    return
                load = len(self.held[self.owners[place]])
                was_moved = any(load > len(self.held[other]) + 1 for other in self.subscribers[place[0]])
                if was_moved:
                    is_changed = True
                    self._move(place)

    def _is_balanced(self) -> bool:
        """Return whether the partitions are balanced, so that no more of them need to move.

        A candidate is a member that does not own all partitions of its topics. The partitions are balanced if one of these conditions holds:

        - The numbers of partitions of any two candidates differ by at most 1.
        - In the topics of each candidate, the owner of every partition has at most one partition more than the candidate.
        """
        by_load = sorted(self.candidates, key=self.load)
        if len(self.held[by_load[0]]) >= len(self.held[by_load[-1]]) - 1:
            return True
        return not any(
            len(self.held[member_id]) + 1 < len(self.held[self.owners[topic_id, index]])
            for member_id in by_load
            for topic_id in self._topics[member_id]
            for index in range(self._counts[topic_id])
            if self.owners[topic_id, index] != member_id
        )

    def _move(self, place: Place) -> None:
        """Move a partition to a candidate: a member that subscribes to the topic and does not own all partitions of its topics.

        If there are several candidates, the one with the fewest partitions gets the partition. Raises AssignmentFailed if another partition of the
        topic has already moved from the new owner to the old one: Kafka then fails, because it tries to move that partition back.
        """
        old_owner = self.owners[place]
        new_owner = min((m for m in self.candidates if place[0] in self._topics[m]), key=self.load)
        if (place[0], new_owner, old_owner) in self._moves:
            raise AssignmentFailed(MOVED_BACK)
        self._moves.add((place[0], old_owner, new_owner))
        self._moved.add(place)
        self.held[old_owner].remove(place)
        self._update_candidate(old_owner)
        self.add(place, new_owner)
