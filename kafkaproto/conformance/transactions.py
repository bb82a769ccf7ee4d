"""Transactions in conformance tests: a transactional producer whose requests the test sends one by one, so that it sees every error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import Topic, read, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, produce, produced
from kafkaproto.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkaproto.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkaproto.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kafkaproto.messages.describe_transactions import DescribeTransactionsRequest
from kafkaproto.messages.end_txn import EndTxnRequest
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.list_transactions import ListTransactionsRequest
from kafkaproto.messages.produce import ProduceRequest
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkaproto.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kafkaproto.partitioner import java_hash
from kafkaproto.records.batch import TRANSACTIONAL

TRANSACTION_TOPIC = "__transaction_state"
NONE = -1
TIMEOUT_MS = 60_000
PRODUCE_TIMEOUT_MS = 10_000
"""The timeout in ms of Produce requests: long enough for the followers of a topic that was just created to replicate the records."""
LOADING = (14, 15, 16)
CONCURRENT_TRANSACTIONS = 51
EPOCH_BUMPING_END_TXN = 5
"""The lowest version of EndTxn whose requests raise the producer's epoch. Clusters offer it with transaction version 2 (KIP-890)."""


def bumps_epochs(subject: Subject) -> bool:
    """Return whether each EndTxn raises the producer's epoch, as transaction version 2 does (KIP-890).

    This is the case if the cluster offers a version of EndTxn that belongs to transaction version 2.
    """
    return subject.offered()[ApiKey.END_TXN][1] >= EPOCH_BUMPING_END_TXN


