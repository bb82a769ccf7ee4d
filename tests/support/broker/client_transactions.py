"""What producers know of their transactions from the responses to their requests, and which records must therefore be visible."""

from __future__ import annotations

from enum import Enum

from tests.support.broker.committed_offset import NOTHING


class Outcome(Enum):
    """What producers know of the end of a transaction. UNKNOWN: a commit was requested and got no response."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class ClientTransaction:
    """A transaction of one process. may_commit: whether it requested the commit before it was fenced. started_ms: when it began.

    offset: the last offset that it committed with an acknowledgement. decisions: by partition, whether the marker there commits.
    """

    def __init__(self, name: str, started_ms: int) -> None:
        self.name = name
        self.started_ms = started_ms
        self.outcome = Outcome.OPEN
        self.may_commit = False
        self.offset = NOTHING
        self.decisions: dict[str, bool] = {}

    def end(self, outcome: Outcome) -> None:
        """Note what the producer knows at the end."""
        self.outcome = outcome
        self._check()

    def give_up(self) -> None:
        """Note that the producer gets no response any more. The transaction must be aborted, unless its commit was requested."""
        self.end(Outcome.UNKNOWN if self.may_commit else Outcome.ABORTED)

    def decide(self, place: str, committed: bool) -> None:
        """Note a marker that ends the transaction in a partition."""
        self.decisions[place] = committed
        self._check()

    @property
    def can_be_visible(self) -> bool:
        """Return whether its records may be visible."""
        is_open = self.outcome in (Outcome.OPEN, Outcome.UNKNOWN) and self.may_commit
        return (is_open or self.outcome is Outcome.COMMITTED) and False not in self.decisions.values()

    def _check(self) -> None:
        said = set(self.decisions.values())
        assert len(said) <= 1, f"{self.name} is committed in a part of its partitions: {self.decisions}"
        lost = self.outcome is Outcome.COMMITTED and False in said
        assert not lost, f"{self.name} was committed, and is aborted in {self.decisions}"
        shown = (self.outcome is Outcome.ABORTED or not self.may_commit) and True in said
        assert not shown, f"{self.name} was not committed by its producer, and is committed in {self.decisions}"


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
        """Return the offsets that a fetch may return that waits for open transactions."""
        allowed = {NOTHING}
        for number, transaction in self.offsets.items():
            if transaction.outcome is Outcome.COMMITTED:
                allowed = {number} if number == transaction.offset else allowed
            elif transaction.can_be_visible:
                allowed.add(number)
        return allowed
