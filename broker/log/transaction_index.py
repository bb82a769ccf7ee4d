"""The transactions in one replica's log: which are open, which ended but are not replicated yet, and which were aborted.

These transactions determine the last stable offset (TX-53) and the aborted transactions in a fetch response (TX-54, F-20). Corresponds to
`ongoingTxns` and `unreplicatedTxns` of Kafka's `ProducerStateManager`, and to Kafka's `TransactionIndex`. This module does not depend on the log or
producers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import NamedTuple

NEVER = (1 << 63) - 1
"""A stand-in for "no offset": larger than every offset of a log."""


class AbortedTransaction(NamedTuple):
    """An aborted transaction of a producer: the offset of its first record, and the offset of the abort marker (`last_offset`)."""

    producer_id: int
    first_offset: int
    last_offset: int


class TransactionIndex:
    """The transactions of a log. Markers are added in the order of offsets."""

    __slots__ = ("_aborted", "_open", "_unreplicated", "first_unstable_offset")

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """Maps the first offset of each open transaction to its producer id, in ascending order of the offsets."""
        self._unreplicated: dict[int, int] = {}
        """Maps the first offset of each ended transaction whose marker is at or above the high watermark to the offset of this marker."""
        self._aborted: list[AbortedTransaction] = []
        self.first_unstable_offset = NEVER
        """The first offset of the oldest transaction that is open, or whose marker is not replicated; `NEVER` if there is none."""

    @property
    def aborted(self) -> tuple[AbortedTransaction, ...]:
        """Return the aborted transactions, in the order of their markers."""
        return tuple(self._aborted)

    def begin(self, producer_id: int, first_offset: int) -> None:
        """Add an open transaction. `first_offset` must be above the first offsets of all other open transactions."""
        self._open[first_offset] = producer_id
        self._find_unstable()

    def end(self, producer_id: int, first_offset: int, marker_offset: int, *, aborted: bool) -> None:
        """Record that the marker at `marker_offset` ends the transaction that starts at `first_offset`. aborted: False for a commit."""
        self._open.pop(first_offset, None)
        self._unreplicated[first_offset] = marker_offset
        self._find_unstable()
        if aborted:
            entry = AbortedTransaction(producer_id, first_offset, marker_offset)
            at = bisect_left(self._aborted, marker_offset, key=attrgetter("last_offset"))
            if self._aborted[at : at + 1] != [entry]:  # otherwise the log is read again after a truncation
                self._aborted.insert(at, entry)

    def replicated(self, high_watermark: int) -> None:
        """Drop the ended transactions whose marker is below `high_watermark` (an offset), so that they no longer limit the last stable offset."""
        if self._unreplicated:
            unreplicated = {first: marker for first, marker in self._unreplicated.items() if marker >= high_watermark}
            self._unreplicated = unreplicated
            self._find_unstable()

    def aborted_between(self, fetch_offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that end at `fetch_offset` or later and start below `upper_bound` (F-20)."""
        first = bisect_left(self._aborted, fetch_offset, key=attrgetter("last_offset"))
        return [entry for entry in self._aborted[first:] if entry.first_offset < upper_bound]

    def truncate(self, offset: int, producer_ids: Collection[int]) -> None:
        """Remove the transactions that ended at `offset` or later, and the open transactions of `producer_ids`, because the log was truncated.

        The caller must then read the remaining batches of `producer_ids` again, because these batches may belong to transactions that are still open.
        """
        self._open = {first: i for first, i in self._open.items() if i not in producer_ids}
        self._unreplicated = {first: marker for first, marker in self._unreplicated.items() if marker < offset}
        self._find_unstable()
        del self._aborted[bisect_left(self._aborted, offset, key=attrgetter("last_offset")) :]

    def cleaned_below(self, offset: int, remaining: Iterable[AbortedTransaction]) -> list[AbortedTransaction]:
        """Return the aborted transactions that the log would have if it were compacted below `offset`. Changes nothing.

        The result is `remaining`, followed by the aborted transactions whose marker is at `offset` or later. remaining: the aborted transactions that
        would keep both a batch and their marker below `offset`.
        """
        return [*remaining, *self._aborted[bisect_left(self._aborted, offset, key=attrgetter("last_offset")) :]]

    def drop_before(self, log_start_offset: int) -> None:
        """Remove the ended transactions whose marker is below `log_start_offset`."""
        del self._aborted[: bisect_left(self._aborted, log_start_offset, key=attrgetter("last_offset"))]
        self.replicated(log_start_offset)

    def restore_open(self, transactions: Iterable[tuple[int, int]]) -> None:
        """Replace the open transactions by `transactions`, given as (producer id, first offset)."""
        self._open = dict(sorted((first_offset, producer_id) for producer_id, first_offset in transactions))
        self._find_unstable()

    def restore_aborted(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Replace the aborted transactions by `aborted`, which must be in the order of their markers."""
        self._aborted = list(aborted)

    def clear(self) -> None:
        self._open.clear()
        self._unreplicated.clear()
        self._aborted.clear()
        self._find_unstable()

    def _find_unstable(self) -> None:
        self.first_unstable_offset = min(next(iter(self._open), NEVER), min(self._unreplicated, default=NEVER))
