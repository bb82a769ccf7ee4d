"""Reconciliation (KIP-848): moves a member of a consumer group towards its target assignment.

A member gets a partition only after the previous owner has revoked it.

The functions depend only on a member's state. Corresponds to Kafka's `CurrentAssignmentBuilder`, whose hash tables decide the order of topics and
partitions in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import IntEnum
from typing import NamedTuple

from kafkaproto.broker.group.assignment import NOTHING, Assignment, AssignmentTable, copied
from kafkaproto.hash_order import uuid_hash_bits
from kafkaproto.hash_table import JavaTable, map_copy_table

NO_EPOCH = -1
NO_INDEXES: frozenset[int] = frozenset()


class MemberState(IntEnum):
    """The states of a member in reconciliation, with the numbers that Kafka stores. UNKNOWN: a state that a newer broker stored."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class Current(NamedTuple):
    """The current state of a group member. assigned: the partitions that it may read. pending: those that it must still revoke.

    epoch: the member epoch. previous_epoch: the member epoch before that.
    """

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Assignment = NOTHING
    pending: Assignment = NOTHING


class FencedMember(Exception):
    """Raised if a member must join again because the coordinator does not know which partitions it owns."""


class Goal(NamedTuple):
    """The target assignment of a member, and the conditions for the next step of its reconciliation.

    epoch: the epoch of the target assignment. owner_epoch: a function of (topic id, partition index) that returns the epoch of the member that has
    this partition or must still revoke it; -1 if there is no such member. is_release_4_2: whether the rules of Kafka 4.2 apply. subscribed: the ids
    of the topics to which the member subscribes; None if it subscribes to every topic in the target assignment. is_resubscribed: whether the current
    request changed the member's subscription.
    """

    target: Assignment
    epoch: int
    owner_epoch: Callable[[bytes, int], int]
    is_release_4_2: bool = False
    subscribed: Collection[bytes] | None = None
    is_resubscribed: bool = False

    def subscribes(self, topic_id: bytes) -> bool:
        """Return whether the member subscribes to a topic."""
        return self.subscribed is None or topic_id in self.subscribed


def reconcile(current: Current, goal: Goal, owned: Assignment | None) -> Current:
    """Return the next state of a member (GN-22, GN-23), which may equal `current`.

    current: the state now. goal: the target assignment, the epochs of the owners of partitions, and the Kafka release whose rules apply. owned: the
    partitions that the member reports in its heartbeat, None if it reports none. If `current.state` is UNKNOWN (a state that a newer broker stored),
    the heartbeat must report that the member owns no partition (an empty `owned`); otherwise FencedMember is raised (GN-22).
    """
    if current.state is MemberState.STABLE:
        if current.epoch != goal.epoch:
            return _next(current, current.epoch, goal, owned)
        return _without_unsubscribed(current, goal, owned)
    if current.state is MemberState.UNREVOKED_PARTITIONS:
        if _owns(owned, current.pending):
            return _without_unsubscribed(current, goal, owned)
        # Before 4.2, a member that has revoked its partitions reaches the next epoch even if it must revoke more.
        return _next(current, current.epoch + (not goal.is_release_4_2), goal, owned)
    if current.state is MemberState.UNRELEASED_PARTITIONS:
        return _next(current, current.epoch, goal, owned)
    if owned is None or any(owned.values()):
        raise FencedMember
    return _next(current, goal.epoch, goal, owned)


def _owns(owned: Assignment | None, revoked: Assignment) -> bool:
    """Return whether the member still owns one of the `revoked` partitions.

    owned: the partitions that the member reports; None if it reports none. Such a member counts as owning all `revoked` partitions.
    """
    return owned is None or intersects(owned, revoked)


def _without_unsubscribed(current: Current, goal: Goal, owned: Assignment | None) -> Current:
    """Return the member state `current` without partitions of topics that the member no longer subscribes to.

    Kafka 4.2 and later remove such partitions even before the group has a new target assignment (KAFKA-19431). In earlier releases the state stays
    unchanged. goal: contains the subscribed topics, and whether the rules of 4.2 apply. owned: the partitions that the member reports, None if it
    reports none.
    """
    if not goal.is_release_4_2 or not goal.is_resubscribed or goal.subscribed is None:
        return current
    lost_topics = [topic_id for topic_id in current.assigned if topic_id not in goal.subscribed]
    if not lost_topics:
        return current
    if not goal.subscribed and not current.pending:
        assigned, pending = NOTHING, current.assigned
    else:
        assigned, pending = _split(current, lost_topics)
    if _owns(owned, pending):
        return current._replace(state=MemberState.UNREVOKED_PARTITIONS, assigned=assigned, pending=pending)
    return current._replace(assigned=assigned)


