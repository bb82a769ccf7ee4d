"""The offsets that producers committed to a group in transactions that are still open (TX-43).

They become committed offsets when the transaction commits, unless the group committed the partition itself after them; they are dropped when
it aborts. This module does not depend on coordinators or logs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey


class PendingOffsets:
    """The pending offsets of one group, by producer id and partition. None stands for an offset that the group itself replaced later."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[PartitionKey, CommittedOffset | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def add(self, producer_id: int, offsets: Mapping[PartitionKey, CommittedOffset]) -> list[PartitionKey]:
        """Add offsets of an open transaction, which are in the log. Returns the partitions of which the producer had none."""
        pending = self._by_producer.setdefault(producer_id, {})
        new = [key for key in offsets if key not in pending]
        pending.update(offsets)
        return new

    def supersede(self, keys: Iterable[PartitionKey]) -> None:
        """Record that the group committed these partitions itself, so that offsets which are pending now do not replace these commits."""
        for pending in self._by_producer.values():
            pending.update((key, None) for key in keys if key in pending)

    def remove(self, keys: Collection[PartitionKey]) -> list[PartitionKey]:
        """Remove the offsets of partitions in all transactions, because they were deleted. Returns the partitions, once for each producer."""
        removed = []
        for producer_id, pending in list(self._by_producer.items()):
            gone = [key for key in pending if key in keys]
            for key in gone:
                del pending[key]
            if not pending:
                del self._by_producer[producer_id]
            removed += gone
        return removed

    def end(
        self, producer_id: int, *, committed: bool
    ) -> tuple[list[PartitionKey], dict[PartitionKey, CommittedOffset]]:
        """Remove the offsets of a producer, because its transaction ended.

        Returns the partitions that had pending offsets, and the offsets that are committed now.
        """
        pending = self._by_producer.pop(producer_id, {})
        offsets = {key: offset for key, offset in pending.items() if offset is not None} if committed else {}
        return list(pending), offsets

    def items(self) -> Iterable[tuple[int, dict[PartitionKey, CommittedOffset]]]:
        """Return (producer id, offsets) of each open transaction, without replaced offsets."""
        for producer_id, pending in self._by_producer.items():
            yield producer_id, {key: offset for key, offset in pending.items() if offset is not None}

    def partitions(self) -> list[PartitionKey]:
        """Return the partitions with pending offsets, once for each producer."""
        return [key for pending in self._by_producer.values() for key in pending]
