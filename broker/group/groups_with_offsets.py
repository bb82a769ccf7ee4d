"""The groups that have committed offsets, in the order of the tables in which Kafka's group coordinator in Java keeps them (GO-9)."""

from __future__ import annotations

from collections.abc import Callable

from kafkaproto.broker.group.migration import AnyGroup
from kafkaproto.hash_order import timeline_order
from kafkaproto.partitioner import java_hash_bits


class GroupsWithOffsets:
    """The ids of one broker's groups that have committed offsets.

    Kafka's group coordinator in Java (default from 4.0 on) keeps them in a `TimelineHashMap` for each partition of `__consumer_offsets`. A table
    grows with its number of groups and never shrinks. partition_of: a function that returns the partition of `__consumer_offsets` that stores the
    group with an id.
    """

    def __init__(self, partition_of: Callable[[str], int]) -> None:
        self._partition_of = partition_of
        self.partitions: dict[str, int] = {}
        """Maps the id of each group with committed offsets to its partition of `__consumer_offsets`."""
        self._tables: dict[int, dict[str, None]] = {}
        """Maps each partition of `__consumer_offsets` to the ids of its groups in the order in which they got their first committed offset."""
        self._most: dict[int, int] = {}
        """Maps each partition of `__consumer_offsets` to the largest number of groups that it has had at once in `_tables`.

        It decides the size of Kafka's hash table, and so the order of the groups.
        """

    def update(self, group: AnyGroup) -> None:
        """Add a group to its table if it has committed offsets, otherwise remove it from the table."""
        group_id = group.group_id
        if not group.offsets:
            self.discard(group_id)
        elif group_id not in self.partitions:
            index = self.partitions[group_id] = self._partition_of(group_id)
            table = self._tables.setdefault(index, {})
            table[group_id] = None
            self._most[index] = max(len(table), self._most.get(index, 0))

    def discard(self, group_id: str) -> None:
        """Record that the group with this id has no committed offsets, or is not in memory."""
        index = self.partitions.pop(group_id, None)
        if index is not None:
            del self._tables[index][group_id]

    def drop_table(self, index: int) -> None:
        """Drop the table of partition `index` of `__consumer_offsets`, because this broker no longer coordinates its groups."""
        for group_id in self._tables.pop(index, ()):
            del self.partitions[group_id]
        self._most.pop(index, None)

    def clear(self) -> None:
        """Drop all tables, because the broker stops."""
        for index in [*self._tables]:
            self.drop_table(index)

    def in_table_order(self) -> list[str]:
        """Return the ids of all groups with committed offsets in the order of Kafka's tables, one partition of `__consumer_offsets` at a time."""
        return [
            group_id
            for index, table in self._tables.items()
            for group_id in timeline_order(table, java_hash_bits, self._most[index])
        ]
