"""One partition after a restart: from its segment files and the facts about it to its store and its log.

Walks over every batch in the order of positions; checks it; cuts where one is damaged. What was appended after the last state that
a fact tells belongs to the leader's log one after the other. Must never know topics, replicas, other partitions.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kafkaproto.broker.log.named_files import SegmentOnDisk
from kafkaproto.broker.log.producer_state import ProducerEntry
from kafkaproto.broker.log.replica_log import LogState, Placed, ReplicaLog
from kafkaproto.broker.log.runs import OffsetRange
from kafkaproto.broker.log.scan import headers
from kafkaproto.broker.log.store import Store
from kafkaproto.errors import DecodeError
from kafkaproto.records.batch import HEADER_BYTES, BatchHeader, check_crc, read_header

MAGIC = 2


class LogStart(NamedTuple):
    """The log start moved while the store ended at `at`; the producers of batches before it were these."""

    at: int
    log_start_offset: int
    producers: dict[int, ProducerEntry]


@dataclass(slots=True)
class LogFacts:
    """What facts say of one partition: the last whole state, and the log starts since then."""

    state: LogState = field(default_factory=lambda: LogState(0, 0, 0, 0, [], [], {}))
    starts: list[LogStart] = field(default_factory=list)


class Recovered(NamedTuple):
    """`cut_bytes` were damaged, or lay behind damage; `cut_at` is the offset where the log ends therefore."""

    state: LogState
    cut_bytes: int
    cut_at: int


def recover(store: Store, facts: LogFacts, verify: bool, now_ms: int) -> Recovered:
    """Fill `store` from its folder. verify: check the checksums too, as after a process that did not end by itself."""
    assert store.folder is not None
    state = facts.state
    segments = _worth_keeping(store, state.runs)
    ends = [at.base + at.size_bytes for at in segments]
    store.adopt(segments, max([state.at, *ends, *(start.at for start in facts.starts)]), now_ms)
    walk = _Walk(segments, verify)
    with store.examined():
        recovered = _as_a_log(store, facts, walk, segments)
    if store.open_bytes:
        _, first = next(headers(store, store.end_position - store.open_bytes, store.end_position))
        store.segment_time.appended(store.segment_number, first.max_timestamp, now_ms)
    return recovered


def _as_a_log(store: Store, facts: LogFacts, walk: _Walk, segments: Sequence[SegmentOnDisk]) -> Recovered:
    state = facts.state
    runs, cut = _kept_runs(store, walk, state.runs)
    log = ReplicaLog(store)
    log.restore(state._replace(runs=runs))
    if cut is not None:
        log.truncate_to(runs[-1].end_offset if runs else state.log_start_offset)
        cut_bytes = store.cut(cut, [(run.start, run.end) for run in runs])
    else:
        cut_bytes = _take_tail(log, walk, segments, facts)
    cut_at = log.log_end_offset if cut_bytes else -1
    log_start = max([state.log_start_offset, *(start.log_start_offset for start in facts.starts)])
    if state.runs and (runs[0].start > state.runs[0].start if runs else cut is None):
        # The first batches were given back after the last state was told.
        log_start = max(log_start, runs[0].first_offset if runs else state.log_end_offset)
    if not runs and log.runs.first_offset > state.log_end_offset:
        # So were the first batches since then, by a leader whose epoch could not be told.
        log_start = max(log_start, log.runs.first_offset)
    # Where nothing is left, the log goes on at its start; what is known of producers and epochs stays.
    log.log_end_offset = max(log.log_end_offset, log_start)
    log.raise_log_start(log_start)
    return Recovered(log.state(), cut_bytes, cut_at)


def _worth_keeping(store: Store, runs: Sequence[OffsetRange]) -> list[SegmentOnDisk]:
    """The segments, without those that a cleaning left which never came to its end, and without empty ones."""
    assert store.folder is not None
    kept = []
    for at in store.folder.segments():
        end = at.base + at.size_bytes
        is_used = any(run.start < end and at.base < run.end for run in runs)
        if at.size_bytes and (is_used or not at.is_cleaned):
            kept.append(at)
        else:
            store.folder.unlink(at.path)
    return kept


class _Damage(Exception):
    """A batch is not whole at `position`."""

    def __init__(self, position: int) -> None:
        super().__init__(f"no whole batch at position {position}")
        self.position = position


class _Walk:
    def __init__(self, segments: Sequence[SegmentOnDisk], verify: bool) -> None:
        self._segments = segments
        self._verify = verify

    @property
    def first_position(self) -> int | None:
        """What lay before was given back; None: everything was."""
        return self._segments[0].base if self._segments else None

    def batches(self, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of every batch in `start`..`end`. Raises _Damage where one is not whole, or a file is missing."""
        position = start
        for at in self._segments:
            segment_end = at.base + at.size_bytes
            if segment_end <= position or position >= end:
                continue
            if at.base > position:
                raise _Damage(position)
            with at.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                view = memoryview(data)
                try:
                    while position < min(end, segment_end):
                        header = self._header(view, position - at.base)
                        if header is None or position + header.size > end:
                            raise _Damage(position)
                        yield position, header
                        position += header.size
                finally:
                    view.release()
        if position < end:
            raise _Damage(position)

    def _header(self, view: memoryview, at: int) -> BatchHeader | None:
        if at + HEADER_BYTES > len(view):
            return None
        try:
            header = read_header(view, at)
        except DecodeError:
            return None
        if header.size < HEADER_BYTES or at + header.size > len(view) or header.magic != MAGIC:
            return None
        if self._verify:
            with view[at : at + header.size] as batch:
                if not check_crc(batch):
                    return None
        return header


