"""Replays the records of `__consumer_offsets`: the state of groups and committed offsets that they describe (GO-11).

Corresponds to the `replay` methods of Kafka's group coordinator in Java, and to `loadGroupsAndOffsets` of the one in Scala. This module does not
depend on timers, logs or clients.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from kafkaproto.broker.group import consumer_records
from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.partition_table import PartitionTable
from kafkaproto.broker.group.pending_offsets import PendingOffsets
from kafkaproto.broker.group.records import ConsumerRecord, GroupRecord, OffsetRecord, StoredGroup, parse
from kafkaproto.broker.runtime.internal_topics import KeyedRecord
from kafkaproto.errors import DecodeError

logger = logging.getLogger("kafkaproto.groups")


class LoggedRecord(KeyedRecord, Protocol):
    """Interface of a record that was read from `__consumer_offsets`."""

    @property
    def producer_id(self) -> int:
        """Return the id of the producer to whose transaction this record or transaction marker belongs; -1 for a record outside transactions."""
        ...

    @property
    def commits_transaction(self) -> bool | None:
        """Return how the record ends a transaction: True for a marker that commits it, False for one that aborts it, None for a record with data."""
        ...


class Loaded(NamedTuple):
    """The latest state of every group in a partition of `__consumer_offsets`. Each field except the last maps group ids to their data.

    offsets: committed offsets. groups: stored generations of classic groups. consumers: groups of the new protocol (KIP-848). pending: offsets of
    open transactions. is_new_coordinator: whether the records are replayed as Kafka's group coordinator in Java does it (default from 4.0 on).
    """

    offsets: dict[str, PartitionTable[CommittedOffset]]
    groups: dict[str, StoredGroup]
    consumers: dict[str, ConsumerGroup]
    pending: dict[str, PendingOffsets]
    is_new_coordinator: bool


def empty(*, is_new_coordinator: bool) -> Loaded:
    """Return the state of a partition of `__consumer_offsets` that has no records: no groups and no offsets. is_new_coordinator: as in `Loaded`."""
    return Loaded({}, {}, {}, {}, is_new_coordinator)


class CommittedOffsets(NamedTuple):
    """The records of one offset commit: the committed offset of each partition. The dict `offsets` must not be changed later."""

    group_id: str
    offsets: Mapping[PartitionKey, CommittedOffset]


StoredRecord = OffsetRecord | CommittedOffsets | GroupRecord | ConsumerRecord


class Change(NamedTuple):
    """Consecutive records of a partition of `__consumer_offsets`, decoded. The change is replicated when all of these records are replicated.

    end_offset: the offset after the last record. records: the decoded records; empty for a transaction marker. producer_id: the producer in whose
    transaction the records are, or whose transaction the marker ends; -1 without a transaction. commits_transaction: True for a marker that commits
    the transaction, False for one that aborts it, None for a change with records.
    """

    end_offset: int
    records: Sequence[StoredRecord]
    producer_id: int = -1
    commits_transaction: bool | None = None


def changes(logged: Iterable[LoggedRecord], index: int) -> Iterator[Change]:
    """Yield the changes that the records of partition `index` of `__consumer_offsets` describe. A damaged record is logged and skipped."""
    for record in logged:
        if record.commits_transaction is not None:
            yield Change(record.offset + 1, (), record.producer_id, record.commits_transaction)
        if record.key is None:
            continue
        try:
            entry = parse(record.key, record.value)
        except DecodeError as error:
            logger.warning("__consumer_offsets-%d: the record at offset %d is skipped: %s", index, record.offset, error)
            continue
        if entry is not None:
            yield Change(record.offset + 1, (entry,), record.producer_id)


def load(read: Iterable[Change], *, is_new_coordinator: bool) -> Loaded:
    """Return the state of the groups after all changes of a partition of `__consumer_offsets` (GO-11). read: the changes, in order.

    is_new_coordinator: as in `Loaded`.
    """
    loaded = empty(is_new_coordinator=is_new_coordinator)
    for change in read:
        apply(loaded, change)
    for group in loaded.consumers.values():
        group.set_target(group.targets, group.assignment_epoch)
    return loaded


def apply(loaded: Loaded, change: Change) -> None:
    """Change the loaded state of the groups in a partition of `__consumer_offsets` as the partition's next record says (GO-11)."""
    for entry in change.records:
        if isinstance(entry, CommittedOffsets):
            _apply_commit(loaded, entry.group_id, entry.offsets, change.producer_id)
        elif isinstance(entry, OffsetRecord):
            if entry.committed is None:
                _delete_offset(loaded, entry.group_id, entry.key)
            else:
                _apply_commit(loaded, entry.group_id, {entry.key: entry.committed}, change.producer_id)
        elif isinstance(entry, GroupRecord):
            if entry.group is None:
                loaded.groups.pop(entry.group_id, None)
            else:
                loaded.groups[entry.group_id] = entry.group
                loaded.consumers.pop(entry.group_id, None)  # a classic group replaces one of the new protocol
        else:
            group = loaded.consumers.setdefault(entry.group_id, ConsumerGroup(entry.group_id))
            if not consumer_records.apply(group, entry.key, entry.value):
                del loaded.consumers[entry.group_id]
    if change.commits_transaction is not None:
        end_transaction(loaded, list(loaded.pending), change.producer_id, committed=change.commits_transaction)


