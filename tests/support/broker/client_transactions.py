"""A model of transactions: how each may have ended, as far as producers know from responses, and whether its records may be visible."""

from __future__ import annotations

from enum import Enum

from tests.support.broker.committed_offset import NOTHING


class Outcome(Enum):
    """The outcome of a transaction, as far as its producer knows. UNKNOWN: a commit was requested and got no response."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class ClientTransaction:
    """A transaction of one producer process. may_commit: whether the producer requested the commit before it was fenced.

    started_ms: when the transaction began. offset: the last consumer offset that was added to the transaction and acknowledged. decisions: maps a
    partition to True if its marker commits the transaction, False if the marker aborts it.
    """

    def __init__(self, name: str, started_ms: int) -> None:
        self.name = name
        self.started_ms = started_ms
        self.outcome = Outcome.OPEN
        self.may_commit = False
        self.offset = NOTHING
        self.decisions: dict[str, bool] = {}

    def end(self, outcome: Outcome) -> None:
        """Record the outcome that the producer knows. Raises AssertionError if a marker contradicts this outcome."""
        self.outcome = outcome
        self._check()

    def give_up(self) -> None:
        """Record that the producer gives up the transaction: the outcome is UNKNOWN if the commit was requested, otherwise ABORTED."""
        self.end(Outcome.UNKNOWN if self.may_commit else Outcome.ABORTED)

    def decide(self, place: str, committed: bool) -> None:
        """Record the marker that ends the transaction in partition `place`. committed: False for an abort marker."""
        self.decisions[place] = committed
        self._check()

    @property
    def can_be_visible(self) -> bool:
        """Return whether a read_committed consumer may see the records of this transaction."""
        is_open = self.outcome in (Outcome.OPEN, Outcome.UNKNOWN) and self.may_commit
        return (is_open or self.outcome is Outcome.COMMITTED) and False not in self.decisions.values()

    def _check(self) -> None:
        decided = set(self.decisions.values())
        assert len(decided) <= 1, f"{self.name} is committed in a part of its partitions: {self.decisions}"
        lost = self.outcome is Outcome.COMMITTED and False in decided
        assert not lost, f"{self.name} was committed, and is aborted in {self.decisions}"
        wrongly_committed = (self.outcome is Outcome.ABORTED or not self.may_commit) and True in decided
        assert not wrongly_committed, (
            f"{self.name} was not committed by its producer, and is committed in {self.decisions}"
        )


class TransactionalId:
    """A transactional id. group_id, place: where its producers commit offsets. newest: the highest (producer id, epoch) in a response.

    offsets: all offsets that its producers sent, in order, with their transactions.
    """

    def __init__(self, name: str, group_id: str, place: tuple[str, int]) -> None:
        self.name = name
        self.group_id = group_id
        self.place = place
        self.newest = (-1, -1)
        self.offsets: dict[int, ClientTransaction] = {}

    def stable_offsets(self) -> set[int]:
        """Return the offsets that OffsetFetch may return if the request requires stable offsets, for which open transactions must end first."""
        allowed = {NOTHING}
        for number, transaction in self.offsets.items():
            if transaction.outcome is Outcome.COMMITTED:
                allowed = {number} if number == transaction.offset else allowed
            elif transaction.can_be_visible:
                allowed.add(number)
        return allowed
