"""A test that uses all epochs of a producer id. It sends some 33,000 requests, which takes a real broker about half a minute."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import Producer
from kafkaproto.messages.init_producer_id import InitProducerIdRequest

LAST_EPOCH, UNKNOWN, FENCED = 32_766, -1, 90
PIPELINED = 100


@pytest.mark.rule("TX-13", "TX-15", "SN-61")
def test_producer_that_has_used_its_last_epoch_gets_a_new_producer_id(subject: Subject) -> None:
    producer = Producer(subject)
    old_id, epoch = producer.init()
    connection = subject.connect(producer.coordinator())
    while epoch < LAST_EPOCH:
        count = min(PIPELINED, LAST_EPOCH - epoch)
        for _ in range(count):
            subject.send(connection, InitProducerIdRequest(producer.id, 60_000, -1, -1), 4)
        for _ in range(count):
            answer = subject.answer(connection).message
            epoch += 1
            assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, old_id, epoch)
    for known_epoch in (
        LAST_EPOCH - 2,
        LAST_EPOCH - 1,
    ):  # Kafka's check of these epochs expects that another one follows
        assert producer.init_once(old_id, known_epoch) == (UNKNOWN, -1, -1)
    error, new_id, epoch = producer.init_once(old_id, LAST_EPOCH)
    assert (error, epoch) == (0, 0) and new_id != old_id
    assert producer.init_once(old_id, LAST_EPOCH) == (0, new_id, 0)  # the same request again
    assert producer.init_once(old_id, LAST_EPOCH - 1) == (FENCED, -1, -1)
