"""Tests of brokers that have just started, and have no producer ids to assign until the controller sends them a block of ids."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import TIMEOUT_MS, Producer
from kafkaproto.messages.init_producer_id import InitProducerIdRequest

PROFILE = "replicated-offsets"
"""The settings profile with which the broker of this project gets producer ids only some time after its start, like a real Kafka (TX-11)."""
LOADING = 14


@pytest.mark.needs(brokers=3)
@pytest.mark.rule("TX-11", "SN-45")
def test_first_init_producer_id_to_a_restarted_broker_gets_load_in_progress(subject: Subject) -> None:
    producer = Producer(subject)
    while producer.coordinator() != 2:
        producer = Producer(subject)
    subject.stop_broker(2)
    subject.start_broker(2)
    response = producer.ask(InitProducerIdRequest(producer.id, TIMEOUT_MS, -1, -1), 4)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (LOADING, -1, -1)
    assert producer.init()[1] == 0
