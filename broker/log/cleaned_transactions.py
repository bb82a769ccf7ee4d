"""What compaction does with transactions: records of aborted ones are removed, and markers when none of their records is left.

Corresponds to Kafka's `CleanedTransactionMetadata` (KIP-98, KIP-534). This module does not depend on keys, segments or the schedule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from kafkaproto.broker.log.transaction_index import AbortedTransaction
from kafkaproto.records.batch import BatchHeader


class CleanedTransactions:
    """The transactions of the batches that one cleaning reads, in the order of offsets. aborted: all aborted transactions of the log."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = deque(sorted(aborted, key=lambda transaction: transaction.first_offset))
        self._aborted: dict[int, bool] = {}
        """Maps producers with an aborted transaction at the present offset to whether it has a batch."""
        self._committed: set[int] = set()
        """The producers with a batch in a committed transaction whose marker has not been read yet."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Read a batch with data, and return whether it is part of an aborted transaction."""
        if not header.is_transactional:
            return False
        self._reach(header.last_offset)
        if header.producer_id in self._aborted:
            self._aborted[header.producer_id] = True
            return True
        self._committed.add(header.producer_id)
        return False

    def is_empty(self, header: BatchHeader, *, commits: bool | None) -> bool:
        """Read a marker, and return whether no batch of its transaction is left. commits: None for a marker without its record."""
        self._reach(header.last_offset)
        if commits is None:
            return True
        if commits:
            has_batch = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not has_batch
        return not self._aborted.pop(header.producer_id, False)

    def _reach(self, offset: int) -> None:
        while self._to_come and self._to_come[0].first_offset <= offset:
            self._aborted[self._to_come.popleft().producer_id] = False
