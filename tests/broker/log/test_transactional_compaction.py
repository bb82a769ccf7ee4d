"""Compaction of transactions: aborted records are removed, markers when nothing is left of their transaction (KIP-98, KIP-534)."""

from __future__ import annotations

from random import Random

import pytest

from kafkaproto.broker.log.compaction import CleaningLimits, clean, cleanable
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.log.store import MemoryBudget, Store
from kafkaproto.broker.log.transaction_index import AbortedTransaction
from kafkaproto.records.batch import TRANSACTIONAL, read_header, records
from kafkaproto.records.control import build_end_txn_marker, end_of_transaction
from tests.support.broker.batches import NOW_MS, batch

RETENTION_MS = 1000
SEEDS = 300
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
        remaining: list[tuple[int, bytes | str]] = []
        for position, header in self.log.batches(0):
            listed = list(records(self.log.store.read(position, header.size)))
            if not listed:
                remaining.append((header.base_offset, "empty"))
            remaining += [(r.offset, "marker" if header.is_control else r.key or b"") for r in listed]
        return remaining


def test_compaction_removes_aborted_records_and_keeps_older_committed_records() -> None:
    log = Compacted()
    log.write(b"a", None)
    log.write(b"a")
    log.end(commit=False)
    log.write(b"b", OTHER)
    log.end(commit=True, producer=OTHER)
    log.write(b"z", None)
    assert log.clean() == [(0, b"a"), (1, "empty"), (2, "marker"), (3, b"b"), (4, "marker"), (5, b"z")]


def test_compaction_keeps_only_the_newest_committed_record_of_a_key() -> None:
    log = Compacted()
    log.write(b"a", None)
    log.write(b"a")
    log.end(commit=True)
    log.write(b"z", None)
    assert log.clean() == [(1, b"a"), (2, "marker"), (3, b"z")]


@pytest.mark.parametrize("commit", [True, False])
def test_marker_of_an_empty_transaction_is_removed_after_delete_retention_ms(commit: bool) -> None:
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


def test_compaction_leaves_records_of_an_open_transaction_unchanged() -> None:
    log = Compacted()
    log.write(b"a", None)
    log.write(b"a")
    log.write(b"b", None)
    log.write(b"z", None)
    assert [segment.first_offset for segment in cleanable(log.log, LIMITS, NOW_MS).segments] == [0]
    log.end(commit=True)
    assert [segment.first_offset for segment in cleanable(log.log, LIMITS, NOW_MS).segments] == [0, 1, 2, 3]


def test_compaction_replaces_the_last_marker_of_a_producer_by_an_empty_batch() -> None:
    log = Compacted()
    log.end(commit=False)
    log.write(b"z", None)
    assert log.clean() == [(0, "marker"), (1, b"z")]
    assert log.clean(NOW_MS + RETENTION_MS) == [(0, "empty"), (1, b"z")]
    restored = ReplicaLog(log.log.store)
    restored.replicate_from(log.log, 1 << 30)
    assert restored.log_end_offset == 2 and restored.last_stable_offset == 0


@pytest.mark.rule("TX-53")
def test_follower_keeps_a_transaction_open_if_compaction_removed_the_abort_marker() -> None:
    """The leader has removed the records and the marker of a transaction of which the follower has the first record, as in Kafka."""
    leader = Compacted()
    leader.write(b"a")
    follower = ReplicaLog(leader.log.store)
    follower.replicate_from(leader.log, 1 << 30)
    leader.end(commit=False)
    leader.write(b"a")
    leader.end(commit=True)
    leader.write(b"a", None)
    leader.write(b"z", None)
    for now_ms in (NOW_MS, NOW_MS, NOW_MS + RETENTION_MS):
        remaining = leader.clean(now_ms)
    assert remaining == [(2, "empty"), (3, "marker"), (4, b"a"), (5, b"z")]
    follower.replicate_from(leader.log, 1 << 30, end_offset=3)
    follower.commit(3)
    assert (leader.log.last_stable_offset, follower.last_stable_offset) == (6, 0)
    follower.replicate_from(leader.log, 1 << 30)
    follower.commit(6)
    assert follower.last_stable_offset == 6
    assert follower.producers.transactions.aborted == ()  # the next marker has committed the aborted record


