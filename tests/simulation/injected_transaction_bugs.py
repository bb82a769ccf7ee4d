"""Bugs of transactions injected on purpose, to test whether the simulation finds them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from kafkaproto.broker.group.commits import Commits
from kafkaproto.broker.group.pending_offsets import PendingOffsets
from kafkaproto.broker.group.registry import Registry
from kafkaproto.broker.group.replay import Loaded
from kafkaproto.broker.log import compaction
from kafkaproto.broker.log.cleaned_transactions import CleanedTransactions
from kafkaproto.broker.log.producer_state import ProducerStates
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.log.transaction_index import NEVER, TransactionIndex
from kafkaproto.broker.transaction import coordinator
from kafkaproto.broker.transaction.changes import Cause
from kafkaproto.broker.transaction.completion import Completion
from kafkaproto.broker.transaction.coordinator import TransactionCoordinator
from kafkaproto.broker.transaction.operations import EndRequest
from kafkaproto.broker.transaction.store import Done, TransactionStore
from kafkaproto.broker.transaction.transaction import Transaction, TransactionData, TransactionState
from tests.simulation.bug import Bug, Original


def _nothing(_: Original) -> Original:
    return lambda *_: None


def _aborts_not_indexed(original: Original) -> Original:
    def end(self: TransactionIndex, *numbers: int, aborted: bool) -> None:
        original(self, *numbers, aborted=False)

    return end


def _open_transactions_not_counted(_: Original) -> Original:
    def find_unstable(self: TransactionIndex) -> None:
        self.first_unstable_offset = min(self._unreplicated, default=NEVER)

    return find_unstable


def _markers_count_at_once(_: Original) -> Original:
    def find_unstable(self: TransactionIndex) -> None:
        self.first_unstable_offset = next(iter(self._open), NEVER)

    return find_unstable


def _never_verified(_: Original) -> Original:
    return lambda *_: False


def _always_committed(original: Original) -> Original:
    def end(self: PendingOffsets, producer_id: int, *, committed: bool) -> Any:
        return original(self, producer_id, committed=True)

    return end


def _older_epochs_may_end(original: Original) -> Original:
    def must_end(transaction: Transaction, request: EndRequest) -> bool:
        current = request if transaction.is_fencing else replace(request, epoch=transaction.data.epoch)
        return bool(original(transaction, current))

    return must_end


def _same_epoch_again(original: Original) -> Original:
    def initialised(self: Transaction, producer_id: int, epoch: int, *more: Any) -> TransactionData:
        old = self.data.epoch if epoch > 0 and producer_id == self.data.producer_id else epoch
        return original(self, producer_id, old, *more)  # type: ignore[no-any-return]

    return initialised


def _epoch_kept_by_a_timeout(_: Original) -> Original:
    def prepare_fence(self: Transaction, cause: Cause) -> TransactionData:
        return self._prepare(self.data._replace(state=TransactionState.PREPARE_EPOCH_FENCE), cause)

    return prepare_fence


def _answered_before_it_is_stored(original: Original) -> Original:
    def write(self: TransactionStore, transaction: Transaction, now_ms: int, done: Done, **more: Any) -> None:
        if transaction.pending is not None and transaction.pending.state is not TransactionState.PREPARE_COMMIT:
            original(self, transaction, now_ms, done, **more)
            return
        transaction.complete()
        done(0, now_ms)

    return write


def _only_new_partitions(original: Original) -> Original:
    def prepare_partitions(self: Transaction, *more: Any) -> TransactionData:
        data = original(self, *more)
        self.pending = data._replace(partitions={k: None for k in data.partitions if k not in self.data.partitions})
        return self.pending

    return prepare_partitions


def _pending_offsets_not_loaded(original: Original) -> Original:
    def take(self: Registry, loaded: Loaded, now_ms: int) -> None:
        loaded.pending.clear()
        original(self, loaded, now_ms)

    return take


def _failed_markers_not_repeated(original: Original) -> Original:
    def written(self: Completion, ending: Any, key: Any, error_code: int, now_ms: int) -> None:
        original(self, ending, key, 0, now_ms)

    return written


def _decision_not_kept(original: Original) -> Original:
    def prepare_end(self: Transaction, state: TransactionState, *more: Any) -> TransactionData:
        data = original(self, state, *more)
        if len(data.partitions) > 1:
            self.pending = data._replace(partitions=dict(list(data.partitions.items())[:-1]))
        return self.pending  # type: ignore[return-value]

    return prepare_end


def _aborted_records_kept(_: Original) -> Original:
    return lambda *_: False


def _markers_expire_before_records(original: Original) -> Original:
    return lambda *given, **options: original(*given, **options) or True


def _open_transactions_cleaned(original: Original) -> Original:
    def cleanable(log: ReplicaLog, *more: Any) -> Any:
        with patch.object(ReplicaLog, "last_stable_offset", property(lambda self: self.high_watermark)):
            return original(log, *more)

    return cleanable


TRANSACTION_BUGS = {
    "aborted transaction not listed for consumers": Bug(TransactionIndex, "end", _aborts_not_indexed),
    "last stable offset passes open transactions": Bug(
        TransactionIndex, "_find_unstable", _open_transactions_not_counted
    ),
    "marker counts before it is replicated": Bug(TransactionIndex, "_find_unstable", _markers_count_at_once),
    "aborted transactions forgotten by recovery": Bug(TransactionIndex, "restore_aborted", _nothing),
    "transaction of a batch not verified": Bug(ProducerStates, "needs_verification", _never_verified),
    "aborted offsets committed": Bug(PendingOffsets, "end", _always_committed),
    "pending offsets not loaded": Bug(Registry, "_add_loaded_groups", _pending_offsets_not_loaded),
    "pending offsets hidden from stable fetches": Bug(Commits, "unstable", lambda _: lambda *_: frozenset()),
    "older epoch may end a transaction": Bug(coordinator, "must_end", _older_epochs_may_end),
    "epoch not bumped for a new producer": Bug(Transaction, "_initialised", _same_epoch_again),
    "epoch not bumped by a timeout": Bug(Transaction, "prepare_fence", _epoch_kept_by_a_timeout),
    "commit answered before it is stored": Bug(TransactionStore, "write", _answered_before_it_is_stored),
    "added partitions replace earlier ones": Bug(Transaction, "prepare_partitions", _only_new_partitions),
    "decided transactions not resumed": Bug(TransactionCoordinator, "_loaded", _nothing),
    "failed markers not repeated": Bug(Completion, "_written", _failed_markers_not_repeated),
    "last partition gets no marker": Bug(Transaction, "prepare_end", _decision_not_kept),
    "aborted records kept by compaction": Bug(CleanedTransactions, "is_aborted", _aborted_records_kept),
    "markers removed before their records": Bug(CleanedTransactions, "is_empty", _markers_expire_before_records),
    "records of open transactions compacted": Bug(compaction, "cleanable", _open_transactions_cleaned),
}
