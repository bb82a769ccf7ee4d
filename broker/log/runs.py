"""Where one replica's batches lie in the shared store: a short list of runs, in offset order.

A run is a range of positions whose batches have ascending offsets. A replica in step has one; after a divergence its
log goes on in another part of the store with another run. Replicating is moving a run's end, truncating is cutting it:
no byte is copied or written over.
Must never know: epochs, producers, high watermarks, other replicas.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from kafkaproto.broker.log.scan import base_offset_at, find_batch
from kafkaproto.broker.log.store import NOTHING_NEEDED, Store

_NO_TAIL = (1 << 63) - 1


@dataclass(slots=True, eq=False)
class Run:
    """Batches in positions `start`..`end` of the store, with offsets from `first_offset` up to before `end_offset`."""

    start: int
    end: int
    first_offset: int
    end_offset: int


class Place(NamedTuple):
    """A batch in the store: its run, position, size in bytes on the wire, and base offset."""

    run: Run
    position: int
    size_bytes: int
    base_offset: int


class LogSegment(NamedTuple):
    """A log's segment: offsets from `first_offset` up to before `end_offset`, and the position ranges of its batches."""

    first_offset: int
    end_offset: int
    parts: tuple[tuple[int, int], ...]

    @property
    def size_bytes(self) -> int:
        return sum(end - start for start, end in self.parts)


class OffsetRange(NamedTuple):
    """Batches in positions `start`..`end`, with offsets from `first_offset` up to before `end_offset`."""

    start: int
    end: int
    first_offset: int
    end_offset: int


class Runs:
    """The runs of one replica. As long as they need bytes, the store keeps them."""

    __slots__ = ("_reader", "_runs", "_tail_offset", "_tail_position", "store")

    def __init__(self, store: Store) -> None:
        self.store = store
        self._runs: list[Run] = []
        self._reader = store.add_reader()
        self._forget_tail()

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def end_offset(self) -> int:
        """Where the last batch ends, -1 without any. The log may end later: compaction leaves gaps."""
        return self._runs[-1].end_offset if self._runs else -1

    @property
    def first_offset(self) -> int:
        """Where the first batch begins, -1 without any."""
        return self._runs[0].first_offset if self._runs else -1

    def extend(self, position: int, size_bytes: int, base_offset: int, end_offset: int) -> None:
        """The batch at `position`, of offsets `base_offset` up to before `end_offset`, now ends this replica's log."""
        runs = self._runs
        if runs and runs[-1].end == position:
            run = runs[-1]
            run.end = position + size_bytes
            run.end_offset = end_offset
        else:
            runs.append(Run(position, position + size_bytes, base_offset, end_offset))
            self._tell_need()
        self._tail_offset = base_offset
        self._tail_position = position

    def locate(self, offset: int) -> Place:
        """The first batch whose last offset is not below `offset`; the caller knows that there is one."""
        runs = self._runs
        if offset >= self._tail_offset:  # who waits at the end of the log asks for its last batch
            run, position = runs[-1], self._tail_position
            return Place(run, position, run.end - position, self._tail_offset)
        at = 0 if len(runs) == 1 else max(0, bisect_right(runs, offset, key=attrgetter("first_offset")) - 1)
        if runs[at].end_offset <= offset:
            at += 1  # a gap that compaction or a fresh start left
        run = runs[at]
        begin = self.store.index.floor(run.start, run.end, offset)
        return Place(run, *find_batch(self.store, begin, run.end, offset))

    def ranges(self, offset: int) -> Iterator[tuple[int, int]]:
        """The position ranges, in order, of all batches from the one that holds `offset` on; none at the log's end."""
        if not self._runs or offset >= self._runs[-1].end_offset:
            return
        place = self.locate(offset)
        yield place.position, place.run.end
        for run in self._runs[self._runs.index(place.run) + 1 :]:
            yield run.start, run.end

    def segments(self) -> Iterator[LogSegment]:
        """The log's segments as this replica has them, in order: whole but for the first one and for other leaders' batches."""
        parts: list[tuple[int, int]] = []
        first_offset = -1
        for run in self._runs:
            cuts = [*self.store.boundaries(run.start, run.end), (run.end, False)]
            for (start, begins), (end, _) in pairwise(cuts):
                if begins or not parts:
                    base_offset = run.first_offset if start == run.start else base_offset_at(self.store, start)
                    if parts:
                        yield LogSegment(first_offset, base_offset, tuple(parts))
                    parts, first_offset = [], base_offset
                parts.append((start, end))
        if parts:
            yield LogSegment(first_offset, self.end_offset, tuple(parts))

    def readable_end(self, place: Place, bound_offset: int) -> int:
        """Where one read from `place` must end: at the batch that holds `bound_offset`, its run's or segment's end."""
        run = place.run
        end = run.end if bound_offset >= run.end_offset else self.locate(bound_offset).position
        return min(end, self.store.segment_end(place.position))

    def bytes_between(self, offset: int, bound_offset: int) -> int:
        """Bytes of the batches from the one that holds `offset` up to before the one that holds `bound_offset`."""
        total = 0
        for run in reversed(self._runs):
            if run.first_offset < bound_offset:
                if run.end_offset <= offset:
                    return total
                end = run.end if bound_offset >= run.end_offset else self.locate(bound_offset).position
                if run.first_offset <= offset:
                    return total + end - self.locate(offset).position
                total += end - run.start
        return total

    def cut_end(self, offset: int) -> int:
        """Drop every batch that holds `offset` or lies after it; the base offset of the first of them."""
        place = self.locate(offset)
        while self._runs[-1] is not place.run:
            self._runs.pop()
        end_offset = min(offset, place.base_offset)
        place.run.end = place.position
        place.run.end_offset = end_offset
        if place.run.end == place.run.start:
            self._runs.pop()
        self._forget_tail()
        self._tell_need()
        return end_offset

    def cut_start(self, offset: int) -> None:
        """Drop every batch that ends before `offset`."""
        self.replace_below(offset, ())

    def replace_below(self, offset: int, ranges: Iterable[OffsetRange]) -> None:
        """Have the batches in `ranges`, in order of offsets, instead of every batch that ends before `offset`."""
        self.become(self.replaced_below(offset, ranges))

    def replaced_below(self, offset: int, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        """What the runs would be after `replace_below`; nothing changes."""
        left = [run for run in self.as_ranges() if run.end_offset > offset]
        if left:
            place = self.locate(offset)
            left[0] = left[0]._replace(start=place.position, first_offset=max(offset, place.base_offset))
        return [*ranges, *left]

    def as_ranges(self) -> list[OffsetRange]:
        return [OffsetRange(run.start, run.end, run.first_offset, run.end_offset) for run in self._runs]

    def become(self, ranges: Iterable[OffsetRange]) -> None:
        """Be these runs."""
        before = self._runs[-1] if self._runs else None
        self._runs = [Run(*given) for given in ranges]
        if before is None or not self._runs or self._runs[-1].end != before.end:
            self._forget_tail()
        self._tell_need()

    def clear(self) -> None:
        self._runs.clear()
        self._forget_tail()
        self._tell_need()

    def _forget_tail(self) -> None:
        self._tail_offset = _NO_TAIL
        self._tail_position = 0

    def _tell_need(self) -> None:
        # A later run may lie before an earlier one: where a new leader's log came before what a follower wrote.
        self.store.reader_needs(self._reader, min((run.start for run in self._runs), default=NOTHING_NEEDED))
