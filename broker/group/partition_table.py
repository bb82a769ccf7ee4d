"""A dict of partitions that also returns them in the order of the tables in which Kafka's group coordinators store offsets (GO-9, GO-36).

This module does not depend on groups or wire messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TypeVar

from kafkaproto.broker.group.offsets import PartitionKey
from kafkaproto.hash_order import ALL_BITS, partition_hash_bits, scala_table_order, timeline_order
from kafkaproto.partitioner import java_hash_bits

Value = TypeVar("Value")


class _Indexes:
    """The partition indexes of one topic in a `PartitionTable`.

    indexes: a dict whose keys are the partition indexes, in the order in which they were added. most: the largest number of entries for which Kafka's
    table has ever made room. If a value was replaced while the table had N entries, Kafka made room for N + 1, because it makes room for a new entry
    before it replaces the old one.
    """

    __slots__ = ("indexes", "most")

    def __init__(self) -> None:
        self.indexes: dict[int, None] = {}
        self.most = 0


class PartitionTable(MutableMapping[PartitionKey, Value]):
    """A dict of partitions to values. Iterating over it returns the partitions in the order in which they were added.

    Kafka's coordinator in Java keeps a `TimelineHashMap` of the topics, and for each topic a `TimelineHashMap` of its partition indexes. The order of
    a table depends on the keys that were added and removed before: a table grows with its number of keys and never shrinks. When a topic loses its
    last partition, its table is removed. When the last topic is removed, the table of topics is removed; a later one has the initial size.

    The coordinator in Scala (3.9) keeps one mutable `HashMap` of all partitions, which never shrinks. Before it replaces the value of a key, it makes
    room for another key. When this coordinator loads a group, Kafka creates a `HashMap` with room only for the offsets that the group has then. A
    `PartitionTable` that is made from another one imitates this.
    """

    __slots__ = ("_most", "_most_topics", "_topics", "_values")

    def __init__(self, values: Mapping[PartitionKey, Value] | None = None) -> None:
        self._values: dict[PartitionKey, Value] = {}
        self._topics: dict[str, _Indexes] = {}
        self._most_topics = 0
        self._most = 0
        """The largest number of partitions for which the table of the coordinator in Scala has ever made room."""
        self.put_all(values or {})

    def put_all(self, values: Mapping[PartitionKey, Value]) -> None:
        """Set the values of partitions. Faster than `update`, which also accepts pairs and keyword arguments."""
        for key, value in values.items():
            self[key] = value

    def __getitem__(self, key: PartitionKey) -> Value:
        return self._values[key]

    def __setitem__(self, key: PartitionKey, value: Value) -> None:
        topic, index = key
        partitions = self._topics.get(topic)
        if partitions is None:
            partitions = self._topics[topic] = _Indexes()
            self._most_topics = max(self._most_topics, len(self._topics))
        partitions.most = max(partitions.most, len(partitions.indexes) + 1)
        partitions.indexes[index] = None
        self._most = max(self._most, len(self._values) + 1)
        self._values[key] = value

    def __delitem__(self, key: PartitionKey) -> None:
        del self._values[key]
        topic, index = key
        partitions = self._topics[topic]
        del partitions.indexes[index]
        if not partitions.indexes:
            del self._topics[topic]
        if not self._topics:
            self._most_topics = 0

    def __iter__(self) -> Iterator[PartitionKey]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def in_table_order(self) -> dict[PartitionKey, Value]:
        """Return a dict with the partitions in the order of the tables of Kafka's coordinator in Java: topic by topic."""
        topics = timeline_order(self._topics, java_hash_bits, self._most_topics)
        keys = [(topic, index) for topic in topics for index in _in_order(self._topics[topic])]
        return {key: self._values[key] for key in keys}

    def in_scala_order(self) -> list[PartitionKey]:
        """Return the partitions in the iteration order of the Scala `HashMap` in which Kafka's coordinator in Scala keeps the offsets of a group."""
        return scala_table_order(self._values, partition_hash_bits, self._most)


def _in_order(partitions: _Indexes) -> list[int]:
    return timeline_order(partitions.indexes, lambda index: index & ALL_BITS, partitions.most)
