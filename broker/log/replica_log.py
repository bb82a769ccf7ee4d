"""One replica's log: its batches in the shared store, its offsets, leader epochs and producers.

Only `ReplicaLog` and recovery change the log start and log end offset. The partition sets the high watermark (`commit`). The log itself lowers the
high watermark to the log end after a truncation, and raises it to the log start after the log start was raised, if necessary. A rejected append
changes nothing. Corresponds to `UnifiedLog` and `LocalLog` in Kafka. This module does not depend on leadership, the ISR, wire messages or the clock:
the events that a log publishes have the time of the request or timer that is being handled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from kafkaproto.broker.log import time_lookup
from kafkaproto.broker.log.epochs import UNDEFINED_END, EpochCache, EpochEnd, EpochStart
from kafkaproto.broker.log.errors import OffsetOutOfRange
from kafkaproto.broker.log.flushing import NO_FLUSH
from kafkaproto.broker.log.producer_state import ProducerEntry, ProducerStates
from kafkaproto.broker.log.runs import OffsetRange, Runs
from kafkaproto.broker.log.scan import headers
from kafkaproto.broker.log.store import Region, Store
from kafkaproto.broker.log.time_lookup import FoundRecord
from kafkaproto.broker.log.transaction_index import AbortedTransaction
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.events import Events
from kafkaproto.errors import DecodeError
from kafkaproto.records.batch import PREFIX_BYTES, BatchHeader, patch_offset_and_epoch, records
from kafkaproto.records.control import EndOfTransaction, end_of_transaction

NO_TIMESTAMP = -1


class Appended(NamedTuple):
    """The result of an append, for the Produce response: offsets of the first and last record, and the append time in ms.

    The append time is -1 if the topic uses CreateTime. is_duplicate: True if the batch was appended before (P-18); nothing is appended again, and the
    offsets are those of the original batch.
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    is_duplicate: bool


class LogSlice(NamedTuple):
    """The result of a read: `records` holds `size_bytes` bytes of batches. The last batch may be incomplete (F-9).

    `first_batch_bytes` is the full size of the first batch, even if the byte limit cut this batch or left it out; 0 if the read found no batch.
    """

    records: Region
    size_bytes: int
    first_batch_bytes: int


class Placed(NamedTuple):
    """A batch in the partition's store: its byte position in the store, and the base offset and leader epoch that the leader assigned to it.

    header: the header as the producer sent it. Its base offset and leader epoch are not used, because the leader replaces them.
    """

    position: int
    header: BatchHeader
    base_offset: int
    leader_epoch: int


NOTHING = LogSlice(b"", 0, 0)


class LogState(NamedTuple):
    """The state of a log apart from its bytes, as it is persisted.

    at: the byte position at which the partition's store ended when this state was saved. Recovery reads the batches after it to bring the state up to
    date. first_dirty_offset: the log is compacted below this offset. runs: the ranges of the store that contain the batches of this log.
    """

    at: int
    log_start_offset: int
    log_end_offset: int
    first_dirty_offset: int
    runs: list[OffsetRange]
    epochs: list[EpochStart]
    producers: dict[int, ProducerEntry]
    aborted: tuple[AbortedTransaction, ...] = ()


class LogStateWriter(Protocol):
    """Interface that saves the `LogState` of one partition to the data directory, so that a restarted broker can restore it.

    Only the log of the partition's leader calls these methods.
    """

    def leadership_started(self, state: LogState) -> None:
        """Persist the state of the log when its replica becomes leader.

        Never raises: if the write fails, `appending` writes the state before the next append. If the process ends before that append, recovery
        rebuilds nearly all of the state from the batches.
        """

    def appending(self) -> None:
        """Save the state of the log again if saving it failed earlier. The log calls this before each append.

        Raises StorageError if a write fails again. The append must then not happen.
        """

    def cleaned(self, state: LogState) -> None:
        """Persist the state that the log will have after a compaction. Raises StorageError if the write fails; then the log must not change."""

    def started(self, at: int, log_start_offset: int, producers: dict[int, ProducerEntry]) -> None:
        """Persist a higher log start offset before the log uses it, and the producer states that recovery cannot rebuild without the removed batches.

        at: the byte position at which the partition's store ends. log_start_offset: the new log start offset. producers: the states of producers that
        depend on batches below this offset, by producer id. Raises StorageError if the write fails; then the log must not change.
        """


