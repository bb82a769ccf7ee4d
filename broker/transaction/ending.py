"""Decides from the state and epoch of a transaction whether a request may end it: the rules of EndTxn (TX-37, TX-38).

Corresponds to `endTransaction` and `endTransactionWithTV1` of Kafka's `TransactionCoordinator`. This module changes nothing.
"""

from __future__ import annotations

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.transaction.operations import EndRequest
from kafkaproto.broker.transaction.transaction import ENDING, LAST_EPOCH, Transaction, TransactionState, bumps_epochs
from kafkaproto.error_codes import ErrorCode


def must_end(transaction: Transaction, request: EndRequest) -> bool:
    """Return whether a request to end a transaction must be carried out; False if the transaction has already ended in the requested way.

    Raises KafkaError:

    - INVALID_PRODUCER_ID_MAPPING (49) for another producer id;
    - PRODUCER_FENCED (90) for an epoch that is not valid;
    - CONCURRENT_TRANSACTIONS (51) while a transition is pending, or while the markers of the requested commit or abort are being written;
    - INVALID_TXN_STATE (48) if the state of the transaction does not allow the requested commit or abort.
    """
    if bumps_epochs(request.client_version):
        return _check_end_with_new_epoch(transaction, request)
    return _check_end(transaction, request)


def _check_end(transaction: Transaction, request: EndRequest) -> bool:
    """Return True if a request of transaction version 0 or 1 must end a transaction, False if it has already ended in the requested way (TX-37).

    Raises KafkaError if the request is not allowed.
    """
    data = transaction.data
    if data.producer_id != request.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if request.epoch < data.epoch or (request.is_from_client and request.epoch != data.epoch):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    _check_pending(transaction)
    if data.state is TransactionState.ONGOING:
        return True
    if data.state is _prepared(request):
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if data.state is not _completed(request):
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    return False


def _check_end_with_new_epoch(transaction: Transaction, request: EndRequest) -> bool:
    """Return True if a request of transaction version 2 must end a transaction, False if it repeats a request that has already ended it (TX-38).

    Raises KafkaError if the request is not allowed. While a transition is pending, the error is CONCURRENT_TRANSACTIONS (51), even if the producer id
    or epoch does not match, because the request may already contain the id and epoch that the transition sets. A pending transition that shuts out
    the producer (`Transaction.is_fencing`) does not cause this error.
    """
    _check_pending(transaction)
    data = transaction.data
    is_fence = transaction.is_fencing
    has_rotated = (
        not is_fence
        and request.producer_id == data.previous_producer_id
        and (request.epoch, data.epoch) == (LAST_EPOCH - 1, 0)
    )
    is_repeated = has_rotated or (not is_fence and data.epoch == request.epoch + 1)
    if data.producer_id != request.producer_id and not has_rotated:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if not _has_valid_epoch(transaction, request, is_repeated=is_repeated):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if data.state is TransactionState.ONGOING:
        return True
    if data.state is _prepared(request):
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if is_repeated and data.state is _completed(request):
        return False
    if data.state in ENDING or is_repeated or request.commits:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    return True  # an abort without a transaction raises the epoch


def _has_valid_epoch(transaction: Transaction, request: EndRequest, *, is_repeated: bool) -> bool:
    data = transaction.data
    if transaction.is_fencing:
        return request.epoch == data.epoch if request.is_from_client else request.epoch >= data.epoch
    if data.state in ENDING:
        return is_repeated
    if data.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT) and is_repeated:
        return True
    return request.epoch == data.epoch


def _check_pending(transaction: Transaction) -> None:
    if transaction.pending is not None and not transaction.is_fencing:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)


def _prepared(request: EndRequest) -> TransactionState:
    return TransactionState.PREPARE_COMMIT if request.commits else TransactionState.PREPARE_ABORT


def _completed(request: EndRequest) -> TransactionState:
    return TransactionState.COMPLETE_COMMIT if request.commits else TransactionState.COMPLETE_ABORT