class Producer:
    """A producer with a transactional id of its own. `producer_id` and `epoch` come from its last successful InitProducerId.

    index: the partition of `__transaction_state` that a new transactional id must be in; None for any.
    """

    def __init__(self, subject: Subject, transactional_id: str | None = None, index: int | None = None) -> None:
        self.subject = subject
        self.log = Topic(subject, TRANSACTION_TOPIC)
        self.id = subject.new_name("x") if transactional_id is None else transactional_id
        self.producer_id = self.epoch = NONE
        if index is not None:
            self.coordinator()
            while self.index != index:
                self.id = subject.new_name("x")

    @property
    def index(self) -> int:
        """Return the partition of `__transaction_state` that stores the transactional id (TX-1)."""
        return java_hash(self.id) % len(self.log.metadata().partitions)

    def coordinator(self) -> int:
        """Return the id of the broker that coordinates this producer. Waits until that broker has loaded the transactional id."""
        coordinator: int = (
            wait_until(self.subject, self._ready, f"the coordinator of transactional id {self.id} is available") - 1
        )
        return coordinator

    def _ready(self) -> int:
        """Return the coordinator's broker id plus 1, or 0 while no coordinator is available. `wait_until` waits for a result other than 0."""
        version = self.subject.version(ApiKey.FIND_COORDINATOR, 3)
        response = self.subject.ask_once(FindCoordinatorRequest(self.id, key_type=1), version)
        if response.error_code:
            return 0
        return 0 if self.describe(response.node_id).error_code in LOADING else int(response.node_id) + 1

    def ask(self, request: Any, version: int) -> Any:
        """Send a request to the transaction coordinator over a new connection, and return the response."""
        return self.subject.ask_once(request, version, self.coordinator())

    def init_once(
        self, producer_id: int = NONE, epoch: int = NONE, *, version: int = 4, timeout_ms: int = TIMEOUT_MS
    ) -> tuple[int, int, int]:
        """Send InitProducerId, and return (error, producer id, epoch). Stores nothing in this object.

        Repeats the request only as long as its error is COORDINATOR_LOAD_IN_PROGRESS (14), for example because the broker has no producer ids to
        assign yet (TX-11). producer_id, epoch: the current values of the producer, -1 for none. timeout_ms: the transaction timeout.
        """
        request = InitProducerIdRequest(self.id, timeout_ms, producer_id, epoch)
        while True:
            response = self.ask(request, version)
            if response.error_code != LOADING[0]:
                return response.error_code, response.producer_id, response.producer_epoch
            self.subject.pass_ms(100)

    def init(self, **options: Any) -> tuple[int, int]:
        """Get the producer id and its next epoch, and return both. Waits until the last transaction is complete.

        options: arguments of `init_once`.
        """
        result = wait_until(
            self.subject, lambda: self._initialised(**options), f"transactional id {self.id} has a new producer epoch"
        )
        self.producer_id, self.epoch = result[1:]
        return self.producer_id, self.epoch

    def _initialised(self, **options: Any) -> tuple[int, int, int] | None:
        result = self.init_once(**options)
        if result[0] == CONCURRENT_TRANSACTIONS:
            return None
        assert result[0] == 0, result
        return result

    def _numbers(self, producer_id: int | None, epoch: int | None) -> tuple[int, int]:
        return self.producer_id if producer_id is None else producer_id, self.epoch if epoch is None else epoch

    def add(
        self,
        partitions: Mapping[str, Sequence[int]],
        *,
        producer_id: int | None = None,
        epoch: int | None = None,
        version: int = 3,
    ) -> dict[tuple[str, int], int]:
        """Send AddPartitionsToTxn as a client does, and return the error of each partition.

        partitions: maps topics to partition indexes. producer_id, epoch: by default those of this producer.
        """
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name, list(indexes)) for name, indexes in partitions.items()],
        )
        request.v3_and_below_producer_id, request.v3_and_below_producer_epoch = self._numbers(producer_id, epoch)
        return _errors(self.ask(request, version).results_by_topic_v3_and_below)

    def verify(self, partitions: Mapping[str, Sequence[int]], *, adds: bool = False) -> dict[tuple[str, int], int]:
        """Send AddPartitionsToTxn version 4 as a broker does, and return the error of each partition.

        partitions: maps topics to partition indexes. adds: whether to add the partitions to the transaction, not only to verify them.
        """
        topics = [AddPartitionsToTxnTopic(name, list(indexes)) for name, indexes in partitions.items()]
        transaction = AddPartitionsToTxnTransaction(self.id, self.producer_id, self.epoch, not adds, topics)
        response = self.ask(AddPartitionsToTxnRequest([transaction]), 4)
        assert response.error_code == 0
        return _errors(response.results_by_transaction[0].topic_results)

    def add_once_free(self, topic: Topic, *indexes: int) -> None:
        """Add partitions of a topic to a new transaction, as soon as the previous transaction is complete."""
        expected = {(topic.name, index): 0 for index in indexes or (0,)}
        wait_until(
            self.subject,
            lambda: self.add({topic.name: indexes or (0,)}) == expected,
            f"transactional id {self.id} can add topic {topic.name} to its transaction",
        )

    def send(
        self,
        topic: Topic,
        sequence: int,
        *,
        index: int = 0,
        version: int = 11,
        epoch: int | None = None,
        producer_id: int | None = None,
        transactional: bool = True,
    ) -> tuple[int, int]:
        """Produce one record with a sequence number, and return (error, base offset).

        index: the partition. version: the version of the Produce request. producer_id, epoch: by default those of this producer. transactional:
        whether the batch is part of a transaction.
        """
        request = self.produce_request(
            topic, sequence, index=index, epoch=epoch, producer_id=producer_id, transactional=transactional
        )
        partition_response = produced(self.subject.ask_once(request, version, topic.leader(index)))
        return partition_response.error_code, partition_response.base_offset

    def produce_request(
        self,
        topic: Topic,
        sequence: int,
        *,
        index: int = 0,
        epoch: int | None = None,
        producer_id: int | None = None,
        transactional: bool = True,
        acks: int = -1,
    ) -> ProduceRequest:
        """Return a Produce request with one record.

        sequence: the sequence number of the record. index: the partition. producer_id, epoch: by default those of this producer. transactional:
        whether the batch is part of a transaction. acks: the required acknowledgements.
        """
        number, own_epoch = self._numbers(producer_id, epoch)
        data = batch(
            b"v",
            timestamp=self.subject.epoch_ms(),
            producer_id=number,
            producer_epoch=own_epoch,
            base_sequence=sequence,
            attributes=TRANSACTIONAL if transactional else 0,
        )
        request = produce(topic.name, data, index, acks=acks, timeout_ms=PRODUCE_TIMEOUT_MS)
        if transactional:
            request.transactional_id = self.id
        return request

    def end(
        self, *, commit: bool, epoch: int | None = None, producer_id: int | None = None, version: int = 3
    ) -> tuple[int, int, int]:
        """Send EndTxn, and return (error, producer id, epoch); the last two are -1 before version 5.

        producer_id, epoch: the values in the request, by default those of this producer. commit: False aborts the transaction.
        """
        response = self.ask(EndTxnRequest(self.id, *self._numbers(producer_id, epoch), commit), version)
        return response.error_code, response.producer_id, response.producer_epoch

    def describe(self, broker_id: int | None = None) -> Any:
        """Send DescribeTransactions for the producer's transactional id, and return the entry of this id in the response.

        broker_id: the broker that gets the request, by default the coordinator.
        """
        broker_id = self.coordinator() if broker_id is None else broker_id
        [state] = self.subject.ask_once(DescribeTransactionsRequest([self.id]), 0, broker_id).transaction_states
        return state

    def wait_for(self, state: str) -> None:
        """Wait until the transaction is in this state, given by the name in DescribeTransactions, such as "CompleteCommit"."""
        wait_until(
            self.subject,
            lambda: self.describe().transaction_state == state,
            f"the transaction of transactional id {self.id} has the state {state}",
        )

    def finish(self, *, commit: bool) -> None:
        """Commit or, if `commit` is False, abort the transaction, and wait until it is complete."""
        assert self.end(commit=commit)[0] == 0
        self.wait_for("CompleteCommit" if commit else "CompleteAbort")

    def listed(self, version: int = 0, **filters: Any) -> Any:
        """Return the ListTransactions response of the coordinator.

        version: the version of the request. filters: fields of the request that select transactions, such as `state_filters`.
        """
        return self.ask(ListTransactionsRequest(**filters), version)

    def add_offsets(self, group: Group, version: int = 3) -> int:
        """Send AddOffsetsToTxn, and return the error."""
        request = AddOffsetsToTxnRequest(self.id, self.producer_id, self.epoch, group.id)
        return int(self.ask(request, version).error_code)

    def commit_offsets(
        self, group: Group, offsets: Mapping[tuple[str, int], int], *, version: int = 3, **options: Any
    ) -> dict[tuple[str, int], int]:
        """Send TxnOffsetCommit to the group's coordinator, and return the error of each partition.

        offsets: maps (topic, partition) to the offset to commit. options: further fields of the request, such as the member id.
        """
        response = group.ask(self.offsets_request(group, offsets, **options), version)
        return {(t.name, p.partition_index): p.error_code for t in response.topics for p in t.partitions}

    def offsets_request(
        self, group: Group, offsets: Mapping[tuple[str, int], int], **options: Any
    ) -> TxnOffsetCommitRequest:
        """Return the request that `commit_offsets` sends for these arguments."""
        topics = [
            TxnOffsetCommitRequestTopic(name, [TxnOffsetCommitRequestPartition(index, offset)])
            for (name, index), offset in offsets.items()
        ]
        producer = {"producer_id": self.producer_id, "producer_epoch": self.epoch}
        return TxnOffsetCommitRequest(self.id, group.id, topics=topics, **(producer | options))


