"""The states of a transactional id and their legal transitions compared with Kafka's own class, of Scala in 3.9.1 and of Java in 4.2.0."""

from __future__ import annotations

import json

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION, kafka_jars
from kafkaproto.broker.transaction.transaction import EXPIRABLE, LEGAL_FROM, TransactionState
from tests.support.oracle.oracle import Process

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]


class TransactionStates(Process):
    program = "TransactionStates.java"


@pytest.mark.rule("TX-5")
@pytest.mark.parametrize("version", [KAFKA_VERSION, NEWER_VERSION])
def test_legal_transitions_between_transaction_states_equal_those_of_kafka(version: str) -> None:
    """Only from 4.0 on an abort may start without an open transaction, with transaction version 2. EndTxn does not do it in 3.9 (TX-37)."""
    with TransactionStates(kafka_jars(version)) as kafka:
        legal_from, expirable = json.loads(kafka.ask("states"))
    expected = {to: set(states) for to, states in LEGAL_FROM.items()}
    if version == KAFKA_VERSION:
        expected[TransactionState.PREPARE_ABORT] -= EXPIRABLE
    assert {int(to): set(states) for to, states in legal_from.items()} == expected
    assert set(expirable) == EXPIRABLE
