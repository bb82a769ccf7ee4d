"""Cut, damaged and oversized bodies of the transaction APIs, in all versions: as in Kafka, only the client that sent them is affected (W-5, W-8).

Each of these APIs changes or shows transactions, so the tests also check that the open transaction of another producer stays as it is.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.client import key_of
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
from kafkaproto.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafkaproto.records.batch import TRANSACTIONAL
from kafkaproto.testing import AsyncTestCluster, async_cluster
from tests.support.hostile import MIB, cases_of, check_cuts, check_lengths, missing_versions, rest_of, send_noise
from tests.support.memory import memory_left_within
from tests.support.raw import RawClient, client_of, open_sockets, until
from tests.support.wire import batch, fetch, flat, produce, produced

ID, OTHER, TOPIC = "id", "other", "t"
FIRST_BATCHED = 4
"""The first version of AddPartitionsToTxn with several transactions."""
UNKNOWN_TOPIC, UNKNOWN_MAPPING, UNKNOWN_ID = 3, 49, 105
MANY = 5_000


def requests() -> Iterator[tuple[Any, range]]:
    """Yield one request of each API with its versions; every array has items."""
    yield InitProducerIdRequest(OTHER, 1000), range(3)
    yield InitProducerIdRequest(OTHER, 1000, 7, 1), range(3, 6)
    topics = [AddPartitionsToTxnTopic("missing", [0, 1])]
    yield AddPartitionsToTxnRequest([], OTHER, 7, 1, topics), range(FIRST_BATCHED)
    transactions = [AddPartitionsToTxnTransaction(name, 7, 1, True, topics) for name in (OTHER, "another")]
    yield AddPartitionsToTxnRequest(transactions), range(FIRST_BATCHED, 6)
    yield AddOffsetsToTxnRequest(OTHER, 7, 1, "group"), range(5)
    yield EndTxnRequest(OTHER, 7, 1, True), range(6)
    markers = [WritableTxnMarker(i, 1, True, [WritableTxnMarkerTopic("missing", [0, 1])], 0) for i in (7, 8)]
    yield WriteTxnMarkersRequest(markers), range(3)
    offsets = [TxnOffsetCommitRequestPartition(i, 3, 0, "x" * 5) for i in range(2)]
    committed = [TxnOffsetCommitRequestTopic(TOPIC, offsets)]
    yield TxnOffsetCommitRequest(OTHER, "group", 7, 1, topics=committed), range(6)
    yield DescribeProducersRequest([TopicRequest(TOPIC, [0, 1])]), range(1)
    yield DescribeTransactionsRequest([OTHER, "another"]), range(1)
    yield ListTransactionsRequest(["Ongoing", "Empty"], [7, 8]), range(1)
    yield ListTransactionsRequest(["Ongoing", "Empty"], [7, 8], 1000), range(1, 2)
    yield ListTransactionsRequest(["Ongoing", "Empty"], [7, 8], 1000, "x.*"), range(2, 3)


CASES = cases_of(requests())


@asynccontextmanager
async def cluster_with_a_transaction(release: str) -> AsyncIterator[tuple[AsyncTestCluster, RawClient]]:
    """Yield a cluster and a healthy client with an open transaction, which can be committed at the end."""
    config = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
    async with (
        async_cluster(topics={TOPIC: 2}, config=config, release=release) as cluster,
        client_of(cluster) as healthy,
    ):
        cluster.state.nodes[0].transactions.coordinator_id(ID)
        cluster.state.coordinator_of("group")
        await until(lambda: not cluster.state.nodes[0].transactions.coordinator.store.is_loading)
        init_response = await healthy.ask(InitProducerIdRequest(ID, 600_000), 4)
        producer = init_response.producer_id, init_response.producer_epoch
        topics = [AddPartitionsToTxnTopic(TOPIC, [0])]
        await healthy.ask(AddPartitionsToTxnRequest([], ID, *producer, topics), 3)
        data = batch(
            b"v", producer_id=producer[0], producer_epoch=producer[1], base_sequence=0, attributes=TRANSACTIONAL
        )
        sent = produce(TOPIC, data, acks=-1)
        sent.transactional_id = ID
        assert produced(await healthy.ask(sent, 11)).error_code == 0
        yield cluster, healthy
        await check_transaction(healthy)
        assert (await healthy.ask(EndTxnRequest(ID, *producer, True), 3)).error_code == 0


async def check_transaction(healthy: RawClient) -> None:
    """Check that the transaction is open and holds back its record."""
    [state] = (await healthy.ask(DescribeTransactionsRequest([ID]), 0)).transaction_states
    assert (state.transaction_state, state.topics[0].partitions) == ("Ongoing", [0])
    [(_, data)] = flat(await healthy.ask(fetch((TOPIC, 0, 0), isolation=1), 11))
    assert (data.last_stable_offset, data.high_watermark) == (0, 1)


def test_examples_of_malformed_transaction_requests_cover_every_supported_version() -> None:
    keys = {key_of(request) for request, _ in requests()}
    assert {ApiKey.INIT_PRODUCER_ID, ApiKey.WRITE_TXN_MARKERS, ApiKey.LIST_TRANSACTIONS} <= keys
    assert missing_versions(CASES.values()) == set()


@pytest.mark.rule("W-5")
@pytest.mark.parametrize("name", CASES)
async def test_transaction_request_cut_at_any_byte_gets_no_response_or_new_transaction(name: str) -> None:
    case = CASES[name]
    async with cluster_with_a_transaction(case.release) as (cluster, _):
        await check_cuts(cluster, case)
        assert len(list(cluster.state.nodes[0].transactions.coordinator.store)) == 1
        assert await rest_of(cluster, case.payload) != b""
        await until(lambda: open_sockets(cluster) == 1)


@pytest.mark.slow
@pytest.mark.rule("W-5", "W-8")
@pytest.mark.parametrize("name", CASES)
async def test_huge_length_anywhere_in_a_transaction_request_uses_at_most_4_mib_of_memory(name: str) -> None:
    case = CASES[name]
    async with cluster_with_a_transaction(case.release) as (cluster, _):
        await check_lengths(cluster, case)


@pytest.mark.rule("W-5", "W-8")
@pytest.mark.parametrize("name", CASES)
async def test_transaction_requests_with_random_bodies_leak_no_memory(name: str) -> None:
    case, rng = CASES[name], random.Random(name)
    async with cluster_with_a_transaction(case.release) as (cluster, _):
        await send_noise(cluster, case, rng, 20)
        with memory_left_within(MIB):
            await send_noise(cluster, case, rng, 100)
            await until(lambda: open_sockets(cluster) == 1)


def large_requests() -> Iterator[tuple[Any, int, set[int]]]:
    """Yield valid requests with very many items: the request, its version, and the errors in its response."""
    indexes = list(range(10, 10 + MANY))
    names = [f"id-{i}" for i in range(MANY)]
    topics = [AddPartitionsToTxnTopic(TOPIC, indexes)]
    yield AddPartitionsToTxnRequest([], ID, 7, 1, topics), 3, {0, UNKNOWN_TOPIC}
    verified = [
        AddPartitionsToTxnTransaction(name, 7, 1, True, [AddPartitionsToTxnTopic(TOPIC, [0])]) for name in names
    ]
    yield AddPartitionsToTxnRequest(verified), 4, {0, UNKNOWN_MAPPING}
    offsets = [TxnOffsetCommitRequestPartition(i, 1, 0, "x" * 100) for i in indexes]
    committed = [TxnOffsetCommitRequestTopic(TOPIC, offsets)]
    yield TxnOffsetCommitRequest(ID, "group", 7, 1, topics=committed), 3, {UNKNOWN_TOPIC}
    yield DescribeTransactionsRequest(names), 0, {UNKNOWN_ID}
    yield DescribeProducersRequest([TopicRequest(TOPIC, indexes)]), 0, {UNKNOWN_TOPIC}
    yield ListTransactionsRequest(names, indexes), 1, {0}
    markers = [WritableTxnMarker(7, 1, True, [WritableTxnMarkerTopic(TOPIC, indexes)], 0)]
    yield WriteTxnMarkersRequest(markers), 1, {UNKNOWN_TOPIC}


def errors_in(message: Any) -> set[int]:
    """Return all error codes of a response."""
    errors = {getattr(message, name) for name in ("error_code", "partition_error_code") if hasattr(message, name)}
    lists = (
        "results_by_topic_v3_and_below results_by_transaction topic_results results_by_partition transaction_states topics "
        "partitions markers"
    )
    for items in lists.split():
        for item in getattr(message, items, None) or ():
            errors |= errors_in(item)
    return errors


@pytest.mark.slow
@pytest.mark.rule("W-8")
@pytest.mark.parametrize("number", range(len(list(large_requests()))))
async def test_transaction_request_with_very_many_items_gets_an_error_and_leaks_no_memory(number: int) -> None:
    request, version, errors = list(large_requests())[number]
    async with cluster_with_a_transaction("3.9") as (cluster, healthy), client_of(cluster) as client:
        response = await client.ask(request, version)
        assert errors_in(response) == errors
        spare_bytes = 4 * MIB  # buffers that the server keeps for later frames, whatever their number
        with memory_left_within(MIB + spare_bytes):
            for _ in range(6):
                response = await client.ask(request, version)
            del response
            await check_transaction(healthy)