def _split(current: Current, lost_topics: Collection[bytes]) -> tuple[Assignment, Assignment]:
    """Return the assigned partitions without those of `lost_topics`, and the partitions that the member must revoke together with these.

    Both results have the order of Kafka's hash tables, which depends on how Kafka copies and changes them here.
    """
    copy = JavaTable(uuid_hash_bits, map_copy_table(len(current.assigned)))
    for topic_id in current.assigned:
        copy.add(topic_id)
    pending = AssignmentTable(map_copy_table(len(current.pending)))
    for topic_id, indexes in current.pending.items():
        pending.put(topic_id, copied(indexes))
    for topic_id in lost_topics:
        copy.discard(topic_id)
        pending.merge(topic_id, current.assigned[topic_id])
    return {topic_id: current.assigned[topic_id] for topic_id in copy}, pending.assignment()


def _next(current: Current, base_epoch: int, goal: Goal, owned: Assignment | None) -> Current:
    kept, revoked, free_partitions = AssignmentTable(), AssignmentTable(), AssignmentTable()
    is_complete = True
    for topic_id in JavaTable.copy_of(goal.target, uuid_hash_bits, current.assigned):
        target = goal.target.get(topic_id, NO_INDEXES) if goal.subscribes(topic_id) else NO_INDEXES
        assigned = current.assigned.get(topic_id, NO_INDEXES)
        kept_indexes, lost_indexes, new_indexes = copied(assigned), copied(assigned), copied(target)
        for index in assigned:
            (lost_indexes if index in target else kept_indexes).discard(index)
        # From Kafka 4.2 on, the member can get back at once the partitions that it has just revoked.
        own = current.pending.get(topic_id, NO_INDEXES) if goal.is_release_4_2 else NO_INDEXES
        for index in target:
            if index in assigned:
                new_indexes.discard(index)
            elif index not in own and goal.owner_epoch(topic_id, index) != NO_EPOCH:
                new_indexes.discard(index)
                is_complete = False
        kept.put(topic_id, kept_indexes)
        revoked.put(topic_id, lost_indexes)
        free_partitions.put(topic_id, new_indexes)
    pending = revoked.assignment()
    if pending and _owns(owned, pending):
        state = MemberState.UNREVOKED_PARTITIONS
        return _moved(current, Current(base_epoch, 0, state, kept.assignment(), pending))
    for topic_id, indexes in free_partitions.assignment().items():
        kept.add(topic_id, indexes)
    state = MemberState.STABLE if is_complete else MemberState.UNRELEASED_PARTITIONS
    return _moved(current, Current(goal.epoch, 0, state, kept.assignment()))


def _moved(before: Current, after: Current) -> Current:
    """Return the state `after`, with `previous_epoch` set to the epoch in `before`. As in Kafka, this is done even if both epochs are equal."""
    return after._replace(previous_epoch=before.epoch)


# ---- sets of partitions ------------------------------------------------------------------------------------------------------


def intersection(left: Assignment, right: Assignment) -> Assignment:
    """Return the partitions that are in both assignments."""
    common_indexes = {topic_id: indexes & right.get(topic_id, frozenset()) for topic_id, indexes in left.items()}
    return {topic_id: indexes for topic_id, indexes in common_indexes.items() if indexes}


def difference(left: Assignment, right: Assignment) -> Assignment:
    """Return the partitions that are in the assignment `left` and not in `right`."""
    remaining_indexes = {topic_id: indexes - right.get(topic_id, frozenset()) for topic_id, indexes in left.items()}
    return {topic_id: indexes for topic_id, indexes in remaining_indexes.items() if indexes}


def intersects(left: Assignment, right: Assignment) -> bool:
    """Return whether two assignments have a partition in common."""
    return bool(intersection(left, right))


def is_subset(left: Assignment, right: Assignment) -> bool:
    """Return whether all partitions of the assignment `left` are also in `right`."""
    return not difference(left, right)
