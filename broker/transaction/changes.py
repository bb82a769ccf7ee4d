"""The change of a transactional id that observers get. This module loads quickly, because observers import it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafkaproto.broker.runtime.events import Events


class TransactionChange(NamedTuple):
    """A stored transition of a transactional id.

    before, state: the names of its states as clients see them; before is None for an id that was just created or loaded, and state is "Dead"
    for one that expired. partitions: how many partitions the transaction has now.
    """

    transactional_id: str
    before: str | None
    state: str
    producer_id: int
    epoch: int
    partitions: int


def reporter(events: Events, broker_id: int) -> Callable[[TransactionChange, int], None]:
    """Return a function that reports changes as the event `transaction_changed`, and as an event of the journal of kind "transaction"."""

    def report(change: TransactionChange, now_ms: int) -> None:
        if events.transaction_changed is not None:
            events.transaction_changed(broker_id, change, now_ms)
        if events.noted is not None and change.before != change.state:
            facts = {
                "transactional_id": change.transactional_id,
                "state": change.state,
                "before": change.before,
                "producer_id": change.producer_id,
                "epoch": change.epoch,
                "partitions": change.partitions,
            }
            events.noted(now_ms, broker_id, "transaction", facts)

    return report
