"""Recovery of one partition after a restart: of its bytes (the store) and of the log that consists of them.

`recover` starts with the last state of the log in the metadata log. It reads all batches in the segment files in the order of their byte positions,
checks each batch, and truncates the files at the first damaged batch. Batches that were appended after the last state was persisted are added to the
log. This module does not depend on topics, replicas or other partitions.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kafkaproto.broker.log.file_deletion import delete_leftovers
from kafkaproto.broker.log.named_files import SegmentFolder
from kafkaproto.broker.log.producer_state import ProducerEntry
from kafkaproto.broker.log.replica_log import LogState, Placed, ReplicaLog
from kafkaproto.broker.log.runs import OffsetRange
from kafkaproto.broker.log.scan import headers
from kafkaproto.broker.log.segments import NamedSegment
from kafkaproto.broker.log.store import Store
from kafkaproto.records.batch import BatchHeader, check_crc, read_header
from kafkaproto.records.headers import in_memory, walk_headers


class LogStart(NamedTuple):
    """A recorded change of a partition's log start offset, read from the metadata log.

    at: the byte position at which the partition's store ended at the time of the change. producers: maps producer ids to states, for the
    producers whose state depends on batches that the change removed.
    """

    at: int
    log_start_offset: int
    producers: dict[int, ProducerEntry]


@dataclass(slots=True)
class LogFacts:
    """What the metadata log contains about the log of one partition.

    state: the state of this log when it was last recorded completely. starts: the changes of the log start offset after that state was recorded.
    """

    state: LogState = field(default_factory=lambda: LogState(0, 0, 0, 0, [], [], {}))
    starts: list[LogStart] = field(default_factory=list)


class Recovered(NamedTuple):
    """The result of a recovery. state: the restored state of the log. cut_bytes: how many damaged bytes were removed.

    cut_at: the offset at which the log ends because of the damage, -1 if no bytes were removed.
    """

    state: LogState
    cut_bytes: int
    cut_at: int


def recover(store: Store, facts: LogFacts, verify: bool, now_ms: int) -> Recovered:
    """Restore the segments and the index of `store` from its folder, and return the state of its log.

    facts: what the metadata log contains about this log. verify: whether to verify checksums, which is necessary if the previous process did not
    stop properly.
    """
    assert store.folder is not None
    state = facts.state
    segments = _segments_worth_keeping(store.folder, state.runs, now_ms)
    end_positions = [segment.end for segment in segments]
    end_position = max([state.at, *end_positions, *(start.at for start in facts.starts)])
    is_open = bool(segments) and not segments[-1].is_cleaned and segments[-1].end == end_position
    _resume(store, store.folder, segments, end_position, is_open)
    with store.temporary_readers():
        recovered_log = _as_a_log(store, facts, _Files(store, store.folder, segments, verify))
    if store.open_bytes:
        _restore_roll_conditions(store, now_ms)
    return recovered_log


def _restore_roll_conditions(store: Store, now_ms: int) -> None:
    """Restore the roll conditions of the active segment, such as its age, from its batches.

    The batches after the first one only determine how full the indexes are. If the indexes of the segment cannot become full, only the first batch is
    read. now_ms: taken as the time at which the segment started.
    """
    start = store.end_position - store.open_bytes
    conditions = store.roll_conditions
    for position, header in headers(store, start, store.end_position):
        conditions.appended(store.segment_number, header.max_timestamp, now_ms)
        if conditions.indexes is None:
            return
        conditions.indexes.appended(position - start, header.max_timestamp)


def _segments_worth_keeping(folder: SegmentFolder, runs: Sequence[OffsetRange], now_ms: int) -> list[NamedSegment]:
    """Return the segments in `folder` in order, after deleting all other files.

    The other files are empty, from an unfinished compaction, or from deleted segments whose `file.delete.delay.ms` had not passed.

    runs: the ranges of byte positions at which the log has batches, read from the metadata log. When a compaction ends, it writes the new ranges to
    the metadata log. A compacted file that overlaps none of the ranges is therefore from a compaction that did not end. now_ms: taken as the time of
    the last append to each segment, because the real time is unknown.
    """
    kept_segments = []
    delete_leftovers(folder.path)
    for on_disk in folder.segments():
        segment = NamedSegment.from_disk(folder, on_disk, now_ms)
        is_used = any(run.start < segment.end and segment.base < run.end for run in runs)
        if on_disk.size_bytes and (is_used or not on_disk.is_cleaned):
            kept_segments.append(segment)
        else:
            _delete(segment)
    return kept_segments


def _delete(segment: NamedSegment) -> None:
    """Delete the file of a segment. If this fails, empty the file, because a later segment may get the same name.

    Raises OSError if the file can be neither deleted nor emptied.
    """
    if not segment.drop():
        segment.truncate(segment.base)


def _resume(
    store: Store, folder: SegmentFolder, segments: Sequence[NamedSegment], end_position: int, is_open: bool
) -> None:
    """Make the store consist of `segments`, so that the next append writes at byte position `end_position`. Appends nothing itself.

    The position counts all bytes that were ever appended to the partition.

    folder: where a new segment gets its file. is_open: True if the next append continues the last segment, False to add a new segment for it.
    """
    new_segments = [] if is_open else [NamedSegment(end_position, 0, folder, is_cleaned=False)]
    store.resume([*segments, *new_segments], end_position)


def _as_a_log(store: Store, facts: LogFacts, files: _Files) -> Recovered:
    """Rebuild the log from its last persisted state and its files, truncate it where a batch is damaged, and return the result.

    facts: what the metadata log contains about the log. files: the segment files of the log. store: the partition's bytes, which are in these files.
    """
    state = facts.state
    runs, damaged_at = _kept_runs(store, files, state.runs)
    log = ReplicaLog(store)
    log.restore(state._replace(runs=runs))
    if damaged_at is not None:
        log.truncate_to(runs[-1].end_offset if runs else state.log_start_offset)
        cut_bytes = files.cut(damaged_at, runs)
    else:
        cut_bytes = _take_tail(log, files, facts)
    cut_at = log.log_end_offset if cut_bytes else -1
    log_start = max([state.log_start_offset, *(start.log_start_offset for start in facts.starts)])
    if state.runs and (runs[0].start > state.runs[0].start if runs else damaged_at is None):
        # The first batches were dropped after the last state was recorded.
        log_start = max(log_start, runs[0].first_offset if runs else state.log_end_offset)
    if not runs and log.runs.first_offset > state.log_end_offset:
        # A leader whose epoch could not be recorded dropped the first batches since then.
        log_start = max(log_start, log.runs.first_offset)
    # If no batch is left, the log continues at its start, and the state of producers and epochs stays.
    log.log_end_offset = max(log.log_end_offset, log_start)
    log.raise_log_start(log_start)
    return Recovered(log.state(), cut_bytes, cut_at)


class _Damage(Exception):
    """Raised for a batch that is damaged or incomplete. position: the byte position in the partition's store at which the batch begins."""

    def __init__(self, position: int) -> None:
        super().__init__(f"no whole batch at position {position}")
        self.position = position


