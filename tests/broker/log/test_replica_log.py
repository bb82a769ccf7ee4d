"""The log of one replica: reads, replication without copying, truncation, log start offset and divergence."""

from __future__ import annotations

import os
from typing import Any

import pytest

from kafkaproto.broker.log.errors import InvalidBatch, OffsetOutOfRange, StorageError
from kafkaproto.broker.log.replica_log import LogSlice, ReplicaLog
from kafkaproto.broker.log.store import FileRange, MemoryBudget, Store
from kafkaproto.broker.replication.following import truncate_to_leader
from kafkaproto.broker.runtime.events import Events, Observer
from kafkaproto.records.batch import check_crc, read_header, records
from tests.support.broker.batches import NOW_MS, batch

ALL = 1 << 60


def new_log(segment_bytes: int = 1 << 30, memory: int = 1 << 30) -> ReplicaLog:
    return ReplicaLog(Store(MemoryBudget(memory), segment_bytes))


def append(log: ReplicaLog, data: bytearray, epoch: int = 0) -> int:
    return log.append(memoryview(data), read_header(data), epoch, NOW_MS).base_offset


def content(part: LogSlice) -> bytes:
    data = part.records.read() if isinstance(part.records, FileRange) else part.records
    assert len(data) == part.size_bytes == len(part.records)
    return data


def read(log: ReplicaLog, offset: int, limit: int = ALL, bound: int = ALL, at_least_one: bool = True) -> bytes:
    return content(log.read(offset, limit, bound, at_least_one))


def three_batches(events: Events | None = None) -> tuple[ReplicaLog, list[int]]:
    """Return a log with three batches of offsets 0-2, 3-4 and 5-9, and the sizes of the batches."""
    log = ReplicaLog(Store(MemoryBudget(1 << 30)), None, events)
    batches = [batch(3, 10), batch(2, 200), batch(5, 50)]
    for data in batches:
        append(log, data)
    return log, [len(data) for data in batches]


@pytest.mark.rule("P-12")
def test_append_sets_offsets_and_leader_epoch_without_invalidating_batch_checksums() -> None:
    log = new_log()
    assert [append(log, batch(count), epoch=7) for count in (3, 1, 4)] == [0, 3, 4]
    assert log.log_end_offset == 8
    header_fields = [
        (header.base_offset, header.last_offset, header.partition_leader_epoch) for _, header in log.batches(0)
    ]
    assert header_fields == [(0, 2, 7), (3, 3, 7), (4, 7, 7)]
    assert all(check_crc(log.store.read(position, header.size)) for position, header in log.batches(0))
    assert log.epochs.entries() == [(7, 0)]


@pytest.mark.rule("F-9")
def test_log_read_starts_at_a_batch_boundary_but_its_byte_limit_may_split_a_batch() -> None:
    log, sizes = three_batches()
    whole = log.read_all()
    for offset, start in [(0, 0), (2, 0), (3, sizes[0]), (4, sizes[0]), (5, sum(sizes[:2])), (9, sum(sizes[:2]))]:
        assert read(log, offset) == whole[start:]
    assert read(log, 1, limit=sizes[0] + 17) == whole[: sizes[0] + 17]
    assert log.read(4, ALL, ALL, False).first_batch_bytes == sizes[1]


@pytest.mark.rule("F-7", "F-10")
def test_log_returns_a_batch_above_the_limit_only_if_argument_at_least_one_is_true() -> None:
    log, sizes = three_batches()
    for limit in (0, 1, sizes[0] - 1):
        assert read(log, 0, limit) == log.read_all()[: sizes[0]]
        assert log.read(0, limit, ALL, False) == LogSlice(b"", 0, sizes[0])
    assert len(read(log, 0, sizes[0], at_least_one=False)) == sizes[0]


@pytest.mark.rule("F-13")
def test_reading_a_log_with_a_negative_limit_raises_value_error_if_records_remain() -> None:
    log, _ = three_batches()
    with pytest.raises(ValueError, match="limit_bytes must be at least 0"):
        log.read(0, -1, ALL, True)
    assert read(log, 10, -1) == b""
    assert read(log, 5, -1, bound=5) == b""


@pytest.mark.rule("F-15")
def test_reading_a_log_returns_no_batches_at_or_beyond_the_upper_bound_offset() -> None:
    log, sizes = three_batches()
    assert read(log, 0, bound=0) == b""
    assert read(log, 0, bound=2) == b""  # inside the first batch, which is not completely visible
    assert len(read(log, 0, bound=3)) == sizes[0]
    assert len(read(log, 0, bound=4)) == sizes[0]
    assert len(read(log, 0, bound=5)) == sum(sizes[:2])
    assert len(read(log, 3, bound=9)) == sizes[1]
    assert len(read(log, 3, bound=10)) == sizes[1] + sizes[2]
    assert read(log, 7, bound=3) == b""


