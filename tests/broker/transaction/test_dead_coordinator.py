"""A transaction coordinator whose broker was killed: until its session expires, the metadata names it as the leader (TX-28, TX-46)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import Producer
from kafkaproto.conformance.wire import produced
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.broker.transaction_bench import TransactionBench
from tests.support.conformance.real_kafka import NewerKafka, RealKafka, as_on_kafka

NOT_ENOUGH_REPLICAS, LOADING, UNAVAILABLE = 19, 14, 15
TEXT = "Unable to verify the partition has been added to the transaction. Underlying error: NETWORK_EXCEPTION"
WITHOUT_HANDOVER = {"controlled.shutdown.enable": "false", "broker.session.timeout.ms": "9000"}
"""Settings with which a broker that is stopped remains the leader of its partitions for 9 s, as after a kill."""


def story(subject: Subject, *, newer: bool) -> Iterator[tuple[str, Any]]:
    """Kill the transaction coordinator. Yields the errors of Produce and TxnOffsetCommit, lowest version first, each list with a name.

    newer: whether the subject is Kafka 4.2, or emulates it.
    """
    producer = Producer(subject)
    producer.init()
    coordinator = producer.coordinator()
    leader = (coordinator + 1) % 3
    topic = new_topic(subject, assignment={0: [leader]})
    producer.add_once_free(topic)
    group = Group(subject)
    while (group_coordinator := group.coordinator()) == coordinator:
        group = Group(subject)
    assert producer.add_offsets(group) == 0
    offsets = [TxnOffsetCommitRequestTopic(topic.name, [TxnOffsetCommitRequestPartition(0, 5)])]
    commit = TxnOffsetCommitRequest(producer.id, group.id, producer.producer_id, producer.epoch, topics=offsets)
    record = producer.produce_request(topic, 0)
    if isinstance(subject, RealKafka):
        subject.kill_broker(coordinator)
    else:
        subject.stop_broker(coordinator)
    responses = [produced(subject.ask_once(record, version, leader)) for version in ((9, 11, 12) if newer else (9, 11))]
    yield "Produce", [(response.error_code, response.error_message) for response in responses]
    commit_responses = [subject.ask_once(commit, version, group_coordinator) for version in range(6 if newer else 5)]
    yield (
        "TxnOffsetCommit",
        [commit_response.topics[0].partitions[0].error_code for commit_response in commit_responses],
    )


def expected(*, newer: bool) -> dict[str, Any]:
    return {
        "Produce": [(NOT_ENOUGH_REPLICAS, TEXT)] * (3 if newer else 2),
        "TxnOffsetCommit": [UNAVAILABLE] * 2 + [LOADING] * (4 if newer else 3),
    }


@pytest.mark.rule("TX-28", "TX-46", "TX-68")
@pytest.mark.parametrize("newer", [False, True])
def test_producers_get_retriable_errors_after_their_transaction_coordinator_dies(newer: bool) -> None:
    bench = TransactionBench(WITHOUT_HANDOVER, newer=newer)
    assert dict(story(bench, newer=newer)) == expected(newer=newer)
    bench.stop()


@pytest.mark.java
@pytest.mark.timeout(180)
@pytest.mark.rule("TX-28", "TX-46", "TX-68")
@pytest.mark.parametrize(("real", "newer"), [(RealKafka, False), (NewerKafka, True)])
def test_real_kafka_returns_the_same_errors_as_this_broker_when_a_coordinator_dies(
    real: Callable[[str], RealKafka], newer: bool
) -> None:
    assert as_on_kafka(real("default"), partial(story, newer=newer)) == expected(newer=newer)
