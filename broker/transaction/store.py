"""The transactional ids of one broker: loaded from `__transaction_state`, and written to it (TX-3, TX-7, TX-8).

Corresponds to Kafka's `TransactionStateManager`. This module does not depend on Kafka requests or on transaction markers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.runtime.internal_topics import LOG_ERRORS, KeyedRecord
from kafkaproto.broker.runtime.ownership import Ownership
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.broker.transaction.records import Entry, entry, parse
from kafkaproto.broker.transaction.transaction import Transaction, TransactionData
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import ProtocolError

logger = logging.getLogger("kafkaproto.transactions")

Done = Callable[[int, int], None]
"""A function that is called once with an error code (0 for none) and the current time (ms)."""

_ERRORS: dict[int, int] = LOG_ERRORS | {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Maps the error code of a failed append to the transaction topic to the code that the coordinator's client gets (TX-7)."""


class StateLog(Protocol):
    """Interface of the transaction topic on one broker, which `replication.coordinator_log` implements."""

    def append(self, index: int, entries: Sequence[Entry], now_ms: int, done: Done) -> None:
        """Append records to partition `index` of the transaction topic.

        entries: (key, value) of each record. done: called once with an error code and the current time (ms): with 0 when the records are replicated,
        otherwise with the error of the append.
        """

    def read(self, index: int) -> Iterable[KeyedRecord]:
        """Return all records of partition `index` of the transaction topic, in the order of offsets."""
        ...


class TransactionStore:
    """The transactional ids whose partition of the transaction topic this broker leads.

    loaded: called with (transactions, current time in ms) when a partition was loaded. unloaded: called with the transactions of a partition that
    another broker leads now. changed: called with (transaction, state before the transition, current time in ms) after each stored transition.
    """

    def __init__(
        self,
        log: StateLog,
        timers: Timers,
        load_ms: Callable[[], int],
        value_version: Callable[[], int],
        *,
        loaded: Callable[[Sequence[Transaction], int], None],
        unloaded: Callable[[Sequence[Transaction]], None],
        changed: Callable[[Transaction, TransactionData | None, int], None],
    ) -> None:
        self._log = log
        self._value_version = value_version
        self._loaded = loaded
        self._unloaded = unloaded
        self._changed = changed
        self._ids: dict[str, Transaction] = {}
        self._epochs: dict[int, int] = {}
        self._ownership = Ownership(timers, self._load, self._unload, load_ms)

    def __iter__(self) -> Iterator[Transaction]:
        return iter(tuple(self._ids.values()))

    @property
    def is_loading(self) -> bool:
        """Return whether this broker is still loading transactional ids from a partition of the transaction topic that it leads."""
        return self._ownership.is_loading

    @property
    def partition_count(self) -> int:
        """Return the number of partitions of the transaction topic when this broker started or the topic was created; 0 without the topic (M-8)."""
        return self._ownership.partition_count

    def get(self, transactional_id: str) -> Transaction | None:
        """Return the transaction of a transactional id, None if the id does not exist.

        Raises KafkaError NOT_COORDINATOR (16) if this broker does not coordinate the id, COORDINATOR_LOAD_IN_PROGRESS (14) if it has not loaded the
        id's partition yet (TX-3).
        """
        refusal = self._ownership.refusal(transactional_id)
        if refusal:
            raise KafkaError(refusal)
        return self._ids.get(transactional_id)

    def has(self, transaction: Transaction) -> bool:
        """Return whether the store still contains this object: False after the transactional id was removed, unloaded or loaded again."""
        return self._ids.get(transaction.transactional_id) is transaction

    def create(self, transactional_id: str, data: TransactionData) -> Transaction:
        """Add a transactional id with the state `data`, in memory only. Its first transition also writes the id to `__transaction_state`."""
        epoch = self._epochs[self._ownership.partition_of(transactional_id)]
        new_transaction = self._ids[transactional_id] = Transaction(transactional_id, data, epoch)
        return new_transaction

    def write(self, transaction: Transaction, now_ms: int, done: Done, *, keeps_pending: bool = False) -> None:
        """Write the pending state of a transaction to `__transaction_state`. It becomes the current state when the record is replicated.

        done: called with (error code for the client, current time in ms); the error code is 0 if the state is stored. If the write fails, the pending
        state is dropped, or stays if `keeps_pending` is true.
        """
        pending = transaction.pending
        assert pending is not None

        def written(error_code: int, at_ms: int) -> None:
            if not self.has(transaction):
                done(ErrorCode.NOT_COORDINATOR, at_ms)
            elif error_code:
                if not keeps_pending:
                    transaction.cancel()
                done(_ERRORS.get(error_code, error_code), at_ms)
            else:
                data_before = transaction.data
                transaction.complete()
                self._changed(transaction, data_before, at_ms)
                done(ErrorCode.NONE, at_ms)

        self._append(transaction, pending, now_ms, written)

    def remove(self, transaction: Transaction, now_ms: int) -> None:
        """Write the tombstone of an expired transactional id. The id is dropped from memory when the tombstone is replicated (TX-62).

        The pending state of the transaction must be DEAD.
        """

        def written(error_code: int, at_ms: int) -> None:
            if not self.has(transaction):
                return
            if error_code:
                transaction.cancel()
                return
            del self._ids[transaction.transactional_id]
            self._changed(transaction, transaction.data, at_ms)

        self._append(transaction, None, now_ms, written)

    def change(self, led: Mapping[int, int], partition_count: int, now_ms: int) -> None:
        """Handle a change of the partitions that this broker leads: load new partitions, and unload those that it no longer leads.

        A partition whose leader epoch has changed is loaded again. led: maps each partition that this broker leads to its leader epoch.
        partition_count: how many partitions the transaction topic has; 0 if the topic does not exist.
        """
        unchanged_indexes = [index for index, epoch in led.items() if self._epochs.get(index, epoch) == epoch]
        if len(unchanged_indexes) < len(led):
            self._ownership.change(unchanged_indexes, partition_count, now_ms)
        self._epochs = dict(led)
        self._ownership.change(led, partition_count, now_ms)

    def _append(self, transaction: Transaction, data: TransactionData | None, now_ms: int, done: Done) -> None:
        index = self._ownership.partition_of(transaction.transactional_id)
        record = entry(transaction.transactional_id, data, self._value_version())
        self._log.append(index, [record], now_ms, done)

    def _load(self, index: int, now_ms: int) -> None:
        latest: dict[str, TransactionData] = {}
        for record in self._log.read(index):
            if record.key is None:
                continue
            try:
                transactional_id, data = parse(record.key, record.value)
            except ProtocolError as error:
                logger.warning(
                    "__transaction_state-%d: the record at offset %d is skipped: %s", index, record.offset, error
                )
                continue
            if data is None:
                latest.pop(transactional_id, None)
            else:
                latest[transactional_id] = data
        epoch = self._epochs[index]
        transactions = [Transaction(transactional_id, data, epoch) for transactional_id, data in latest.items()]
        self._ids.update((transaction.transactional_id, transaction) for transaction in transactions)
        self._loaded(transactions, now_ms)

    def _unload(self, index: int, now_ms: int) -> None:
        transactions = [t for t in self._ids.values() if self._ownership.partition_of(t.transactional_id) == index]
        for transaction in transactions:
            del self._ids[transaction.transactional_id]
        self._unloaded(transactions)
