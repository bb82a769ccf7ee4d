"""Idempotent producer state: duplicates, sequences, epochs and expiration (P-17 to P-21), with the numbers of Kafka's tests."""

from __future__ import annotations

import pytest

from kafkaproto.broker.log.errors import InvalidBatch
from kafkaproto.broker.log.producer_state import ProducerStates
from kafkaproto.records.batch import BatchHeader

PRODUCER = 1
MAX = 2147483647


def header(sequence: int, count: int = 1, epoch: int = 0, timestamp: int = 0, producer: int = PRODUCER) -> BatchHeader:
    return BatchHeader(0, 0, 0, 2, 0, 0, count - 1, timestamp, timestamp, producer, epoch, sequence, count)


class Log:
    """A log that appends accepted batches, as a leader does."""

    def __init__(self) -> None:
        self.states = ProducerStates()
        self.end = 0

    def produce(self, batch: BatchHeader) -> int:
        original = self.states.check(batch)
        if original is not None:
            return original.first_offset
        base, self.end = self.end, self.end + batch.last_offset_delta + 1
        self.states.update(batch, base)
        return base

    def refused(self, batch: BatchHeader) -> int:
        end = self.end
        with pytest.raises(InvalidBatch) as refusal:
            self.produce(batch)
        assert self.end == end and refusal.value.log_start_known
        return refusal.value.error_code


@pytest.mark.rule("P-18", "P-20")
def test_last_5_batches_may_be_repeated_and_an_older_repeated_batch_gets_an_error() -> None:
    """Kafka's UnifiedLogTest.testDuplicateAppends."""
    log = Log()
    for sequence in range(6):
        assert log.produce(header(sequence)) == sequence
    assert log.produce(header(6, 3)) == 6
    assert log.produce(header(6, 3)) == 6  # the newest batch again
    assert log.end == 9
    assert log.refused(header(7, 2)) == 45  # a part of a batch
    assert log.produce(header(2)) == 2  # the fifth newest
    assert log.refused(header(1)) == 45  # forgotten
    assert log.produce(header(9)) == 9
    assert log.produce(header(9)) == 9
    assert log.end == 10


@pytest.mark.rule("P-17")
def test_producer_state_keeps_the_last_five_batches_of_each_producer() -> None:
    log = Log()
    for sequence in range(20):
        log.produce(header(sequence))
    assert len(log.states.producers[PRODUCER].batches) == 5
    assert log.produce(header(15)) == 15
    assert log.refused(header(14)) == 45


@pytest.mark.rule("P-18")
def test_check_for_a_duplicate_batch_returns_the_max_timestamp_of_the_original_batch() -> None:
    states = ProducerStates()
    states.update(header(0, 3, timestamp=77), 100)
    assert states.check(header(0, 3, timestamp=88)) == (0, 2, 100, 102, 77)


@pytest.mark.rule("P-19")
def test_old_producer_epochs_are_fenced_and_new_epochs_start_at_sequence_zero() -> None:
    log = Log()
    log.produce(header(0, epoch=5))
    assert log.refused(header(1, epoch=4)) == 47
    assert log.refused(header(1, epoch=6)) == 45
    assert log.produce(header(0, epoch=6)) == 1
    assert log.refused(header(0, epoch=5)) == 47
    assert log.produce(header(1, epoch=6)) == 2


@pytest.mark.rule("P-19")
def test_first_batch_of_an_unknown_producer_id_may_have_any_sequence_number() -> None:
    log = Log()
    assert log.produce(header(4711, epoch=3)) == 0
    assert log.produce(header(4712, epoch=3)) == 1


@pytest.mark.rule("P-20")
@pytest.mark.parametrize("sequence", [0, 1, 3, 100, MAX])
def test_batch_with_a_sequence_gap_gets_error_out_of_order_sequence_number(sequence: int) -> None:
    log = Log()
    log.produce(header(7, 2))
    assert log.refused(header(sequence)) == 45


@pytest.mark.rule("P-21")
def test_producer_sequence_wraps_from_the_largest_int32_to_zero() -> None:
    """Kafka's ProducerStateManagerTest.testProducerSequenceWrapAround."""
    log = Log()
    log.produce(header(MAX))
    assert log.produce(header(0)) == 1
    assert log.states.producers[PRODUCER].batches[-1].last_sequence == 0


@pytest.mark.rule("P-21")
def test_producer_sequence_may_wrap_within_a_batch() -> None:
    """Kafka's ProducerStateManagerTest.testProducerSequenceWithWrapAroundBatchRecord."""
    log = Log()
    log.produce(header(MAX - 10, 20))
    assert log.states.producers[PRODUCER].batches[-1][:2] == (MAX - 10, 8)
    assert log.produce(header(MAX - 10, 20)) == 0
    assert log.produce(header(9)) == 20


@pytest.mark.rule("P-21")
def test_sequence_number_1_after_int32_max_gets_error_out_of_order_sequence_number() -> None:
    """Kafka's ProducerStateManagerTest.testProducerSequenceInvalidWrapAround."""
    log = Log()
    log.produce(header(MAX))
    assert log.refused(header(1)) == 45


@pytest.mark.rule("P-17")
def test_idle_producers_expire_by_the_timestamp_of_their_last_batch() -> None:
    states = ProducerStates()
    states.update(header(0, timestamp=1000), 0)
    states.update(header(0, timestamp=5000, producer=2), 1)
    states.expire(5999, 5000)
    assert set(states.producers) == {1, 2}
    states.expire(6000, 5000)
    assert set(states.producers) == {2}


def test_truncation_removes_the_state_of_producers_with_truncated_batches() -> None:
    states = ProducerStates()
    for sequence in range(3):
        states.update(header(sequence), sequence)
    states.update(header(0, producer=2), 3)
    assert states.forget_from(4) == set()
    assert states.forget_from(3) == {2}
    assert states.forget_from(1) == {1}
    assert states.producers == {}
