"""The data of a member that an assignor gets, and the order in which Kafka's assignors visit topics and partitions (GN-45)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kafkaproto.broker.group.assignment import NOTHING, Assignment, Place
from kafkaproto.hash_order import SMALLEST_TABLE, copy_table, java_order, uuid_hash_bits


class MemberSubscription(NamedTuple):
    """The subscription and the current target of a member, from which an assignor computes its new target.

    topic_ids: the existing topics that the member subscribes to, in the order in which Kafka visits them, as a list, or as the keys of a dict.
    target: its current target assignment. instance_id: the `group.instance.id` of a static member, None for a dynamic one. names, regex: the topic
    names and the regular expression in the member's subscription; a topic in `names` need not exist. subscribed: the number of topics that the member
    subscribes to, including topics that do not exist.
    """

    member_id: str
    instance_id: str | None
    topic_ids: Collection[bytes]
    target: Assignment = NOTHING
    names: frozenset[str] = frozenset()
    regex: str = ""
    subscribed: int = 0


class AssignmentFailed(Exception):
    """Raised if the assignor fails for a group, as Kafka's does before 4.0. The text is that of Kafka's `PartitionAssignorException`."""


def topic_order(topic_ids: Collection[bytes], table: int = SMALLEST_TABLE) -> list[bytes]:
    """Return topic ids in the order of a Java `HashSet` or `HashMap`. topic_ids: the ids in the order in which Kafka adds them.

    table: the number of buckets of the Java table before ids are added, a power of two.
    """
    return java_order(topic_ids, uuid_hash_bits, table)


def still_held(member: MemberSubscription, counts: Mapping[bytes, int]) -> list[Place]:
    """Return the partitions of a member's current target that the member may keep: they exist, and the member still subscribes to their topics.

    The partitions are in the order of the Java hash tables of `Assignment.fromRecord`. counts: maps topic ids to numbers of partitions.
    """
    return [
        (topic_id, index)
        for topic_id in topic_order(member.target)
        if topic_id in member.topic_ids
        for index in _index_order(member.target[topic_id])
        if index < counts[topic_id]
    ]


def _index_order(indexes: frozenset[int]) -> list[int]:
    """Return partition indexes in the order of a Java `HashSet` that is created from a list of them."""
    return java_order(sorted(indexes), lambda index: index, copy_table(len(indexes)))


def free_places(
    topic_ids: Iterable[bytes], counts: Mapping[bytes, int], held: Iterable[Iterable[Place]]
) -> list[Place]:
    """Return the partitions that are assigned to no member, topic by topic in the order of `topic_ids`.

    counts: maps topic ids to numbers of partitions. held: the partitions of each member.
    """
    owned_places = {place for places_of_member in held for place in places_of_member}
    places = ((topic_id, index) for topic_id in topic_ids for index in range(counts[topic_id]))
    return [place for place in places if place not in owned_places]


def by_topic(places: Iterable[Place]) -> Assignment:
    """Return the partitions `places` as an assignment: a dict of topic ids to partition indexes."""
    indexes: dict[bytes, set[int]] = {}
    for topic_id, index in places:
        indexes.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(partition_indexes) for topic_id, partition_indexes in indexes.items()}
