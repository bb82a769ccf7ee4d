"""Request details in the journal of a test cluster (A2): group, topics, partitions, error names and offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkaproto.broker.observe.details import MAX_RESULTS, Details, Result, request_details, response_details
from kafkaproto.broker.observe.journal import RequestSeen
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkaproto.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkaproto.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkaproto.messages.describe_groups import DescribeGroupsRequest
from kafkaproto.messages.describe_transactions import DescribeTransactionsRequest
from kafkaproto.messages.end_txn import EndTxnRequest
from kafkaproto.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.codec.catalogue import Entry, entries
from tests.support.codec.values import Values
from tests.support.wire import batch


def produce(topic: str, *partitions: int, acks: int = 1, value: bytes = b"v") -> ProduceRequest:
    data = [PartitionProduceData(index, batch(value)) for index in partitions]
    return ProduceRequest(None, acks, 1000, [TopicProduceData(topic, partition_data=data)])


def fetch(topic: str, partition: int, offset: int) -> FetchRequest:
    partition_fetch = FetchPartition(partition, -1, offset, -1, -1, 1 << 20)
    return FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic(topic, partitions=[partition_fetch])]
    )


def commit(group: str, topic: str, partition: int, offset: int) -> OffsetCommitRequest:
    partitions = [OffsetCommitRequestPartition(partition, offset)]
    return OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, partitions=partitions)])


@pytest.fixture
def cluster() -> VirtualCluster:
    virtual_cluster = VirtualCluster(config={"message.max.bytes": "1000"}, detailed_journal=True)
    virtual_cluster.topic("orders", 2)
    return virtual_cluster


@pytest.fixture
def client(cluster: VirtualCluster) -> MemoryClient:
    return cluster.connect(client_id="shop")


def latest(cluster: VirtualCluster) -> RequestSeen:
    return next(cluster.state.journal.latest(1))


CASES: list[tuple[Callable[[], Any], int, str]] = [
    (lambda: produce("orders", 0, 1), 9, "orders-0 offset 0, orders-1 offset 0"),
    (lambda: produce("orders", 1, value=bytes(2000)), 9, "orders-1 MESSAGE_TOO_LARGE"),
    (lambda: produce("orders", 7), 9, "orders-7 UNKNOWN_TOPIC_OR_PARTITION"),
    (lambda: fetch("orders", 1, 0), 4, "orders-1 offset 0"),
    (lambda: fetch("orders", 1, 9), 11, "orders-1 OFFSET_OUT_OF_RANGE"),
    (
        lambda: ListOffsetsRequest(-1, 0, [ListOffsetsTopic("orders", [ListOffsetsPartition(1, -1, -1)])]),
        5,
        "orders-1 offset 0",
    ),
    (lambda: MetadataRequest([MetadataRequestTopic(name="orders")]), 9, "orders"),
    (lambda: MetadataRequest([MetadataRequestTopic(name="a b")]), 9, "a b INVALID_TOPIC_EXCEPTION"),
    (lambda: CreateTopicsRequest([CreatableTopic("orders", 1, 1)]), 5, "orders TOPIC_ALREADY_EXISTS"),
    (lambda: CreateTopicsRequest([CreatableTopic("new", 1, 1)]), 5, "new"),
    (lambda: DeleteTopicsRequest([DeleteTopicState("none")], timeout_ms=1000), 6, "none UNKNOWN_TOPIC_OR_PARTITION"),
    (lambda: FindCoordinatorRequest("readers"), 3, "group readers"),
    (lambda: FindCoordinatorRequest(coordinator_keys=["readers"]), 4, "group readers readers"),
    (lambda: FindCoordinatorRequest("shop", 1), 3, "transactional id shop"),
    (lambda: FindCoordinatorRequest(key_type=1, coordinator_keys=["shop"]), 4, "transactional id shop shop"),
    (lambda: InitProducerIdRequest("shop", 1000), 4, "transactional id shop"),
    (lambda: EndTxnRequest("shop", 7, 0), 3, "transactional id shop INVALID_PRODUCER_ID_MAPPING"),
    (
        lambda: AddOffsetsToTxnRequest("shop", 7, 0, "readers"),
        3,
        "transactional id shop group readers INVALID_PRODUCER_ID_MAPPING",
    ),
    (
        lambda: AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="shop",
            v3_and_below_producer_id=7,
            v3_and_below_topics=[AddPartitionsToTxnTopic("orders", [0])],
        ),
        3,
        "transactional id shop orders-0 INVALID_PRODUCER_ID_MAPPING",
    ),
    (
        lambda: AddPartitionsToTxnRequest(
            [AddPartitionsToTxnTransaction("shop", 7, topics=[AddPartitionsToTxnTopic("orders", [0])])]
        ),
        4,
        "transactional id shop orders-0 INVALID_PRODUCER_ID_MAPPING",
    ),
    (lambda: DescribeTransactionsRequest(["shop"]), 0, "transactional id shop shop TRANSACTIONAL_ID_NOT_FOUND"),
    (lambda: HeartbeatRequest("readers", 1, "me"), 4, "group readers UNKNOWN_MEMBER_ID"),
    (lambda: commit("readers", "orders", 1, 42), 8, "group readers orders-1 offset 42"),
    (lambda: commit("readers", "none", 1, 42), 8, "group readers none-1 UNKNOWN_TOPIC_OR_PARTITION"),
    (lambda: DescribeGroupsRequest(["readers"]), 5, "group readers readers"),
]


@pytest.mark.parametrize(
    ("request_of", "version", "expected"), CASES, ids=[f"{text} v{version}" for _, version, text in CASES]
)
def test_journal_details_contain_the_topic_or_group_and_the_error_of_the_request(
    cluster: VirtualCluster, client: MemoryClient, request_of: Callable[[], Any], version: int, expected: str
) -> None:
    client.ask(FindCoordinatorRequest("readers"), 3)
    client.ask(FindCoordinatorRequest("first", 1), 3)
    cluster.advance(1000)
    client.ask(request_of(), version)
    assert str(latest(cluster).details) == expected


def test_journal_details_of_an_offset_fetch_contain_the_group_and_committed_offsets(
    cluster: VirtualCluster, client: MemoryClient
) -> None:
    client.ask(FindCoordinatorRequest("readers"), 3)
    client.ask(commit("readers", "orders", 1, 42), 8)
    topics = [OffsetFetchRequestTopics("orders", partition_indexes=[0, 1])]
    client.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup("readers", topics=topics)]), 8)
    assert str(latest(cluster).details) == "group readers orders-0, orders-1 offset 42"


def test_journal_details_of_a_fetch_by_topic_id_contain_the_topic_name_if_known(
    cluster: VirtualCluster, client: MemoryClient
) -> None:
    topic_id = cluster.state.controller.image.topics["orders"].topic_id
    partition_fetch = FetchPartition(0, -1, 0, -1, -1, 1 << 20)
    for requested_id in (topic_id, bytes(15) + b"x"):
        topics = [FetchTopic(topic_id=requested_id, partitions=[partition_fetch])]
        client.ask(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics), 13)
    of_known, of_unknown = cluster.state.journal.requests("Fetch")
    assert str(of_known.details) == "orders-0 offset 0"
    assert str(of_unknown.details) == f"topic id {'00' * 15}78-0 UNKNOWN_TOPIC_ID"


def test_request_recorded_in_the_journal_is_formatted_as_one_line(
    cluster: VirtualCluster, client: MemoryClient
) -> None:
    cluster.advance(1500)
    client.ask(produce("orders", 1, value=bytes(2000)), 9)
    [entry] = cluster.state.journal.requests("Produce")
    size = f"{entry.request_bytes} bytes in, {entry.response_bytes} out"
    line = f"+1.500 s broker 0 connection 1 shop: Produce v9 orders-1 MESSAGE_TOO_LARGE (#1, {size})"
    assert (str(entry), repr(entry), entry.errors) == (line, f"<RequestSeen {line}>", ("MESSAGE_TOO_LARGE",))


def test_each_throttle_and_each_event_in_the_journal_is_formatted_as_a_single_line(
    cluster: VirtualCluster, client: MemoryClient
) -> None:
    cluster.advance(1500)
    cluster.state.forced_throttles.add(ForcedThrottle(700, "Produce", times=1))
    client.ask(produce("orders", 1), 9)
    [throttle] = cluster.state.journal.throttles()
    line = "+1.500 s broker 0 connection 1 shop: Produce v9 throttled for 700 ms: forced by rule 1"
    assert (str(throttle), repr(throttle)) == (line, f"<ThrottleSeen {line}>")
    cluster.advance(700)
    [throttle] = cluster.state.journal.throttles()
    assert str(throttle) == line.replace(": forced", ", over after 700 ms: forced")
    assert str(latest(cluster)).endswith(" out, throttled 700 ms)")
    cluster.state.journal.noted(cluster.now_ms, 0, "isr", {"topic": "orders", "partition": 1})
    [event] = cluster.state.journal.events("isr")
    assert repr(event) == "<EventSeen +2.200 s broker 0 isr topic=orders partition=1>"


def test_each_partition_of_an_acks_0_produce_is_listed_as_unanswered_in_the_journal(
    cluster: VirtualCluster, client: MemoryClient
) -> None:
    client.send(produce("orders", 0, 1, acks=0), 9)
    assert str(latest(cluster).details) == "orders-0 no response, orders-1 no response"


def test_journal_details_of_a_produce_to_55_partitions_contain_only_50_results(
    cluster: VirtualCluster, client: MemoryClient
) -> None:
    cluster.topic("wide", MAX_RESULTS + 5)
    client.ask(produce("wide", *range(MAX_RESULTS + 5)), 9)
    details = latest(cluster).details
    assert details is not None
    assert (len(details.results), details.left_out) == (MAX_RESULTS, 5)
    assert str(details) == f"{', '.join(f'wide-{i} offset 0' for i in range(4))}, and {MAX_RESULTS + 1} more"


def test_requests_in_the_journal_have_no_details_if_details_are_disabled() -> None:
    cluster = VirtualCluster()
    cluster.topic("orders")
    cluster.connect().ask(produce("orders", 0), 9)
    assert (latest(cluster).details, latest(cluster).errors) == (None, ())


def test_fetch_details_of_a_disconnected_client_are_not_in_the_next_journal_entry(cluster: VirtualCluster) -> None:
    parked = cluster.connect(client_id="parked")
    request = fetch("orders", 0, 0)
    request.max_wait_ms = 1000
    parked.send(request, 11)
    parked.connection.socket_closed()
    cluster.advance(2000)
    cluster.connect().ask(MetadataRequest([]), 9)
    assert latest(cluster).details == Details()


def test_text_of_journal_details_contains_the_offset_or_error_of_each_partition() -> None:
    result = Result("orders", 0, "NONE", 7)
    details = Details("g", "NONE", (result, Result("orders", 1, "NOT_LEADER_OR_FOLLOWER", None)))
    assert details.errors == ("NOT_LEADER_OR_FOLLOWER",)
    assert str(details) == "group g orders-0 offset 7, orders-1 NOT_LEADER_OR_FOLLOWER"


@pytest.mark.parametrize("entry", list(entries()), ids=lambda entry: entry.id)
def test_journal_details_can_be_built_from_messages_with_null_fields_and_empty_lists(entry: Entry) -> None:
    """Messages include nulls and empty lists."""
    for message in Values(entry).objects(entry.layout, 12):
        details = request_details(message, bytes.hex)
        assert len(str(details.unanswered())) < 1 << 20
        assert len(response_details(message, details, bytes.hex).results) <= MAX_RESULTS


def test_control_characters_in_client_ids_are_escaped_in_journal_lines(cluster: VirtualCluster) -> None:
    client = cluster.connect(client_id="a\nFAKE LINE\x1b[31m")
    client.ask(HeartbeatRequest("g\n1", 1, "me"), 4)
    line = str(latest(cluster))
    assert line.isprintable()
    assert r"'a\nFAKE LINE\x1b[31m': Heartbeat v4 group 'g\n1'" in line
