"""The fencing of a producer by a test: in one step what two requests of a newer producer do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.broker.transaction.changes import Cause
from kafkaproto.broker.transaction.operations import ProducerReply, ProducerResult
from kafkaproto.broker.transaction.transaction import LAST_EPOCH, Transaction, bumps_epochs

if TYPE_CHECKING:
    from kafkaproto.broker.transaction.coordinator import TransactionCoordinator


def shut_out(coordinator: TransactionCoordinator, transaction: Transaction, now_ms: int, reply: ProducerReply) -> None:
    """Abort an open transaction that has no pending state, and fence its producer, as two InitProducerId requests of a newer producer do.

    With transaction version 2 the epoch rises by two: an EndTxn with the epoch before the current one counts as repeated, so that a rise by one would
    not fence the producer. If the abort cannot be stored, the epoch does not change. reply: called with the result and the current time (ms).
    """
    data = transaction.data
    if bumps_epochs(coordinator.settings.server_version()) and data.epoch + 1 < LAST_EPOCH:
        transaction.data = data._replace(epoch=data.epoch + 1)

    def stored(result: ProducerResult, at_ms: int) -> None:
        if result.error_code:
            transaction.data = data
        reply(result, at_ms)

    coordinator.fence(transaction, now_ms, Cause.FENCED, stored)