def read_committed(log: ReplicaLog) -> dict[bytes, int]:
    """Return the offset of the last record of each key that a read_committed consumer gets from a fetch of the whole log."""
    aborted = sorted(log.producers.transactions.aborted_between(0, log.log_end_offset), key=lambda entry: entry[1])
    skipped: set[int] = set()
    last: dict[bytes, int] = {}
    for position, header in log.batches(0):
        if header.base_offset >= log.last_stable_offset:
            break
        while aborted and aborted[0].first_offset <= header.last_offset:
            skipped.add(aborted.pop(0).producer_id)
        listed = list(records(log.store.read(position, header.size)))
        if header.is_control:
            end = end_of_transaction(listed[0]) if listed else None
            if end is not None and not end.committed:
                skipped.discard(header.producer_id)
        elif header.producer_id not in skipped:
            last.update((record.key or b"", record.offset) for record in listed)
    return last


def test_random_compactions_never_remove_the_last_committed_record_of_a_key() -> None:
    for seed in range(SEEDS):
        chance, log, now_ms = Random(seed), Compacted(), NOW_MS
        opened: dict[int, dict[bytes, int]] = {}
        expected: dict[bytes, int] = {}
        for _ in range(chance.randrange(5, 40)):
            key, producer, action = chance.choice([b"a", b"b", b"c"]), chance.choice([1, 2, 3]), chance.random()
            if action < 0.35:
                opened.setdefault(producer, {})[key] = log.log.log_end_offset
                log.write(key, producer)
            elif action < 0.5:
                expected[key] = log.log.log_end_offset
                log.write(key, None)
            elif action < 0.75 and opened:
                producer = chance.choice(sorted(opened))
                written, commit = opened.pop(producer), chance.random() < 0.6
                log.end(commit=commit, producer=producer)
                for written_key, offset in written.items() if commit else ():
                    expected[written_key] = max(offset, expected.get(written_key, -1))
            else:
                now_ms += chance.choice([0, 400, RETENTION_MS + 1])
                log.clean(now_ms)
            committed = read_committed(log.log)
            stable = {key: offset for key, offset in expected.items() if offset < log.log.last_stable_offset}
            assert {key: committed.get(key) for key in stable} == stable, f"seed {seed}"


def test_compaction_forgets_an_aborted_transaction_when_its_last_batch_is_removed() -> None:
    log = Compacted()
    log.write(b"a")
    log.end(commit=False)
    log.write(b"b")
    log.end(commit=True)
    log.write(b"z", None)
    assert log.clean() == [(1, "marker"), (2, b"b"), (3, "marker"), (4, b"z")]
    assert log.log.producers.transactions.aborted == (AbortedTransaction(PRODUCER, 0, 1),)
    log.clean()
    assert log.log.producers.transactions.aborted == ()
    assert log.clean(NOW_MS + RETENTION_MS) == [(2, b"b"), (3, "marker"), (4, b"z")]


def test_compaction_after_removal_of_an_abort_marker_keeps_newer_committed_records() -> None:
    log = Compacted()
    for commit in (False, True):
        log.write(b"a")
        log.end(commit=commit)
    log.write(b"z", None)
    for now_ms in (NOW_MS, NOW_MS, NOW_MS + RETENTION_MS):
        log.clean(now_ms)
    log.log.producers.transactions.restore_aborted([AbortedTransaction(PRODUCER, 0, 1)])
    assert log.clean(NOW_MS + RETENTION_MS) == [(2, b"a"), (3, "marker"), (4, b"z")]
    assert log.log.producers.transactions.aborted == ()
