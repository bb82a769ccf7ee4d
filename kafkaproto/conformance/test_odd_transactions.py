"""Tests of transaction requests that no Kafka client sends: repeated partitions, invalid ids and epochs."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.scene import new_topic, read, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import CONCURRENT_TRANSACTIONS, Producer, write_markers
from kafkaproto.conformance.wire import batch, produce, produced
from kafkaproto.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkaproto.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kafkaproto.records.batch import TRANSACTIONAL

UNKNOWN, UNKNOWN_TOPIC, NOT_LEADER, INVALID_ACKS, OLD_EPOCH, BAD_STATE = -1, 3, 6, 21, 47, 48
UNKNOWN_MAPPING, COORDINATOR_FENCED, NOT_ATTEMPTED, FENCED, ABORTABLE = 49, 52, 55, 90, 120


def _listed(topics: object) -> list[tuple[str, list[tuple[int, int]]]]:
    return [
        (topic.name, [(p.partition_index, p.partition_error_code) for p in topic.results_by_partition])
        for topic in topics  # type: ignore[attr-defined]
    ]


@pytest.mark.rule("TX-19", "TX-20")
def test_add_partitions_to_txn_response_repeats_each_partition_the_request_repeats(subject: Subject) -> None:
    topic, producer = new_topic(subject), Producer(subject)
    producer.init()

    def add(epoch: int, *named: tuple[str, list[int]]) -> list[tuple[str, list[tuple[int, int]]]]:
        topics = [AddPartitionsToTxnTopic(name, indexes) for name, indexes in named]
        request = AddPartitionsToTxnRequest([], producer.id, producer.producer_id, epoch, topics)
        return _listed(producer.ask(request, 3).results_by_topic_v3_and_below)

    named = [(topic.name, [0, 0]), (topic.name, [0]), (topic.name, [])]
    refused = [(name, [(index, FENCED) for index in indexes]) for name, indexes in named]
    assert add(producer.epoch + 1, *named) == refused
    assert add(producer.epoch, *named) == [(name, [(index, 0) for index in indexes]) for name, indexes in named]
    unknown = add(producer.epoch, (topic.name, [0, 0]), (topic.name, [9]))
    assert [(name, sorted(partitions)) for name, partitions in unknown] == [
        (topic.name, [(0, NOT_ATTEMPTED), (9, UNKNOWN_TOPIC)])
    ]


@pytest.mark.rule("TX-19", "TX-23")
def test_verify_only_add_partitions_to_txn_returns_a_repeated_partition_once(subject: Subject) -> None:
    topic, producer = new_topic(subject), Producer(subject)
    producer.init()
    producer.add_once_free(topic)
    topics = [AddPartitionsToTxnTopic(topic.name, [0, 0])]
    transaction = AddPartitionsToTxnTransaction(producer.id, producer.producer_id, producer.epoch, True, topics)
    response = producer.ask(AddPartitionsToTxnRequest([transaction]), 4)
    assert _listed(response.results_by_transaction[0].topic_results) == [(topic.name, [(0, 0)])]


@pytest.mark.rule("TX-19", "TX-23", "SN-60")
@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("adds_first", [True, False])
def test_one_add_partitions_to_txn_can_add_and_verify_partitions_of_two_producers(
    subject: Subject, version: int, adds_first: bool
) -> None:
    """The test sends AddPartitionsToTxn as brokers do: one request for two transactional ids that have the same coordinator.

    The request adds a partition to the transaction of one id, and verifies two partitions for the other id, whose transaction has only one of them.
    version: the version of the request. adds_first: whether the transaction that gets a partition comes first in the request.
    """
    topic, adding = new_topic(subject, partitions=2), Producer(subject)
    adding.init()
    verified = Producer(subject, index=adding.index)
    verified.init()
    verified.add_once_free(topic)
    requested = [
        AddPartitionsToTxnTransaction(
            producer.id,
            producer.producer_id,
            producer.epoch,
            producer is verified,
            [AddPartitionsToTxnTopic(topic.name, indexes)],
        )
        for producer, indexes in ((adding, [0]), (verified, [0, 1]))
    ]
    response = adding.ask(AddPartitionsToTxnRequest(requested if adds_first else requested[::-1]), version)
    assert response.error_code == 0
    errors = {
        result.transactional_id: {(name, *p) for name, partitions in _listed(result.topic_results) for p in partitions}
        for result in response.results_by_transaction
    }
    assert errors == {
        adding.id: {(topic.name, 0, 0)},
        verified.id: {(topic.name, 0, 0), (topic.name, 1, ABORTABLE)},
    }
    assert [(t.topic, t.partitions) for t in adding.describe().topics] == [(topic.name, [0])]
    assert [(t.topic, t.partitions) for t in verified.describe().topics] == [(topic.name, [0])]


@pytest.mark.rule("TX-47")
def test_write_txn_markers_returns_a_single_result_for_all_markers_of_a_producer(subject: Subject) -> None:
    topic, producer = new_topic(subject), Producer(subject)
    producer.init()

    def ask(*indexes: list[int]) -> list[tuple[int, list[tuple[int, int]]]]:
        markers = [
            WritableTxnMarker(producer.producer_id, 0, False, [WritableTxnMarkerTopic(topic.name, repeats)], 0)
            for repeats in indexes
        ]
        response = subject.ask_once(WriteTxnMarkersRequest(markers), 1, topic.leader())
        return [
            (marker.producer_id, sorted((p.partition_index, p.error_code) for t in marker.topics for p in t.partitions))
            for marker in response.markers
        ]

    assert ask([7], [0]) == [(producer.producer_id, [(0, 0), (7, UNKNOWN_TOPIC)])]
    assert ask([], [0]) == [(producer.producer_id, [(0, 0)])]
    assert ask([]) == []


@pytest.mark.rule("TX-47")
@pytest.mark.parametrize("epochs", [(1, 0), (0, 1)])
def test_write_txn_markers_with_a_stale_and_a_current_marker_of_a_producer_succeeds(
    subject: Subject, epochs: tuple[int, int]
) -> None:
    """A WriteTxnMarkers request has two markers of a producer, with its current and with its previous epoch. The response has no error.

    epochs: the epochs of the two markers, in the order of the request.
    """
    subject.need_broker(1)
    topic, producer = new_topic(subject, replication=2), Producer(subject)
    producer.init()
    producer.init()
    producer.add_once_free(topic)
    assert producer.send(topic, 0) == (0, 0)
    markers = [
        WritableTxnMarker(producer.producer_id, epoch, True, [WritableTxnMarkerTopic(topic.name, [0])], 0)
        for epoch in epochs
    ]
    response = subject.ask_once(WriteTxnMarkersRequest(markers), 1, topic.leader())
    [marker] = response.markers
    assert [(p.partition_index, p.error_code) for t in marker.topics for p in t.partitions] == [(0, 0)]


@pytest.mark.rule("TX-48")
def test_marker_of_an_unknown_producer_is_rejected_if_its_epoch_is_below_minus_1(subject: Subject) -> None:
    topic, producer = new_topic(subject), Producer(subject)
    producer.init()
    number = producer.producer_id
    assert write_markers(topic, number, -2) == [OLD_EPOCH]
    assert write_markers(topic, number, -2, coordinator_epoch=-2) == [OLD_EPOCH]
    assert write_markers(topic, number, 0, coordinator_epoch=-2) == [COORDINATOR_FENCED]
    for producer_id, epoch in ((-1, 0), (number, -1), (-2, -1)):
        assert write_markers(topic, producer_id, epoch) == [UNKNOWN]
    assert read(topic, 0).high_watermark == 0
    topics = [WritableTxnMarkerTopic(topic.name, [0])]
    markers = [WritableTxnMarker(number, epoch, False, topics, 0) for epoch in (0, -1)]
    response = subject.ask_once(WriteTxnMarkersRequest(markers), 1, topic.leader())
    assert [p.error_code for m in response.markers for t in m.topics for p in t.partitions] == [UNKNOWN]
    assert read(topic, 0).high_watermark == 1
    assert write_markers(topic, -2, -5, coordinator_epoch=-2) == [0]
    assert read(topic, 0).high_watermark == 2


@pytest.mark.rule("P-19")
def test_batch_of_an_unknown_producer_is_rejected_if_its_epoch_is_below_minus_1(subject: Subject) -> None:
    topic = new_topic(subject)
    request = produce(topic.name, batch(b"v", producer_id=12_345, producer_epoch=-2, base_sequence=0))
    assert produced(subject.ask_once(request, 9, topic.leader())).error_code == OLD_EPOCH
    assert read(topic, 0).high_watermark == 0


def _produced(subject: Subject, producer: Producer, topic: str, *numbers: tuple[int, int], acks: int) -> list[int]:
    """Produce transactional batches with one request, and return the error codes in the order of partitions.

    producer: its transactional id goes into the request. numbers: (partition, producer id) of each batch. acks: the required acknowledgements.
    """
    data = [
        PartitionProduceData(
            index, batch(b"v", producer_id=number, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
        )
        for index, number in numbers
    ]
    request = ProduceRequest(producer.id, acks, 5000, [TopicProduceData(topic, partition_data=data)])
    response = subject.ask_once(request, 9)
    results = [(p.index, p.error_code) for t in response.responses for p in t.partition_responses]
    return [error_code for _, error_code in sorted(results)]


@pytest.mark.rule("TX-26", "TX-28")
def test_transactional_produce_checks_for_an_open_transaction_before_it_checks_acks(subject: Subject) -> None:
    topic, producer = new_topic(subject), Producer(subject)
    number, _ = producer.init()
    own = (0, number)
    assert _produced(subject, producer, topic.name, own, acks=2) == [BAD_STATE]
    producer.add_once_free(topic)
    assert _produced(subject, producer, topic.name, own, acks=2) == [INVALID_ACKS]
    assert _produced(subject, producer, topic.name, own, (9, number + 1), acks=2) == [INVALID_ACKS, UNKNOWN_TOPIC]


@pytest.mark.rule("TX-28")
@pytest.mark.parametrize("transactional", [True, False])
def test_produce_checks_leadership_before_acks_only_if_the_batch_is_transactional(
    subject: Subject, transactional: bool
) -> None:
    """The test sends a Produce with acks=2 to the leader (broker 0), to a follower (broker 1) and to a broker without a replica (broker 2).

    The leader returns INVALID_REQUIRED_ACKS. The other two brokers return NOT_LEADER_OR_FOLLOWER if the batch is transactional, and otherwise
    INVALID_REQUIRED_ACKS. transactional: whether the batch is transactional.
    """
    subject.need_broker(2)
    topic, producer = new_topic(subject, assignment={0: [0, 1]}), Producer(subject)
    producer.init()
    producer.add_once_free(topic)
    request = producer.produce_request(topic, 0, acks=2, transactional=transactional)
    expected = [INVALID_ACKS, NOT_LEADER, NOT_LEADER] if transactional else [INVALID_ACKS] * 3
    assert [produced(subject.ask_once(request, 9, broker_id)).error_code for broker_id in range(3)] == expected


@pytest.mark.rule("TX-13", "TX-16")
@pytest.mark.parametrize("epoch", [0, 7])
def test_init_producer_id_with_a_wrong_epoch_is_fenced_but_aborts_the_transaction(subject: Subject, epoch: int) -> None:
    """The epoch in the request is an old epoch of the producer, or an epoch that was never assigned.

    The request gets CONCURRENT_TRANSACTIONS and starts the abort of the open transaction. The same request, sent after the abort, gets
    PRODUCER_FENCED.
    """
    topic, producer = new_topic(subject), Producer(subject)
    for _ in range(3):
        producer.init()
    producer.add_once_free(topic)
    assert producer.init_once(producer.producer_id + 77, epoch) == (FENCED, -1, -1)
    assert producer.init_once(producer.producer_id, epoch) == (CONCURRENT_TRANSACTIONS, -1, -1)
    assert producer.end(commit=True)[0] == FENCED
    ended = wait_until(
        subject,
        lambda: _result_once_complete(producer, epoch),
        f"the coordinator has aborted the open transaction of transactional id {producer.id}",
    )
    assert ended == (FENCED, -1, -1)


def _result_once_complete(producer: Producer, epoch: int) -> tuple[int, int, int] | None:
    """Send InitProducerId with `epoch`, and return (error, producer id, epoch); None while the coordinator is still ending the last transaction."""
    result = producer.init_once(producer.producer_id, epoch)
    return None if result[0] == CONCURRENT_TRANSACTIONS else result
