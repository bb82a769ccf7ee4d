"""The offsets that producers committed to a group in transactions that are still open (TX-43).

When the transaction commits, they become committed offsets. An offset is skipped if a later commit of the same partition is already visible: a commit
of the group itself, or of a transaction that ended earlier. When the transaction aborts, they are dropped. This module does not depend on
coordinators or logs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey


class PendingOffsets:
    """The pending offsets of one group, by producer id and partition. An offset becomes None when a later commit of its partition becomes visible.

    The caller adds offsets in the order in which they are stored.
    """

    __slots__ = ("_by_producer", "_order")

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[PartitionKey, CommittedOffset | None]] = {}
        self._order: dict[tuple[int, PartitionKey], None] = {}
        """The (producer id, partition) of each pending offset, in the order in which the offsets were added."""

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def add(self, producer_id: int, offsets: Mapping[PartitionKey, CommittedOffset]) -> list[PartitionKey]:
        """Add offsets of an open transaction. Returns the partitions for which the producer had no pending offset."""
        pending = self._by_producer.setdefault(producer_id, {})
        new = [key for key in offsets if key not in pending]
        pending.update(offsets)
        for key in offsets:
            self._order.pop((producer_id, key), None)
            self._order[(producer_id, key)] = None
        return new

    def drop(self, producer_id: int, keys: Iterable[PartitionKey]) -> list[PartitionKey]:
        """Remove the pending offsets of a producer for these partitions. Returns the partitions that had one."""
        pending = self._by_producer.get(producer_id, {})
        dropped = [key for key in keys if key in pending]
        for key in dropped:
            del pending[key], self._order[(producer_id, key)]
        if dropped and not pending:
            del self._by_producer[producer_id]
        return dropped

    def supersede(self, keys: Iterable[PartitionKey]) -> None:
        """Record that the group committed these partitions itself, so that offsets which are pending now do not replace the new commits."""
        for pending in self._by_producer.values():
            pending.update((key, None) for key in keys if key in pending)

    def remove(self, keys: Collection[PartitionKey]) -> list[PartitionKey]:
        """Remove the pending offsets of deleted partitions from all transactions. Returns the removed partitions, once for each producer."""
        return [key for producer_id in list(self._by_producer) for key in self.drop(producer_id, keys)]

    def end(
        self, producer_id: int, *, committed: bool
    ) -> tuple[list[PartitionKey], dict[PartitionKey, CommittedOffset]]:
        """Remove the pending offsets of a producer, because its transaction ended.

        Returns the partitions that had pending offsets, and the offsets that become committed offsets; there are none if `committed` is false.
        """
        pending = self._by_producer.pop(producer_id, {})
        offsets = {key: offset for key, offset in pending.items() if offset is not None} if committed else {}
        self._supersede_earlier(producer_id, offsets)
        for key in pending:
            del self._order[(producer_id, key)]
        return list(pending), offsets

    def _supersede_earlier(self, producer_id: int, committed: Collection[PartitionKey]) -> None:
        """Replace pending offsets of other producers by None, because this producer's transaction committed later offsets.

        committed: the partitions with offsets in this transaction. Only offsets that were added before those of this producer are replaced.
        """
        to_come = set(committed)
        for other_id, key in self._order if self._by_producer else ():
            if not to_come:
                return
            if key not in to_come:
                continue
            if other_id == producer_id:
                to_come.discard(key)
            else:
                self._by_producer[other_id][key] = None

    def items(self) -> Iterable[tuple[int, dict[PartitionKey, CommittedOffset]]]:
        """Return (producer id, offsets) of each open transaction, without the offsets that the group has replaced by later commits."""
        for producer_id, pending in self._by_producer.items():
            yield producer_id, {key: offset for key, offset in pending.items() if offset is not None}

    def partitions(self) -> list[PartitionKey]:
        """Return the partitions with pending offsets. A partition is repeated for each producer that has a pending offset for it."""
        return [key for pending in self._by_producer.values() for key in pending]
