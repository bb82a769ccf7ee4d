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

    With transaction version 1 this is what one InitProducerId of a newer producer does. With version 2 the epoch rises by two, as after two such
    requests: an EndTxn with the epoch before the current one counts as repeated, so that a rise by one would not fence the producer. The first of
    these two steps is in memory, and is taken back if the abort cannot be stored. Near the largest epoch there is only one step.
    reply: called with the result and the current time (ms).
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
