"""The transaction coordinator of one broker: new epochs of producers, partitions of transactions, commits and aborts.

A coordinator has the transactional ids whose partition of `__transaction_state` this broker leads. This module does not depend on wire
messages, connections or logs of other topics. Each `reply` function is called exactly once, during the call or later. Corresponds to
Kafka's `TransactionCoordinator`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.broker.transaction.changes import Cause, TransactionChange
from kafkaproto.broker.transaction.completion import Completion, MarkerWriter
from kafkaproto.broker.transaction.ending import must_end
from kafkaproto.broker.transaction.operations import EndRequest, PartitionKey, ProducerReply, ProducerResult
from kafkaproto.broker.transaction.periodic_checks import PeriodicCheck
from kafkaproto.broker.transaction.settings import TransactionSettings
from kafkaproto.broker.transaction.store import Done, StateLog, TransactionStore
from kafkaproto.broker.transaction.transaction import (
    ENDING,
    EXPIRABLE,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    Transaction,
    TransactionData,
    TransactionState,
    bumps_epochs,
    is_exhausted,
)
from kafkaproto.error_codes import ErrorCode

Changed = Callable[[TransactionChange, int], None]
"""A function that is called with each change of the state of a transactional id, and the current time (ms)."""


class TransactionCoordinator:
    """The transaction coordinator of one broker.

    log: the transaction topic on this broker. markers: writes markers to the partitions of transactions. next_producer_id: returns an
    unused producer id, or raises KafkaError. start_ms: the time from which the intervals of periodic checks are counted. load_ms: returns
    how long loading a partition takes in ms.
    """

    def __init__(
        self,
        settings: TransactionSettings,
        timers: Timers,
        log: StateLog,
        markers: MarkerWriter,
        next_producer_id: Callable[[int], int],
        start_ms: int,
        load_ms: Callable[[], int],
        changed: Changed,
    ) -> None:
        self.settings = settings
        self._next_producer_id = next_producer_id
        self._report = changed
        self.store = TransactionStore(
            log,
            timers,
            load_ms,
            lambda: min(settings.server_version(), 1),
            loaded=self._loaded,
            unloaded=self._unloaded,
            changed=self._changed,
        )
        self._completion = Completion(self.store, markers, timers, settings.completion_ms)
        self._timeouts = PeriodicCheck(timers, start_ms, settings.timeout_check_ms, self.abort_timed_out)
        self._expirations = PeriodicCheck(timers, start_ms, settings.expiration_check_ms, self.remove_expired)

    # Epochs of producers

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: tuple[int, int] | None,
        now_ms: int,
        reply: ProducerReply,
    ) -> None:
        """Give a producer its id and next epoch (TX-10 to TX-17). expected: the (producer id, epoch) in the request, None for a new producer.

        timeout_ms: the transaction timeout that the producer requests. reply: called once, with the id and epoch or an error, and with the current
        time (ms). If a transaction is open, it is aborted, and the error is CONCURRENT_TRANSACTIONS (51), so that the producer sends the request
        again.
        """
        try:
            if not 0 < timeout_ms <= self.settings.max_timeout_ms:
                raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
            transaction = self.store.get(transactional_id)
            if transaction is None:
                data = TransactionData(self._next_producer_id(now_ms), timeout_ms, now_ms)
                transaction = self.store.create(transactional_id, data)
            self._prepare_epoch(transaction, timeout_ms, expected, now_ms)
        except KafkaError as error:
            reply(ProducerResult(error.error_code), now_ms)
            return
        pending = transaction.pending
        assert pending is not None
        if transaction.is_fencing:
            self._fence(
                transaction,
                now_ms,
                lambda result, at_ms: reply(
                    ProducerResult(result.error_code or ErrorCode.CONCURRENT_TRANSACTIONS), at_ms
                ),
            )
            return

        started_ms = transaction.data.start_ms

        def stored(error_code: int, at_ms: int) -> None:
            if not error_code and not self.settings.is_release_4:
                transaction.show_start(started_ms)
            failed_result = ProducerResult(error_code)
            reply(failed_result if error_code else ProducerResult(0, pending.producer_id, pending.epoch), at_ms)

        self.store.write(transaction, now_ms, stored)

    def _prepare_epoch(
        self, transaction: Transaction, timeout_ms: int, expected: tuple[int, int] | None, now_ms: int
    ) -> None:
        """Set `transaction.pending` to the state after an InitProducerId request, without writing it to `__transaction_state` (TX-13 to TX-16).

        If no transaction is open, this state has the producer's next epoch, or epoch 0 of a new producer id. If a transaction is open, the state is
        PREPARE_EPOCH_FENCE, which shuts out the previous producer. timeout_ms: the transaction timeout in the request. expected: the (producer id,
        epoch) in the request, None for a new producer. Errors of `next_producer_id` are passed on. Raises KafkaError CONCURRENT_TRANSACTIONS (51) if
        a state is already pending or the transaction is ending, and PRODUCER_FENCED (90) for an outdated producer id or, if no transaction is open,
        for an outdated epoch; but UNKNOWN_SERVER_ERROR (-1) for an outdated epoch if the epochs of the producer id are exhausted.
        """
        data = transaction.data
        if transaction.pending is not None:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if expected is not None and not _may_continue(data, *expected):
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if data.state in ENDING:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if data.state is TransactionState.ONGOING:
            transaction.prepare_fence(Cause.FENCED)
        elif data.is_exhausted and (expected is None or expected[1] == data.epoch):
            transaction.prepare_rotation(
                self._next_producer_id(now_ms), timeout_ms, now_ms, keeps_last_epoch=expected is not None
            )
        elif data.is_exhausted:  # Kafka has no error for an earlier epoch here (TX-15)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            transaction.prepare_epoch(timeout_ms, None if expected is None else expected[1], now_ms)

    # Partitions

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[PartitionKey],
        now_ms: int,
        reply: Done,
        *,
        client_version: int = 0,
    ) -> None:
        """Add partitions to the producer's open transaction, or begin one with them (TX-21).

        reply: called with one error code for all partitions. client_version: the transaction version of the producer, 0 to 2.
        """
        try:
            transaction = self._of_producer(transactional_id, producer_id, epoch, refuses_pending=True)
        except KafkaError as error:
            reply(error.error_code, now_ms)
            return
        data = transaction.data
        if data.state is TransactionState.ONGOING and all(key in data.partitions for key in partitions):
            reply(ErrorCode.NONE, now_ms)
            return
        transaction.prepare_partitions(partitions, now_ms, client_version)
        self.store.write(transaction, now_ms, reply)

    def verify_partitions(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Collection[PartitionKey]
    ) -> dict[PartitionKey, int]:
        """Return for each partition 0 if it is part of the producer's transaction, else TRANSACTION_ABORTABLE (120) (TX-23).

        If the coordinator rejects the producer or its transaction, each partition has the error of this rejection.
        """
        try:
            transaction = self._of_producer(transactional_id, producer_id, epoch, refuses_pending=False)
        except KafkaError as error:
            return dict.fromkeys(partitions, error.error_code)
        added_partitions = transaction.data.partitions
        return {key: 0 if key in added_partitions else int(ErrorCode.TRANSACTION_ABORTABLE) for key in partitions}

    def _of_producer(
        self, transactional_id: str, producer_id: int, epoch: int, *, refuses_pending: bool
    ) -> Transaction:
        """Return the transaction of a producer, for a request that reads or adds partitions.

        refuses_pending: whether a pending transition is an error; Kafka 4 checks this first. Raises KafkaError INVALID_REQUEST (42) for an empty
        id, INVALID_PRODUCER_ID_MAPPING (49) for an unknown id or another producer id, PRODUCER_FENCED (90) for another epoch,
        CONCURRENT_TRANSACTIONS (51) while the transaction ends or, with `refuses_pending`, a transition is pending, and NOT_COORDINATOR (16) or
        COORDINATOR_LOAD_IN_PROGRESS (14) if this broker does not coordinate the id.
        """
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        transaction = self.store.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        _check_producer(transaction, producer_id, epoch, refuses_pending, self.settings.is_release_4)
        return transaction

    # Commit and abort

    def end(self, request: EndRequest, now_ms: int, reply: ProducerReply, cause: Cause = Cause.ENDED) -> None:
        """Commit or abort the transaction of a producer. `reply` is called when this decision is stored; the markers follow (TX-39).

        cause: the reason for the end, reported to observers. `cause` is ignored if a newer producer or a timeout has raised the epoch in order to
        abort the transaction: the reported reason is then the newer producer or the timeout.
        """
        try:
            if not request.transactional_id:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            transaction = self.store.get(request.transactional_id)
            if transaction is None:
                raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            if not must_end(transaction, request):
                reply(ProducerResult(0, transaction.data.producer_id, transaction.data.epoch), now_ms)
                return
            next_producer_id = NO_PRODUCER_ID
            if bumps_epochs(request.client_version) and transaction.data.is_exhausted and not transaction.is_fencing:
                next_producer_id = self._next_producer_id(now_ms)
        except KafkaError as error:
            reply(ProducerResult(error.error_code), now_ms)
            return
        is_fence = transaction.is_fencing
        if is_fence:
            transaction.take_fenced_epoch(bumps=bumps_epochs(request.client_version))
        state = TransactionState.PREPARE_COMMIT if request.commits else TransactionState.PREPARE_ABORT
        if is_fence:
            cause = transaction.cause
        transaction.prepare_end(state, now_ms, request.client_version, next_producer_id, cause)

        def stored(error_code: int, at_ms: int) -> None:
            if error_code:
                transaction.has_failed_fence |= is_fence
                reply(ProducerResult(error_code), at_ms)
                return
            data = transaction.data
            continues_with = (data.producer_id, data.epoch)
            if data.next_producer_id != NO_PRODUCER_ID:
                continues_with = data.next_producer_id, 0
            self._completion.begin(transaction, at_ms)
            reply(ProducerResult(0, *continues_with), at_ms)

        self.store.write(transaction, now_ms, stored)

    def _fence(self, transaction: Transaction, now_ms: int, reply: ProducerReply) -> None:
        """Abort a transaction whose pending state is PREPARE_EPOCH_FENCE (TX-16). `reply` is called with the result and the current time (ms)."""
        pending = transaction.pending
        assert pending is not None
        version = self.settings.server_version()
        request = EndRequest(
            transaction.transactional_id, pending.producer_id, pending.epoch, False, version, is_from_client=False
        )
        self.end(request, now_ms, reply)

    # Periodic checks

    def abort_timed_out(self, now_ms: int) -> int | None:
        """Abort every transaction that has been open for longer than its timeout (TX-58).

        Returns the time in ms of the next timeout, None if there is none. The next check repeats an abort that cannot be stored.
        """
        due_ms = None
        for transaction in self.store:
            at_ms = _times_out_ms(transaction)
            if at_ms is not None and at_ms <= now_ms and transaction.pending is None:
                self.fence(transaction, now_ms, Cause.TIMED_OUT)
            if at_ms is not None and transaction.data.state is TransactionState.ONGOING:
                due_ms = at_ms if due_ms is None else min(due_ms, at_ms)
        return due_ms

    def fence(
        self, transaction: Transaction, now_ms: int, cause: Cause, reply: ProducerReply = lambda result, at_ms: None
    ) -> None:
        """Abort an open transaction that has no pending state, and raise the epoch of its producer (`Transaction.prepare_fence`).

        cause: the cause that observers get, FENCED or TIMED_OUT. reply: called with the result and the current time (ms).
        """
        transaction.prepare_fence(cause)
        self._fence(transaction, now_ms, reply)

    def remove_expired(self, now_ms: int) -> int | None:
        """Remove every transactional id that was not used for `transactional.id.expiration.ms` (TX-62).

        Returns the time in ms when the next id expires, None if there is none. The next check repeats a removal that cannot be stored.
        """
        due_ms = None
        for transaction in self.store:
            if transaction.data.state not in EXPIRABLE:
                continue
            at_ms = transaction.data.update_ms + self.settings.expiration_ms
            if at_ms <= now_ms and transaction.pending is None:
                transaction.prepare_dead()
                self.store.remove(transaction, now_ms)
            if self.store.has(transaction):
                due_ms = at_ms if due_ms is None else min(due_ms, at_ms)
        return due_ms

    # Loading

    def stop(self, now_ms: int) -> None:
        """Drop all transactional ids from memory, because the broker stops."""
        self.store.change({}, 0, now_ms)

    def _loaded(self, transactions: Sequence[Transaction], now_ms: int) -> None:
        for transaction in transactions:
            self._expect(transaction, now_ms)
            self._report(_change(transaction, None), now_ms)
            if transaction.data.state in ENDING:
                self._completion.begin(transaction, now_ms)

    def _unloaded(self, transactions: Sequence[Transaction]) -> None:
        for transaction in transactions:
            self._completion.stop(transaction)

    def _changed(self, transaction: Transaction, before: TransactionData | None, now_ms: int) -> None:
        self._expect(transaction, now_ms)
        self._report(_change(transaction, before), now_ms)

    def _expect(self, transaction: Transaction, now_ms: int) -> None:
        """Set the timer of the next check that the transaction needs: for its timeout while it is open, otherwise for the expiry of its id."""
        times_out_ms = _times_out_ms(transaction)
        if times_out_ms is not None:
            self._timeouts.expect(times_out_ms, now_ms)
        elif transaction.data.state in EXPIRABLE:
            self._expirations.expect(transaction.data.update_ms + self.settings.expiration_ms, now_ms)


def _may_continue(data: TransactionData, producer_id: int, epoch: int) -> bool:
    """Return whether the producer id in an InitProducerId request is acceptable (TX-13, TX-15).

    The current producer id is acceptable with any epoch. The previous producer id is acceptable only with the last epoch that a producer can get. If
    the transactional id has no epoch yet, any producer id is acceptable. data: the stored state of the transactional id. producer_id, epoch: the
    values in the request.
    """
    if data.epoch == NO_EPOCH or producer_id == data.producer_id:
        return True
    return producer_id == data.previous_producer_id and is_exhausted(epoch)


def _check_producer(
    transaction: Transaction, producer_id: int, epoch: int, refuses_pending: bool, is_release_4: bool
) -> None:
    """Check that a producer may use a transaction now.

    Raises KafkaError INVALID_PRODUCER_ID_MAPPING (49) for another producer id, PRODUCER_FENCED (90) for another epoch, and
    CONCURRENT_TRANSACTIONS (51) while the transaction ends or, with `refuses_pending`, while a transition is pending. is_release_4: whether to check
    for a pending transition before the producer id and epoch, as Kafka 4 does, instead of after them.
    """
    data, is_pending = transaction.data, refuses_pending and transaction.pending is not None
    if is_pending and is_release_4:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if data.producer_id != producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if data.epoch != epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if is_pending or data.state in ENDING:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)


def _times_out_ms(transaction: Transaction) -> int | None:
    """Return the time in ms at which an open transaction times out; None if no transaction is open, or if it never times out (TX-61)."""
    data = transaction.data
    if data.state is not TransactionState.ONGOING or data.timeout_ms == NO_TIMEOUT_MS:
        return None
    return data.start_ms + data.timeout_ms + 1


def _change(transaction: Transaction, before: TransactionData | None) -> TransactionChange:
    """Return the last change of a transactional id's state, as observers get it. Its `state` is "Dead" if the removal of the id is pending.

    before: the stored state before the change; None if the id was loaded.
    """
    data = transaction.data if transaction.pending is None else transaction.pending
    partitions_before: Collection[PartitionKey] = () if before is None else before.partitions
    return TransactionChange(
        transaction.transactional_id,
        None if before is None or before.epoch == NO_EPOCH else before.state.label,
        data.state.label,
        data.producer_id,
        data.epoch,
        len(data.partitions),
        Cause.LOADED if before is None else transaction.cause,
        tuple(key for key in data.partitions if key not in partitions_before),
        NO_EPOCH if before is None else before.epoch,
    )
