"""A change of the stored state of a transactional id, as the transaction coordinator reports it to observers.

`TransactionChange` has a module of its own, so that observers can import it without importing the transaction coordinator.
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
    """Why the state of a transactional id changed. The completion of a transaction has the same cause as its commit or abort."""

    INITIALISED = "the producer got a new epoch"
    ADDED = "partitions were added"
    ENDED = "the producer ended it"
    ABORTED_BY_TEST = "a test aborted it"
    FENCED = "a newer producer fenced it"
    TIMED_OUT = "its timeout passed"
    EXPIRED = "the id was not used"
    LOADED = "the coordinator loaded it"


class TransactionChange(NamedTuple):
    """A change of the state of a transactional id, after the new state was stored.

    before, state: the names of the states before and after the change, as clients see them. before is None for an id that was just created or loaded;
    state is "Dead" for an id that expired. partitions: how many partitions the transaction has now. added: the partitions that the change added.
    epoch_before: the epoch of the producer before the change.
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
        """Return whether the id now has an open transaction, which is neither committed nor aborted yet."""
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
    """Return a function that reports a change of a transactional id as event `transaction_changed` and, if it is visible, in the journal.

    The journal is the list of requests, throttles and state changes that tests read; the entry has the kind "transaction". The function takes the
    change and the current time (ms).
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
