"""The end of a transaction: first a marker in each of its partitions, then the completed state in `__transaction_state` (TX-39, TX-49).

Corresponds to Kafka's `TransactionMarkerChannelManager`. How a marker reaches its partition is left to a `MarkerWriter`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from kafkaproto.broker.runtime.timers import Timer, Timers
from kafkaproto.broker.transaction.operations import PartitionKey, TransactionMarker
from kafkaproto.broker.transaction.store import Done, TransactionStore
from kafkaproto.broker.transaction.transaction import Transaction, TransactionState
from kafkaproto.error_codes import ErrorCode

FIRST_RETRY_MS = 20
LONGEST_RETRY_MS = 1_000
_RETRIED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
_DEPOSED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""The errors of a marker's append after which the coordinator gives up: a newer coordinator or epoch has ended the transaction (TX-49)."""


class MarkerWriter(Protocol):
    """Interface of the component that writes transaction markers to partitions, whichever broker leads them."""

    def write(self, marker: TransactionMarker, key: PartitionKey, now_ms: int, done: Done) -> None:
        """Append a transaction marker to a partition.

        key: the partition. done: called with error code 0 when the marker is replicated or if the topic was deleted, otherwise with the error of
        the append.
        """


class _Ending:
    """A transaction that is being ended: the partitions that still need a marker, and the timer of the next attempt.

    is_fenced: whether a partition rejected the marker because of a newer producer or coordinator epoch. The coordinator then writes no more markers.
    """

    __slots__ = ("backoff_ms", "in_flight", "is_fenced", "marker", "timer", "transaction")

    def __init__(self, transaction: Transaction, marker: TransactionMarker) -> None:
        self.transaction = transaction
        self.marker = marker
        self.in_flight: set[PartitionKey] = set()
        self.backoff_ms = FIRST_RETRY_MS
        self.timer: Timer | None = None
        self.is_fenced = False


class Completion:
    """Completes the transactions of one coordinator: writes a marker to each partition, and then stores the completed state.

    completion_ms: a function that returns how many ms pass between storing the decision to commit or abort and writing the markers.
    """

    def __init__(
        self, store: TransactionStore, markers: MarkerWriter, timers: Timers, completion_ms: Callable[[], int]
    ) -> None:
        self._store = store
        self._markers = markers
        self._timers = timers
        self._completion_ms = completion_ms
        self._endings: dict[Transaction, _Ending] = {}

    def begin(self, transaction: Transaction, now_ms: int) -> None:
        """Schedule the markers of a transaction in PREPARE_COMMIT or PREPARE_ABORT; they are written later, after `completion_ms`."""
        data = transaction.data
        marker = TransactionMarker(
            data.producer_id,
            data.epoch,
            data.state is TransactionState.PREPARE_COMMIT,
            transaction.coordinator_epoch,
            data.client_version,
        )
        transaction.prepare_complete(now_ms)
        ending = self._endings[transaction] = _Ending(transaction, marker)
        ending.timer = self._timers.at(now_ms + max(0, self._completion_ms()), partial(self._proceed, ending))

    def stop(self, transaction: Transaction) -> None:
        """Stop writing the markers of a transaction, because this broker no longer coordinates it. Its next coordinator continues."""
        ending = self._endings.pop(transaction, None)
        if ending is not None and ending.timer is not None:
            ending.timer.cancel()

    def _proceed(self, ending: _Ending, now_ms: int) -> None:
        """Write the markers that a transaction still needs. If it needs none, store its completed state. ending: the transaction being ended."""
        ending.timer = None
        transaction = ending.transaction
        if not transaction.data.partitions:
            self._finish(ending, now_ms)
            return
        for key in tuple(transaction.data.partitions):
            if key not in ending.in_flight:
                ending.in_flight.add(key)
                self._markers.write(ending.marker, key, now_ms, partial(self._written, ending, key))

    def _written(self, ending: _Ending, key: PartitionKey, error_code: int, now_ms: int) -> None:
        ending.in_flight.discard(key)
        if ending.is_fenced and not error_code:  # Kafka reads the results of all partitions before it gives up
            ending.transaction.remove_partition(key)
        if self._endings.get(ending.transaction) is not ending:
            return
        if error_code in _DEPOSED:
            ending.is_fenced = True
            self.stop(ending.transaction)
        elif error_code in _RETRIED:
            self._retry(ending, now_ms)
        else:
            ending.transaction.remove_partition(key)
            if not ending.transaction.data.partitions:
                self._finish(ending, now_ms)

    def _finish(self, ending: _Ending, now_ms: int) -> None:
        def stored(error_code: int, at_ms: int) -> None:
            if self._endings.get(ending.transaction) is not ending:
                return
            if error_code:  # this broker is still the coordinator, so nobody else completes the transaction
                self._retry(ending, at_ms)
            else:
                self.stop(ending.transaction)

        self._store.write(ending.transaction, now_ms, stored, keeps_pending=True)

    def _retry(self, ending: _Ending, now_ms: int) -> None:
        if ending.timer is None:
            ending.timer = self._timers.at(now_ms + ending.backoff_ms, partial(self._proceed, ending))
            ending.backoff_ms = min(2 * ending.backoff_ms, LONGEST_RETRY_MS)
