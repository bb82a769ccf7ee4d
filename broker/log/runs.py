"""Byte positions of one replica's batches in the shared store: a short list of runs, in offset order.

A run is a range of positions whose batches have increasing offsets. A replica has one run until its log diverges from the leader's, or is
compacted: then its batches are in several parts of the store, and each part is a run. Replication moves a run's end, and truncation
shortens a run. No byte is copied or overwritten.
This module does not depend on epochs, producers, high watermarks or other replicas.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from kafkaproto.broker.log.scan import base_offset_at, find_batch, headers
from kafkaproto.broker.log.store import NOTHING_NEEDED, Store

_NO_TAIL = (1 << 63) - 1


@dataclass(slots=True, eq=False)
class Run:
    """Consecutive batches of one replica: bytes `start` to `end` of the partition's store, offsets `first_offset` to `end_offset`.

    Both ends are exclusive.
    """

    start: int
    end: int
    first_offset: int
    end_offset: int


class Place(NamedTuple):
    """The location of a batch in the partition's store: its run (a range of batches of one replica), byte position, size in bytes, base offset."""

    run: Run
    position: int
    size_bytes: int
    base_offset: int


class LogSegment(NamedTuple):
    """A segment of a log: its offsets, from `first_offset` up to `end_offset`, exclusive.

    parts: the (start, end) byte positions of its batches in the partition's store, end exclusive.
    """

    first_offset: int
    end_offset: int
    parts: tuple[tuple[int, int], ...]

    @property
    def size_bytes(self) -> int:
        return sum(end - start for start, end in self.parts)


class OffsetRange(NamedTuple):
    """An immutable `Run`: consecutive batches of one replica, by byte positions and offsets.

    Used for the results of compaction and recovery, and for persisted state.
    """

    start: int
    end: int
    first_offset: int
    end_offset: int


