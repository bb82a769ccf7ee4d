"""Transactions during compaction: which batches belong to aborted transactions, and which markers have no records left.

Compaction removes the records of aborted transactions, and later the markers of transactions without records. Corresponds to Kafka's
`CleanedTransactionMetadata` (KIP-98, KIP-534). This module does not depend on keys, segments or the time of compaction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from kafkaproto.broker.log.transaction_index import AbortedTransaction
from kafkaproto.records.batch import BatchHeader


class CleanedTransactions:
    """Tracks the transactions of the batches that compaction reads. Batches must be read in the order of offsets.

    aborted: all aborted transactions of the log.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = deque(sorted(aborted, key=lambda transaction: transaction.first_offset))
        self._aborted: dict[int, AbortedTransaction] = {}
        """Maps the id of a producer to its aborted transaction of which compaction has read the start, but not the end."""
        self._with_batch: set[int] = set()
        """The ids of those producers in `_aborted` whose aborted transaction has at least one batch in the part of the log read so far."""
        self.remaining: list[AbortedTransaction] = []
        """The aborted transactions that still have both a batch and a marker after compaction, in the order of their markers.

        This list replaces the log's list of aborted transactions.
        """
        self._committed: set[int] = set()
        """The ids of producers with a committed transaction of which compaction has read at least one batch, but not the commit marker."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Return whether the next data batch belongs to an aborted transaction. Call it once for each data batch, in the order of offsets."""
        if not header.is_transactional:
            return False
        self._reach(header.last_offset)
        if header.producer_id in self._aborted:
            self._with_batch.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def is_empty(self, header: BatchHeader, *, commits: bool | None) -> bool:
        """Return whether compaction has removed all batches of the transaction that a marker ends. Call it for each marker, in the order of the log.

        header: the header of the batch that contains the marker. commits: True for a commit marker, False for an abort marker. None if compaction has
        already removed the marker from its batch; the method then returns True.
        """
        self._reach(header.last_offset)
        if commits is None:
            return True
        if commits:
            has_batch = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not has_batch
        transaction = self._aborted.pop(header.producer_id, None)
        if transaction is None or header.producer_id not in self._with_batch:
            return True
        self._with_batch.discard(header.producer_id)
        self.remaining.append(transaction)
        return False

    def _reach(self, offset: int) -> None:
        while self._to_come and self._to_come[0].first_offset <= offset:
            transaction = self._to_come.popleft()
            self._aborted[transaction.producer_id] = transaction
            self._with_batch.discard(transaction.producer_id)
        for transaction in [aborted for aborted in self._aborted.values() if aborted.last_offset < offset]:
            # Its marker is gone: what the producer wrote afterwards belongs to another transaction.
            del self._aborted[transaction.producer_id]
            self._with_batch.discard(transaction.producer_id)