class _Files:
    """The segment files of a partition that is being recovered, and its store. verify: whether to verify the checksum of each batch."""

    def __init__(self, store: Store, folder: SegmentFolder, segments: list[NamedSegment], verify: bool) -> None:
        self.segments = segments
        self._store = store
        self._folder = folder
        self._verify = verify

    @property
    def first_position(self) -> int | None:
        """Return the byte position in the partition's store at which the first segment file begins; None if the partition has no file left."""
        return self.segments[0].base if self.segments else None

    def batches(self, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
        """Yield (byte position, header) of every batch from byte position `start` in the partition's store up to `end`, exclusive.

        Raises _Damage where a batch is damaged or a file is missing.
        """
        position = start
        for segment in self.segments:
            if segment.end <= position or position >= end or segment.path is None:
                continue
            if segment.base > position:
                raise _Damage(position)
            with segment.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                view = memoryview(data)
                try:
                    base = segment.base
                    for at, size, _, _ in walk_headers(in_memory(view), position - base, min(end - base, len(view))):
                        if at >= segment.end - base or not self._is_sound(view, at, size):
                            break
                        yield base + at, read_header(view, at)
                        position = base + at + size
                    if position < min(end, segment.end):
                        raise _Damage(position)
                finally:
                    view.release()
        if position < end:
            raise _Damage(position)

    def cut(self, position: int, needed: Sequence[OffsetRange]) -> int:
        """Remove the bytes of the partition's store from byte position `position` on. Returns how many bytes were removed.

        Call it if the batch at `position` is damaged. The segment that contains this byte is truncated there. Later segments are deleted, unless they
        overlap a range in `needed`. Segments that compaction wrote do not change. The removed byte positions are not used again. needed: the ranges
        of byte positions whose batches must stay.
        """
        cut_bytes = 0
        kept_segments: list[NamedSegment] = []
        for segment in self.segments:
            is_needed = any(run.start < segment.end and segment.base < run.end for run in needed)
            if segment.end > position and not segment.is_cleaned:
                if segment.base < position:
                    cut_bytes += segment.end - position
                    segment.truncate(position)
                elif not is_needed:
                    cut_bytes += segment.end - segment.base
                    _delete(segment)
                    continue
            kept_segments.append(segment)
        self.segments = kept_segments
        _resume(self._store, self._folder, kept_segments, self._store.end_position, is_open=False)
        return cut_bytes

    def _is_sound(self, view: memoryview, at: int, size: int) -> bool:
        if not self._verify:
            return True
        with view[at : at + size] as batch:
            return check_crc(batch)


def _kept_runs(store: Store, files: _Files, runs: Sequence[OffsetRange]) -> tuple[list[OffsetRange], int | None]:
    """Check the batches of a log, and return (the runs before its first damaged batch, the byte position of that batch or None).

    A run is a range of byte positions in the store, with the offsets of its batches. The position is None if no batch is damaged. The function also
    adds the batches to the index of the store.
    files: the partition's segment files. runs: the log's runs in its last persisted state, in the order of their offsets.
    """
    first = files.first_position
    cut_runs = [] if first is None else [run._replace(start=max(run.start, first)) for run in runs if run.end > first]
    sound_ranges: dict[OffsetRange, OffsetRange] = {}
    damaged: dict[OffsetRange, int] = {}
    for run in sorted(cut_runs, key=lambda run: run.start):
        first_offset, end, end_offset = -1, run.start, run.first_offset
        try:
            for position, header in files.batches(run.start, run.end):
                store.index.add(position, header.base_offset, header.max_timestamp)
                first_offset = header.base_offset if first_offset < 0 else first_offset
                end, end_offset = position + header.size, header.next_offset
        except _Damage as damage:
            damaged[run] = damage.position
        else:
            end_offset = run.end_offset
        sound_ranges[run] = OffsetRange(run.start, end, max(run.first_offset, first_offset), end_offset)
    sound_runs: list[OffsetRange] = []
    for run in cut_runs:
        if sound_ranges[run].end > sound_ranges[run].start:
            sound_runs.append(sound_ranges[run])
        if run in damaged:
            return sound_runs, damaged[run]
    return sound_runs, None


def _take_tail(log: ReplicaLog, files: _Files, facts: LogFacts) -> int:
    """Append the batches that were written after the log's last persisted state. Returns the number of damaged bytes that were removed.

    If the offset of a batch is below the end of the log, a new leader had truncated the log to this offset before it appended the batch. In that case
    this function truncates the log in the same way. files: the partition's segment files. facts: the log's persisted state, and the later changes of
    the log start offset.
    """
    starts = deque(facts.starts)
    for segment in files.segments:
        begin, end = max(segment.base, facts.state.at), segment.end
        if segment.is_cleaned or begin >= end:
            continue
        try:
            for position, header in files.batches(begin, end):
                while starts and starts[0].at <= position:
                    log.producers.restore(starts.popleft().producers)
                if header.base_offset > log.log_end_offset and len(log.runs):
                    raise _Damage(position)  # a file before this one is missing
                if header.base_offset < log.log_end_offset and len(log.runs):
                    log.truncate_to(header.base_offset)
                log.store.index.add(position, header.base_offset, header.max_timestamp)
                log.append_placed(Placed(position, header, header.base_offset, header.partition_leader_epoch))
        except _Damage as damage:
            return files.cut(damage.position, [])
    for start in starts:
        log.producers.restore(start.producers)
    return 0
