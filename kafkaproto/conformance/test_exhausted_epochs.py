"""Tests that use up all epochs of a producer id. Each test sends some 33,000 requests, for which a real broker needs about half a minute."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import Producer, producers
from kafkaproto.messages.init_producer_id import InitProducerIdRequest

LAST_EPOCH = 32_766
UNKNOWN, OLD_EPOCH, INVALID_STATE, UNKNOWN_MAPPING, FENCED = -1, 47, 48, 49, 90
PIPELINED = 100


def exhausted(subject: Subject) -> Producer:
    """Return a transactional producer whose epoch is the last one that a producer can get, 32766."""
    producer = Producer(subject)
    producer_id, epoch = producer.init()
    connection = subject.connect(producer.coordinator())
    while epoch < LAST_EPOCH:
        count = min(PIPELINED, LAST_EPOCH - epoch)
        for _ in range(count):
            subject.send(connection, InitProducerIdRequest(producer.id, 60_000, -1, -1), 4)
        for _ in range(count):
            response = subject.answer(connection).message
            epoch += 1
            assert (response.error_code, response.producer_id, response.producer_epoch) == (0, producer_id, epoch)
    producer.epoch = epoch
    return producer


@pytest.mark.rule("TX-13", "TX-15", "SN-61")
def test_producer_that_has_used_its_last_epoch_gets_a_new_producer_id(subject: Subject) -> None:
    producer = exhausted(subject)
    old_id = producer.producer_id
    for known_epoch in (
        LAST_EPOCH - 2,
        LAST_EPOCH - 1,
    ):  # Kafka's check of these epochs expects that another one follows
        assert producer.init_once(old_id, known_epoch) == (UNKNOWN, -1, -1)
    error, new_id, epoch = producer.init_once(old_id, LAST_EPOCH)
    assert (error, epoch) == (0, 0) and new_id != old_id
    assert producer.init_once(old_id, LAST_EPOCH) == (0, new_id, 0)  # the same request again
    assert producer.init_once(old_id, LAST_EPOCH - 1) == (FENCED, -1, -1)


@pytest.mark.rule("TX-15", "SN-61")
def test_init_producer_id_at_the_last_epoch_returns_a_new_id_and_fences_the_old_id(subject: Subject) -> None:
    topic, producer = new_topic(subject), exhausted(subject)
    old_id = producer.producer_id
    new_id, epoch = producer.init()
    assert epoch == 0 and new_id != old_id
    for known_epoch in (LAST_EPOCH - 1, LAST_EPOCH):
        assert producer.init_once(old_id, known_epoch) == (FENCED, -1, -1)
    old_producer = Producer(subject, producer.id)
    old_producer.producer_id, old_producer.epoch = old_id, LAST_EPOCH
    assert old_producer.add({topic.name: [0]}) == {(topic.name, 0): UNKNOWN_MAPPING}
    assert old_producer.send(topic, 0, version=9) == (UNKNOWN_MAPPING, -1)
    producer.add_once_free(topic)
    assert producer.send(topic, 0) == (0, 0)
    producer.finish(commit=True)


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("TX-15", "TX-38", "SN-61")
def test_end_txn_v5_with_the_last_epoch_returns_a_new_producer_id(subject: Subject) -> None:
    topic, producer = new_topic(subject), exhausted(subject)
    old_id = producer.producer_id
    assert producer.send(topic, 0, version=12) == (0, 0)
    error, new_id, epoch = producer.end(commit=True, version=5)
    assert (error, epoch) == (0, 0) and new_id != old_id
    producer.wait_for("CompleteCommit")
    description = producer.describe()
    assert (description.producer_id, description.producer_epoch) == (new_id, 0)
    [(producer_id, epoch, sequence, _, start)] = producers(topic)[1]
    assert (producer_id, epoch, sequence, start) == (old_id, LAST_EPOCH + 1, -1, -1)
    assert producer.end(commit=True, version=5) == (0, new_id, 0)  # the same request again
    assert producer.end(commit=False, version=5) == (INVALID_STATE, -1, -1)
    assert producer.end(commit=True, version=3)[0] == UNKNOWN_MAPPING
    assert producer.send(topic, 1, version=12) == (OLD_EPOCH, -1)
    assert producer.init_once(old_id, LAST_EPOCH) == (0, new_id, 0)  # the epoch before the current one
    assert producer.init_once(old_id, LAST_EPOCH) == (FENCED, -1, -1)
    producer.producer_id, producer.epoch = new_id, 0
    assert producer.send(topic, 0, version=12) == (0, 2)
    assert producer.end(commit=False, version=5) == (0, new_id, 1)