class Runs:
    """The runs of one replica: the ranges of the shared store that contain its batches. The store keeps the bytes as long as a run refers to them."""

    __slots__ = ("_deleted_bytes", "_reader", "_runs", "_tail_offset", "_tail_position", "store")

    def __init__(self, store: Store) -> None:
        self.store = store
        self._deleted_bytes = 0
        self._runs: list[Run] = []
        self._reader = store.add_reader()
        self._forget_tail()

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def end_offset(self) -> int:
        """Return the offset after the last batch, -1 if there is no batch. The log end offset may be larger, because compaction removes batches."""
        return self._runs[-1].end_offset if self._runs else -1

    @property
    def first_offset(self) -> int:
        """Return the base offset of the first batch, -1 if there is no batch."""
        return self._runs[0].first_offset if self._runs else -1

    @property
    def deleted_bytes(self) -> int:
        """Return the size in bytes of the deleted batches that Kafka would still store, because Kafka deletes only whole segments (AD-41).

        These batches lie before the log start, in the same segment as the log start.
        """
        if not self._deleted_bytes or not self._runs:
            return self._deleted_bytes
        first = self._runs[0]
        [(_, begins_segment), *_] = self.store.boundaries(first.start, first.end)
        return 0 if begins_segment else self._deleted_bytes

    def forget_deleted(self) -> None:
        """Set `deleted_bytes` to 0. Call it when Kafka would no longer store any batch before the log start, for example after compaction."""
        self._deleted_bytes = 0

    def extend(self, position: int, size_bytes: int, base_offset: int, end_offset: int) -> None:
        """Add a batch to the end of this replica's log.

        position: the byte position in the partition's store at which the batch begins. size_bytes: the size of the batch. base_offset, end_offset:
        the batch's first offset, and the offset after its last offset.
        """
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
        """Return the first batch whose last offset is not below `offset`. The caller makes sure that such a batch exists.

        The result contains the run of the batch (a range of batches of this replica), its byte position in the partition's store, its size, and its
        base offset.
        """
        runs = self._runs
        if offset >= self._tail_offset:  # most fetches read the last batch
            run, position = runs[-1], self._tail_position
            return Place(run, position, run.end - position, self._tail_offset)
        at = 0 if len(runs) == 1 else max(0, bisect_right(runs, offset, key=attrgetter("first_offset")) - 1)
        if runs[at].end_offset <= offset:
            at += 1  # a gap left by compaction or by `restart_at`
        run = runs[at]
        begin = self.store.index.floor(run.start, run.end, offset)
        return Place(run, *find_batch(self.store, begin, run.end, offset))

    def ranges(self, offset: int) -> Iterator[tuple[int, int]]:
        """Yield (start, end), end exclusive, of each byte range of the partition's store with this replica's batches, in order, from `offset` on."""
        if not self._runs or offset >= self._runs[-1].end_offset:
            return
        place = self.locate(offset)
        yield place.position, place.run.end
        for run in self._runs[self._runs.index(place.run) + 1 :]:
            yield run.start, run.end

    def segments(self) -> Iterator[LogSegment]:
        """Yield the segments of this replica's log, in order.

        They contain only batches of this replica: none before its log start, and none that a leader appended after this replica's log diverged from
        the leader's.
        """
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

    def upper_bound(self, offset: int, size_bytes: int) -> int:
        """Return an offset that is above all records of a read of `size_bytes` bytes, which begins with the batch that contains `offset`.

        The result may be higher than necessary, as in Kafka (`fetchUpperBoundOffset`), because only batches with an entry in the sparse index of the
        partition's store are considered. The store has the batches of all replicas of the partition; a run is a range of batches that this replica
        has. The result is:

        - the last offset of the first batch after the read that has an index entry, if this batch is in the same segment and run as the read;
        - otherwise the end offset of the run, if the run ends in this segment;
        - otherwise the base offset of the first batch of the next segment.
        """
        place = self.locate(offset)
        run, segment_end = place.run, self.store.segment_end(place.position)
        entry = self.store.index.next_position(place.position + size_bytes)
        if entry is not None and entry < min(run.end, segment_end):
            return next(headers(self.store, entry, min(run.end, segment_end)))[1].last_offset
        return run.end_offset if segment_end >= run.end else base_offset_at(self.store, segment_end)

    def readable_end(self, place: Place, bound_offset: int) -> int:
        """Return the position in the partition's `Store`, in bytes, at which a read that begins with the batch `place` must end.

        The read ends where the batch that holds `bound_offset` begins, where the segment ends, or where the run of `place` (a range of this replica's
        batches) ends, whichever comes first. The bytes of the store after a run do not belong to this replica.
        """
        run = place.run
        end = run.end if bound_offset >= run.end_offset else self.locate(bound_offset).position
        return min(end, self.store.segment_end(place.position))

    def bytes_between(self, offset: int, bound_offset: int) -> int:
        """Return the size in bytes of the batches from the batch that holds `offset` up to the batch that holds `bound_offset`, exclusive."""
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
        """Remove the batch that holds `offset` and all later batches. Returns the new end offset.

        The new end offset is the base offset of the first removed batch, or `offset` if that is lower.
        """
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
        """Remove every batch whose last offset is below `offset`.

        Sets `deleted_bytes` to the size of all batches that this call or earlier calls have removed from the segment that contains `offset`. If no
        batch remains, it is the size of the batches removed from the last segment.
        """
        segments = list(self.segments())
        self.replace_below(offset, ())
        if segments:
            last = len(segments) - 1
            holder = next((i for i, segment in enumerate(segments) if segment.end_offset > offset), last)
            bytes_before = segments[holder].size_bytes + (0 if holder else self.deleted_bytes)
            remaining = next(self.segments(), None)
            self._deleted_bytes = bytes_before - (0 if remaining is None else remaining.size_bytes)

    def replace_below(self, offset: int, ranges: Iterable[OffsetRange]) -> None:
        """Replace every batch whose last offset is below `offset` by the batches in `ranges`, which are in order of offsets."""
        self.become(self.replaced_below(offset, ranges))

    def replaced_below(self, offset: int, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        """Return the runs (contiguous ranges of batches) that the replica would have after `replace_below`. Changes nothing.

        ranges: the runs that replace all batches below `offset`. They come first in the result, followed by the runs of the other batches.
        """
        remaining_runs = [run for run in self.as_ranges() if run.end_offset > offset]
        if remaining_runs:
            place = self.locate(offset)
            remaining_runs[0] = remaining_runs[0]._replace(
                start=place.position, first_offset=max(offset, place.base_offset)
            )
        return [*ranges, *remaining_runs]

    def as_ranges(self) -> list[OffsetRange]:
        return [OffsetRange(run.start, run.end, run.first_offset, run.end_offset) for run in self._runs]

    def become(self, ranges: Iterable[OffsetRange]) -> None:
        """Replace all runs (contiguous ranges of batches) of the replica by those in `ranges`."""
        last_run = self._runs[-1] if self._runs else None
        self._runs = [Run(*offset_range) for offset_range in ranges]
        if last_run is None or not self._runs or self._runs[-1].end != last_run.end:
            self._forget_tail()
        self._tell_need()

    def clear(self) -> None:
        self._runs.clear()
        self.forget_deleted()
        self._forget_tail()
        self._tell_need()

    def _forget_tail(self) -> None:
        self._tail_offset = _NO_TAIL
        self._tail_position = 0

    def _tell_need(self) -> None:
        # A later run may have a lower position than an earlier one, if a follower switched to a leader's older bytes.
        self.store.reader_needs(self._reader, min((run.start for run in self._runs), default=NOTHING_NEEDED))
