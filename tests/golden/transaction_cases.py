"""Requests of each version of the APIs of transactions, registered in `api_runs.CASES` when this module is imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkaproto.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkaproto.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkaproto.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kafkaproto.messages.describe_transactions import DescribeTransactionsRequest
from kafkaproto.messages.end_txn import EndTxnRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.list_transactions import ListTransactionsRequest
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkaproto.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kafkaproto.records.batch import TRANSACTIONAL
from tests.golden.api_runs import api, requests_of
from tests.golden.recording import RecordedClient
from tests.golden.world import World, produce
from tests.support.wire import batch

FIRST_VERSION_OF_BROKERS = 4


def adds(transactional_id: str, producer_id: int, epoch: int, version: int, **topics: list[int]) -> Any:
    """Return an AddPartitionsToTxn request in the layout of its version."""
    listed = [AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()]
    if version < FIRST_VERSION_OF_BROKERS:
        return AddPartitionsToTxnRequest([], transactional_id, producer_id, epoch, listed)
    return AddPartitionsToTxnRequest(
        [
            AddPartitionsToTxnTransaction(transactional_id, producer_id, epoch, verify_only, listed)
            for verify_only in (True, False, True)
        ]
    )


def begun(world: World, transactional_id: str, topic: str = "orders") -> tuple[RecordedClient, int]:
    """Start a transaction with one record in the first partition. Returns a client of its coordinator, and the producer id."""
    broker_id = world.state.nodes[0].transactions.coordinator_id(transactional_id)
    world.run()
    client = world.connect(broker_id, "producer")
    producer_id = world.send(client, InitProducerIdRequest(transactional_id, 60_000), 2).producer_id
    world.send(client, adds(transactional_id, producer_id, 0, 2, **{topic: [0]}), 2)
    data = batch(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
    leader = world.connect(world.leader(topic), "producer")
    world.send(leader, produce(topic, data, acks=-1, transactional_id=transactional_id), 9)
    world.advance(50)
    return client, int(producer_id)


@api("AddPartitionsToTxn")
def add_partitions_case(world: World, client: RecordedClient, version: int) -> None:
    coordinator, producer_id = begun(world, f"add-{version}")
    name = f"add-{version}"
    for number, epoch in ((producer_id, 0), (producer_id, 1), (producer_id + 1, 0)):
        world.send(coordinator, adds(name, number, epoch, version, orders=[0, 1]), version)
    world.send(coordinator, adds(name, producer_id, 0, version, orders=[0], missing=[0]), version)
    world.send(coordinator, adds("", producer_id, 0, version, orders=[0]), version)
    world.send(coordinator, adds("unknown", producer_id, 0, version, orders=[0]), version)


@api("AddOffsetsToTxn")
def add_offsets_case(world: World, client: RecordedClient, version: int) -> None:
    name = f"offsets-{version}"
    coordinator, producer_id = begun(world, name)
    for number, epoch in ((producer_id, 0), (producer_id, 1), (producer_id + 1, 0)):
        world.send(coordinator, AddOffsetsToTxnRequest(name, number, epoch, "g"), version)
    world.send(coordinator, AddOffsetsToTxnRequest("unknown", producer_id, 0, "g"), version)


@api("EndTxn")
def end_case(world: World, client: RecordedClient, version: int) -> None:
    for committed in (True, False):
        name = f"end-{version}-{committed}"
        coordinator, producer_id = begun(world, name)
        world.send(coordinator, EndTxnRequest(name, producer_id, 1, committed), version)
        world.send(coordinator, EndTxnRequest(name, producer_id + 1, 0, committed), version)
        world.send(coordinator, EndTxnRequest(name, producer_id, 0, committed), version)
        world.send(coordinator, EndTxnRequest(name, producer_id, 0, committed), version)
        world.advance(100)
        world.send(coordinator, EndTxnRequest(name, producer_id, 0, not committed), version)
        world.send(coordinator, EndTxnRequest("unknown", producer_id, 0, committed), version)


@api("TxnOffsetCommit")
def txn_offset_commit_case(world: World, client: RecordedClient, version: int) -> None:
    name, group = f"commit-{version}", f"group-{version}"
    coordinator, producer_id = begun(world, name)
    of_group = world.at_coordinator(group, "producer")

    def commit(epoch: int = 0, metadata: str | None = None, **fields: Any) -> None:
        topics = [
            TxnOffsetCommitRequestTopic("orders", [TxnOffsetCommitRequestPartition(0, 7, committed_metadata=metadata)]),
            TxnOffsetCommitRequestTopic("missing", [TxnOffsetCommitRequestPartition(0, 7)]),
        ]
        request = TxnOffsetCommitRequest(name, group, producer_id, epoch, topics=topics, **fields)
        world.send(of_group, request, version)
        world.advance(20)

    commit()
    world.send(coordinator, AddOffsetsToTxnRequest(name, producer_id, 0, group), 1)
    world.advance(20)
    commit()
    commit(metadata="m" * 5000)
    commit(epoch=1)
    if version >= 3:
        commit(generation_id=3, member_id="nobody")
    world.send(coordinator, EndTxnRequest(name, producer_id, 0, True), 1)
    world.advance(100)


@api("WriteTxnMarkers")
def write_markers_case(world: World, client: RecordedClient, version: int) -> None:
    topic = f"marked-{version}"
    world.topic(topic, 1, 3)
    leader = world.connect(world.leader(topic))
    for epoch, coordinator_epoch, committed in ((1, 0, False), (0, 0, True), (1, -1, True), (2, 1, True)):
        topics = [WritableTxnMarkerTopic(topic, [0, 9]), WritableTxnMarkerTopic("missing", [0])]
        marker = WritableTxnMarker(77, epoch, committed, topics, coordinator_epoch)
        world.send(leader, WriteTxnMarkersRequest([marker]), version)
        world.advance(20)
    world.send(leader, WriteTxnMarkersRequest([]), version)


@api("DescribeProducers")
def describe_producers_case(world: World, client: RecordedClient, version: int) -> None:
    begun(world, "described")
    leader = world.connect(world.leader("orders"))
    topics = [TopicRequest("orders", [0, 1, 9]), TopicRequest("missing", [0]), TopicRequest("bad name", [0])]
    world.send(leader, DescribeProducersRequest(topics), version)


@api("DescribeTransactions")
def describe_transactions_case(world: World, client: RecordedClient, version: int) -> None:
    coordinator, _ = begun(world, "described")
    world.send(coordinator, DescribeTransactionsRequest(["described", "unknown", ""]), version)
    other = (world.state.nodes[0].transactions.coordinator_id("described") + 1) % 3
    world.send(world.connect(other), DescribeTransactionsRequest(["described"]), version)
    world.send(
        world.connect((world.state.nodes[0].transactions.coordinator_id("described") + 1) % 3),
        DescribeTransactionsRequest(["described"]),
        version,
    )


@requests_of("ListTransactions")
def list_transactions_requests(world: World, version: int) -> Iterator[Any]:
    begun(world, f"listed-{version}")
    yield ListTransactionsRequest()
    yield ListTransactionsRequest(["Ongoing"])
    yield ListTransactionsRequest(["Foo", "Empty"])
    yield ListTransactionsRequest(["Foo"])
    yield ListTransactionsRequest([], [12345])
    if version >= 1:
        yield ListTransactionsRequest(duration_filter=100_000)
        yield ListTransactionsRequest(duration_filter=0)
    if version >= 2:
        yield ListTransactionsRequest(transactional_id_pattern="listed.*")
        yield ListTransactionsRequest(transactional_id_pattern="(")
