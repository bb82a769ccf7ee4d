"""Rows of the table `transactions`, and the markers of transactions in the table `batches`."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import Topic
from kafkaproto.conformance.transactions import Producer, producers, write_markers
from kafkaproto.conformance.wire import fetch
from kafkaproto.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.pipeline.trace.columns import Row
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.pipeline.trace.transaction_columns import TRANSACTION_ROWS
from kafkaproto.trace.format import Entry, Exchange
from tests.support.broker.transaction_bench import TransactionBench
from tests.support.recording import recorder_into

FENCED, INVALID_MAPPING, ABORTABLE = 90, 49, 120


class Recorded:
    """A cluster whose traffic is recorded, with a topic of two partitions."""

    def __init__(self, *, newer: bool = False) -> None:
        self.bench = TransactionBench(newer=newer)
        self.topic: Topic = self.bench.topic(2)
        self.entries: list[Entry] = []
        self.bench.cluster.state.record(recorder_into(self.entries))

    def rows(self, table: str, *apis: str) -> list[Row]:
        row_builder = Rows("r", 1_700_000_000_000, 0)
        all_rows = [row for entry in self.entries for name, row in row_builder.of(entry) if name == table]
        assert all(set(row) == {column.name for column in TABLES[table]} for row in all_rows)
        return [row for row in all_rows if not apis or row["api"] in apis]


def of(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


def test_rows_of_a_transaction_contain_its_producer_its_partitions_and_its_outcome(recorded: Recorded) -> None:
    producer, name = Producer(recorded.bench), recorded.topic.name
    producer.init(timeout_ms=5_000)
    producer.add({name: [0, 1]})
    assert producer.send(recorded.topic, 0) == (0, 0)
    group = Group(recorded.bench)
    assert producer.add_offsets(group) == 0
    producer.commit_offsets(group, {(name, 0): 1})
    producer.finish(commit=True)
    assert producer.end(commit=True, epoch=7)[0] == FENCED
    assert producer.end(commit=False, producer_id=-5)[0] == INVALID_MAPPING
    number = producer.producer_id
    rows = recorded.rows("transactions")
    assert {row["transactional_id"] for row in rows} == {producer.id}
    [first] = [row for row in rows if row["api"] == "InitProducerId" and row["error"] == 0]
    names = ("producer_id", "producer_epoch", "returned_producer_id", "returned_epoch", "timeout_ms")
    assert of([first], *names) == [(-1, -1, number, 0, 5_000)]
    added = [row for row in rows if row["api"] == "AddPartitionsToTxn"]
    names = ("position", "producer_id", "producer_epoch", "topic", "partition", "verify_only", "error")
    assert of(added, *names) == [(index, number, 0, name, index, False, 0) for index in (0, 1)]
    offsets = [row for row in rows if row["api"] in ("AddOffsetsToTxn", "TxnOffsetCommit")]
    assert of(offsets, "api", "group_id", "producer_id", "producer_epoch", "error") == [
        (api, group.id, number, 0, 0) for api in ("AddOffsetsToTxn", "TxnOffsetCommit")
    ]
    ends = [row for row in rows if row["api"] == "EndTxn"]
    assert of(ends, "committed", "producer_epoch", "returned_epoch", "error") == [
        (True, 0, None, 0),
        (True, 7, None, FENCED),
        (False, 0, None, INVALID_MAPPING),
    ]


def test_end_txn_row_contains_the_epoch_returned_under_transaction_version_2() -> None:
    recorded = Recorded(newer=True)
    producer = Producer(recorded.bench)
    producer.init()
    assert producer.send(recorded.topic, 0, version=12) == (0, 0)
    assert producer.end(commit=False, version=5)[0] == 0
    [end] = recorded.rows("transactions", "EndTxn")
    names = ("committed", "producer_epoch", "returned_producer_id", "returned_epoch")
    assert of([end], *names) == [(False, 0, producer.producer_id, 1)]


def test_add_partitions_to_txn_and_write_txn_markers_give_a_row_for_each_partition(recorded: Recorded) -> None:
    producer, name = Producer(recorded.bench), recorded.topic.name
    producer.init()
    producer.add({name: [0]})
    assert producer.verify({name: [0, 1]}) == {(name, 0): 0, (name, 1): ABORTABLE}
    producer.send(recorded.topic, 0)
    assert write_markers(recorded.topic, producer.producer_id, producer.epoch) == [0]
    verified = recorded.rows("transactions", "AddPartitionsToTxn")[1:]
    names = ("position", "transactional_id", "partition", "verify_only", "error")
    assert of(verified, *names) == [(0, producer.id, 0, True, 0), (1, producer.id, 1, True, ABORTABLE)]
    names = ("position", "producer_id", "producer_epoch", "topic", "partition", "committed", "error")
    assert of(recorded.rows("transactions", "WriteTxnMarkers"), *names) == [
        (0, producer.producer_id, 0, name, 0, False, 0)
    ]


def test_rows_of_describe_transactions_and_list_transactions_contain_the_state(recorded: Recorded) -> None:
    producer, name = Producer(recorded.bench), recorded.topic.name
    producer.init()
    producer.add({name: [0, 1]})
    producer.send(recorded.topic, 0)
    producer.send(recorded.topic, 1)
    producer.describe()
    producer.listed()
    producers(recorded.topic)
    names = ("transactional_id", "producer_id", "state", "topic", "partition", "timeout_ms", "error")
    number = producer.producer_id
    described = recorded.rows("transactions", "DescribeTransactions")[-2:]
    assert of(described, *names) == [(producer.id, number, "Ongoing", name, index, 60_000, 0) for index in (0, 1)]
    assert described[0]["start_ms"] > 0
    [listed] = recorded.rows("transactions", "ListTransactions")
    assert of([listed], *names[:3]) == [(producer.id, number, "Ongoing")]
    names = ("topic", "partition", "producer_id", "producer_epoch", "start_offset", "last_sequence", "error")
    assert of(recorded.rows("transactions", "DescribeProducers"), *names) == [(name, 0, number, 0, 0, 1, 0)]


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [4, 11])
def test_marker_row_of_a_fetch_response_says_whether_the_transaction_committed(
    recorded: Recorded, commit: bool, version: int
) -> None:
    producer = recorded.bench.begin(recorded.topic)
    producer.finish(commit=commit)
    client = recorded.bench.cluster.connect(recorded.topic.leader())
    client.ask(fetch((recorded.topic.name, 0, 0)), version)
    names = ("base_offset", "producer_id", "transactional", "control", "committed", "coordinator_epoch")
    assert of(recorded.rows("batches", "Fetch"), *names) == [
        (0, producer.producer_id, True, False, None, None),
        (1, producer.producer_id, True, True, commit, 0),
    ]
    assert {row["committed"] for row in recorded.rows("batches", "Produce")} == {None}


def test_row_of_a_transaction_request_without_a_response_has_a_null_error_column(recorded: Recorded) -> None:
    producer = recorded.bench.begin(recorded.topic)
    producer.add_offsets(Group(recorded.bench))
    producer.finish(commit=True)
    producer.verify({recorded.topic.name: [0]})
    recorded.entries = [
        entry._replace(answered=False, response=b"") for entry in recorded.entries if isinstance(entry, Exchange)
    ]
    rows = recorded.rows("transactions")
    assert {row["api"] for row in rows} == {"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"}
    assert {(row["error"], row["returned_epoch"]) for row in rows} == {(None, None)}


def test_row_of_a_non_transactional_init_producer_id_has_no_transactional_id() -> None:
    [(table, row)] = TRANSACTION_ROWS[ApiKey.INIT_PRODUCER_ID]({}, InitProducerIdRequest(None, 1), None)
    assert (table, row["transactional_id"], row["producer_id"], row["error"]) == ("transactions", None, -1, None)


def test_top_level_error_of_add_partitions_to_txn_is_in_the_row_of_each_partition() -> None:
    topics = [AddPartitionsToTxnTopic("t", [0, 1])]
    request = AddPartitionsToTxnRequest([AddPartitionsToTxnTransaction("x", 1, 0, True, topics)])
    partition_rows = TRANSACTION_ROWS[ApiKey.ADD_PARTITIONS_TO_TXN](
        {}, request, AddPartitionsToTxnResponse(error_code=31)
    )
    assert [(row["partition"], row["error"]) for _, row in partition_rows] == [(0, 31), (1, 31)]


def test_documentation_of_the_transactions_table_lists_every_api_recorded_in_it() -> None:
    [description] = [column.about for column in TABLES["transactions"] if column.name == "api"]
    assert len(description.replace(" or ", ", ").split(", ")) == len(TRANSACTION_ROWS)
