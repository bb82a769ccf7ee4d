"""The state of one transactional id, and its legal transitions (TX-5): `TransactionMetadata` and `TransactionState` in Kafka.

A transition is prepared, written to `__transaction_state`, and then completed; until then it is pending (TX-7). This module does not depend on logs,
timers or clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.transaction.changes import Cause
from kafkaproto.broker.transaction.operations import PartitionKey
from kafkaproto.error_codes import ErrorCode

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1
LAST_EPOCH = 32767
"""The largest epoch. A coordinator uses it only to fence a producer, and never gives it to a producer (TX-15)."""
NO_TIMEOUT_MS = 2**31 - 1
"""The timeout of a transaction with two-phase commit, which never times out (TX-61)."""


class TransactionState(IntEnum):
    """The states of a transaction, with their numbers in `__transaction_state` (TX-5). DEAD and PREPARE_EPOCH_FENCE are never stored."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Return the name that clients see, for example "CompleteCommit"."""
        return "".join(word.capitalize() for word in self.name.split("_"))


_ENDED = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
ENDING = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
EXPIRABLE = _ENDED
LEGAL_FROM: dict[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: _ENDED,
    TransactionState.ONGOING: _ENDED | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: _ENDED | {TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: _ENDED,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING}),
}
"""Maps each state to the states from which a transition to it is legal."""


class TransactionData(NamedTuple):
    """The stored state of a transactional id (TX-4).

    - update_ms: when the state last changed.
    - epoch: the current epoch of the producer; -1 if the id has no epoch yet.
    - last_epoch: the epoch before `epoch`, with which a producer may repeat its request; -1 if there is none, or if the data was read from
      `__transaction_state`.
    - previous_producer_id: the producer id before the last transition; -1 if there is none.
    - next_producer_id: the id that replaces the producer id when the epochs of the producer id are exhausted; -1 if they are not exhausted.
    - partitions: the partitions in the transaction, as the keys of a dict.
    - start_ms: when the last transaction started; -1 for none. InitProducerId resets it to -1. Before 4.0 it does so only in `__transaction_state`,
      not in the memory of the coordinator.
    - client_version: the transaction version of the producer, 0 to 2 (KIP-890).
    """

    producer_id: int
    timeout_ms: int
    update_ms: int
    state: TransactionState = TransactionState.EMPTY
    epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    partitions: Mapping[PartitionKey, None] = {}
    start_ms: int = NO_TIME
    client_version: int = 0

    @property
    def is_exhausted(self) -> bool:
        """Return whether no further epoch of the producer id can be given to a producer (TX-15)."""
        return is_exhausted(self.epoch)


def is_exhausted(epoch: int) -> bool:
    """Return whether an epoch is the last that a producer may get (TX-15)."""
    return epoch >= LAST_EPOCH - 1


def bumps_epochs(version: int) -> bool:
    """Return whether the end of a transaction of this version raises the epoch of its producer (KIP-890)."""
    return version >= 2