def _apply_commit(
    loaded: Loaded, group_id: str, offsets: Mapping[PartitionKey, CommittedOffset], producer_id: int
) -> None:
    """Apply the offsets of a commit to `loaded`. producer_id: the producer that committed them in a transaction; -1 without a transaction."""
    if producer_id >= 0:
        loaded.pending.setdefault(group_id, PendingOffsets()).add(producer_id, offsets)
        return
    if group_id in loaded.pending:
        loaded.pending[group_id].supersede(offsets, loaded.pending[group_id].last_number)
    loaded.offsets.setdefault(group_id, PartitionTable()).put_all(offsets)


def _delete_offset(loaded: Loaded, group_id: str, key: PartitionKey) -> None:
    """Apply the tombstone of an offset to `loaded`: remove the committed offset of a partition.

    The partition may also have pending offsets, from open transactions. Kafka's coordinator in Java removes these, too. The coordinator in Scala
    keeps them: they are committed with their transactions, even those that the removed offset had replaced (GO-24).
    """
    if group_id in loaded.pending and not loaded.is_new_coordinator:
        loaded.pending[group_id].reinstate([key])
    elif group_id in loaded.pending:
        loaded.pending[group_id].remove([key])
        if not loaded.pending[group_id]:
            del loaded.pending[group_id]
    if (offsets := loaded.offsets.get(group_id)) is not None:
        offsets.pop(key, None)
        if not offsets:
            del loaded.offsets[group_id]


def end_transaction(loaded: Loaded, group_ids: Iterable[str], producer_id: int, *, committed: bool) -> None:
    """End a producer's transaction in some groups of `loaded`.

    The pending offsets of the producer are removed. If `committed`, they become committed offsets (TX-43).
    """
    for group_id in group_ids:
        pending = loaded.pending.get(group_id)
        if pending is None:
            continue
        offsets = pending.end(producer_id, committed=committed)
        if offsets:
            loaded.offsets.setdefault(group_id, PartitionTable()).put_all(offsets)
        if not pending:
            del loaded.pending[group_id]


def iterate(loaded: Loaded) -> Iterator[tuple[str, StoredGroup | None, PartitionTable[CommittedOffset]]]:
    """Yield (group id, stored generation, committed offsets) for each classic group in `loaded` that has a generation or offsets.

    The generation is None if the group has only offsets.
    """
    for group_id in {**loaded.groups, **loaded.offsets}:
        if group_id not in loaded.consumers:
            yield group_id, loaded.groups.get(group_id), loaded.offsets.get(group_id) or PartitionTable()
