"""The data of a member that an assignor gets, and the order in which Kafka's assignors visit topics and partitions (GN-45)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kafkaproto.broker.group.assignment import NOTHING, Assignment, AssignmentTable, Place
from kafkaproto.hash_order import SMALLEST_TABLE, java_order, uuid_hash_bits


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


def topic_order(topic_ids: Iterable[bytes], table: int = SMALLEST_TABLE) -> list[bytes]:
    """Return topic ids in the order of a Java `HashSet` or `HashMap`. topic_ids: the ids in the order in which Kafka adds them.

    table: the number of buckets of the Java table before ids are added, a power of two.
    """
    return java_order(topic_ids, uuid_hash_bits, table)


def still_held(member: MemberSubscription, counts: Mapping[bytes, int]) -> list[Place]:
    """Return the partitions of a member's current target that the member may keep: they exist, and the member still subscribes to their topics.

    counts: maps topic ids to numbers of partitions.
    """
    return [
        (topic_id, index)
        for topic_id, indexes in member.target.items()
        if topic_id in member.topic_ids
        for index in indexes
        if index < counts[topic_id]
    ]


class Share:
    """The partitions that an assignor gives to one member, while it computes the member's new target.

    Like Kafka's assignors, this class keeps the current target until it changes, and then changes a copy (`AssignorHelpers.deepCopyAssignment`). The
    order of the new target depends on all changes of the copy.

    places: the partitions in the order in which the member got them. member: the member's subscription and current target. counts: maps topic ids to
    numbers of partitions. The constructor removes partitions that the member must not keep.
    """

    def __init__(self, member: MemberSubscription, counts: Mapping[bytes, int]) -> None:
        self._target = member.target
        self._changed: AssignmentTable | None = None
        held = still_held(member, counts)
        self.places: dict[Place, None] = dict.fromkeys(held)
        if len(held) < sum(map(len, member.target.values())):
            for topic_id, indexes in member.target.items():
                for index in indexes:
                    if (topic_id, index) not in self.places:
                        self.copy().discard(topic_id, index)

    @classmethod
    def empty(cls) -> Share:
        """Return a share without partitions, for which Kafka starts with an empty `HashMap` instead of a copy."""
        share = cls(MemberSubscription("", None, ()), {})
        share._changed = AssignmentTable()
        return share

    def copy(self) -> AssignmentTable:
        """Return the copy of the current target to which changes are made. The first call creates it."""
        if self._changed is None:
            self._changed = AssignmentTable.copy_of(self._target)
        return self._changed

    def add(self, place: Place, table: int = SMALLEST_TABLE) -> None:
        """Add a partition. table: the number of buckets of the `HashSet` that Kafka creates if the member has no partition of the topic."""
        self.places[place] = None
        topic_id, index = place
        self.copy().add(topic_id, (index,), table)

    def remove(self, place: Place) -> None:
        """Remove a partition."""
        del self.places[place]
        self.copy().discard(*place)

    def assignment(self) -> Assignment:
        """Return the member's new target."""
        return self._target if self._changed is None else self._changed.assignment()

    def __len__(self) -> int:
        return len(self.places)


def free_places(topic_ids: Iterable[bytes], counts: Mapping[bytes, int], shares: Iterable[Share]) -> list[Place]:
    """Return the partitions that are assigned to no member, topic by topic in the order of `topic_ids`.

    counts: maps topic ids to numbers of partitions. shares: the partitions of each member.
    """
    owned_places = {place for share in shares for place in share.places}
    places = ((topic_id, index) for topic_id in topic_ids for index in range(counts[topic_id]))
    return [place for place in places if place not in owned_places]