def _kept_runs(store: Store, walk: _Walk, runs: Sequence[OffsetRange]) -> tuple[list[OffsetRange], int | None]:
    """The runs as far as they are whole, and the position of the first damage. Enters their batches into the index."""
    first = walk.first_position
    there = [] if first is None else [run._replace(start=max(run.start, first)) for run in runs if run.end > first]
    whole: dict[OffsetRange, OffsetRange] = {}
    damaged: dict[OffsetRange, int] = {}
    for run in sorted(there, key=lambda run: run.start):
        first_offset, end, end_offset = -1, run.start, run.first_offset
        try:
            for position, header in walk.batches(run.start, run.end):
                store.index.add(position, header.base_offset, header.max_timestamp)
                first_offset = header.base_offset if first_offset < 0 else first_offset
                end, end_offset = position + header.size, header.next_offset
        except _Damage as damage:
            damaged[run] = damage.position
        else:
            end_offset = run.end_offset
        whole[run] = OffsetRange(run.start, end, max(run.first_offset, first_offset), end_offset)
    kept: list[OffsetRange] = []
    for run in there:
        if whole[run].end > whole[run].start:
            kept.append(whole[run])
        if run in damaged:
            return kept, damaged[run]
    return kept, None


def _take_tail(log: ReplicaLog, walk: _Walk, segments: Sequence[SegmentOnDisk], facts: LogFacts) -> int:
    """What was appended since the last state. A batch below the log's end says that a new leader diverged there.

    Returns how many bytes were cut.
    """
    starts = deque(facts.starts)
    for at in segments:
        begin, end = max(at.base, facts.state.at), at.base + at.size_bytes
        if at.is_cleaned or begin >= end:
            continue
        try:
            for position, header in walk.batches(begin, end):
                while starts and starts[0].at <= position:
                    log.producers.restore(starts.popleft().producers)
                if header.base_offset > log.log_end_offset and len(log.runs):
                    raise _Damage(position)  # a file before this one is missing
                if header.base_offset < log.log_end_offset and len(log.runs):
                    log.truncate_to(header.base_offset)
                log.store.index.add(position, header.base_offset, header.max_timestamp)
                log.take(Placed(position, header, header.base_offset, header.partition_leader_epoch))
        except _Damage as damage:
            return log.store.cut(damage.position, [])
    for start in starts:
        log.producers.restore(start.producers)
    return 0
