"""Tests of idempotent producers (KIP-98): duplicate batches, gaps in sequence numbers, producer epochs and producer ids."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from kafkaproto.conformance.scene import Topic, follow, held, list_offsets, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, produce, produced
from kafkaproto.messages.init_producer_id import InitProducerIdRequest

LARGEST = 2**31 - 1
COORDINATOR_LOAD_IN_PROGRESS, OUT_OF_ORDER, OLD_EPOCH, NOT_AUTHORIZED = 14, 45, 47, 53
TRANSACTIONAL = 0x10


class Producer:
    """An idempotent producer for one partition.

    `send` produces `count` records with sequence numbers from `first` on, and returns (error, base offset).
    """

    def __init__(self, topic: Topic, producer_id: int = 7, epoch: int = 0) -> None:
        self.topic, self.id, self.epoch = topic, producer_id, epoch
        self.connection = topic.connect()

    def data(self, first: int, count: int = 1, epoch: int | None = None, **more: Any) -> bytes:
        numbers = {"producer_id": self.id, "producer_epoch": self.epoch if epoch is None else epoch}
        return batch(*[b"v"] * count, base_sequence=first, **numbers, **more)

    def send(self, first: int, count: int = 1, epoch: int | None = None, acks: int = -1) -> tuple[int, int]:
        request = produce(self.topic.name, self.data(first, count, epoch), acks=acks)
        partition_response = produced(self.topic.subject.ask(self.connection, request, 9))
        return partition_response.error_code, partition_response.base_offset

    @property
    def end(self) -> int:
        return int(list_offsets(self.topic, -1).offset)


@pytest.mark.rule("P-17", "P-18", "P-20")
def test_produce_returns_the_first_offset_of_a_duplicate_and_rejects_sequence_gaps(subject: Subject) -> None:
    """A duplicate of one of a producer's last five batches gets the offset of the original batch.

    Older duplicates and gaps in the sequence numbers get OUT_OF_ORDER_SEQUENCE_NUMBER.

    Corresponds to Kafka's test `UnifiedLogTest.testDuplicateAppends`.
    """
    producer = Producer(new_topic(subject))
    for sequence in range(6):
        assert producer.send(sequence) == (0, sequence)
    assert producer.send(6, 3) == (0, 6)
    assert producer.send(6, 3) == (0, 6)
    assert producer.send(7, 2) == (OUT_OF_ORDER, -1)
    assert producer.send(2) == (0, 2)
    assert producer.send(1) == (OUT_OF_ORDER, -1)
    assert producer.send(10) == (OUT_OF_ORDER, -1)
    assert producer.end == 9
    assert producer.send(9) == producer.send(9) == (0, 9)
    assert producer.send(3) == (0, 3)
    assert producer.send(2) == (OUT_OF_ORDER, -1)  # now six batches back


@pytest.mark.rule("P-19")
def test_old_producer_epochs_are_fenced_and_new_epochs_start_at_sequence_zero(subject: Subject) -> None:
    producer = Producer(new_topic(subject), epoch=3)
    assert producer.send(4) == (0, 0)  # the producer is unknown, so any sequence is accepted
    assert producer.send(5, epoch=2) == (OLD_EPOCH, -1)
    assert producer.send(5, epoch=4) == (OUT_OF_ORDER, -1)
    assert producer.send(0, epoch=4) == (0, 1)
    assert producer.send(5, epoch=3) == (OLD_EPOCH, -1)
    assert producer.send(1, epoch=4) == (0, 2)
    assert producer.end == 3


@pytest.mark.rule("P-20", "P-21")
def test_producer_sequence_wraps_to_zero_after_the_largest_int32(subject: Subject) -> None:
    producer = Producer(new_topic(subject))
    assert producer.send(LARGEST - 1, 2) == (0, 0)
    assert producer.send(1) == (OUT_OF_ORDER, -1)
    assert producer.send(0, 2) == (0, 2)
    within = Producer(new_topic(subject))
    assert within.send(LARGEST - 1, 4) == (0, 0)  # MAX-1, MAX, 0, 1
    assert within.send(LARGEST - 1, 4) == (0, 0)
    assert within.send(1) == (OUT_OF_ORDER, -1)
    assert within.send(2) == (0, 4)


@pytest.mark.rule("P-18")
def test_acks_all_produce_of_a_duplicate_batch_waits_for_replication(subject: Subject) -> None:
    topic = new_topic(subject, replication=2)
    producer = Producer(topic)
    first = produced(subject.ask(producer.connection, produce(topic.name, producer.data(0, timestamp=5000)), 9))
    assert (first.log_append_time_ms, first.log_start_offset) == (-1, 0)
    reply = produced(subject.ask(producer.connection, produce(topic.name, producer.data(0, timestamp=5000)), 9))
    assert (reply.error_code, reply.base_offset, reply.log_append_time_ms, reply.log_start_offset) == (0, 0, 5000, 0)
    follow(topic, 1, 1)
    with held(subject, topic, 1):
        assert producer.send(1, acks=1) == (0, 1)
        request = produce(topic.name, producer.data(1), acks=-1, timeout_ms=10_000)
        subject.send(producer.connection, request, 9)
        assert subject.answer_or_none(producer.connection, 100) is None
        follow(topic, 1, 2)
        assert produced(subject.answer(producer.connection, 5000).message).error_code == 0


@pytest.mark.rule("P-17")
def test_equal_sequence_numbers_of_two_producers_are_not_duplicates(subject: Subject) -> None:
    topic = new_topic(subject)
    first, second = Producer(topic, 1), Producer(topic, 2)
    assert [first.send(0), second.send(0), first.send(1), second.send(1)] == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert [first.send(0), second.send(1)] == [(0, 0), (0, 3)]


def init(
    subject: Subject, version: int, transactional_id: str | None, *known: int, broker_id: int = 0
) -> tuple[int, int, int]:
    """Send InitProducerId and return (error, producer id, epoch).

    transactional_id: None for a producer without transactions. known: the producer id and the epoch in the request. Without them, the request has -1
    for both, like the request of a new producer. broker_id: the broker that gets the request.
    """
    producer_id, epoch = known or (-1, -1)
    request = InitProducerIdRequest(transactional_id, 60_000, producer_id, epoch)
    response = subject.ask(subject.connect(broker_id), request, version)
    if response.error_code == COORDINATOR_LOAD_IN_PROGRESS:  # a real broker must first allocate a block of ids
        subject.pass_ms(50)
        return init(subject, version, transactional_id, *known, broker_id=broker_id)
    return response.error_code, response.producer_id, response.producer_epoch


@pytest.mark.rule("TX-11", "P-22")
def test_producer_ids_of_different_brokers_come_from_different_blocks_of_1000_ids(subject: Subject) -> None:
    blocks = [{init(subject, 4, None, broker_id=broker_id)[1] // 1000 for _ in range(3)} for broker_id in range(3)]
    assert all(not first & second for first, second in combinations(blocks, 2))


@pytest.mark.rule("P-22")
@pytest.mark.parametrize("version", range(6))
def test_init_producer_id_returns_unique_producer_ids(subject: Subject, version: int) -> None:
    ids = [init(subject, version, None) for _ in range(3)]
    assert {(error, epoch) for error, _, epoch in ids} == {(0, 0)} and len({i for _, i, _ in ids}) == 3
    assert init(subject, version, "") == (42, -1, -1)
    if version >= 3:
        for id_and_epoch in ((5, -1), (-1, 5)):
            assert init(subject, version, None, *id_and_epoch) == (42, -1, -1)
        error, fresh, epoch = init(subject, version, None, 5, 5)
        assert (error, epoch) == (0, 0) and fresh not in (5, *(i for _, i, _ in ids))


@pytest.mark.rule("P-22")
def test_producer_ids_assigned_by_different_brokers_are_unique(subject: Subject) -> None:
    assert len({init(subject, 4, None, broker_id=broker_id)[1] for broker_id in (0, 1, 2, 0, 1, 2)}) == 6


@pytest.mark.rule("TX-26")
@pytest.mark.parametrize("version", [3, 9, 11])
def test_transactional_batch_without_a_producer_id_is_visible_without_a_commit(subject: Subject, version: int) -> None:
    topic = new_topic(subject)
    request = produce(topic.name, batch(attributes=TRANSACTIONAL))
    assert produced(subject.ask_once(request, version)).error_code == NOT_AUTHORIZED
    request.transactional_id = "transactional"
    assert produced(subject.ask_once(request, version)).error_code == 0
    assert [list_offsets(topic, -1, isolation=isolation).offset for isolation in (0, 1)] == [1, 1]
