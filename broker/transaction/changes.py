"""A change of a transactional id, as observers receive it.

The class has a module of its own, so that observers can import the class without importing the transaction coordinator.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from kafkaproto.broker.runtime.events import Events
from kafkaproto.broker.transaction.operations import PartitionKey

ONGOING = "Ongoing"
"""The state of an open transaction, as clients see it."""


class Cause(StrEnum):
    """Why a transactional id changed. The completion of a transaction has the same cause as the commit or abort that it completes."""

    INITIALISED = "the producer got a new epoch"
    ADDED = "partitions were added"
    ENDED = "the producer ended it"
    ABORTED_BY_TEST = "a test aborted it"
    FENCED = "a newer producer fenced it"
    TIMED_OUT = "its timeout passed"
    EXPIRED = "the id was not used"
    LOADED = "the coordinator loaded it"


class TransactionChange(NamedTuple):
    """A stored transition of a transactional id.

    before, state: the names of the states before and after the transition, as clients see them. before is None for an id that was just created or
    loaded; state is "Dead" for an id that expired. partitions: how many partitions the transaction has now. added: the partitions that the transition
    added. epoch_before: the epoch of the producer before the transition.
    """

    transactional_id: str
    before: str | None
    state: str
    producer_id: int
    epoch: int
    partitions: int
    cause: Cause
    added: tuple[PartitionKey, ...] = ()
    epoch_before: int = -1

    @property
    def is_ongoing(self) -> bool:
        """Return whether the id has an open transaction that is neither committed nor aborted yet."""
        return self.state == ONGOING

    @property
    def is_load(self) -> bool:
        """Return whether the coordinator only loaded the id from `__transaction_state`. Loading an id changes nothing that clients see."""
        return self.cause is Cause.LOADED

    @property
    def is_visible(self) -> bool:
        """Return whether the change is listed in the journal, which tests read: a new state, a new epoch, added partitions, or a loaded id."""
        return self.before != self.state or bool(self.added) or self.epoch != self.epoch_before


def reporter(events: Events, broker_id: int) -> Callable[[TransactionChange, int], None]:
    """Return a function that reports changes as the event `transaction_changed`, and as entries of kind "transaction" in the journal.

    The function takes the change and the current time (ms). The journal is the list of requests, throttles and state changes that tests read.
    """

    def report(change: TransactionChange, now_ms: int) -> None:
        if events.transaction_changed is not None:
            events.transaction_changed(broker_id, change, now_ms)
        if events.noted is not None and change.is_visible:
            facts = {
                "transactional_id": change.transactional_id,
                "state": change.state,
                "before": change.before,
                "producer_id": change.producer_id,
                "epoch": change.epoch,
                "partitions": change.partitions,
                "cause": str(change.cause),
                "added": [f"{topic}-{index}" for topic, index in change.added],
            }
            events.noted(now_ms, broker_id, "transaction", facts)

    return report
