"""Deletion of groups and of committed offsets, for requests and for deleted topics (GO-9, GO-25).

Corresponds to `deleteGroups`, `deleteOffsets` and `onPartitionsDeleted` of Kafka's group coordinator in Java, and to `cleanupGroupMetadata` of the
one in Scala. This module does not depend on wire messages.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from typing import NamedTuple

from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.group import GroupState
from kafkaproto.broker.group.migration import AnyGroup
from kafkaproto.broker.group.offset_expiry import is_unused
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.partition_table import PartitionTable
from kafkaproto.broker.group.registry import Registry
from kafkaproto.broker.group.storage import GroupStorage
from kafkaproto.broker.group.tombstone_order import order_of, order_of_all, order_of_topics, pending_of_topics
from kafkaproto.broker.group.tombstones import Tombstones
from kafkaproto.error_codes import ErrorCode


class _Deletion(NamedTuple):
    """Offsets of a group that are being deleted: their tombstones are not written yet.

    keys: the partitions of the offsets. offsets: the committed offsets of these partitions, which are no longer in the group. deletes_group: whether
    the group itself is deleted, too.
    """

    group: AnyGroup
    keys: Collection[PartitionKey]
    offsets: dict[PartitionKey, CommittedOffset]
    deletes_group: bool


class Deletions:
    """Deletes groups and committed offsets of one broker, and writes their tombstones in the same batches as Kafka.

    is_release_4: whether the rules of Kafka 4.0 and later apply.
    """

    def __init__(self, groups: Registry, storage: GroupStorage, *, is_release_4: bool = False) -> None:
        self._groups = groups
        self._storage = storage
        self._is_release_4 = is_release_4

    def delete_groups(self, group_ids: Sequence[str], now_ms: int) -> dict[str, int]:
        """Delete groups with their offsets, and return an error code for each group id. Only groups without members can be deleted (GC-59)."""
        tombstones = Tombstones(self._storage)
        results: dict[str, int] = {}
        for group_id in dict.fromkeys(group_ids):
            group = self._groups.get_any(group_id)
            if group is None:
                results[group_id] = ErrorCode.GROUP_ID_NOT_FOUND
            elif group.members or not (isinstance(group, ConsumerGroup) or group.is_in(GroupState.EMPTY)):
                results[group_id] = ErrorCode.NON_EMPTY_GROUP
            else:
                keys = order_of_all(
                    group.offsets,
                    group.pending_offsets,
                    is_java=self._storage.is_new_coordinator,
                    is_release_4=self._is_release_4,
                )
                tombstones.add(group, keys, group_too=True)
                results[group_id] = ErrorCode.NONE
        for group_id, codes in tombstones.write(now_ms).items():
            error = next(filter(None, codes), ErrorCode.NONE)
            results[group_id] = error
            group = self._groups.get_any(group_id)
            if group is not None and not error:
                group.offsets = PartitionTable()
                self._groups.remove(group, now_ms)
        return results

    def delete_offsets(self, group: AnyGroup, keys: Collection[PartitionKey], now_ms: int) -> int:
        """Delete the offsets that a group has committed for the partitions `keys`, and write their tombstones.

        keys: the partitions. For a partition that occurs several times, Kafka's group coordinator in Java (default from 4.0 on) writes as many
        tombstones. Pending transactional offsets of these partitions are also deleted. Returns an error code, 0 for success; after an error nothing
        is deleted.

        If the group then has neither members nor offsets, Kafka's group coordinator in Scala (3.9) deletes it, unless it had pending transactional
        offsets before (GC-64). That coordinator writes no tombstones for pending offsets.
        """
        pending = group.pending_offsets.partitions()
        ordered_keys = order_of(keys, group.offsets, pending, is_java=self._storage.is_new_coordinator)
        tombstones = Tombstones(self._storage)
        deletion = self._begin(group, keys, ordered_keys, tombstones)
        error = next(filter(None, tombstones.write(now_ms)[group.group_id]), ErrorCode.NONE)
        if error:
            group.offsets.put_all(deletion.offsets)
        else:
            self._finish(deletion, now_ms)
        return error

    def forget_topics(self, topics: Collection[str], now_ms: int, *, collects: bool = True) -> None:
        """Delete the committed offsets of all groups for topics that were deleted together (GO-25).

        topics: the names, in the order in which Kafka's brokers process them. If the tombstones cannot be written, they are missing in the log, but
        the offsets are deleted, because new topics with these names must not have them. collects: whether the tombstones may first be collected, for
        `group.coordinator.append.linger.ms`.
        """
        is_java = self._storage.is_new_coordinator
        topics = dict.fromkeys(topics)
        tombstones = Tombstones(self._storage)
        deletions = []
        for group in self._in_offsets_order() if is_java else self._groups.in_table_order():
            ordered_keys = order_of_topics(topics, group.offsets, is_java=is_java)
            others = (*group.pending_offsets.partitions(), *group.staged)
            keys = dict.fromkeys((*ordered_keys, *(key for key in others if key[0] in topics)))
            if keys or not is_java:
                deletions.append(self._begin(group, keys, ordered_keys, tombstones))
        if is_java:
            groups = self._groups
            for group, pending_keys in pending_of_topics(
                topics, groups.pending_groups, groups.get_kept, self._storage.partition_of
            ):
                tombstones.add(group, pending_keys, group_too=False)
        tombstones.write(now_ms, may_split=True, collects=collects)
        for deletion in deletions:
            self._finish(deletion, now_ms)

    def forget_missing_topics(self, topics: Container[str], now_ms: int) -> None:
        """Delete the committed offsets of all groups for topics that do not exist. The tombstones are not collected. topics: the existing topics."""
        groups = (*self._groups, *self._groups.forgotten)
        if missing := sorted({topic for group in groups for topic, _ in group.offsets if topic not in topics}):
            self.forget_topics(missing, now_ms, collects=False)

    def _in_offsets_order(self) -> list[AnyGroup]:
        """Return all groups, and the removed groups whose offsets are kept.

        Groups with committed offsets come first, in the order of Kafka's tables of such groups.
        """
        kept_groups = {group.group_id: group for group in (*self._groups.forgotten, *self._groups)}
        first_ids = self._groups.with_offsets.in_table_order()
        return [
            kept_groups[group_id] for group_id in dict.fromkeys((*first_ids, *kept_groups)) if group_id in kept_groups
        ]

    def _begin(
        self,
        group: AnyGroup,
        keys: Collection[PartitionKey],
        ordered_keys: Collection[PartitionKey],
        tombstones: Tombstones,
    ) -> _Deletion:
        """Remove the offsets for the partitions `keys` from a group, and add the tombstones of the partitions `ordered_keys` to `tombstones`."""
        distinct = dict.fromkeys(keys)
        group.staged = {key: offset for key, offset in group.staged.items() if key not in distinct}
        offsets = {key: group.offsets.pop(key) for key in distinct if key in group.offsets}
        deletes_group = not self._storage.is_new_coordinator and is_unused(group)
        tombstones.add(group, ordered_keys, group_too=deletes_group)
        return _Deletion(group, distinct, offsets, deletes_group)

    def _finish(self, deletion: _Deletion, now_ms: int) -> None:
        """Finish a deletion after its tombstones were written: remove the pending offsets of its partitions, and the group if it is deleted, too."""
        group, is_java = deletion.group, self._storage.is_new_coordinator
        self._groups.pending_groups.drop(
            group.group_id, group.pending_offsets, deletion.keys, keeps_producers=not is_java
        )
        self._groups.with_offsets.update(group)
        if deletion.deletes_group:
            self._groups.remove(group, now_ms)