class Transaction:
    """A transactional id on its coordinator. data: its current state. pending: the state that is being written; None for none.

    coordinator_epoch: the leader epoch of the coordinator's partition when the id was loaded or created. cause: why the state changed last, for the
    journal (the list of requests, throttles and state changes that tests read). has_failed_fence: True if the epoch was raised to shut out a
    producer, but the raised epoch could not be stored; the next attempt then does not raise the epoch again (TX-17).
    """

    __slots__ = (
        "_without_marker",
        "cause",
        "coordinator_epoch",
        "data",
        "has_failed_fence",
        "pending",
        "transactional_id",
    )

    def __init__(self, transactional_id: str, data: TransactionData, coordinator_epoch: int) -> None:
        self.transactional_id = transactional_id
        self.data = data
        self.coordinator_epoch = coordinator_epoch
        self.pending: TransactionData | None = None
        self.has_failed_fence = False
        self._without_marker: dict[PartitionKey, None] = {}
        """The partitions that have no marker yet, while the transaction is being ended. Then `data.partitions` is this dict, not a copy of it."""
        self.cause = Cause.LOADED

    @property
    def is_fencing(self) -> bool:
        """Return whether the pending state is one that `prepare_fence` set, because of a newer producer or a timeout (TX-16)."""
        return self.pending is not None and self.pending.state is TransactionState.PREPARE_EPOCH_FENCE

    # Each of these prepares a transition. It is pending until `complete` or `cancel`.

    def prepare_epoch(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> TransactionData:
        """Set the pending state with the producer's next epoch for InitProducerId (TX-13). Returns this state.

        timeout_ms: the transaction timeout in the request. expected_epoch: the epoch in the request, None for none. If it is the epoch before the
        current one, the request is a repetition, and the current epoch is kept. Any other epoch that is not current raises KafkaError PRODUCER_FENCED
        (90), unless the transactional id has no epoch yet.
        """
        data = self.data
        if expected_epoch is None:
            epoch, last_epoch = data.epoch + 1, NO_EPOCH
        elif expected_epoch == data.epoch or data.epoch == NO_EPOCH:
            epoch, last_epoch = data.epoch + 1, data.epoch
        elif expected_epoch == data.last_epoch:
            epoch, last_epoch = data.epoch, data.last_epoch
        else:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        return self._initialised(data.producer_id, epoch, last_epoch, timeout_ms, now_ms)

    def prepare_rotation(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, keeps_last_epoch: bool
    ) -> TransactionData:
        """Set the pending state with a new producer id and epoch 0, because the epochs of the old id are exhausted (TX-15). Returns this state.

        producer_id: the new id. timeout_ms: the transaction timeout in the request. keeps_last_epoch: whether to store the last epoch of the old id,
        with which the producer may repeat its request.
        """
        last_epoch = self.data.epoch if keeps_last_epoch else NO_EPOCH
        return self._initialised(producer_id, 0, last_epoch, timeout_ms, now_ms)

    def _initialised(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> TransactionData:
        return self._prepare(
            self.data._replace(
                producer_id=producer_id,
                epoch=epoch,
                last_epoch=last_epoch,
                timeout_ms=timeout_ms,
                state=TransactionState.EMPTY,
                partitions={},
                start_ms=NO_TIME,
                update_ms=now_ms,
            ),
            Cause.INITIALISED,
        )

    def prepare_fence(self, cause: Cause) -> TransactionData:
        """Set the pending state that shuts out the producer before its transaction is aborted (TX-16). Returns this state.

        The epoch in the pending state is the current epoch plus 1. If the current epoch is LAST_EPOCH, or an earlier fence could not be stored
        (`has_failed_fence`), the epoch stays the same.

        cause: FENCED for a newer producer, TIMED_OUT for a timeout.
        """
        keeps_epoch = self.has_failed_fence or self.data.epoch == LAST_EPOCH
        epoch = self.data.epoch if keeps_epoch else self.data.epoch + 1
        return self._prepare(self.data._replace(state=TransactionState.PREPARE_EPOCH_FENCE, epoch=epoch), cause)

    def prepare_partitions(
        self, partitions: Iterable[PartitionKey], now_ms: int, client_version: int
    ) -> TransactionData:
        """Set the pending state with additional partitions. If no transaction is open, this state starts one. Returns this state.

        client_version: the transaction version of the producer.
        """
        data = self.data
        return self._prepare(
            data._replace(
                state=TransactionState.ONGOING,
                partitions={**data.partitions, **dict.fromkeys(partitions)},
                start_ms=now_ms if data.state in _ENDED else data.start_ms,
                update_ms=now_ms,
                client_version=client_version,
            ),
            Cause.ADDED,
        )

    def prepare_end(
        self,
        state: TransactionState,
        now_ms: int,
        client_version: int,
        next_producer_id: int = NO_PRODUCER_ID,
        cause: Cause = Cause.ENDED,
    ) -> TransactionData:
        """Set the pending state for a decision to commit or abort. Returns this state.

        state: PREPARE_COMMIT or PREPARE_ABORT. client_version: the transaction version of the producer; with version 2, the epoch rises (TX-38).
        next_producer_id: with version 2, a new id for the producer if its current epoch is the last that a producer may get; otherwise
        NO_PRODUCER_ID. cause: why the transaction ends, for the reports of state changes (`TransactionChange.cause`).
        """
        data = self.data
        epoch, last_epoch = data.epoch, data.last_epoch
        if bumps_epochs(client_version):
            epoch, last_epoch = min(epoch + 1, LAST_EPOCH), data.epoch
        return self._prepare(
            data._replace(
                state=state,
                epoch=epoch,
                last_epoch=last_epoch,
                next_producer_id=next_producer_id,
                start_ms=now_ms if data.state in _ENDED else data.start_ms,
                update_ms=now_ms,
                client_version=client_version,
            ),
            cause,
        )

    def prepare_complete(self, now_ms: int) -> TransactionData:
        """Set the pending state to the completed transaction, which is stored when all markers are written (TX-39). Returns this state."""
        self.has_failed_fence = False
        self._without_marker = dict(self.data.partitions)
        data = self.data = self.data._replace(partitions=self._without_marker)
        committed = data.state is TransactionState.PREPARE_COMMIT
        rotates = bumps_epochs(data.client_version) and data.next_producer_id != NO_PRODUCER_ID
        return self._prepare(
            data._replace(
                state=TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT,
                producer_id=data.next_producer_id if rotates else data.producer_id,
                epoch=0 if rotates else data.epoch,
                next_producer_id=NO_PRODUCER_ID,
                partitions={},
                update_ms=now_ms,
            ),
            self.cause,
        )

    def prepare_dead(self) -> TransactionData:
        """Set the pending state DEAD, with which the transactional id is removed (TX-62). Returns this state."""
        return self._prepare(self.data._replace(state=TransactionState.DEAD, partitions={}), Cause.EXPIRED)

    def _prepare(self, data: TransactionData, cause: Cause) -> TransactionData:
        if self.pending is not None or self.data.state not in LEGAL_FROM[data.state]:
            raise AssertionError(
                f"transactional id {self.transactional_id}: the state must not change from {self.data} to {data}; please report this bug"
            )
        self.cause = cause
        self.pending = data._replace(previous_producer_id=self.data.producer_id)
        return self.pending

    def take_fenced_epoch(self, *, bumps: bool) -> None:
        """Drop the pending state that `prepare_fence` set in order to shut out the producer, so that `prepare_end` can prepare the abort.

        bumps: whether `prepare_end` will raise the epoch (transaction version 2). If not, this method sets the current epoch (`data.epoch`) to that
        of the dropped state.
        """
        assert self.pending is not None
        if not bumps:
            self.data = self.data._replace(epoch=self.pending.epoch, last_epoch=NO_EPOCH)
        self.pending = None

    def complete(self) -> None:
        """Make the pending state the current state, after its record in `__transaction_state` was replicated."""
        assert self.pending is not None
        self.data, self.pending = self.pending, None

    def show_start(self, start_ms: int) -> None:
        """Set the start time (ms) of the last transaction, in memory only.

        InitProducerId resets the start time. Kafka before 4.0 still reports the old time after InitProducerId (TX-70). To emulate this, call this
        method with the old time after InitProducerId.
        """
        self.data = self.data._replace(start_ms=start_ms)

    def cancel(self) -> None:
        """Drop the pending state, which could not be stored."""
        self.pending = None

    def remove_partition(self, key: PartitionKey) -> None:
        """Remove a partition from a transaction that is being ended, after the transaction's marker was written to this partition (TX-71)."""
        self._without_marker.pop(key, None)
