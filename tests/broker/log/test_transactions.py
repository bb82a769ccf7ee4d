"""Transactions in one replica's log: markers, the last stable offset, and the index of aborted transactions (TX-48 to TX-57)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.log.errors import InvalidBatch
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.log.store import MemoryBudget, Store
from kafkaproto.records.batch import CONTROL, TRANSACTIONAL, read_header
from kafkaproto.records.control import build_end_txn_marker
from tests.support.broker.batches import NOW_MS, batch

ALL = 1 << 60
FIRST, SECOND = 11, 12


def new_log(segment_bytes: int = 1 << 30) -> ReplicaLog:
    return ReplicaLog(Store(MemoryBudget(1 << 30), segment_bytes))


def write(log: ReplicaLog, producer: int, sequence: int, epoch: int = 0, count: int = 1, size: int = 10) -> int:
    """Append a transactional batch as an only replica does. Returns its base offset."""
    data = batch(count, size, producer_id=producer, producer_epoch=epoch, sequence=sequence, attributes=TRANSACTIONAL)
    return append(log, data)


def end(log: ReplicaLog, producer: int, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0) -> int:
    """Append the marker that ends a transaction. Returns its offset."""
    marker = build_end_txn_marker(
        commit, producer_id=producer, producer_epoch=epoch, coordinator_epoch=coordinator_epoch, timestamp=NOW_MS
    )
    return append(log, bytearray(marker))


def append(log: ReplicaLog, data: bytearray) -> int:
    base_offset = log.append(memoryview(data), read_header(data), 0, NOW_MS).base_offset
    log.commit(log.log_end_offset)
    return base_offset


def aborted(log: ReplicaLog, offset: int) -> list[tuple[int, int]]:
    """Return (producer id, first offset) of the aborted transactions for a fetch of everything from `offset` on."""
    return [entry[:2] for entry in log.aborted_transactions(offset, ALL)]


@pytest.mark.rule("TX-53", "TX-54", "SN-57")
def test_last_stable_offset_stays_at_the_oldest_open_transaction() -> None:
    """The offsets of scenario SN-57, as Kafka 3.9.1 returned them."""
    log = new_log()
    assert [write(log, FIRST, 0), write(log, SECOND, 0)] == [0, 1]
    assert log.last_stable_offset == 0
    assert end(log, FIRST, commit=True) == 2
    assert (log.last_stable_offset, log.high_watermark) == (1, 3)
    assert end(log, SECOND, commit=False) == 3
    assert (log.last_stable_offset, log.high_watermark) == (4, 4)
    assert [aborted(log, offset) for offset in (0, 2, 3, 4)] == [[(SECOND, 1)]] * 3 + [[]]


@pytest.mark.rule("TX-53")
def test_last_stable_offset_advances_only_after_the_marker_is_replicated() -> None:
    log = new_log()
    write(log, FIRST, 0)
    marker = build_end_txn_marker(True, producer_id=FIRST, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS)
    log.append(memoryview(bytearray(marker)), read_header(marker), 0, NOW_MS)
    assert log.last_stable_offset == 0
    log.commit(2)
    assert log.last_stable_offset == 2


@pytest.mark.rule("TX-54")
def test_marker_without_an_open_transaction_adds_no_aborted_transaction() -> None:
    log = new_log()
    assert end(log, FIRST, commit=False) == 0
    assert aborted(log, 0) == [] and log.last_stable_offset == 1
    write(log, FIRST, 0)
    end(log, FIRST, commit=True)
    assert aborted(log, 0) == []


@pytest.mark.rule("TX-48")
def test_transaction_marker_with_an_older_epoch_is_rejected() -> None:
    log = new_log()
    write(log, FIRST, 0, epoch=3)
    with pytest.raises(InvalidBatch) as refusal:
        end(log, FIRST, commit=False, epoch=2)
    assert refusal.value.error_code == 47
    end(log, FIRST, commit=False, epoch=3, coordinator_epoch=5)
    with pytest.raises(InvalidBatch) as refusal:
        end(log, FIRST, commit=False, epoch=3, coordinator_epoch=4)
    assert refusal.value.error_code == 52 and log.log_end_offset == 2


@pytest.mark.rule("TX-52", "TX-67")
def test_transaction_marker_with_a_newer_epoch_resets_producer_sequence_numbers() -> None:
    log = new_log()
    write(log, FIRST, 0)
    end(log, FIRST, commit=False, epoch=1)
    entry = log.producers.producers[FIRST]
    assert (entry.epoch, entry.last_sequence, entry.coordinator_epoch, entry.first_open_offset) == (1, -1, 0, -1)
    with pytest.raises(InvalidBatch) as refusal:
        write(log, FIRST, 1, epoch=1)
    assert refusal.value.error_code == 45
    assert write(log, FIRST, 0, epoch=1) == 2
    end(log, FIRST, commit=True, epoch=1)
    assert log.producers.producers[FIRST].last_sequence == 0
    assert write(log, FIRST, 1, epoch=1) == 4


@pytest.mark.rule("TX-34")
def test_non_transactional_batch_of_a_producer_with_an_open_transaction_is_rejected() -> None:
    log = new_log()
    write(log, FIRST, 0)
    with pytest.raises(InvalidBatch) as refusal:
        append(log, batch(producer_id=FIRST, producer_epoch=0, sequence=1))
    assert refusal.value.error_code == 48
    with pytest.raises(InvalidBatch) as refusal:
        append(log, batch(producer_id=FIRST, producer_epoch=0, sequence=5))
    assert refusal.value.error_code == 45


@pytest.mark.rule("TX-33")
@pytest.mark.parametrize(("adds_partitions", "accepted"), [(True, 0), (False, 3)])
def test_sequence_gap_before_the_first_batch_of_a_verified_transaction_is_rejected(
    adds_partitions: bool, accepted: int
) -> None:
    """With transaction version 2 it is 0, and otherwise not above the lowest that was tried."""
    log = new_log()
    log.producers.begin_verification(FIRST, 0, 3, NOW_MS, adds_partitions=adds_partitions)
    with pytest.raises(InvalidBatch) as refusal:
        write(log, FIRST, accepted + 1)
    assert refusal.value.error_code == 45
    write(log, FIRST, accepted)
    assert not log.producers.verifications


@pytest.mark.rule("TX-27")
def test_only_the_first_batch_of_a_transaction_needs_verification() -> None:
    log = new_log()
    assert log.producers.needs_verification(FIRST, 1)
    write(log, FIRST, 0, epoch=1)
    assert not log.producers.needs_verification(FIRST, 1) and log.producers.needs_verification(FIRST, 2)
    assert not log.producers.needs_verification(FIRST, None)
    with pytest.raises(InvalidBatch) as refusal:
        log.producers.check_epoch(FIRST, 0)
    assert refusal.value.error_code == 47
    end(log, FIRST, commit=True, epoch=1)
    assert log.producers.needs_verification(FIRST, 1)


@pytest.mark.rule("TX-53", "TX-54")
def test_follower_restores_transaction_state_from_replicated_batches() -> None:
    leader = new_log()
    follower = ReplicaLog(leader.store)
    write(leader, FIRST, 0)
    write(leader, SECOND, 0)
    end(leader, FIRST, commit=False)
    follower.replicate_from(leader, ALL, end_offset=2)
    follower.commit(2)
    assert follower.last_stable_offset == 0 and aborted(follower, 0) == []
    follower.replicate_from(leader, ALL)
    follower.commit(3)
    assert follower.last_stable_offset == 1 and aborted(follower, 0) == [(FIRST, 0)]


@pytest.mark.rule("TX-53")
def test_follower_advances_its_lso_if_the_high_watermark_arrives_before_the_records() -> None:
    leader = new_log()
    follower = ReplicaLog(leader.store)
    write(leader, FIRST, 0)
    end(leader, FIRST, commit=True)
    follower.commit(2)  # KIP-392: with the response before the records
    follower.replicate_from(leader, ALL)
    assert follower.last_stable_offset == 2


@pytest.mark.rule("TX-53")
def test_last_stable_offset_of_a_follower_never_exceeds_its_log_end() -> None:
    leader = new_log()
    follower = ReplicaLog(leader.store)
    write(leader, FIRST, 0)
    follower.commit(1)  # KIP-392: with the response before the records
    assert follower.last_stable_offset == 0  # as soon as it has the record, the transaction is open
    follower.replicate_from(leader, ALL)
    assert follower.last_stable_offset == 0


@pytest.mark.rule("TX-53", "TX-54")
def test_truncation_reopens_the_transaction_whose_marker_it_removes() -> None:
    log = new_log()
    write(log, SECOND, 0)
    end(log, SECOND, commit=False)
    write(log, FIRST, 0)
    write(log, SECOND, 1)
    end(log, FIRST, commit=False)
    end(log, SECOND, commit=False)
    assert aborted(log, 0) == [(SECOND, 0), (FIRST, 2), (SECOND, 3)] and log.last_stable_offset == 6
    log.truncate_to(5)
    assert aborted(log, 0) == [(SECOND, 0), (FIRST, 2)] and log.last_stable_offset == 3
    log.truncate_to(4)
    assert aborted(log, 0) == [(SECOND, 0)] and log.last_stable_offset == 2
    log.truncate_to(3)
    assert log.last_stable_offset == 2 and log.producers.producers[SECOND].last_sequence == 0
    log.truncate_to(0)
    assert aborted(log, 0) == [] and log.last_stable_offset == 0 and not log.producers.producers


@pytest.mark.rule("TX-57")
def test_log_start_can_be_raised_above_the_first_offset_of_an_open_transaction() -> None:
    log = new_log()
    write(log, FIRST, 0)
    end(log, FIRST, commit=False)
    write(log, SECOND, 0)
    write(log, SECOND, 1)
    log.raise_log_start(3)
    assert log.last_stable_offset == 3 and aborted(log, 3) == []
    assert end(log, SECOND, commit=False) == 4
    assert log.last_stable_offset == 5 and aborted(log, 3) == [(SECOND, 2)]


@pytest.mark.rule("TX-63")
def test_producer_with_an_open_transaction_does_not_expire() -> None:
    log = new_log()
    write(log, FIRST, 0)
    write(log, SECOND, 0)
    end(log, SECOND, commit=True)
    log.producers.expire(1 << 50, 1)
    assert list(log.producers.producers) == [FIRST]
    assert log.producers.longest_idle_since_ms() is None
    end(log, FIRST, commit=True)
    assert log.producers.longest_idle_since_ms() == NOW_MS


@pytest.mark.rule("F-20")
def test_read_of_one_batch_lists_aborted_transactions_of_about_4096_log_bytes() -> None:
    """Kafka's `fetchUpperBoundOffset`: the index has one entry for about 4 KiB, so a short read lists transactions that begin soon after it."""
    log = new_log()
    for sequence in range(100):
        write(log, FIRST, sequence, size=100)
        end(log, FIRST, commit=False)
    size_bytes = log.read(0, 1, ALL, at_least_one=True).size_bytes
    listed = [entry.first_offset for entry in log.aborted_transactions(0, size_bytes)]
    assert listed == list(range(0, listed[-1] + 1, 2)) and 4096 / 250 < len(listed) < 4096 / 250 + 4
    assert len(log.aborted_transactions(0, ALL)) == 100