class Origin(NamedTuple):
    """The broker and the partition of a log's replica, for the events that the log publishes.

    turn: the cluster's action queue, whose `now_ms` is the time of the events: the time of the request or timer that is being handled.
    """

    broker_id: int
    topic: str
    partition: int
    turn: ActionQueue


_UNNAMED = Origin(-1, "", -1, ActionQueue(0))


class ReplicaLog:
    """The log of one replica. The bytes of its batches are in the store, which all replicas of the partition share.

    Offsets: `log_start_offset` <= any readable offset < `log_end_offset`.
    """

    __slots__ = (
        "__weakref__",
        "_events",
        "_newest",
        "epochs",
        "first_dirty_offset",
        "high_watermark",
        "is_leader",
        "log_end_offset",
        "log_start_offset",
        "origin",
        "producers",
        "runs",
        "state_writer",
        "store",
    )

    def __init__(
        self,
        store: Store,
        state_writer: LogStateWriter | None = None,
        events: Events | None = None,
        origin: Origin = _UNNAMED,
    ) -> None:
        self.store = store
        self.state_writer = state_writer
        self._events = Events() if events is None else events
        self.origin = origin
        self.is_leader = False
        self.runs = Runs(store)
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.first_dirty_offset = 0
        """The offset up to which the log has been compacted, exclusive. Records from this offset on are dirty (not compacted yet)."""
        self._newest: Placed | None = None
        self.epochs = EpochCache()
        self.producers = ProducerStates()

    # State for the next process

    def lead(self, epoch: int) -> None:
        """Make this the leader's log, with leader epoch `epoch` beginning at the log end offset. Call it before any write in this epoch (E-3)."""
        is_empty = self.log_end_offset == 0 and self.epochs.latest < 0 and self.store.end_position == 0
        is_news = epoch != self.epochs.latest and not is_empty
        self.epochs.assign(epoch, self.log_end_offset)
        self.is_leader = True
        if self.state_writer is not None and is_news:
            self.state_writer.leadership_started(self.state())

    def follow(self) -> None:
        """Make this a follower's log, because another replica has become leader."""
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
            self.producers.transactions.aborted,
        )

    def commit(self, offset: int) -> None:
        """Set the high watermark to `offset`, and publish the event `offsets_moved` if it has an observer."""
        self.high_watermark = offset
        transactions = self.producers.transactions
        if transactions.first_unstable_offset < offset:
            transactions.replicated(offset)
        if self._events.offsets_moved is not None:
            broker_id, topic, index, turn = self.origin
            self._events.offsets_moved(broker_id, topic, index, self, turn.now_ms)

    def drop_uncommitted_high_watermark(self) -> None:
        """Lower the high watermark to the log end if the high watermark is higher. Call it when this replica becomes leader.

        A follower may receive the leader's high watermark before the records below it. If the follower becomes leader before it receives these
        records, it never gets them.
        """
        if self.high_watermark > self.log_end_offset:
            self._report_truncation("watermark", self.high_watermark, self.log_end_offset)
            self.commit(self.log_end_offset)

    @property
    def last_stable_offset(self) -> int:
        """Return the last stable offset: below it, every transaction has ended and its marker is replicated (F-19, TX-53).

        It is the first offset of the oldest transaction that is open or whose marker is not replicated. Without such a transaction it is
        the high watermark. On a follower that got the high watermark before the records below it, it is at most the log end.
        """
        unstable = self.producers.transactions.first_unstable_offset
        replicated_end = self.high_watermark
        if replicated_end > self.log_end_offset:  # without min(): each fetch of each partition reads this
            replicated_end = self.log_end_offset
        if unstable >= replicated_end:
            return replicated_end
        return max(unstable, self.log_start_offset)

    def restore(self, state: LogState) -> None:
        """Restore the state of the log that an earlier process persisted. All records count as committed."""
        self.log_start_offset, self.log_end_offset = state.log_start_offset, state.log_end_offset
        self.high_watermark = state.log_end_offset
        self.first_dirty_offset = state.first_dirty_offset
        self.runs.become(state.runs)
        for epoch, start_offset in state.epochs:
            self.epochs.assign(epoch, start_offset)
        self.producers.restore(state.producers)
        self.producers.transactions.restore_aborted(state.aborted)

    # Appending

    def append(
        self, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int, from_client: bool = True
    ) -> Appended:
        """Append a validated batch as leader, after writing its base offset and leader epoch into `batch` (P-12).

        Starts a new segment first if the active one is too old or has a full index. `batch` is one whole batch, `header` the header that the producer
        sent. from_client: False for a batch that a coordinator writes in the transaction of a producer; its sequence numbers are not checked.
        Raises InvalidBatch if the epoch, sequence number or transaction of the producer does not allow the batch (P-19, P-20, TX-33, TX-34, TX-48),
        and StorageError if the batch cannot be written; the log is then unchanged.
        """
        if header.producer_id >= 0:
            original = None
            if header.is_control:
                marker = _marker(batch)
                if marker is not None:
                    self.producers.check_marker(header, marker)
            elif not from_client:
                self.producers.check_epoch(header.producer_id, header.producer_epoch)
            else:
                original = self.producers.check(header)
            if original is not None:
                return Appended(original.first_offset, original.last_offset, original.max_timestamp, True)
        if self.state_writer is not None:
            self.state_writer.appending()
        base_offset = self.log_end_offset
        patch_offset_and_epoch(batch, 0, base_offset, leader_epoch)
        store, max_timestamp = self.store, header.max_timestamp
        conditions = store.roll_conditions
        if conditions.must_roll(store.segment_number, max_timestamp, now_ms):
            store.roll()
        position = store.append(batch)
        if store.flush_state.limit_records < NO_FLUSH:
            store.flush_append(position, header.last_offset_delta + 1, now_ms)
        conditions.appended(store.segment_number, max_timestamp, now_ms)
        if conditions.indexes is not None:
            conditions.indexes.appended(store.open_bytes - len(batch), max_timestamp)
        if max_timestamp < 0:
            store.last.untimed_ms = now_ms
        store.index.add(position, base_offset, max_timestamp)
        self.append_placed(Placed(position, header, base_offset, leader_epoch))
        set_time_ms = header.max_timestamp if header.is_log_append_time else NO_TIMESTAMP
        return Appended(base_offset, self.log_end_offset - 1, set_time_ms, False)

    def replicate_from(
        self, leader: ReplicaLog, limit_bytes: int, at_least_one: bool = True, end_offset: int | None = None
    ) -> int:
        """Add the batches of `leader` that follow this log's end, by reference, without copying bytes. Returns the number of bytes added.

        Like a follower's fetch, it adds up to `limit_bytes`, or one larger batch if `at_least_one` (F-7). With `end_offset` it stops
        when this log's end has reached this offset. Both logs must share a `Store`, as the replicas of one partition do. Raises
        OffsetOutOfRange if this log's end is not in the leader's log, ValueError if this log's end lies inside a batch of the leader.
        """
        leader.check_range(self.log_end_offset)
        newest = leader._newest
        if newest is not None and newest.base_offset == self.log_end_offset and at_least_one and end_offset is None:
            self.append_placed(newest)  # the common case: a follower that is one batch behind
            return newest.header.size
        stop_offset = leader.log_end_offset if end_offset is None else min(end_offset, leader.log_end_offset)
        taken_bytes = 0
        for start, end in leader.runs.ranges(self.log_end_offset):
            for position, header in headers(self.store, start, end):
                size_bytes = header.size
                fits = taken_bytes + size_bytes <= limit_bytes or (at_least_one and not taken_bytes)
                if not fits or self.log_end_offset >= stop_offset:
                    return taken_bytes
                if header.base_offset < self.log_end_offset and len(self.runs):
                    raise ValueError(
                        f"the leader's batch at offset {header.base_offset} overlaps the follower's log, which ends at offset "
                        f"{self.log_end_offset}; truncate the follower's log first"
                    )
                self.append_placed(Placed(position, header, header.base_offset, header.partition_leader_epoch))
                taken_bytes += size_bytes
        return taken_bytes

    def append_placed(self, placed: Placed) -> None:
        """Add the batch `placed` to the end of this log. Its bytes are already in the store that all replicas of the partition share."""
        position, header, base_offset, epoch = placed
        end_offset = base_offset + header.last_offset_delta + 1
        self.runs.extend(position, header.batch_length + PREFIX_BYTES, base_offset, end_offset)
        self.log_end_offset = end_offset
        self._newest = placed
        if epoch != self.epochs.latest and epoch >= 0:
            self.epochs.assign(epoch, base_offset)
        if header.producer_id >= 0:
            self._learn(placed)

    def _learn(self, placed: Placed) -> None:
        """Update the state of the producer that wrote the batch `placed`, which is in the log."""
        position, header, base_offset, _ = placed
        if not header.is_control:
            self.producers.update(header, base_offset)
        elif (marker := _marker(self.store.read(position, header.size))) is not None:
            self.producers.end_transaction(header, marker, base_offset)
            if base_offset < self.high_watermark:  # a follower may learn the high watermark first
                self.producers.transactions.replicated(self.high_watermark)

    # Reading

    def read(self, fetch_offset: int, limit_bytes: int, bound_offset: int, at_least_one: bool) -> LogSlice:
        """Return the batches from the batch with `fetch_offset` up to, but not including, the batch with `bound_offset` (F-9, F-14, F-15).

        Stops at the end of the segment, and after `limit_bytes`, so the last batch may be incomplete. If the first batch is larger than the limit, it
        is returned whole if `at_least_one` is true (F-7); otherwise nothing is returned (F-10). Raises OffsetOutOfRange if `fetch_offset` is below
        the log start or above the log end (F-16), and ValueError for a negative limit if there is something to read (F-13).
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
            raise ValueError(f"limit_bytes must be at least 0 (got {limit_bytes})")
        first_batch_bytes = place.size_bytes
        if limit_bytes < first_batch_bytes:
            if not at_least_one:
                return LogSlice(b"", 0, first_batch_bytes)
            limit_bytes = first_batch_bytes
        size_bytes = min(limit_bytes, readable_bytes)
        return LogSlice(self.store.region(place.position, size_bytes), size_bytes, first_batch_bytes)

    def offset_behind(self, fetch_offset: int, size_bytes: int) -> int:
        """Return the offset from which a client fetches next, after a fetch from `fetch_offset` that returned `size_bytes` bytes.

        It is the offset after the last complete batch in these bytes, which begin with the batch that holds `fetch_offset`.
        """
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
        """Return the size in bytes of the batches from the batch with `fetch_offset` up to the batch with `bound_offset`, exclusive (F-29)."""
        self.check_range(fetch_offset)
        bound_offset = min(bound_offset, self.log_end_offset)
        return self.runs.bytes_between(fetch_offset, bound_offset) if fetch_offset < bound_offset else 0

    @property
    def size_bytes(self) -> int:
        """Return the size of the log in bytes as Kafka counts it: from the start of its first segment, which may precede the log start (AD-41)."""
        return self.runs.deleted_bytes + self.bytes_between(self.log_start_offset, self.log_end_offset)

    def aborted_transactions(self, fetch_offset: int, size_bytes: int) -> list[AbortedTransaction]:
        """Return the aborted transactions for a Fetch response with `size_bytes` bytes of batches, from the batch with `fetch_offset` on.

        As in Kafka, the result may also contain transactions that begin after these bytes (F-20), because the end of the search comes from the sparse
        index. The search ends at the last offset of the first batch after these bytes that has an index entry or, if the segment has no such batch,
        at the end of the segment.
        """
        transactions = self.producers.transactions
        if not transactions.aborted or fetch_offset >= self.runs.end_offset:
            return []
        return transactions.aborted_between(fetch_offset, self.runs.upper_bound(fetch_offset, size_bytes))

    def is_on_older_segment(self, fetch_offset: int, bound_offset: int) -> bool:
        """Return whether a read from `fetch_offset` stops before `bound_offset`, because a later segment has the rest of the batches (F-29)."""
        one_read_bytes = self.one_read_bytes(fetch_offset, bound_offset)
        return 0 < one_read_bytes < self.runs.bytes_between(fetch_offset, min(bound_offset, self.log_end_offset))

    def one_read_bytes(self, fetch_offset: int, bound_offset: int) -> int:
        """Return how many bytes a read from `fetch_offset` up to `bound_offset`, exclusive, can return: those of one segment. 0 if there are none."""
        bound_offset = min(bound_offset, self.log_end_offset)
        if not self.log_start_offset <= fetch_offset < min(bound_offset, self.runs.end_offset):
            return 0
        place = self.runs.locate(fetch_offset)
        return self.runs.readable_end(place, bound_offset) - place.position

    def batches(self, from_offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Yield (byte position in the partition's store, header) of every batch, from the batch that holds `from_offset` to the log's end."""
        for start, end in self.runs.ranges(from_offset):
            yield from headers(self.store, start, end)

    def read_all(self) -> bytes:
        """Return all batches of this log as bytes in memory, for tests and tools."""
        return b"".join(
            self.store.read(position, header.size) for position, header in self.batches(self.log_start_offset)
        )

    # Lookups

    def offset_for_timestamp(self, timestamp: int, bound_offset: int) -> FoundRecord | None:
        """Return the first record at or after `timestamp` (ms) and below `bound_offset`, None if there is none (L-6)."""
        record = time_lookup.first_at_or_after(self.runs, timestamp, self.log_start_offset)
        return record if record is not None and record.offset < bound_offset else None

    def offset_of_max_timestamp(self, bound_offset: int) -> FoundRecord | None:
        """Return the first record with the largest timestamp, None if its offset is not below `bound_offset` (L-7, KIP-734)."""
        record = time_lookup.latest(self.runs, self.log_start_offset)
        return record if record is not None and record.offset < bound_offset else None

    def segment_starts(self) -> list[tuple[int, int]]:
        """Return (first offset, largest timestamp) of each segment, oldest first, for ListOffsets version 0.

        Returns [(log start offset, 0)] for an empty log. Reads the headers of all batches, so its time grows with the log.
        """
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
        """Return the leader epoch of the log start offset (L-5), -1 if it is unknown."""
        earliest = self.epochs.earliest()
        return earliest.epoch if earliest is not None and earliest.start_offset <= self.log_start_offset else -1

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """Return the largest known epoch not above `epoch`, and the offset at which it ends in this log (E-3).

        If `epoch` is below the earliest, returns `epoch` and the start of the earliest; if `epoch` is -1 or above the latest, returns (-1, -1).
        """
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def divergence(self, last_fetched_epoch: int, fetch_offset: int) -> EpochEnd | None:
        """Return the epoch and offset from which a follower's log differs from this one; None if it does not differ (F-26, KIP-595).

        The follower's log ends at `fetch_offset`, in epoch `last_fetched_epoch`. The result is the largest epoch of this log that is not above
        `last_fetched_epoch`, and the end offset of that epoch, to which the follower must truncate. Raises OffsetOutOfRange if `last_fetched_epoch`
        is -1 or above the latest epoch of this log, or if `fetch_offset` is below the log start.
        """
        epoch_end = self.end_offset_for_epoch(last_fetched_epoch)
        if epoch_end == UNDEFINED_END or fetch_offset < self.log_start_offset:
            raise OffsetOutOfRange(fetch_offset, self.log_start_offset, self.log_end_offset)
        diverged = epoch_end.epoch < last_fetched_epoch or epoch_end.end_offset < fetch_offset
        return epoch_end if diverged else None

    def check_range(self, offset: int) -> None:
        """Raise OffsetOutOfRange unless `offset` can be read or is the log end offset (F-16)."""
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.log_end_offset)

    def starts_inside_a_batch(self, offset: int) -> bool:
        """Return whether `offset` is the log start and lies inside the first batch, after the batch's base offset."""
        if offset != self.log_start_offset or offset >= self.runs.end_offset:
            return False
        return self.runs.locate(offset).base_offset < offset

    # Truncating and deleting

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that contains `offset` and all batches after it (E-4).

        A high watermark above the new log end is lowered. If `offset` is below the log start, the log becomes empty and starts at `offset`. If
        `offset` is the log end, no batch is removed. But if a leader epoch begins there, the epoch is removed: it has no batches, and the next
        batches may have a different epoch.
        """
        if offset >= self.log_end_offset:
            self.epochs.truncate_from_end(offset)
            return
        if offset < self.log_start_offset:
            self.restart_at(offset)
            return
        end_before = self.log_end_offset
        # After the last batch there is nothing to remove: compaction left a gap there.
        self.log_end_offset = self.runs.cut_end(offset) if offset < self.runs.end_offset else offset
        self._report_truncation("end", end_before, self.log_end_offset)
        self._newest = None
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self.first_dirty_offset = min(self.first_dirty_offset, self.log_end_offset)
        if self.high_watermark > self.log_end_offset:
            self.commit(self.log_end_offset)
        self.epochs.truncate_from_end(self.log_end_offset)
        self._learn_producers_again(self.producers.forget_from(self.log_end_offset))

    def raise_log_start(self, offset: int) -> None:
        """Raise the log start, so that records below `offset` can no longer be read (E-4).

        It is used for DeleteRecords, for retention, and when the leader's log start has moved. An `offset` below the log start has no effect. An
        `offset` above the log end raises ValueError (see `restart_at`). A high watermark below the new start is raised to it. Space is released
        when no replica needs it. Raises StorageError if a leader cannot persist the new start; then nothing has changed.
        """
        if offset <= self.log_start_offset:
            return
        if offset > self.log_end_offset:
            raise ValueError(
                f"log start offset must be at most the log end offset {self.log_end_offset} (got {offset})"
            )
        if self.state_writer is not None and self.is_leader:
            self.state_writer.started(self.store.end_position, offset, self.producers.states_below(offset))
        self._report_truncation("start", self.log_start_offset, offset)
        self.log_start_offset = offset
        self.commit(max(self.high_watermark, offset))
        self.epochs.truncate_from_start(offset)
        self.runs.cut_start(offset)
        if not self.store.open_bytes:  # retention has ended the active segment, too
            self.runs.forget_deleted()
        self.producers.transactions.drop_before(offset)

    def replace_below(self, offset: int, cleaned: Iterable[OffsetRange], aborted: Iterable[AbortedTransaction]) -> None:
        """Replace the batches whose last offset is below `offset` by the compacted batches in `cleaned`. Sets `first_dirty_offset` to `offset`.

        aborted: the aborted transactions with a batch and a marker in `cleaned`. A transaction without its marker must not be listed: consumers
        would skip later records of its producer. Raises StorageError if a leader cannot persist the change; then nothing has changed.
        """
        runs = self.runs.replaced_below(offset, cleaned)
        remaining = self.producers.transactions.cleaned_below(offset, aborted)
        if self.state_writer is not None and self.is_leader:
            self.state_writer.cleaned(
                self.state()._replace(runs=runs, first_dirty_offset=offset, aborted=tuple(remaining))
            )
        self.runs.become(runs)
        self.runs.forget_deleted()
        self.producers.transactions.restore_aborted(remaining)
        self.first_dirty_offset = offset

    def restart_at(self, offset: int) -> None:
        """Remove all records and start an empty log at `offset`, for example because the leader's log starts after this log's end."""
        self._report_truncation("restart", self.log_end_offset, offset)
        self.runs.clear()
        self._newest = None
        self.log_start_offset = self.log_end_offset = self.first_dirty_offset = offset
        self.commit(offset)
        self.epochs.clear()
        self.producers.clear()

    def _report_truncation(self, offset_kind: str, before: int, after: int) -> None:
        if self._events.log_truncated is not None:
            broker_id, topic, index, turn = self.origin
            self._events.log_truncated(broker_id, topic, index, offset_kind, before, after, turn.now_ms)

    def close(self) -> None:
        """Close the log of a deleted replica, and free the bytes that no other replica of the partition needs."""
        self.runs.clear()

    def _learn_producers_again(self, producer_ids: set[int]) -> None:
        if not producer_ids:
            return
        for position, header in self.batches(self.log_start_offset):
            if header.producer_id in producer_ids:
                self._learn(Placed(position, header, header.base_offset, header.partition_leader_epoch))
        self.producers.restore({})
        self.producers.transactions.replicated(self.high_watermark)


def _marker(batch: memoryview | bytes) -> EndOfTransaction | None:
    """Return the decoded transaction marker in a control batch; None if the batch is empty, damaged or another kind of control batch."""
    try:
        record = next(iter(records(batch)), None)
    except DecodeError:
        return None
    return None if record is None else end_of_transaction(record)
