"""One replica's log: its batches (runs of the shared store), its offsets, its epochs, its producers.

The log start and end offset move by the methods here; the high watermark is where the partition puts it (`commit`),
and truncation and a raised log start keep it in range. A refused append changes nothing.
(`UnifiedLog` and `LocalLog` in Kafka.) Must never know: who leads, who is in sync, wire messages, the clock (its events carry the
instant of the turn).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from kafkaproto.broker.log import time_lookup
from kafkaproto.broker.log.epochs import UNDEFINED_END, EpochCache, EpochEnd, EpochStart
from kafkaproto.broker.log.errors import OffsetOutOfRange
from kafkaproto.broker.log.producer_state import ProducerEntry, ProducerStates
from kafkaproto.broker.log.runs import OffsetRange, Runs
from kafkaproto.broker.log.scan import headers
from kafkaproto.broker.log.store import NO_FLUSH, Region, Store
from kafkaproto.broker.log.time_lookup import FoundRecord
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.events import Events
from kafkaproto.records.batch import PREFIX_BYTES, BatchHeader, patch_offset_and_epoch

NO_TIMESTAMP = -1


class Appended(NamedTuple):
    """What a Produce response tells of an append: inclusive offsets, and the time the log set (-1: CreateTime).

    For a duplicate (P-18) these are the original batch's offsets and max_timestamp, and nothing was appended.
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    is_duplicate: bool


class LogSlice(NamedTuple):
    """What one read returns: `size_bytes` of batches in `records`, of which the last may be cut off (F-9).

    `first_batch_bytes` is the size of the first batch to be read, also when the limit was too small for it;
    0 when there was nothing to read.
    """

    records: Region
    size_bytes: int
    first_batch_bytes: int


class Placed(NamedTuple):
    """A batch in the store with what the leader gave it; `header` may be the one that came, before the stamps."""

    position: int
    header: BatchHeader
    base_offset: int
    leader_epoch: int


NOTHING = LogSlice(b"", 0, 0)


class LogState(NamedTuple):
    """What a log is, apart from the bytes: all that cannot be read from the batches that were appended up to position `at`."""

    at: int
    log_start_offset: int
    log_end_offset: int
    first_dirty_offset: int
    runs: list[OffsetRange]
    epochs: list[EpochStart]
    producers: dict[int, ProducerEntry]


class Keeper(Protocol):
    """Who remembers, for the next process, what the bytes of one partition do not say. Told by the replica that leads it."""

    def begun(self, state: LogState) -> None:
        """A leader begins with this. Never raises: the next process can tell nearly all of it from the bytes."""

    def appending(self) -> None:
        """A leader is about to append. Raises StorageError while its epoch could not be remembered: then nothing must change."""

    def cleaned(self, state: LogState) -> None:
        """Compaction is about to leave this. Raises StorageError: then nothing must change."""

    def started(self, at: int, log_start_offset: int, producers: dict[int, ProducerEntry]) -> None:
        """The log start is about to move, over batches of these producers. Raises StorageError: then nothing must change."""


class Origin(NamedTuple):
    """The replica that the events of a log name, and the turn whose instant they carry."""

    broker_id: int
    topic: str
    partition: int
    turn: ActionQueue


_UNNAMED = Origin(-1, "", -1, ActionQueue(0))