@pytest.mark.rule("F-20")
def test_reading_one_log_segment_lists_no_aborted_transactions_of_later_segments() -> None:
    log = new_log(segment_bytes=400)
    for sequence in range(10):
        write(log, FIRST, sequence)
        end(log, FIRST, commit=False)
    place_end = next(iter(log.runs.segments())).end_offset
    assert [entry.first_offset for entry in log.aborted_transactions(0, 1)] == list(range(0, place_end, 2))


def test_log_restored_from_saved_state_knows_its_open_and_aborted_transactions() -> None:
    log = new_log()
    write(log, FIRST, 0)
    end(log, FIRST, commit=False, epoch=1, coordinator_epoch=4)
    write(log, SECOND, 0)
    restored = ReplicaLog(log.store)
    restored.restore(log.state())
    assert restored.last_stable_offset == 2 and aborted(restored, 0) == [(FIRST, 0)]
    assert end(restored, SECOND, commit=True) == 3
    assert restored.last_stable_offset == 4
    with pytest.raises(InvalidBatch) as refusal:
        end(restored, FIRST, commit=True, epoch=1, coordinator_epoch=3)
    assert refusal.value.error_code == 52


@pytest.mark.parametrize("key", [None, b"\0\0\0\2", b"\0"])
def test_control_batch_that_is_no_transaction_marker_leaves_transactions_open(key: bytes | None) -> None:
    log = new_log()
    write(log, FIRST, 0)
    data = batch(key=key, producer_id=FIRST, producer_epoch=0, sequence=-1, attributes=TRANSACTIONAL | CONTROL)
    assert append(log, data) == 1
    assert log.last_stable_offset == 0 and log.producers.producers[FIRST].coordinator_epoch == -1