@pytest.mark.rule("F-16")
def test_reading_outside_the_offsets_of_a_log_raises_offset_out_of_range() -> None:
    log, _ = three_batches()
    log.raise_log_start(3)
    for offset in (-1, 0, 2, 11):
        with pytest.raises(OffsetOutOfRange) as refusal:
            log.read(offset, ALL, ALL, True)
        assert (refusal.value.offset, refusal.value.log_start_offset, refusal.value.log_end_offset) == (offset, 3, 10)
    assert read(log, 10) == b""


@pytest.mark.rule("F-14")
def test_reading_a_log_never_continues_beyond_the_end_of_a_segment() -> None:
    batch_bytes = len(batch())
    log = new_log(segment_bytes=3 * batch_bytes)
    for _ in range(8):
        append(log, batch())
    assert [len(read(log, offset)) // batch_bytes for offset in range(9)] == [3, 2, 1, 3, 2, 1, 2, 1, 0]
    assert log.bytes_between(1, 8) == 7 * batch_bytes
    assert log.is_on_older_segment(1, 8) and log.is_on_older_segment(2, 4)
    assert not log.is_on_older_segment(0, 3) and not log.is_on_older_segment(6, 8)


@pytest.mark.rule("F-29")
def test_byte_count_between_two_offsets_includes_the_whole_first_and_last_batch() -> None:
    log, sizes = three_batches()
    assert log.bytes_between(0, ALL) == sum(sizes)
    assert log.bytes_between(4, 10) == sizes[1] + sizes[2]
    assert log.bytes_between(0, 7) == sizes[0] + sizes[1]
    assert log.bytes_between(5, 3) == log.bytes_between(10, 10) == 0


@pytest.mark.rule("F-29")
def test_counting_available_bytes_of_a_large_log_needs_at_most_two_small_file_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = new_log()
    batch_bytes = len(batch())
    for _ in range(20_000):
        append(log, batch())
    bytes_read = []
    real_pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, at: bytes_read.append(n) or real_pread(fd, n, at))
    assert log.bytes_between(7_777, 19_001) == (19_001 - 7_777) * batch_bytes
    assert len(bytes_read) <= 2 and sum(bytes_read) <= 2 * (4096 + 61)


def test_large_reads_of_a_log_return_file_ranges_and_small_reads_return_bytes() -> None:
    log = new_log()
    append(log, batch(1, 1000))
    assert isinstance(log.read(0, ALL, ALL, True).records, bytes)
    append(log, batch(1, 100_000))
    append(log, batch(1, 300_000))
    part = log.read(0, ALL, ALL, True)
    assert isinstance(part.records, FileRange) and part.size_bytes > 400_000
    assert content(part) == log.read_all()


def test_follower_log_shares_the_stored_bytes_of_the_leader_instead_of_copying_them() -> None:
    leader = new_log()
    follower = ReplicaLog(leader.store)
    for count in (1, 2, 3):
        append(leader, batch(count), epoch=4)
    before = leader.store.end_position
    assert follower.replicate_from(leader, ALL) == before
    assert leader.store.end_position == before
    assert follower.read_all() == leader.read_all()
    assert follower.log_end_offset == 6 and follower.epochs.entries() == [(4, 0)] and len(follower.runs) == 1
    assert follower.replicate_from(leader, ALL) == 0


@pytest.mark.rule("F-7")
def test_follower_replicates_whole_batches_up_to_a_limit_but_at_least_one_batch() -> None:
    leader, sizes = three_batches()
    follower = ReplicaLog(leader.store)
    assert follower.replicate_from(leader, 10, at_least_one=False) == 0
    assert follower.replicate_from(leader, 10) == sizes[0]
    assert follower.replicate_from(leader, sizes[1] + sizes[2] - 1) == sizes[1]
    assert follower.log_end_offset == 5
    assert follower.replicate_from(leader, ALL, end_offset=5) == 0
    assert follower.replicate_from(leader, ALL, end_offset=6) == sizes[2]


