"""The fencing of a producer by a test, which has no second producer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.broker.transaction.changes import Cause
from kafkaproto.broker.transaction.operations import ProducerReply, ProducerResult
from kafkaproto.broker.transaction.transaction import Transaction, bumps_epochs

if TYPE_CHECKING:
    from kafkaproto.broker.transaction.coordinator import TransactionCoordinator


def shut_out(coordinator: TransactionCoordinator, transaction: Transaction, now_ms: int, reply: ProducerReply) -> None:
    """Abort an open transaction that has no pending state, and fence its producer.

    With transaction version 1, the effect is that of one InitProducerId request of a newer producer: the epoch rises by one. With version 2, the
    epoch rises by two, as after two such requests. A rise by one would not fence the producer, because an EndTxn with the epoch just below the
    current one counts as a repeated request. The first of the two rises exists only in memory, and is undone if the abort cannot be stored. If the
    current epoch is the last that a producer may get, the epoch rises only once. reply: called with the result and the current time (ms).
    """
    data = transaction.data
    if not bumps_epochs(coordinator.settings.server_version()) or data.is_exhausted:
        coordinator.fence(transaction, now_ms, Cause.FENCED, reply)
        return
    transaction.data = data._replace(epoch=data.epoch + 1)

    def stored(result: ProducerResult, at_ms: int) -> None:
        if result.error_code:
            transaction.data = data
        reply(result, at_ms)

    coordinator.fence(transaction, now_ms, Cause.FENCED, stored)
