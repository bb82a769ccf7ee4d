"""A dict of groups that also returns their ids in the order of the tables in which Kafka's group coordinators keep groups (GC-57)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Protocol

from kafkaproto.broker.group.migration import AnyGroup
from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.hash_order import concurrent_order, partition_hash_bits, timeline_order
from kafkaproto.partitioner import java_hash_bits

_ONLY_TABLE = 0
"""The index of the hash table of groups with Kafka's group coordinator in Scala, which has a single table for all groups."""


class Placement(Protocol):
    """Interface of the object that knows the partition of `__consumer_offsets` in which each group is stored. `GroupStorage` implements it.

    is_new_coordinator: whether the broker emulates Kafka's group coordinator in Java (default from 4.0 on).
    """

    is_new_coordinator: bool
    partition_of: Callable[[str], int]


class GroupTable(MutableMapping[str, AnyGroup]):
    """A dict of group ids to the groups of one broker. Iterating over it returns the ids in the order in which they were added.

    Kafka's group coordinator in Scala keeps all groups of a broker in one `ConcurrentHashMap`. The coordinator in Java has a `TimelineHashMap` for
    each partition of `__consumer_offsets`, with the groups of this partition. These tables grow with their number of groups and never shrink.
    storage: knows the coordinator that the broker emulates, and the partition of each group.
    """

    def __init__(self, storage: Placement) -> None:
        self._is_new = storage.is_new_coordinator
        self._partition_of = storage.partition_of if self._is_new else lambda group_id: _ONLY_TABLE
        self._groups: dict[str, AnyGroup] = {}
        self._places: dict[str, tuple[int, int]] = {}
        """Maps the id of each group to (index of its table, `hashCode()` of the id in Java as an unsigned number)."""
        self._sizes: dict[int, tuple[int, int]] = {}
        """Maps the index of each table to (number of its groups, largest number that it ever had)."""

    def __getitem__(self, group_id: str) -> AnyGroup:
        return self._groups[group_id]

    def __setitem__(self, group_id: str, group: AnyGroup) -> None:
        if group_id not in self._groups:
            index, _ = self._places[group_id] = self._place_of(group_id)
            size, most = self._sizes.get(index, (0, 0))
            self._sizes[index] = size + 1, max(size + 1, most)
        self._groups[group_id] = group

    def __delitem__(self, group_id: str) -> None:
        del self._groups[group_id]
        index, _ = self._places.pop(group_id)
        size, most = self._sizes[index]
        self._sizes[index] = size - 1, most

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def get_any(self, group_id: str) -> AnyGroup | None:
        """Return the group with this id, None if there is none. Faster than `get`."""
        return self._groups.get(group_id)

    def drop_table(self, index: int) -> None:
        """Drop the empty table of partition `index` of `__consumer_offsets`. If the partition is loaded again, its new table has the initial size."""
        if self._is_new:
            self._sizes.pop(index, None)

    def drop_all_tables(self) -> None:
        """Drop all tables, which are empty, because the broker stops. After a restart, the new tables have the initial size."""
        self._sizes.clear()

    def in_table_order(self, group_ids: Iterable[str], loaded: Iterable[int]) -> list[str]:
        """Return the ids in the order in which Kafka's tables iterate.

        group_ids: distinct ids, in the order in which they were added. Ids that are not in this object are added to the tables for this call. loaded:
        the partitions of `__consumer_offsets` that the broker coordinates, in the order in which they were loaded; ignored for the coordinator in
        Scala.
        """
        ids_by_table: dict[int, list[str]] = {}
        hashes: dict[str, int] = {}
        for group_id in group_ids:
            index, hashes[group_id] = self._places.get(group_id) or self._place_of(group_id)
            ids_by_table.setdefault(index, []).append(group_id)
        if not self._is_new:
            return concurrent_order(hashes, hashes.__getitem__, self._most(_ONLY_TABLE))
        tables = concurrent_order(((OFFSETS_TOPIC, index) for index in (*loaded, *ids_by_table)), partition_hash_bits)
        return [
            group_id
            for _, index in tables
            for group_id in timeline_order(ids_by_table.get(index, ()), hashes.__getitem__, self._most(index))
        ]

    def _place_of(self, group_id: str) -> tuple[int, int]:
        return self._partition_of(group_id), java_hash_bits(group_id)

    def _most(self, index: int) -> int:
        return self._sizes.get(index, (0, 0))[1]