def test_replicating_from_an_offset_outside_the_leader_log_raises_an_error() -> None:
    leader, _ = three_batches()
    follower = ReplicaLog(leader.store)
    leader.raise_log_start(3)
    with pytest.raises(OffsetOutOfRange):
        follower.replicate_from(leader, ALL)
    follower.restart_at(3)
    assert follower.replicate_from(leader, ALL) > 0
    assert (follower.log_start_offset, follower.log_end_offset) == (3, 10)
    assert read(follower, 3) == read(leader, 3)
    leader.truncate_to(5)
    with pytest.raises(OffsetOutOfRange):
        follower.replicate_from(leader, ALL)


def test_empty_follower_with_log_start_inside_a_leader_batch_copies_the_whole_batch() -> None:
    leader, _ = three_batches()
    leader.raise_log_start(4)
    follower = ReplicaLog(leader.store)
    follower.restart_at(4)
    follower.replicate_from(leader, ALL)
    assert (follower.log_start_offset, follower.log_end_offset) == (4, 10)
    assert read(follower, 4) == read(leader, 4)


def test_replicating_a_batch_that_overlaps_the_follower_log_is_rejected() -> None:
    leader, _ = three_batches()
    follower = ReplicaLog(leader.store)
    append(follower, batch(4))
    with pytest.raises(ValueError, match="truncate the follower's log first"):
        follower.replicate_from(leader, ALL)


def test_each_of_two_replicas_returns_its_own_records_after_their_logs_diverge() -> None:
    leader = new_log()
    other = ReplicaLog(leader.store)
    for _ in range(3):
        append(leader, batch(1, 30), epoch=0)
    other.replicate_from(leader, ALL)
    append(leader, batch(2, 77), epoch=0)  # a batch that no follower has
    append(other, batch(1, 55), epoch=1)
    assert (len(leader.runs), len(other.runs)) == (1, 2)
    lost_bytes, kept_bytes = leader.read_all(), other.read_all()
    assert lost_bytes[:-100] != kept_bytes[:-100] and leader.log_end_offset == 5 and other.log_end_offset == 4
    diverged = other.divergence(leader.epochs.latest, leader.log_end_offset)
    assert diverged == (0, 3)
    leader.truncate_to(3)
    leader.replicate_from(other, ALL)
    assert leader.read_all() == kept_bytes and len(leader.runs) == 2
    assert leader.epochs.entries() == [(0, 0), (1, 3)]


@pytest.mark.rule("F-26")
def test_log_returns_latest_shared_epoch_and_its_end_offset_to_diverged_followers() -> None:
    """Kafka's PartitionTest.testLastFetchedOffsetValidation."""
    log = new_log()
    for epoch, start, end in [(0, 0, 2), (3, 2, 8), (4, 8, 13), (7, 13, 14), (9, 14, 17)]:
        for _ in range(start, end):
            append(log, batch(), epoch)
    log.epochs.assign(10, 17)
    for (last_epoch, offset), divergence in {
        (2, 5): (0, 2),
        (0, 4): (0, 2),
        (6, 6): (4, 13),
        (5, 9): (4, 13),
        (10, 18): (10, 17),
        (0, 2): None,
        (7, 14): None,
        (9, 17): None,
        (10, 17): None,
    }.items():
        assert log.divergence(last_epoch, offset) == divergence, (last_epoch, offset)
    with pytest.raises(OffsetOutOfRange):
        log.divergence(11, 5)
    log.raise_log_start(5)
    assert log.divergence(2, 8) == (2, 5)
    assert log.divergence(0, 5) is None and log.divergence(3, 5) is None
    with pytest.raises(OffsetOutOfRange):
        log.divergence(0, 0)


@pytest.mark.rule("E-4")
def test_truncation_removes_whole_batches_and_the_next_append_reuses_their_offsets() -> None:
    log, sizes = three_batches()
    log.high_watermark = 9
    remaining = log.read_all()[: sizes[0] + sizes[1]]
    log.truncate_to(8)  # inside the third batch
    assert (log.log_end_offset, log.high_watermark, log.read_all()) == (5, 5, remaining)
    assert append(log, batch(2, 5), epoch=1) == 5
    assert log.read_all()[: len(remaining)] == remaining
    assert log.epochs.entries() == [(0, 0), (1, 5)]
    assert read(log, 0) == remaining  # a read ends with its run
    log.truncate_to(5)
    assert log.epochs.entries() == [(0, 0)]
    log.truncate_to(0)
    assert (log.log_end_offset, log.read_all(), log.epochs.entries()) == (0, b"", [])
    assert append(log, batch()) == 0


