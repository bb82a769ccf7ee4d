"""Verification of transactions while other things happen: the end of the transaction, moves of coordinators, stopped brokers (TX-27 to TX-41)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkaproto.conformance.client import Connection
from kafkaproto.conformance.groups import OFFSETS_TOPIC, Group
from kafkaproto.conformance.scene import Topic, new_topic, read
from kafkaproto.conformance.transactions import Producer
from kafkaproto.conformance.wire import batch, produce
from kafkaproto.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkaproto.records.batch import TRANSACTIONAL
from tests.support.broker.transaction_bench import TRANSACTIONS, TransactionBench

NOT_COORDINATOR, NOT_IN_TRANSACTION = 16, 48


@pytest.fixture
def newer() -> Iterator[TransactionBench]:
    transaction_bench = TransactionBench(newer=True)
    yield transaction_bench
    transaction_bench.stop()


def one_record(producer: Producer, sequence: int) -> bytes:
    """Return a transactional batch with one record."""
    return batch(
        b"v",
        timestamp=producer.subject.epoch_ms(),
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        attributes=TRANSACTIONAL,
    )


def produce_to(topic: Topic, producer: Producer, sequences: dict[int, int]) -> ProduceRequest:
    """Return a request with one record for each partition. sequences: maps partitions to sequence numbers."""
    [(first, sequence), *others] = sequences.items()
    request = produce(topic.name, one_record(producer, sequence), first, acks=-1)
    request.topic_data[0].partition_data += [
        PartitionProduceData(index, one_record(producer, sequence)) for index, sequence in others
    ]
    request.transactional_id = producer.id
    return request


def hold_state(bench: TransactionBench, producer: Producer) -> list[int]:
    """Keep the state of a producer from being replicated. Returns the brokers that do not coordinate it, which are held."""
    others = [broker_id for broker_id in range(3) if broker_id != producer.coordinator()]
    for broker_id in others:
        bench.hold_follower(TRANSACTIONS, bench.state_partition(producer).index, broker_id)
    return others


def release_state(bench: TransactionBench, producer: Producer, brokers: list[int]) -> None:
    for broker_id in brokers:
        bench.release_follower(TRANSACTIONS, bench.state_partition(producer).index, broker_id)


@pytest.mark.rule("TX-30", "TX-27", "TX-31")
def test_batch_is_rejected_if_a_commit_marker_is_written_while_the_batch_is_verified(newer: TransactionBench) -> None:
    """EndTxn v4 keeps the epoch, so that the epoch alone does not refuse a batch that comes after the marker."""
    topic = new_topic(newer, assignment={0: [0, 1, 2], 1: [0, 1, 2]})
    producer = Producer(newer)
    producer.init()
    assert producer.send(topic, 0, version=12) == (0, 0)
    assert producer.end(commit=True, version=4)[0] == 0
    response = newer.ask_once(produce_to(topic, producer, {0: 1, 1: 0}), 12, topic.leader())
    results = [(p.error_code, p.base_offset) for p in response.responses[0].partition_responses]
    assert results == [(NOT_IN_TRANSACTION, -1), (0, 0)]
    described = producer.describe()
    assert described.transaction_state == "Ongoing"
    assert [sorted(entry.partitions) for entry in described.topics] == [[1]]
    producer.finish(commit=True)
    partition_data = read(topic, 0, isolation=1)
    assert (partition_data.high_watermark, partition_data.last_stable_offset) == (2, 2)


@pytest.mark.rule("TX-19")
def test_add_partitions_to_txn_response_lists_verify_only_transactions_first(newer: TransactionBench) -> None:
    topic, adding = newer.topic(), Producer(newer)
    adding.init()
    verified = Producer(newer, index=adding.index)
    verified.init()
    verified.add_once_free(topic)
    named = [AddPartitionsToTxnTopic(topic.name, [0])]
    transactions = [
        AddPartitionsToTxnTransaction(p.id, p.producer_id, p.epoch, p is verified, named) for p in (adding, verified)
    ]
    connection = newer.open(adding.coordinator())
    held_followers = hold_state(newer, adding)
    newer.send(connection, AddPartitionsToTxnRequest(transactions), 5)
    newer.pass_ms(10)
    release_state(newer, adding, held_followers)
    results = newer.answer(connection).message.results_by_transaction
    assert [result.transactional_id for result in results] == [verified.id, adding.id]


@pytest.mark.rule("TX-41")
def test_txn_offset_commit_gets_not_coordinator_if_group_moves_during_verification(newer: TransactionBench) -> None:
    topic, group, producer = newer.topic(), Group(newer), Producer(newer)
    producer.init()
    image = newer.cluster.state.controller.image
    old, _ = image.leader_of(OFFSETS_TOPIC, group.index)
    held_followers = hold_state(newer, producer)
    offsets = [TxnOffsetCommitRequestTopic(topic.name, [TxnOffsetCommitRequestPartition(0, 5)])]
    connection: Connection = newer.open(old)
    newer.send(
        connection,
        TxnOffsetCommitRequest(producer.id, group.id, producer.producer_id, producer.epoch, topics=offsets),
        5,
    )
    newer.cluster.state.controller.elect(OFFSETS_TOPIC, group.index, (old + 1) % 3)
    newer.cluster.run()
    release_state(newer, producer, held_followers)
    newer.pass_ms(100)
    assert newer.answer(connection).message.topics[0].partitions[0].error_code == NOT_COORDINATOR
    assert newer.cluster.state.nodes[old].groups.groups.get_any(group.id) is None


@pytest.mark.rule("TX-31")
def test_batch_is_not_appended_if_the_broker_stops_while_the_batch_is_verified(newer: TransactionBench) -> None:
    producer = Producer(newer)
    producer.init()
    leader = (producer.coordinator() + 1) % 3
    topic = new_topic(newer, assignment={0: [leader]})
    held_followers = hold_state(newer, producer)
    newer.send(newer.open(leader), produce_to(topic, producer, {0: 0}), 12)
    newer.pass_ms(2)
    newer.stop_broker(leader)
    held_followers.remove(leader)
    release_state(newer, producer, held_followers)
    newer.pass_ms(100)
    newer.start_broker(leader)
    assert producer.describe().transaction_state == "Ongoing"
    assert read(topic, 0).high_watermark == 0


@pytest.mark.rule("TX-31")
def test_request_on_another_connection_does_not_overwrite_a_batch_under_verification(newer: TransactionBench) -> None:
    """Connections share the buffer of received bytes, which the next request overwrites."""
    topic, producers = newer.topic(2), [Producer(newer), Producer(newer)]
    for producer in producers:
        producer.init()
        assert producer.send(topic, 0, version=12)[0] == 0
        assert producer.end(commit=True, version=5)[0] == 0
        producer.epoch += 1
    connections = [newer.open(topic.leader(index)) for index in (0, 1)]
    for index, (producer, connection) in enumerate(zip(producers, connections, strict=True)):
        newer.send(connection, produce_to(topic, producer, {index: 0}), 12)
    for connection in connections:
        assert newer.answer(connection).message.responses[0].partition_responses[0].error_code == 0
    for index, producer in enumerate(producers):
        log = newer.cluster.state.nodes[topic.leader(index)].replicas.partitions[(topic.name, index)].log
        *_, (_, header) = log.batches(0)
        assert (header.producer_id, header.producer_epoch) == (producer.producer_id, producer.epoch)
