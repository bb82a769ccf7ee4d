"""Pending offsets: the offsets that producers committed to a group in transactions that are still open (TX-43).

When a transaction commits, its pending offsets become committed offsets of the group, except those that have been replaced. A pending offset is
replaced when a newer offset of the same partition becomes a committed offset, outside a transaction or with another transaction. When a transaction
aborts, its pending offsets are dropped. The time of an operation does not depend on the number of other producers and partitions. This module does
not depend on coordinators or logs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.partition_table import PartitionTable


class PendingOffsets:
    """The pending offsets of one group, by producer id and partition. They are numbered in the order in which they are added.

    When a transaction commits, each of its offsets replaces the pending offsets of the same partition that have lower numbers. An offset that is
    committed outside a transaction replaces all pending offsets of its partition. A replaced offset is ignored when its transaction commits.
    `reinstate` undoes the replacement of pending offsets.
    """

    __slots__ = ("_by_producer", "_last_number", "_producers", "_replaced")

    def __init__(self) -> None:
        self._by_producer: dict[int, PartitionTable[tuple[int, CommittedOffset]]] = {}
        """Maps a producer id to its pending offsets: a dict of partitions to (number, offset). `remove` may leave this inner dict empty.

        `add` numbers all pending offsets of this object consecutively.
        """
        self._producers: dict[PartitionKey, int] = {}
        """Maps each partition with pending offsets to the number of producers that have a pending offset of this partition."""
        self._replaced: dict[PartitionKey, int] = {}
        """Maps a partition to a number: a committed offset has replaced the pending offsets of this partition up to and including this number.

        `add` numbers all pending offsets of this object consecutively. A replaced offset is ignored when its transaction commits.
        """
        self._last_number = 0

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def __iter__(self) -> Iterator[int]:
        """Iterate over the ids of the producers in this object (`remove` says which of them have no pending offset)."""
        return iter(self._by_producer)

    def add(self, producer_id: int, offsets: Mapping[PartitionKey, CommittedOffset]) -> None:
        """Add offsets of an open transaction."""
        pending = self._by_producer.setdefault(producer_id, PartitionTable())
        for key, offset in offsets.items():
            if key not in pending:
                self._producers[key] = self._producers.get(key, 0) + 1
            self._last_number += 1
            pending[key] = self._last_number, offset

    def drop(self, producer_id: int, keys: Iterable[PartitionKey]) -> None:
        """Remove the pending offsets of a producer for the partitions `keys`, and the producer if it has no pending offset then."""
        pending = self._by_producer.get(producer_id)
        if pending is None:
            return
        for key in [key for key in keys if key in pending]:
            del pending[key]
            self._release(key)
        if not pending:
            del self._by_producer[producer_id]

    def _release(self, key: PartitionKey) -> None:
        self._producers[key] -= 1
        if not self._producers[key]:
            del self._producers[key]
            self._replaced.pop(key, None)

    @property
    def last_number(self) -> int:
        """Return the number of the pending offset that was added last, 0 if none was ever added."""
        return self._last_number

    def supersede(self, keys: Iterable[PartitionKey], number: int) -> None:
        """Record that offsets of these partitions were committed to the group outside a transaction.

        Pending offsets of these partitions whose number is at most `number` are replaced: they are ignored when their transactions commit later.
        number: the `last_number` when the commit was written.
        """
        for key in keys:
            if key in self._producers:
                self._replaced[key] = max(number, self._replaced.get(key, 0))

    def reinstate(self, keys: Iterable[PartitionKey]) -> None:
        """Record that the committed offsets of the partitions `keys` were deleted.

        Pending offsets that these committed offsets had replaced are no longer ignored when their transactions commit.
        """
        for key in keys:
            self._replaced.pop(key, None)

    def remove(self, keys: Collection[PartitionKey], *, keeps_producers: bool = False) -> None:
        """Remove the pending offsets of the partitions `keys` from all transactions.

        keeps_producers: whether a producer without any other pending offset stays in this object until its transaction ends.
        """
        for producer_id, pending in list(self._by_producer.items()):
            self.drop(producer_id, keys)
            if keeps_producers and not pending:
                self._by_producer[producer_id] = pending

    def end(self, producer_id: int, *, committed: bool) -> dict[PartitionKey, CommittedOffset]:
        """Remove the pending offsets of a producer, after its transaction has ended.

        Returns the offsets that become committed offsets; none if `committed` is false. If it is true, pending offsets that other producers added
        earlier for the same partitions are ignored when their transactions commit later.
        """
        pending = self._by_producer.pop(producer_id, None) or PartitionTable()
        offsets = {}
        for key, (number, offset) in pending.in_table_order().items() if committed else ():
            if number > self._replaced.get(key, 0):
                offsets[key] = offset
                self._replaced[key] = number
        for key in pending:
            self._release(key)
        return offsets

    def items(self) -> Iterable[tuple[int, dict[PartitionKey, CommittedOffset]]]:
        """Return (producer id, offsets) of each open transaction, without those offsets that later commits of the same partitions have replaced."""
        for producer_id, pending in self._by_producer.items():
            offsets = pending.items()
            yield (
                producer_id,
                {key: offset for key, (number, offset) in offsets if number > self._replaced.get(key, 0)},
            )

    def in_table_order(self, producer_id: int) -> Iterable[PartitionKey]:
        """Return the partitions of a producer's pending offsets in the order of the tables of Kafka's group coordinator in Java."""
        pending = self._by_producer.get(producer_id)
        return () if pending is None else pending.in_table_order()

    def partitions(self) -> Mapping[PartitionKey, int]:
        """Return the partitions with pending offsets, each with the number of producers that have a pending offset for it.

        The mapping changes with the pending offsets.
        """
        return self._producers


class PendingGroups:
    """The groups to which producers committed offsets in open transactions: Kafka's `openGroupsForProducer`."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[str, None]] = {}

    def __iter__(self) -> Iterator[int]:
        """Iterate over the ids of all producers with pending offsets, in the order in which they were added."""
        return iter(self._by_producer)

    def add(self, group_id: str, producer_ids: Iterable[int]) -> None:
        """Record that these producers have pending offsets in a group."""
        for producer_id in producer_ids:
            self._by_producer.setdefault(producer_id, {})[group_id] = None

    def of(self, producer_id: int) -> list[str]:
        """Return the ids of the groups in which a producer may have pending offsets."""
        return list(self._by_producer.get(producer_id, ()))

    def remove(self, group_id: str, producer_ids: Iterable[int]) -> None:
        """Record that these producers have no more pending offsets in a group."""
        for producer_id in producer_ids:
            group_ids = self._by_producer.get(producer_id, {})
            group_ids.pop(group_id, None)
            if not group_ids:
                self._by_producer.pop(producer_id, None)

    def drop(
        self, group_id: str, pending: PendingOffsets, keys: Collection[PartitionKey], *, keeps_producers: bool = False
    ) -> None:
        """Remove the pending offsets of the partitions `keys` in a group from all transactions. pending: those of the group.

        keeps_producers: as for `PendingOffsets.remove`. The other producers without a pending offset no longer have the group.
        """
        producers = set(pending)
        pending.remove(keys, keeps_producers=keeps_producers)
        self.remove(group_id, producers.difference(pending))
