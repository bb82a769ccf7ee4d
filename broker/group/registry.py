"""The groups that one broker coordinates: how they are created, loaded, expired and deleted.

Corresponds to the group cache of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from kafkaproto.broker.group import consumer_records
from kafkaproto.broker.group.causes import CauseKind
from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.consumer_members import cancel_timers
from kafkaproto.broker.group.forgotten import ForgottenGroups
from kafkaproto.broker.group.group import Group, GroupState
from kafkaproto.broker.group.group_table import GroupTable
from kafkaproto.broker.group.groups_with_offsets import GroupsWithOffsets
from kafkaproto.broker.group.migration import AnyGroup, check_upgrade, entries_of, to_classic_group, to_consumer_group
from kafkaproto.broker.group.offset_expiry import OffsetExpiry
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.partition_table import PartitionTable
from kafkaproto.broker.group.pending_offsets import PendingGroups
from kafkaproto.broker.group.rebalance import Rebalance
from kafkaproto.broker.group.records import Entry
from kafkaproto.broker.group.replay import Loaded, iterate, load
from kafkaproto.broker.group.results import ALWAYS
from kafkaproto.broker.group.sessions import cancel
from kafkaproto.broker.group.settings import ConsumerGroupSettings
from kafkaproto.broker.group.storage import GroupStorage, Stored
from kafkaproto.broker.group.subscribed_topics import ClusterTopics, Topic
from kafkaproto.broker.group.visible_groups import VisibleGroups
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.error_codes import ErrorCode


class Registry:
    """All groups that one broker coordinates, by id. While there are groups, a timer deletes expired offsets."""

    def __init__(self, timers: Timers, rebalance: Rebalance, storage: GroupStorage) -> None:
        self._groups = GroupTable(storage)
        self.resume_consumer: Callable[[ConsumerGroup, int], None] = lambda group, now_ms: None
        """A function of (group, current time in ms) that starts the timers of a loaded consumer group. The coordinator of consumer groups sets it."""
        self.changes = rebalance.changes
        """Reports the changes of groups to observers."""
        self._rebalance = rebalance
        self._storage = storage
        self._expiry = OffsetExpiry(self, storage, rebalance, timers)
        self.pending_groups = PendingGroups()
        self.forgotten = ForgottenGroups(storage)
        self.visible = VisibleGroups(self, storage, self._groups.in_table_order)
        """The groups as requests that only read, such as DescribeGroups, see them."""
        self.with_offsets = GroupsWithOffsets(storage)
        """The groups with committed offsets. Code that changes committed offsets must call its `update`."""

    def __iter__(self) -> Iterator[AnyGroup]:
        """Iterate over a copy of all groups, classic and of the new protocol (KIP-848), so that groups may be deleted during the iteration."""
        return iter([*self._groups.values()])

    def in_table_order(self) -> list[AnyGroup]:
        """Return all groups, and the removed groups in `forgotten`, in the order of the tables of Kafka's group coordinators (GC-57)."""
        groups: dict[str, AnyGroup] = {**self._groups}
        for group in self.forgotten:
            groups.setdefault(group.group_id, group)  # a group that replaced it has the same offsets
        if len(groups) < 2:
            return [*groups.values()]
        return [groups[group_id] for group_id in self._groups.in_table_order(groups, self.visible.committed.partitions)]

    def get(self, group_id: str) -> Group | None:
        """Return a classic group, None if this broker does not have it."""
        group = self._groups.get_any(group_id)
        return group if isinstance(group, Group) else None

    def get_consumer(self, group_id: str) -> ConsumerGroup | None:
        """Return a consumer group of the new protocol (KIP-848), None if this broker does not have it."""
        group = self._groups.get_any(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def get_any(self, group_id: str) -> AnyGroup | None:
        """Return the group with this id, classic or of the new protocol (KIP-848); None if this broker does not have it."""
        return self._groups.get_any(group_id)

    def get_kept(self, group_id: str) -> AnyGroup | None:
        """Return the group with this id, or else the removed group in `forgotten`, whose offsets are kept; None if there is neither."""
        return self._groups.get_any(group_id) or self.forgotten.get(group_id)

    def await_writes(self, group_id: str, now_ms: int, done: Stored) -> None:
        """Call `done` when all earlier changes of a group are replicated, but at once if Kafka's group coordinator in Scala is emulated (GC-66)."""
        self._storage.await_writes(group_id, now_ms, done)

    def create(self, group_id: str, now_ms: int) -> Group:
        """Create an empty classic group."""
        group = self._new_group(group_id, self.forgotten.take(group_id), now_ms)
        self._groups[group_id] = group
        self._expiry.watch(now_ms)
        return group

    def _new_group(self, group_id: str, replaced: ConsumerGroup | None, now_ms: int) -> Group:
        group = Group(group_id, now_ms, is_new_coordinator=self._storage.is_new_coordinator)
        group.created_at = self._storage.creation_offset(group_id)
        if replaced is not None:
            group.offsets, group.pending_offsets = replaced.offsets, replaced.pending_offsets
        return group

    def create_for_member(self, group_id: str, now_ms: int) -> tuple[int, Group | None]:
        """Create a classic group for its first member. Returns (0, group), or (error code, None) if the group cannot be stored.

        If there is an empty group of the new protocol (KIP-848) with this id, the new group replaces it and keeps its offsets (GN-63).
        """
        replaced_group = self.get_consumer(group_id)
        group = self._new_group(group_id, replaced_group or self.forgotten.get(group_id), now_ms)
        error = self._storage.store_created(group, replaced_group, now_ms)
        if error:
            return error, None
        self._groups.pop(group_id, None)
        self.forgotten.take(group_id)
        self._groups[group_id] = group
        self._expiry.watch(now_ms)
        return ErrorCode.NONE, group

    def create_consumer(self, group_id: str, now_ms: int) -> ConsumerGroup:
        """Create a consumer group without members. Its first record is not written yet.

        If an empty group with this id was removed because of a rejected JoinGroup, the new group gets the offsets of the removed one. The list of
        such groups, `forgotten`, still contains the removed group, in case `reload` undoes the creation (GN-63).
        """
        forgotten = self.forgotten.get(group_id)
        group = ConsumerGroup(group_id) if forgotten is None else forgotten.successor()
        group.created_at = self._storage.creation_offset(group_id)
        self._groups[group_id] = group
        self._expiry.watch(now_ms)
        return group

    def upgrade(
        self,
        classic: Group,
        settings: ConsumerGroupSettings,
        topics: ClusterTopics,
        entries: list[Entry],
        now_ms: int,
    ) -> ConsumerGroup:
        """Convert a classic group to the new protocol (KIP-848) with members and offsets (GN-10, GN-55). Waiting requests get REBALANCE_IN_PROGRESS.

        entries: the list to which the records of the conversion are added. `put_back` undoes the conversion. Raises KafkaError GROUP_ID_NOT_FOUND
        (69) if the settings or the group's protocol type do not allow it, or if the data of a member cannot be converted.
        """
        if classic.is_in(GroupState.EMPTY):
            group = ConsumerGroup(
                classic.group_id,
                offsets=classic.offsets,
                pending_offsets=classic.pending_offsets,
            )
            entries += self._storage.tombstones(classic)
        else:
            check_upgrade(classic, settings)
            self._rebalance.interrupt(classic, now_ms)
            group = to_consumer_group(classic, topics.image(), is_release_4=settings.is_release_4)
            group.metadata_hash = topics.hash_of(topics.subscribed(group.subscribed_topics()))
            entries += self._storage.tombstones(classic) + entries_of(group)
        del self._groups[classic.group_id]
        self._groups[classic.group_id] = group
        return group

    def put_back(self, classic: Group) -> None:
        """Undo `upgrade`, because the heartbeat that caused the conversion is rejected: the group is a classic group again.

        Members that got REBALANCE_IN_PROGRESS join again, as in Kafka.
        """
        group = self._groups.pop(classic.group_id)
        assert isinstance(group, ConsumerGroup)
        _cancel_timers_of(group)
        self._groups[classic.group_id] = classic

    def downgrade(
        self,
        group: ConsumerGroup,
        leaving: Collection[str],
        topics: Mapping[str, Topic],
        entries: list[Entry],
        now_ms: int,
        *,
        rebalances: bool = True,
    ) -> None:
        """Convert a consumer group to a classic one without the members in `leaving` (GN-61).

        leaving: the ids of the members that leave. entries: the list to which the records of the conversion are added. rebalances: whether the
        remaining members must join again; false if a classic member replaced a static member of the new protocol (KIP-848) and kept its subscription.
        """
        entries += consumer_records.group_tombstones(group)
        classic = to_classic_group(group, leaving, topics, now_ms)
        entries.append(self._storage.entry_of(classic))
        _cancel_timers_of(group)
        del self._groups[group.group_id]
        self._groups[group.group_id] = classic
        for converted in classic.members.values():
            self._rebalance.sessions.restart_timeout(classic, converted, now_ms)
        if rebalances:
            self._rebalance.prepare(classic, now_ms)

    def forget(self, group: ConsumerGroup, now_ms: int) -> None:
        """Remove an empty consumer group from memory, without writing tombstones.

        As in Kafka, this happens for a JoinGroup request that names the group and is rejected afterwards (GN-63).
        """
        cancel(group.regex_timer)
        self.forgotten.add(group)
        del self._groups[group.group_id]
        self.changes.note(group.group_id, CauseKind.FORGOTTEN)
        self.changes.ended(group, now_ms)

    @property
    def classic_max_size(self) -> int:
        """Return the maximum number of members of a classic group (`group.max.size`)."""
        return self._rebalance.settings.group_max_size

    def reload(self, group_id: str, now_ms: int, *, is_new: bool = False) -> None:
        """Undo a change that was rejected or could not be stored: load the group again from its records.

        is_new: whether the change created the group, so that it has no records; it is then only dropped.
        """
        group = self.get_any(group_id)
        if group is not None:
            _unload_group(group, self._rebalance, now_ms)
            self._groups.pop(group_id, None)
        if not is_new:
            self._add_loaded_groups(self._storage.load_group(group_id), now_ms)
        if group is not None and self.get_any(group_id) is None:
            self.changes.ended(group, now_ms)

    def remove(self, group: AnyGroup, now_ms: int) -> None:
        """Remove a group from memory. Its waiting requests get NOT_COORDINATOR."""
        _unload_group(group, self._rebalance, now_ms)
        self.pending_groups.remove(group.group_id, group.pending_offsets)
        self.with_offsets.discard(group.group_id)
        self._groups.pop(group.group_id, None)
        self.changes.ended(group, now_ms)
        if not self._groups:
            self._expiry.stop()

    # ---- coming and going of the partitions of the offsets topic -------------------------------------------------------------

    def load(self, index: int, now_ms: int) -> None:
        """Load the groups of partition `index` of `__consumer_offsets`. The session timeouts of their members restart (GO-11)."""
        changes = self.visible.committed.load(index)
        self._add_loaded_groups(load(changes, is_new_coordinator=self._storage.is_new_coordinator), now_ms)

    def _add_loaded_groups(self, loaded: Loaded, now_ms: int) -> None:
        for group_id, consumer in loaded.consumers.items():
            consumer.offsets = loaded.offsets.get(group_id) or PartitionTable()
            consumer.created_at = ALWAYS
            self._groups[group_id] = consumer
            self._expiry.watch(now_ms)
            self.changes.loaded(consumer, now_ms)
            self.resume_consumer(consumer, now_ms)
        for group_id, stored_group, offsets in iterate(loaded):
            group = self.create(group_id, now_ms)
            group.created_at = ALWAYS
            group.offsets = offsets if self._storage.is_new_coordinator else PartitionTable(offsets)
            if stored_group is not None:
                group.restore(stored_group, now_ms)
            self.changes.loaded(group, now_ms)
            if stored_group is not None:
                self._rebalance.resume(group, now_ms)
        for group_id in loaded.offsets:
            if (loaded_group := self.get_any(group_id)) is not None:
                self.with_offsets.update(loaded_group)
        for group_id, pending in loaded.pending.items():
            holder = self.get_any(group_id) or self.create(group_id, now_ms)
            holder.pending_offsets = pending
            self.pending_groups.add(group_id, pending)

    def unload_partition(self, index: int, now_ms: int) -> None:
        """Drop the groups of partition `index` of `__consumer_offsets` from memory."""
        self.visible.committed.drop(index)
        self._unload(lambda group_id: self._storage.partition_of(group_id) == index, now_ms)
        self.with_offsets.drop_table(index)
        self._groups.drop_table(index)

    def unload_all(self, now_ms: int) -> None:
        """Drop all groups and their tables from memory, because the broker stops."""
        self._unload(lambda group_id: True, now_ms)
        self.with_offsets.clear()
        self._groups.drop_all_tables()

    def _unload(self, is_gone: Callable[[str], bool], now_ms: int) -> None:
        """Drop some groups from memory: each group for whose id `is_gone` returns True. Their waiting requests get NOT_COORDINATOR (GO-12)."""
        self.forgotten.drop(is_gone)
        for group in self:
            if is_gone(group.group_id):
                self.changes.note(group.group_id, CauseKind.UNLOADED)
                self.remove(group, now_ms)

    def adopt(
        self,
        group_id: str,
        protocol_type: str | None,
        offsets: Mapping[PartitionKey, CommittedOffset],
        now_ms: int,
    ) -> int:
        """Store the offsets of a group that an earlier version of this broker kept in its metadata log. Returns the error code, 0 if they are stored.

        protocol_type: the group's protocol type, such as "consumer"; None if it has none. The group must not exist yet. The method does not
        wait for replicas: the records are in the leader's log when it returns, and thus before the records of a client that commits later.
        """
        group = self.create(group_id, now_ms)
        group.offsets.put_all(offsets)
        if protocol_type is not None:
            group.protocol_type = protocol_type
            group.generation_id = 1  # only a group with a generation gets a tombstone when it is deleted
        error = self._storage.store_now(group, now_ms)
        if error:
            self.remove(group, now_ms)
        else:
            self.with_offsets.update(group)
        return error


def _cancel_timers_of(group: ConsumerGroup) -> None:
    """Cancel the timers of a consumer group and of its members."""
    for member in group.members.values():
        cancel_timers(member)
    cancel(group.regex_timer)


def _unload_group(group: AnyGroup, rebalance: Rebalance, now_ms: int) -> None:
    """Cancel the timers of a group that this broker drops from memory, and respond to its waiting requests with NOT_COORDINATOR.

    rebalance: responds to the waiting JoinGroup and SyncGroup requests of a classic group.
    """
    if isinstance(group, ConsumerGroup):
        _cancel_timers_of(group)
    else:
        rebalance.end(group, now_ms)