@pytest.mark.rule("D2")
def test_observers_get_an_event_for_each_truncation_and_each_raised_log_start() -> None:
    truncations: list[object] = []

    class Moves(Observer):
        def log_truncated(self, broker_id: int, topic: str, index: int, *details: Any) -> None:
            truncations.append(details[:3])

        def offsets_moved(self, broker_id: int, topic: str, index: int, log: ReplicaLog, now_ms: int) -> None:
            truncations.append((log.high_watermark, log.log_start_offset))

    events = Events()
    log, _ = three_batches(events)
    events.attach(Moves())
    log.commit(12)
    log.drop_uncommitted_high_watermark()
    log.drop_uncommitted_high_watermark()
    log.raise_log_start(3)
    log.raise_log_start(3)
    log.truncate_to(5)
    log.restart_at(20)
    assert truncations == [
        (12, 0),
        ("watermark", 12, 10),
        (10, 0),
        ("start", 0, 3),
        (10, 3),
        ("end", 10, 5),
        (5, 3),
        ("restart", 5, 20),
        (20, 20),
    ]


def test_truncated_bytes_are_not_overwritten_while_a_response_still_sends_them() -> None:
    log = new_log()
    append(log, batch(1, 100_000))
    append(log, batch(1, 200_000))
    part = log.read(1, ALL, ALL, True)
    before = content(part)
    log.truncate_to(1)
    append(log, batch(1, 250_000))
    assert content(part) == before


@pytest.mark.rule("E-4")
def test_log_keeps_the_whole_batch_that_contains_a_raised_log_start_offset() -> None:
    log, sizes = three_batches()
    log.high_watermark = 2
    log.raise_log_start(4)
    assert (log.log_start_offset, log.high_watermark, log.epochs.entries()) == (4, 4, [(0, 4)])
    assert len(read(log, 4)) == sizes[1] + sizes[2]
    log.raise_log_start(2)
    assert log.log_start_offset == 4
    with pytest.raises(ValueError, match="at most the log end offset"):
        log.raise_log_start(11)
    log.raise_log_start(10)
    assert log.read_all() == b"" and len(log.runs) == 0
    assert append(log, batch()) == 10


@pytest.mark.rule("N-15")
def test_shared_log_space_is_freed_when_the_last_replica_has_raised_its_log_start() -> None:
    budget = MemoryBudget(1 << 30)
    leader = ReplicaLog(Store(budget, segment_bytes=200_000))
    follower = ReplicaLog(leader.store)
    for _ in range(20):
        append(leader, batch(1, 90_000))
    follower.replicate_from(leader, ALL)
    used = budget.used_bytes
    leader.raise_log_start(10)
    assert budget.used_bytes == used
    follower.raise_log_start(6)
    assert budget.used_bytes <= used - 3 * 180_000
    assert len(read(follower, 6)) > 90_000
    follower.close()
    assert leader.store.start_position == 10 * len(batch(1, 90_000))


@pytest.mark.rule("E-4")
def test_truncating_at_the_log_end_removes_a_leader_epoch_without_records() -> None:
    """Kafka's `UnifiedLog.truncateTo`: the replica became leader, wrote no record, and lost leadership."""
    log = new_log()
    append(log, batch(3), epoch=1)
    log.lead(5)
    assert log.epochs.entries() == [(1, 0), (5, 3)]
    log.truncate_to(3)
    assert (log.epochs.entries(), log.log_end_offset) == ([(1, 0)], 3)
    log.truncate_to(4)
    assert (log.epochs.entries(), log.log_end_offset) == ([(1, 0)], 3)


@pytest.mark.rule("E-4")
def test_follower_with_an_epoch_unknown_to_the_leader_finds_the_divergence_offset() -> None:
    """Epoch 5 started on the follower without records; the new leader went from epoch 3 to 7.

    Found by seed 2071 of the simulation, which did not terminate.
    """
    store = Store(MemoryBudget(1 << 30), 1 << 30)
    follower, leader = ReplicaLog(store), ReplicaLog(store)
    append(leader, batch(3), epoch=1)
    follower.replicate_from(leader, ALL)
    follower.lead(5)
    append(leader, batch(1), epoch=3)
    leader.lead(7)
    truncate_to_leader(follower, leader)
    assert (follower.log_end_offset, follower.epochs.entries()) == (3, [(1, 0)])
    follower.replicate_from(leader, ALL)
    assert follower.log_end_offset == 4


def test_log_restarted_at_offset_100_is_empty_and_its_next_batch_gets_offset_100() -> None:
    log, _ = three_batches()
    append(log, batch(producer_id=4, producer_epoch=0, sequence=9))
    log.restart_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (100, 100, 100)
    assert log.read_all() == b"" and log.epochs.entries() == [] and log.producers.producers == {}
    assert append(log, batch()) == 100
    log.truncate_to(50)  # below its start
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)


