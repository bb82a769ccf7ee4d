"""The partitions that are assigned to a member of a consumer group (KIP-848), in the order of Kafka's hash tables.

Kafka keeps an assignment in a Java `HashMap` of topic ids to `HashSet`s of partition indexes. Responses and stored records list topics and partitions
in the order of these tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kafkaproto.hash_order import SMALLEST_TABLE, java_order, uuid_hash_bits
from kafkaproto.hash_table import JavaTable, table_for

Assignment = Mapping[bytes, frozenset[int]]
"""Maps topic ids to partition indexes. Topics without partitions are left out.

Topics and indexes have the order of Kafka's hash tables (GN-27), which comparisons ignore. Where the order of a topic's indexes matters, they are an
`Indexes`.
"""
Place = tuple[bytes, int]
"""Identifies an assigned partition: (topic id, partition index)."""

NOTHING: Assignment = {}


class Indexes(frozenset[int]):
    """The indexes of the assigned partitions of one topic: a set whose iteration has the order in which the constructor got the indexes."""

    __slots__ = ("_in_order",)
    _in_order: tuple[int, ...]

    def __new__(cls, in_order: Iterable[int]) -> Indexes:
        """Create the set. in_order: the partition indexes, in the order of Kafka's hash table."""
        indexes = tuple(in_order)
        self = super().__new__(cls, indexes)
        self._in_order = indexes
        return self

    def __iter__(self) -> Iterator[int]:
        return iter(self._in_order)


def index_bits(index: int) -> int:
    """Return the 32 bits of `hashCode()` of a partition index in Java, which is the index itself."""
    return index


def copied(indexes: Iterable[int]) -> JavaTable[int]:
    """Return a Java `HashSet` of partition indexes that is created from a collection of them."""
    return JavaTable.copy_of(indexes, index_bits)


def from_record(listed: Iterable[tuple[bytes, Iterable[int]]]) -> Assignment:
    """Return an assignment in the order that it has in Kafka's memory after Kafka has read its record.

    Kafka replays each record that it writes, so an assignment that was just stored has this order, too. listed: (topic id, partition indexes) pairs,
    in the order of the record.
    """
    by_topic = {topic_id: Indexes(copied(indexes)) for topic_id, indexes in listed}
    return {topic_id: by_topic[topic_id] for topic_id in java_order(by_topic, uuid_hash_bits) if by_topic[topic_id]}


def replayed(assignment: Assignment) -> Assignment:
    """Return an assignment in the order that it has in Kafka's memory after Kafka has written and replayed its record."""
    return from_record(assignment.items())


class AssignmentTable:
    """An assignment that can be changed, in the order of a Java `HashMap` of topic ids to `HashSet`s of partition indexes.

    table: the number of buckets of the empty `HashMap`, a power of two.
    """

    def __init__(self, table: int = SMALLEST_TABLE) -> None:
        self._topics = JavaTable(uuid_hash_bits, table)
        self._indexes: dict[bytes, JavaTable[int]] = {}

    @classmethod
    def copy_of(cls, assignment: Assignment) -> AssignmentTable:
        """Return a deep copy, as `AssignorHelpers.deepCopyAssignment` makes it."""
        copy = cls(table_for(len(assignment)))
        for topic_id, indexes in assignment.items():
            copy.put(topic_id, copied(indexes))
        return copy

    def put(self, topic_id: bytes, indexes: JavaTable[int]) -> None:
        """Add a topic with its partitions, as `HashMap.put` does. Does nothing if `indexes` is empty."""
        if indexes:
            self._topics.add(topic_id)
            self._indexes[topic_id] = indexes

    def add(self, topic_id: bytes, indexes: Iterable[int], table: int = SMALLEST_TABLE) -> None:
        """Add partitions of a topic, as one call of `HashMap.computeIfAbsent` does.

        table: the number of buckets of the `HashSet` that is created if the topic has no partitions yet.
        """
        self._topics.add_first(topic_id)
        if topic_id not in self._indexes:
            self._indexes[topic_id] = JavaTable(index_bits, table)
        for index in indexes:
            self._indexes[topic_id].add(index)

    def merge(self, topic_id: bytes, indexes: Iterable[int]) -> None:
        """Add partitions of a topic, as `HashMap.merge` does. If the topic has partitions already, its `HashSet` is replaced by a larger copy."""
        self._topics.add_first(topic_id)
        if topic_id in self._indexes:
            merged = self._indexes[topic_id] = copied(self._indexes[topic_id])
            for index in indexes:
                merged.add(index)
        else:
            self._indexes[topic_id] = copied(indexes)

    def discard(self, topic_id: bytes, index: int) -> None:
        """Remove one partition of a topic in the assignment. If no other partition of the topic is left, remove the topic."""
        indexes = self._indexes[topic_id]
        indexes.discard(index)
        if not indexes:
            del self._indexes[topic_id]
            self._topics.discard(topic_id)

    def assignment(self) -> Assignment:
        """Return the assignment with all changes so far."""
        return {topic_id: Indexes(self._indexes[topic_id]) for topic_id in self._topics}
