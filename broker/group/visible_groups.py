"""The groups that are visible to requests that only read, such as ListGroups and DescribeGroups (GC-66).

With Kafka's group coordinator in Java (default from 4.0 on), these requests read the state up to the high watermark: they see no member and no epoch
whose records are not replicated, and still see a deleted group until its tombstones are replicated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from kafkaproto.broker.group.committed_groups import CommittedGroups
from kafkaproto.broker.group.forgotten import ForgottenGroups
from kafkaproto.broker.group.group import Group
from kafkaproto.broker.group.migration import AnyGroup
from kafkaproto.broker.group.offsets import CommittedOffset
from kafkaproto.broker.group.partition_table import PartitionTable
from kafkaproto.broker.group.results import ALWAYS
from kafkaproto.broker.group.storage import GroupStorage


class NewestGroups(Protocol):
    """Interface of one broker's groups in their newest states. `Registry` implements it.

    forgotten: the groups that were removed without writing a record (GN-63).
    """

    @property
    def forgotten(self) -> ForgottenGroups: ...
    def __iter__(self) -> Iterator[AnyGroup]: ...
    def get_any(self, group_id: str) -> AnyGroup | None: ...


class VisibleGroups:
    """The groups of one broker as requests that only read, such as ListGroups, see them.

    newest: the groups in their newest states. storage: reads `__consumer_offsets`. in_table_order: a function of (group ids, loaded partitions) that
    returns the ids in the order of Kafka's tables (`GroupTable.in_table_order`).
    """

    def __init__(
        self,
        newest: NewestGroups,
        storage: GroupStorage,
        in_table_order: Callable[[Iterable[str], Iterable[int]], list[str]],
    ) -> None:
        self._newest = newest
        self._storage = storage
        self._in_table_order = in_table_order
        self.committed = CommittedGroups(storage)
        """The groups in their state at the high watermark. They are used for partitions that have records above the high watermark."""

    def get(self, group_id: str) -> AnyGroup | None:
        """Return the group with this id; None if no such group is visible to requests that only read, such as DescribeGroups.

        A group that is created or removed (`Registry.forget`) without a record appears or disappears when the next record in its partition of
        `__consumer_offsets` is replicated (GN-63).
        """
        group = self._newest.get_any(group_id)
        if self.committed.is_behind(group_id):
            group = self._get_committed(group_id, group)
        elif group is not None and group.created_at != ALWAYS and not self._is_creation_visible(group):
            group = None
        return group or self._newest.forgotten.get_visible(group_id)

    def _get_committed(self, group_id: str, newest: AnyGroup | None) -> AnyGroup | None:
        if newest is None and group_id in self._newest.forgotten:
            return None
        if isinstance(newest, Group) and newest.created_at != ALWAYS and self._is_creation_visible(newest):
            return newest  # it may have been created without a record
        return self.committed.get(group_id, newest)

    def _is_creation_visible(self, group: AnyGroup) -> bool:
        return self._storage.high_watermark(group.group_id) > group.created_at

    def all(self) -> list[AnyGroup]:
        """Return all groups that are visible to requests that only read, such as ListGroups, in the order of ListGroups (GC-57)."""
        newest = (group.group_id for group in self._newest)
        forgotten = (group.group_id for group in self._newest.forgotten.visible())
        names = dict.fromkeys((*newest, *self.committed.names(), *forgotten))
        in_order = self._in_table_order(names, self.committed.partitions)
        return [group for name in in_order if (group := self.get(name)) is not None]

    def offsets(self, group_id: str) -> PartitionTable[CommittedOffset]:
        """Return the committed offsets of a group; empty if no such group is visible to requests that only read, such as OffsetFetch."""
        group = self.get(group_id)
        if group is None:
            return PartitionTable()
        return self.committed.offsets(group_id) if self.committed.is_behind(group_id) else group.offsets
