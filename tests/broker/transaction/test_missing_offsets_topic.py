"""AddOffsetsToTxn in a cluster without `__consumer_offsets`: this broker and a real Kafka do not create the topic (TX-24)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkaproto.conformance.subject import Subject, settings_of
from kafkaproto.conformance.transactions import TRANSACTION_TOPIC, Producer
from kafkaproto.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkaproto.messages.metadata import MetadataRequest
from tests.support.broker.transaction_bench import TransactionBench
from tests.support.conformance.real_kafka import NewerKafka, RealKafka, as_on_kafka

UNKNOWN_MAPPING = 49
GROUP = "shop"


def topics(subject: Subject) -> list[str]:
    return sorted(topic.name for topic in subject.ask_once(MetadataRequest(None), 12).topics)


def added(producer: Producer, group_id: str = GROUP) -> int:
    """Add a group to the transaction of a producer. Returns the error, without any request that may create the offsets topic."""
    request = AddOffsetsToTxnRequest(producer.id, producer.producer_id, producer.epoch, group_id)
    return int(producer.ask(request, 3).error_code)


def story(subject: Subject) -> Iterator[tuple[str, Any]]:
    """Add a group to transactions before any group exists. Yields what brokers return, each value with a name."""
    unknown, producer = Producer(subject, "unknown"), Producer(subject, "known")
    yield "unknown transactional id", added(unknown)
    producer.init()
    yield "known transactional id", [added(producer), added(producer, "other")]
    described = producer.describe()
    yield "partitions", [(topic.topic, sorted(topic.partitions)) for topic in described.topics]
    yield "topics", topics(subject)
    yield "end", producer.end(commit=True)[0]
    producer.wait_for("CompleteCommit")
    yield "topics after the commit", topics(subject)


@pytest.mark.rule("TX-24", "TX-49")
@pytest.mark.parametrize("newer", [False, True])
def test_add_offsets_to_txn_does_not_create_the_offsets_topic(newer: bool) -> None:
    bench = TransactionBench(newer=newer)
    results = dict(story(bench))
    assert results["unknown transactional id"] == UNKNOWN_MAPPING
    assert results["known transactional id"] == [0, 0]
    assert results["topics"] == results["topics after the commit"] == [TRANSACTION_TOPIC]
    bench.stop()


@pytest.mark.java
@pytest.mark.timeout(180)
@pytest.mark.rule("TX-24", "TX-49")
@pytest.mark.parametrize(("real", "newer"), [(RealKafka, False), (NewerKafka, True)])
def test_add_offsets_to_txn_without_an_offsets_topic_gets_the_same_errors_as_kafka(
    real: Callable[[str], RealKafka], newer: bool
) -> None:
    bench = TransactionBench(settings_of("default"), newer=newer)
    assert dict(story(bench)) == as_on_kafka(real("default"), story)
    bench.stop()
