"""Compaction of transactions: aborted records are removed, markers when nothing is left of their transaction (KIP-98, KIP-534)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.log.compaction import CleaningLimits, clean, cleanable
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.log.store import MemoryBudget, Store
from kafkaproto.records.batch import TRANSACTIONAL, read_header, records
from kafkaproto.records.control import build_end_txn_marker
from tests.support.broker.batches import NOW_MS, batch

RETENTION_MS = 1000
LIMITS = CleaningLimits(0, (1 << 63) - 1, 0.0, RETENTION_MS)
PRODUCER, OTHER = 7, 8


class Compacted:
    """A log of which every batch is a segment of its own, and the last one is never cleaned."""

    def __init__(self) -> None:
        self.log = ReplicaLog(Store(MemoryBudget(1 << 30), segment_bytes=1))
        self.sequences: dict[int, int] = {}

    def write(self, key: bytes, producer: int | None = PRODUCER) -> None:
        """Append one record, in the producer's transaction or, with None, in none."""
        if producer is None:
            self._append(batch(key=key))
            return
        sequence = self.sequences.get(producer, 0)
        self.sequences[producer] = sequence + 1
        self._append(
            batch(key=key, producer_id=producer, producer_epoch=0, sequence=sequence, attributes=TRANSACTIONAL)
        )

    def end(self, *, commit: bool, producer: int = PRODUCER) -> None:
        marker = build_end_txn_marker(
            commit, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS
        )
        self._append(bytearray(marker))

    def _append(self, data: bytearray) -> None:
        self.log.append(memoryview(data), read_header(data), 0, NOW_MS)
        self.log.commit(self.log.log_end_offset)

    def clean(self, now_ms: int = NOW_MS) -> list[tuple[int, bytes | str]]:
        """Compact the log, and return (offset, key) of each record left; "marker" for a marker, "empty" for a batch without records."""
        clean(self.log, LIMITS, now_ms, {})
        found: list[tuple[int, bytes | str]] = []
        for position, header in self.log.batches(0):
            listed = list(records(self.log.store.read(position, header.size)))
            if not listed:
                found.append((header.base_offset, "empty"))
            found += [(r.offset, "marker" if header.is_control else r.key or b"") for r in listed]
        return found


def test_aborted_records_are_removed_and_do_not_replace_committed_ones() -> None:
    log = Compacted()
    log.write(b"a", None)
    log.write(b"a")
    log.end(commit=False)
    log.write(b"b", OTHER)
    log.end(commit=True, producer=OTHER)
    log.write(b"z", None)
    assert log.clean() == [(0, b"a"), (1, "empty"), (2, "marker"), (3, b"b"), (4, "marker"), (5, b"z")]


def test_committed_records_replace_older_ones() -> None:
    log = Compacted()
    log.write(b"a", None)
    log.write(b"a")
    log.end(commit=True)
    log.write(b"z", None)
    assert log.clean() == [(1, b"a"), (2, "marker"), (3, b"z")]


@pytest.mark.parametrize("commit", [True, False])
def test_marker_of_an_empty_transaction_is_removed_after_delete_retention(commit: bool) -> None:
    log = Compacted()
    log.write(b"a")
    log.end(commit=commit)
    log.write(b"a")
    log.end(commit=True)
    log.write(b"z", None)
    first = log.clean()
    assert first == [(1, "marker"), (2, b"a"), (3, "marker"), (4, b"z")]
    assert log.clean() == first  # finds the transaction empty, and sets the delete horizon
    assert log.clean(NOW_MS + RETENTION_MS - 1) == first
    assert log.clean(NOW_MS + RETENTION_MS) == [(2, b"a"), (3, "marker"), (4, b"z")]
    assert log.log.producers.producers[PRODUCER].last_sequence == 1


def test_open_transaction_is_not_compacted() -> None:
    log = Compacted()
    log.write(b"a", None)
    log.write(b"a")
    log.write(b"b", None)
    log.write(b"z", None)
    assert [segment.first_offset for segment in cleanable(log.log, LIMITS, NOW_MS).segments] == [0]
    log.end(commit=True)
    assert [segment.first_offset for segment in cleanable(log.log, LIMITS, NOW_MS).segments] == [0, 1, 2, 3]


def test_empty_marker_keeps_the_epoch_of_a_producer_without_batches() -> None:
    log = Compacted()
    log.end(commit=False)
    log.write(b"z", None)
    assert log.clean() == [(0, "marker"), (1, b"z")]
    assert log.clean(NOW_MS + RETENTION_MS) == [(0, "empty"), (1, b"z")]
    restored = ReplicaLog(log.log.store)
    restored.replicate_from(log.log, 1 << 30)
    assert restored.log_end_offset == 2 and restored.last_stable_offset == 0
