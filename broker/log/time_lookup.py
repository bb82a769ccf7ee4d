"""Offsets by timestamp (ListOffsets, KIP-33, KIP-79, KIP-734; rules L-6, L-7).

The index leaves a few ranges of positions, the headers in them a few batches, and only those are opened.
Must never know: isolation, high watermarks, epochs other than a batch's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkaproto.broker.log.runs import Runs
from kafkaproto.broker.log.scan import headers
from kafkaproto.broker.log.store import Store
from kafkaproto.records.batch import NO_TIMESTAMP, BatchHeader, records


class FoundRecord(NamedTuple):
    """A record by its timestamp (ms) and offset, with the leader epoch of its batch."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(runs: Runs, timestamp: int, log_start_offset: int) -> FoundRecord | None:
    """The first record in offset order, from the log start on, whose timestamp is not below `timestamp` (L-6)."""
    store = runs.store
    for start, end in runs.ranges(log_start_offset):
        for span_start, span_end in store.index.spans_reaching(start, end, timestamp):
            for position, header in headers(store, span_start, span_end):
                if header.max_timestamp >= timestamp:
                    for found in _found(store, position, header):
                        if found.timestamp >= timestamp and found.offset >= log_start_offset:
                            return found
    return None


def largest_timestamp(store: Store, start: int, end: int) -> int:
    """The largest timestamp of the batches in positions `start`..`end`, -1 if none has one."""
    return max(
        (
            header.max_timestamp
            for span in store.index.spans_of_latest(start, end)
            for _, header in headers(store, *span)
        ),
        default=NO_TIMESTAMP,
    )


def latest(runs: Runs, log_start_offset: int) -> FoundRecord | None:
    """The first record with the largest timestamp, of the earliest batch that has it (L-7)."""
    store = runs.store
    best: tuple[int, BatchHeader] | None = None
    for start, end in runs.ranges(log_start_offset):
        for span_start, span_end in store.index.spans_of_latest(start, end):
            for position, header in headers(store, span_start, span_end):
                if best is None or header.max_timestamp > best[1].max_timestamp:
                    best = position, header
    if best is None:
        return None
    position, header = best
    candidates = _found(store, position, header)
    return next((found for found in candidates if found.timestamp == header.max_timestamp), None)


def _found(store: Store, position: int, header: BatchHeader) -> Iterator[FoundRecord]:
    for record in records(store.read(position, header.size)):
        yield FoundRecord(record.timestamp, record.offset, header.partition_leader_epoch)