class ReplicaLog:
    """A replica's view of its partition's store.

    Offsets: `log_start_offset` <= any readable offset < `log_end_offset`.
    """

    __slots__ = (
        "__weakref__",
        "_events",
        "_newest",
        "_origin",
        "epochs",
        "first_dirty_offset",
        "high_watermark",
        "is_leader",
        "keeper",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "runs",
        "store",
    )

    def __init__(
        self, store: Store, keeper: Keeper | None = None, events: Events | None = None, origin: Origin = _UNNAMED
    ) -> None:
        self.store = store
        self.keeper = keeper
        self._events = Events() if events is None else events
        self._origin = origin
        self.is_leader = False
        self.runs = Runs(store)
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.first_dirty_offset = 0
        """Up to here the log has been compacted."""
        self._newest: Placed | None = None
        self.epochs = EpochCache()
        self.producers = ProducerStates()

    # What the next process is told

    def lead(self, epoch: int) -> None:
        """This replica's leader epoch begins, before any write (E-3)."""
        is_empty = self.log_end_offset == 0 and self.epochs.latest < 0 and self.store.end_position == 0
        is_news = epoch != self.epochs.latest and not is_empty
        self.epochs.assign(epoch, self.log_end_offset)
        self.is_leader = True
        if self.keeper is not None and is_news:
            self.keeper.begun(self.state())

    def follow(self) -> None:
        """Somebody else leads."""
        self.is_leader = False

    def state(self) -> LogState:
        return LogState(
            self.store.end_position,
            self.log_start_offset,
            self.log_end_offset,
            self.first_dirty_offset,
            self.runs.as_ranges(),
            self.epochs.entries(),
            self.producers.producers,
        )

    def commit(self, offset: int) -> None:
        """`offset` is the high watermark from now on."""
        self.high_watermark = offset
        if self._events.offsets_moved is not None:
            broker_id, topic, index, turn = self._origin
            self._events.offsets_moved(broker_id, topic, index, self, turn.now_ms)

    def drop_uncommitted_high_watermark(self) -> None:
        """A high watermark beyond the end, which a follower may have heard of (D2), is of no use to who leads: those records are gone."""
        if self.high_watermark > self.log_end_offset:
            self._report_truncation("watermark", self.high_watermark, self.log_end_offset)
            self.commit(self.log_end_offset)

    @property
    def last_stable_offset(self) -> int:
        """The offset below which no transaction is open (F-19). Without transactions it is the high watermark."""
        return self.high_watermark

    def restore(self, state: LogState) -> None:
        """Be what another process has left; all of it counts as committed."""
        self.log_start_offset, self.log_end_offset = state.log_start_offset, state.log_end_offset
        self.high_watermark = state.log_end_offset
        self.first_dirty_offset = state.first_dirty_offset
        self.runs.become(state.runs)
        for epoch, start_offset in state.epochs:
            self.epochs.assign(epoch, start_offset)
        self.producers.restore(state.producers)

    # Growing

    def append(self, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> Appended:
        """Append a validated batch as its leader: stamps base offset and epoch into `batch` (P-12); rolls the segment by time.

        `batch` is one whole batch, `header` its header as it came. Raises InvalidBatch with 45 or 47 (P-19, P-20),
        StorageError when the store is full; then nothing has changed.
        """
        if header.producer_id >= 0:
            original = self.producers.check(header)
            if original is not None:
                return Appended(original.first_offset, original.last_offset, original.max_timestamp, True)
        if self.keeper is not None:
            self.keeper.appending()
        base_offset = self.log_end_offset
        patch_offset_and_epoch(batch, 0, base_offset, leader_epoch)
        store, max_timestamp = self.store, header.max_timestamp
        if store.segment_time.is_over(store.segment_number, max_timestamp, now_ms):
            store.roll()
        position = store.append(batch)
        store.segment_time.appended(store.segment_number, max_timestamp, now_ms)
        if max_timestamp < 0:
            store.last.untimed_ms = now_ms
        if store.flush_messages < NO_FLUSH:
            store.appended(header.last_offset_delta + 1)
        store.index.add(position, base_offset, max_timestamp)
        self.take(Placed(position, header, base_offset, leader_epoch))
        set_time_ms = header.max_timestamp if header.is_log_append_time else NO_TIMESTAMP
        return Appended(base_offset, self.log_end_offset - 1, set_time_ms, False)

    def replicate_from(
        self, leader: ReplicaLog, limit_bytes: int, at_least_one: bool = True, end_offset: int | None = None
    ) -> int:
        """Go on where this log ends with what `leader` has: whole batches, no copy; bytes that were taken.

        As a follower's fetch: up to `limit_bytes`, or one batch that is larger if `at_least_one` (F-7); with
        `end_offset` not further than the first batch that reaches it. Both logs share a store.
        Raises OffsetOutOfRange if the leader's log does not reach this one's end.
        """
        leader.check_range(self.log_end_offset)
        newest = leader._newest
        if newest is not None and newest.base_offset == self.log_end_offset and at_least_one and end_offset is None:
            self.take(newest)  # one batch behind, as a follower in step is
            return newest.header.size
        stop_offset = leader.log_end_offset if end_offset is None else min(end_offset, leader.log_end_offset)
        taken = 0
        for start, end in leader.runs.ranges(self.log_end_offset):
            for position, header in headers(self.store, start, end):
                size_bytes = header.size
                fits = taken + size_bytes <= limit_bytes or (at_least_one and not taken)
                if not fits or self.log_end_offset >= stop_offset:
                    return taken
                if header.base_offset < self.log_end_offset and len(self.runs):
                    raise ValueError(f"the leader's batch at {header.base_offset} overlaps; truncate this log first")
                self.take(Placed(position, header, header.base_offset, header.partition_leader_epoch))
                taken += size_bytes
        return taken

    def take(self, placed: Placed) -> None:
        """Make a batch in the store the end of this log."""
        position, header, base_offset, epoch = placed
        end_offset = base_offset + header.last_offset_delta + 1
        self.runs.extend(position, header.batch_length + PREFIX_BYTES, base_offset, end_offset)
        self.log_end_offset = end_offset
        self._newest = placed
        if epoch != self.epochs.latest and epoch >= 0:
            self.epochs.assign(epoch, base_offset)
        if header.producer_id >= 0:
            self.producers.update(header, base_offset)

    # Reading

    def read(self, fetch_offset: int, limit_bytes: int, bound_offset: int, at_least_one: bool) -> LogSlice:
        """The batches from the one that holds `fetch_offset`, up to before `bound_offset` (F-9, F-14, F-15).

        At most `limit_bytes`, which may cut the last batch off; with `at_least_one` the first one whole even if
        it is larger (F-7), without it nothing rather than a part of the first (F-10).
        Raises OffsetOutOfRange (F-16); ValueError for a negative limit when there is something to read (F-13).
        """
        self.check_range(fetch_offset)
        bound_offset = min(bound_offset, self.log_end_offset)
        if fetch_offset >= min(bound_offset, self.runs.end_offset):
            return NOTHING
        place = self.runs.locate(fetch_offset)
        readable_bytes = self.runs.readable_end(place, bound_offset) - place.position
        if readable_bytes <= 0:
            return NOTHING
        if limit_bytes < 0:
            raise ValueError(f"limit of {limit_bytes} bytes: it must not be negative")
        first_batch_bytes = place.size_bytes
        if limit_bytes < first_batch_bytes:
            if not at_least_one:
                return LogSlice(b"", 0, first_batch_bytes)
            limit_bytes = first_batch_bytes
        size_bytes = min(limit_bytes, readable_bytes)
        return LogSlice(self.store.region(place.position, size_bytes), size_bytes, first_batch_bytes)

    def offset_behind(self, fetch_offset: int, size_bytes: int) -> int:
        """Where a client goes on that got `size_bytes` from the batch that holds `fetch_offset` on; of a batch that is cut off it has nothing."""
        if not size_bytes or fetch_offset >= self.runs.end_offset:
            return fetch_offset
        place = self.runs.locate(fetch_offset)
        run, end = place.run, place.position + size_bytes
        if end < run.end:
            begin = self.store.index.floor_position(place.position, end)
            for position, header in headers(self.store, begin, run.end):
                if position + header.size > end:
                    return max(fetch_offset, header.base_offset)
        return run.end_offset

    def bytes_between(self, fetch_offset: int, bound_offset: int) -> int:
        """How many bytes a fetch from `fetch_offset` could get below `bound_offset`, without limits (F-29)."""
        self.check_range(fetch_offset)
        bound_offset = min(bound_offset, self.log_end_offset)
        return self.runs.bytes_between(fetch_offset, bound_offset) if fetch_offset < bound_offset else 0

    def is_on_older_segment(self, fetch_offset: int, bound_offset: int) -> bool:
        """Whether one read from `fetch_offset` cannot reach `bound_offset` because its segment ends before (F-29)."""
        bound_offset = min(bound_offset, self.log_end_offset)
        if not self.log_start_offset <= fetch_offset < min(bound_offset, self.runs.end_offset):
            return False
        place = self.runs.locate(fetch_offset)
        one_read_bytes = self.runs.readable_end(place, bound_offset) - place.position
        return one_read_bytes < self.runs.bytes_between(fetch_offset, bound_offset)

    def batches(self, from_offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """(position in the store, header) of every batch from the one that holds `from_offset`, to the log's end."""
        for start, end in self.runs.ranges(from_offset):
            yield from headers(self.store, start, end)

    def read_all(self) -> bytes:
        """Every batch of this log, whole. For tests and tools: it is all in memory then."""
        return b"".join(
            self.store.read(position, header.size) for position, header in self.batches(self.log_start_offset)
        )

    # Look-ups

    def offset_for_timestamp(self, timestamp: int, bound_offset: int) -> FoundRecord | None:
        """The first record at or after `timestamp` (ms) and below `bound_offset` (L-6)."""
        found = time_lookup.first_at_or_after(self.runs, timestamp, self.log_start_offset)
        return found if found is not None and found.offset < bound_offset else None

    def offset_of_max_timestamp(self, bound_offset: int) -> FoundRecord | None:
        """The first record with the largest timestamp, None if it is not below `bound_offset` (L-7, KIP-734)."""
        found = time_lookup.latest(self.runs, self.log_start_offset)
        return found if found is not None and found.offset < bound_offset else None

    def segment_starts(self) -> list[tuple[int, int]]:
        """(first offset, largest timestamp) of each segment, oldest first; walks all headers, for ListOffsets version 0."""
        starts: list[tuple[int, int]] = []
        end = -1
        for position, header in self.batches(self.log_start_offset):
            segment_end = self.store.segment_end(position)
            if segment_end != end:
                end = segment_end
                starts.append((max(header.base_offset, self.log_start_offset), header.max_timestamp))
            else:
                starts[-1] = starts[-1][0], max(starts[-1][1], header.max_timestamp)
        return starts or [(self.log_start_offset, 0)]

    def earliest_epoch(self) -> int:
        """The leader epoch to tell with the log start offset (L-5), -1 if it is not known."""
        earliest = self.epochs.earliest()
        return earliest.epoch if earliest is not None and earliest.start_offset <= self.log_start_offset else -1

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """Where `epoch` ended in this log (E-3)."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def divergence(self, last_fetched_epoch: int, fetch_offset: int) -> EpochEnd | None:
        """Where a follower's log, that ends at `fetch_offset` in `last_fetched_epoch`, left this one (F-26, KIP-595).

        None if it did not. Raises OffsetOutOfRange if its epoch is not known here, or its offset is below the start.
        """
        known = self.end_offset_for_epoch(last_fetched_epoch)
        if known == UNDEFINED_END or fetch_offset < self.log_start_offset:
            raise OffsetOutOfRange(fetch_offset, self.log_start_offset, self.log_end_offset)
        diverged = known.epoch < last_fetched_epoch or known.end_offset < fetch_offset
        return known if diverged else None

    def check_range(self, offset: int) -> None:
        """Raises OffsetOutOfRange unless `offset` is readable or the log's end (F-16)."""
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.log_end_offset)

    def starts_inside_a_batch(self, offset: int) -> bool:
        """Whether this log starts at `offset`, and its first batch below that."""
        if offset != self.log_start_offset or offset >= self.runs.end_offset:
            return False
        return self.runs.locate(offset).base_offset < offset

    # Shrinking

    def truncate_to(self, offset: int) -> None:
        """Drop everything from `offset` on, at a batch boundary: the batch that holds `offset` goes whole (E-4).

        Lowers a high watermark that is beyond the new end. An `offset` below the log start empties the log. At the end of the log
        it cuts an epoch in which this replica led and wrote nothing: the next leader's may not be the same.
        """
        if offset >= self.log_end_offset:
            self.epochs.truncate_from_end(offset)
            return
        if offset < self.log_start_offset:
            self.restart_at(offset)
            return
        before = self.log_end_offset
        # Behind the last batch lies nothing to cut: compaction left a gap there.
        self.log_end_offset = self.runs.cut_end(offset) if offset < self.runs.end_offset else offset
        self._report_truncation("end", before, self.log_end_offset)
        self._newest = None
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self.first_dirty_offset = min(self.first_dirty_offset, self.log_end_offset)
        if self.high_watermark > self.log_end_offset:
            self.commit(self.log_end_offset)
        self.epochs.truncate_from_end(self.log_end_offset)
        self._learn_producers_again(self.producers.forget_from(self.log_end_offset))

    def raise_log_start(self, offset: int) -> None:
        """Records below `offset` can no longer be read (E-4): DeleteRecords, retention, a leader's log start.

        A lower `offset` than the log start changes nothing; one above the log end is a ValueError (see `restart_at`).
        Raises a high watermark below it. Space comes back when no replica needs it. Raises StorageError, with nothing changed, when
        a leader's next process could not know.
        """
        if offset <= self.log_start_offset:
            return
        if offset > self.log_end_offset:
            raise ValueError(f"log start {offset} above log end {self.log_end_offset}")
        if self.keeper is not None and self.is_leader:
            self.keeper.started(self.store.end_position, offset, self.producers.before(offset))
        self._report_truncation("start", self.log_start_offset, offset)
        self.log_start_offset = offset
        self.commit(max(self.high_watermark, offset))
        self.epochs.truncate_from_start(offset)
        self.runs.cut_start(offset)

    def replace_below(self, offset: int, cleaned: Iterable[OffsetRange]) -> None:
        """Have what compaction left instead of the batches that end before `offset`; that much is clean now.

        Raises StorageError, with nothing changed, when a leader's next process could not know.
        """
        runs = self.runs.replaced_below(offset, cleaned)
        if self.keeper is not None and self.is_leader:
            self.keeper.cleaned(self.state()._replace(runs=runs, first_dirty_offset=offset))
        self.runs.become(runs)
        self.first_dirty_offset = offset

    def restart_at(self, offset: int) -> None:
        """Forget everything and begin again, empty, at `offset`: the leader's log has moved on beyond this one."""
        self._report_truncation("restart", self.log_end_offset, offset)
        self.runs.clear()
        self._newest = None
        self.log_start_offset = self.log_end_offset = self.first_dirty_offset = offset
        self.commit(offset)
        self.epochs.clear()
        self.producers.clear()

    def _report_truncation(self, what: str, before: int, after: int) -> None:
        if self._events.log_truncated is not None:
            broker_id, topic, index, turn = self._origin
            self._events.log_truncated(broker_id, topic, index, what, before, after, turn.now_ms)

    def close(self) -> None:
        """This replica is gone: the store keeps nothing for it."""
        self.runs.clear()

    def _learn_producers_again(self, producer_ids: set[int]) -> None:
        if producer_ids:
            for _, header in self.batches(self.log_start_offset):
                if header.producer_id in producer_ids:
                    self.producers.update(header, header.base_offset)
