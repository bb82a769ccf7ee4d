"""The history of transactions: when each began, what it included, how it ended and why. The history is bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from kafkaproto.broker.runtime.events import Observer

if TYPE_CHECKING:
    from kafkaproto.broker.observe.past_transaction import PastTransaction
    from kafkaproto.broker.transaction.changes import TransactionChange

MOST_IDS = 1000
MOST_OF_ID = 100


class TransactionHistory(Observer):
    """Collects the transactions of transactional ids: the last 100 of each id, for the 1,000 ids that began a transaction most recently."""

    def __init__(self, started_ms: int) -> None:
        self._started_ms = started_ms
        self._of_id: dict[str, deque[PastTransaction]] = {}

    def __contains__(self, transactional_id: str) -> bool:
        return transactional_id in self._of_id

    def transaction_changed(self, broker_id: int, change: TransactionChange, now_ms: int) -> None:
        """Add a transaction to the history, or update the current one, after a coordinator has changed or loaded the transaction's state.

        If another broker becomes the coordinator and loads the current transaction, its entry in the history is continued. A loaded open transaction
        without an entry is added, with the time of loading as its start.
        """
        current = self._current(change.transactional_id)
        if change.is_ongoing:
            if current is None:
                self._add(broker_id, change, now_ms)
            else:
                known_partitions = set(current.partitions)
                current.partitions += tuple(key for key in change.added if key not in known_partitions)
                current.broker_id = broker_id
            return
        if current is None or change.state == current.state:
            return
        current.broker_id, current.state = broker_id, change.state
        if not change.is_load:
            current.cause = str(change.cause)
        if current.decided_ms is None:
            current.decided_ms = now_ms - current.at_ms
        if change.state.startswith("Complete"):
            current.duration_ms = now_ms - current.at_ms

    def _current(self, transactional_id: str) -> PastTransaction | None:
        """Return the transaction of a transactional id whose markers are not all written yet; None if there is no such transaction."""
        entries = self._of_id.get(transactional_id)
        return entries[-1] if entries and entries[-1].duration_ms is None else None

    def _add(self, broker_id: int, change: TransactionChange, now_ms: int) -> None:
        from kafkaproto.broker.observe.past_transaction import (
            PastTransaction,  # loaded on first use, so that brokers start faster
        )

        transaction = PastTransaction(
            now_ms,
            broker_id,
            change.transactional_id,
            change.producer_id,
            change.epoch,
            change.added,
            elapsed_ms=now_ms - self._started_ms,
        )
        # The id moves to the end, so that the first id is the one whose last transaction is the oldest.
        entries = self._of_id.pop(change.transactional_id, None) or deque(maxlen=MOST_OF_ID)
        entries.append(transaction)
        self._of_id[change.transactional_id] = entries
        if len(self._of_id) > MOST_IDS:
            del self._of_id[next(iter(self._of_id))]

    def cleared(self, now_ms: int) -> None:
        self._started_ms = now_ms
        self._of_id.clear()

    def of_id(self, transactional_id: str) -> list[PastTransaction]:
        """Return copies of the transactions of an id, oldest first; none for an unknown id."""
        return [replace(transaction) for transaction in self._of_id.get(transactional_id, ())]

    def latest(self, count: int) -> list[PastTransaction]:
        """Return copies of the last `count` transactions of all ids, oldest first."""
        transactions: Iterator[PastTransaction] = (seen for entries in self._of_id.values() for seen in entries)
        ordered = sorted(transactions, key=lambda seen: seen.at_ms)
        return [replace(seen) for seen in ordered[max(0, len(ordered) - count) :]]
