"""Look-up of offsets by timestamp (ListOffsets, KIP-33, KIP-79, KIP-734; rules L-6, L-7).

The sparse index of the partition's store narrows the search to a few ranges of byte positions, and the batch headers in these ranges narrow it to a
few batches. Only the records of these batches are decoded. This module does not depend on isolation levels, high watermarks, or epochs other than
those in the batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkaproto.broker.log.runs import Runs
from kafkaproto.broker.log.scan import headers
from kafkaproto.broker.log.store import Store
from kafkaproto.records.batch import NO_TIMESTAMP, BatchHeader, records


class FoundRecord(NamedTuple):
    """A record's timestamp (ms) and offset, with the leader epoch of its batch."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(runs: Runs, timestamp: int, log_start_offset: int) -> FoundRecord | None:
    """Return the first record with offset >= `log_start_offset` and timestamp >= `timestamp` (ms); None if there is none (L-6).

    runs: the ranges of the partition's store that contain the log's batches.
    """
    store = runs.store
    for start, end in runs.ranges(log_start_offset):
        for span_start, span_end in store.index.spans_reaching(start, end, timestamp):
            for position, header in headers(store, span_start, span_end):
                if header.max_timestamp >= timestamp:
                    for record in _records(store, position, header):
                        if record.timestamp >= timestamp and record.offset >= log_start_offset:
                            return record
    return None


def largest_timestamp(store: Store, start: int, end: int) -> int:
    """Return the largest timestamp (ms) of the batches between two positions; -1 if no batch has one.

    store: the bytes of a partition. start, end: byte positions in the store, the end exclusive; a batch begins at `start`.
    """
    return max(
        (
            header.max_timestamp
            for span in store.index.spans_of_latest(start, end)
            for _, header in headers(store, *span)
        ),
        default=NO_TIMESTAMP,
    )


def latest(runs: Runs, log_start_offset: int) -> FoundRecord | None:
    """Return the first of the records with the largest timestamp; None if there are no records (L-7).

    runs: the ranges of the partition's store that contain the log's batches. log_start_offset: only the batch with this offset and later batches are
    searched.
    """
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
    candidates = _records(store, position, header)
    return next((record for record in candidates if record.timestamp == header.max_timestamp), None)


def _records(store: Store, position: int, header: BatchHeader) -> Iterator[FoundRecord]:
    for record in records(store.read(position, header.size)):
        yield FoundRecord(record.timestamp, record.offset, header.partition_leader_epoch)
