"""The groups that have committed offsets, in the order of the tables in which Kafka's group coordinator in Java keeps them (GO-9)."""

from __future__ import annotations

from kafkaproto.broker.group.group_table import GroupTable, Placement
from kafkaproto.broker.group.migration import AnyGroup


class GroupsWithOffsets:
    """The groups of one broker that have committed offsets, in tables like those of `GroupTable`.

    Kafka's group coordinator in Java (default from 4.0 on) has such a table for each partition of `__consumer_offsets`. The one in Scala has none, so
    that this object stays empty. storage: knows the coordinator that the broker emulates, and the partition of each group.
    """

    def __init__(self, storage: Placement) -> None:
        self._storage = storage
        self._groups = GroupTable(storage)

    def update(self, group: AnyGroup) -> None:
        """Add a group to its table if it has committed offsets, otherwise remove it. Call this after each change of a group's committed offsets."""
        if not group.offsets:
            self.discard(group.group_id)
        elif self._storage.is_new_coordinator and group.group_id not in self._groups:
            self._groups[group.group_id] = group

    def discard(self, group_id: str) -> None:
        """Remove a group that has no committed offsets, or is not in memory any more."""
        self._groups.pop(group_id, None)

    def drop_table(self, index: int) -> None:
        """Drop the table of partition `index` of `__consumer_offsets`, because this broker no longer coordinates its groups."""
        for group_id in [*self._groups]:
            if self._storage.partition_of(group_id) == index:
                del self._groups[group_id]
        self._groups.drop_table(index)

    def clear(self) -> None:
        """Drop all tables, because the broker stops."""
        self._groups.clear()
        self._groups.drop_all_tables()

    def in_table_order(self) -> list[str]:
        """Return the ids of all groups with committed offsets in the order of Kafka's tables, one partition of `__consumer_offsets` at a time."""
        return self._groups.in_table_order(self._groups, ())