@pytest.mark.rule("P-18")
def test_duplicate_batch_returns_the_original_offsets_and_is_not_appended() -> None:
    log = new_log()
    first = batch(3, producer_id=9, producer_epoch=0, sequence=0, timestamps=[5, 7, 6])
    append(log, batch(2))
    assert append(log, first.copy()) == 2
    append(log, batch(1))
    again = log.append(memoryview(first), read_header(first), 0, NOW_MS)
    assert again == (2, 4, 7, True) and log.log_end_offset == 6
    gap = batch(1, producer_id=9, producer_epoch=0, sequence=5)
    with pytest.raises(InvalidBatch) as refusal:
        append(log, gap)
    assert refusal.value.error_code == 45 and log.log_end_offset == 6


@pytest.mark.rule("P-2")
def test_append_returns_the_append_time_only_for_a_batch_with_log_append_time() -> None:
    log = new_log()
    plain, stamped = batch(), batch(attributes=0x08)
    assert log.append(memoryview(plain), read_header(plain), 0, NOW_MS).log_append_time_ms == -1
    assert log.append(memoryview(stamped), read_header(stamped), 0, NOW_MS).log_append_time_ms == NOW_MS


@pytest.mark.rule("P-17")
def test_truncated_follower_has_the_producer_state_of_its_remaining_batches() -> None:
    leader = new_log()
    follower = ReplicaLog(leader.store)
    for sequence in range(7):
        append(leader, batch(producer_id=9, producer_epoch=0, sequence=sequence))
    follower.replicate_from(leader, ALL)
    assert follower.producers.producers[9].batches == leader.producers.producers[9].batches
    follower.truncate_to(4)
    assert [b.first_sequence for b in follower.producers.producers[9].batches] == [0, 1, 2, 3]
    assert append(follower, batch(producer_id=9, producer_epoch=0, sequence=4)) == 4
    with pytest.raises(InvalidBatch):
        append(follower, batch(producer_id=9, producer_epoch=0, sequence=6))


def test_append_on_a_full_disk_leaves_the_log_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    log = new_log(memory=0)
    append(log, batch(2, producer_id=9, producer_epoch=0, sequence=0))

    def disk_full(fd: int, data: bytes, offset: int) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(os, "pwrite", disk_full)
        with pytest.raises(StorageError):
            append(log, batch(1, producer_id=9, producer_epoch=0, sequence=2), epoch=3)
    assert log.log_end_offset == 2 and log.epochs.entries() == [(0, 0)]
    assert append(log, batch(1, producer_id=9, producer_epoch=0, sequence=2)) == 2


def test_records_read_from_the_log_equal_the_records_produced() -> None:
    log = new_log()
    append(log, batch(3, 12, key=b"k", timestamps=[100, 50, 75]))
    append(log, batch(1, 5))
    read_records = [(r.offset, r.timestamp, r.key, r.value) for r in records(read(log, 1, bound=3))]
    assert read_records == [(0, 100, b"k", b"x" * 12), (1, 50, b"k", b"x" * 12), (2, 75, b"k", b"x" * 12)]


@pytest.mark.rule("L-5")
def test_earliest_epoch_of_a_log_is_the_leader_epoch_at_the_log_start() -> None:
    log = new_log()
    assert log.earliest_epoch() == -1
    log.epochs.assign(3, 0)
    assert log.earliest_epoch() == 3
    log.restart_at(5)
    append(log, batch(), epoch=6)
    assert log.earliest_epoch() == 6
    log.epochs.clear()
    log.epochs.assign(7, 6)
    assert log.earliest_epoch() == -1


def test_reading_a_log_after_its_store_is_closed_raises_a_storage_error() -> None:
    log, _ = three_batches()
    log.store.close()
    with pytest.raises(StorageError, match="no longer contains the bytes"):
        log.read(0, ALL, ALL, True)


def test_follower_can_read_replicated_batches_after_the_leaders_log_is_closed() -> None:
    batch_bytes = len(batch())
    leader = new_log(segment_bytes=3 * batch_bytes)
    follower = ReplicaLog(leader.store)
    for _ in range(2):
        append(leader, batch())
    leader.raise_log_start(2)
    for _ in range(4):
        append(leader, batch(), epoch=1)
    for _ in range(2):
        append(follower, batch(), epoch=2)  # written after the leader's batches, at lower offsets
    follower.replicate_from(leader, ALL)
    leader.close()
    assert len(follower.runs) == 2 and [h.base_offset for _, h in follower.batches(0)] == [0, 1, 2, 3, 4, 5]
