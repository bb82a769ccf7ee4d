"""A model of one committed offset, built from the responses that clients got."""

from __future__ import annotations

NOTHING = -1
"""The committed offset of a partition without a commit."""


class CommittedOffset:
    """The committed offset of one partition. acknowledged: the offset of the last acknowledged commit, -1 for none.

    unsure: the offsets of later commits that were neither acknowledged nor refused, by the number of the commit. `send` counts the commits.
    """

    def __init__(self) -> None:
        self.acknowledged = NOTHING
        self.unsure: dict[int, int] = {}
        self._next = 0
        self._acknowledged_number = 0
        self._replicated_number = 0
        """The number of a commit that a client read up to the high watermark, so that no client may read an earlier one; 0 for none."""

    def send(self, offset: int) -> int:
        """Record that a commit of `offset` is being sent, and return the number of the commit."""
        self._next += 1
        self.unsure[self._next] = offset
        return self._next

    def acknowledge(self, number: int) -> None:
        """Record that commit `number` succeeded: it replaces all earlier ones, because only the owner of a partition may commit."""
        offset = self.unsure.pop(number, None)
        assert offset is not None, (
            f"commit {number} was acknowledged after a later one; {self.acknowledged} was committed"
        )
        assert offset >= self.acknowledged, f"the committed offset went back from {self.acknowledged} to {offset}"
        self.acknowledged, self._acknowledged_number = offset, number
        self.unsure = {later: value for later, value in self.unsure.items() if later > number}

    def refuse(self, number: int) -> None:
        """Record that the coordinator refused commit `number` without writing anything."""
        self.unsure.pop(number, None)

    def check(self, fetched: int, *, is_replicated: bool = False) -> None:
        """Check the offset in a response to OffsetFetch.

        is_replicated: whether the coordinator reads only up to the high watermark, so that no later response may have an earlier commit.
        """
        possible = {self._acknowledged_number: self.acknowledged, **self.unsure}
        possible = {number: offset for number, offset in possible.items() if number >= self._replicated_number}
        numbers = [number for number, offset in possible.items() if offset == fetched]
        assert numbers, f"the committed offset is {fetched}, not one of {sorted(set(possible.values()))}"
        if is_replicated:
            self._replicated_number = min(numbers)