def visible(topic: Topic, offset: int = 0) -> tuple[int, int, list[tuple[int, int]], int]:
    """Return (high watermark, last stable offset, aborted transactions, size of the records in bytes) of a read_committed fetch.

    An aborted transaction is given as (producer id, first offset).
    """
    data = read(topic, offset, isolation=1)
    aborted = [(entry.producer_id, entry.first_offset) for entry in data.aborted_transactions]
    return data.high_watermark, data.last_stable_offset, aborted, len(data.records)


def producers(topic: Topic, index: int = 0) -> tuple[int, list[tuple[int, int, int, int, int]]]:
    """Return (error, producers) of a DescribeProducers response for one partition.

    A producer is (producer id, epoch, last sequence, coordinator epoch, start offset of the open transaction).
    """
    response = topic.subject.ask_once(DescribeProducersRequest([TopicRequest(topic.name, [index])]), 0, topic.leader())
    [partition] = response.topics[0].partitions
    return partition.error_code, [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.coordinator_epoch, p.current_txn_start_offset)
        for p in partition.active_producers
    ]


def write_markers(
    topic: Topic,
    producer_id: int,
    epoch: int,
    *topics: str,
    commit: bool = False,
    coordinator_epoch: int = 0,
    version: int = 1,
    transaction_version: int = 0,
) -> list[int]:
    """Send WriteTxnMarkers to the leader of a topic, for partition 0 of this topic and of `topics`. Returns the error of each of these partitions.

    producer_id, epoch: the producer whose transaction ends. commit: False to abort. coordinator_epoch: the epoch of the transaction coordinator.
    version: the version of the request. transaction_version: the level of the feature `transaction.version` that the marker names, from version 2 of
    the request on.
    """
    marker_topics = [WritableTxnMarkerTopic(name, [0]) for name in (topic.name, *topics)]
    marker = WritableTxnMarker(producer_id, epoch, commit, marker_topics, coordinator_epoch, transaction_version)
    response = topic.subject.ask_once(WriteTxnMarkersRequest([marker]), version, topic.leader())
    errors = {t.name: t.partitions[0].error_code for t in response.markers[0].topics}
    return [errors[name] for name in (topic.name, *topics)]


def _errors(results: Any) -> dict[tuple[str, int], int]:
    return {(t.name, p.partition_index): p.partition_error_code for t in results for p in t.results_by_partition}
