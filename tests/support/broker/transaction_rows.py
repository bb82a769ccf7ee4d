"""Benchmark rows whose instructions are counted: requests of one transactional producer beside a number of open transactions.

The open transactions have the same coordinator and a record in the same partition. ListTransactions and DescribeProducers have no rows: they return
every transaction and every producer of a partition, so their work grows with the number. The program is run in place of
`benchmarks/ab/workload.py`, with these rows: `python -P transaction_rows.py ROW...` prints one JSON object per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from benchmarks.ab import workload
from benchmarks.ab.workload import FETCH, PRODUCE, SMALL_VALUE, VERSIONS, Peer, Work, find, message
from kafkaproto.broker.group.offsets import CommittedOffset
from kafkaproto.broker.group.results import TransactionalCommit
from kafkaproto.broker.replication.coordinator_log import CoordinatorLog
from kafkaproto.broker.transaction.records import entry
from kafkaproto.broker.transaction.transaction import Transaction, TransactionData, TransactionState
from kafkaproto.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kafkaproto.records.batch import TRANSACTIONAL, NewRecord, build_batch

INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_OFFSET_COMMIT = 22, 24, 25, 26, 28
LIST_OFFSETS, OFFSET_FETCH, WRITE_MARKERS, DESCRIBE_TRANSACTIONS = 2, 9, 27, 65
PRODUCE_VERSION, OLD_VERSION = 11, 3
INIT_VERSION, PRODUCE_THAT_ADDS, END_THAT_BUMPS = 4, 12, 5
FETCH_OF_GROUPS, DESCRIBE_VERSION = 8, 0
LIST_VERSION, ADD_FOR_BROKERS, MARKER_VERSION = 7, 4, 1
TOPIC, TRANSACTIONS, ID, GROUP = "t", "__transaction_state", "counted", "g"
FEW, MANY = 10, 1000
PARTITIONS = 200
UNSTABLE = 88
"""UNSTABLE_OFFSET_COMMIT: the error of a partition with pending offsets."""
TIMEOUT_MS = 900_000
FIRST_IDLE_PRODUCER = 1_000_000
CONFIG = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "kafkaproto.transaction.completion.ms": "0",
}


class Scene:
    """A broker with `idle` open transactions, and a producer with its own id.

    before: how many records are below the open transactions. options: keyword arguments of the cluster, such as its release.
    """

    def __init__(self, idle: int, *, before: int = 0, **options: Any) -> None:
        cluster = find("VirtualCluster")(1, CONFIG, **options)
        cluster.topic(TOPIC, PARTITIONS, 1)
        self.node = cluster.state.nodes[0]
        self.node.transactions.coordinator_id(ID)
        self.peer, self.other = Peer(cluster), Peer(cluster)
        for number in range(before):
            self._append(build_batch([NewRecord(b"%0*d" % (SMALL_VALUE, number), None, workload.TIMESTAMP_MS)]))
        self._open_transactions(idle)
        init = message(
            "init_producer_id", "InitProducerIdRequest", transactional_id=ID, transaction_timeout_ms=TIMEOUT_MS
        )
        self.producer_id = self.peer.ask(init, INIT_PRODUCER_ID, INIT_VERSION).producer_id
        self._sequence = 0

    @property
    def transaction(self) -> Transaction:
        """Return the state of the producer on its coordinator."""
        transaction: Transaction = self.node.transactions.coordinator.store.get(ID)
        return transaction

    def _append(self, data: bytes) -> None:
        partition, now_ms = self.node.replicas.find(TOPIC, 0), self.peer.cluster.now_ms
        self.node.replicas.append(partition, memoryview(bytearray(data)), now_ms)

    def _open_transactions(self, count: int) -> None:
        """Open transactions as a coordinator loads them from the log: to send their requests would take minutes under valgrind."""
        cluster, coordinator = self.peer.cluster, self.node.transactions.coordinator
        now_ms = cluster.now_ms
        data = TransactionData(
            0, TIMEOUT_MS, now_ms, TransactionState.ONGOING, 0, partitions={(TOPIC, 0): None}, start_ms=now_ms
        )
        producers = range(FIRST_IDLE_PRODUCER, FIRST_IDLE_PRODUCER + count)
        log = CoordinatorLog(TRANSACTIONS, self.node.replicas, cluster.state.timers, timeout_ms=5_000)
        error = log.append_only(0, [entry(f"idle-{i}", data._replace(producer_id=i), 0) for i in producers], now_ms)
        coordinator.store.change({}, 1, now_ms)
        self.node.transactions.coordinate()
        cluster.run()
        if error or len(list(coordinator.store)) != count:
            raise workload.WorkloadError(f"the transactions were not loaded: error {error}")
        for i in producers:
            self._append(self._batch(i, 0))
        cluster.run()

    @staticmethod
    def _batch(producer_id: int, sequence: int, epoch: int = 0) -> bytes:
        record = NewRecord(b"x" * SMALL_VALUE, None, workload.TIMESTAMP_MS)
        return build_batch(
            [record], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, attributes=TRANSACTIONAL
        )

    def commit_pending_offsets(self, count: int, *, own_groups: bool) -> None:
        """Let `count` further producers commit the offset of one partition in transactions that stay open, each in its own group or all in one."""
        now_ms, cluster = self.peer.cluster.now_ms, self.peer.cluster
        cluster.state.coordinator_of(GROUP)
        errors: list[int] = []
        for number in range(count):
            group_id = f"{GROUP}-{number}" if own_groups else GROUP
            request = TransactionalCommit(group_id, FIRST_IDLE_PRODUCER + number, 0, -1, "", None)
            offsets = {(TOPIC, 0): CommittedOffset(number, -1, "", now_ms)}
            commits = self.node.groups.commits.transactional
            commits.commit(request, offsets, now_ms, lambda results, _: errors.extend(results.values()))
        cluster.run()
        if errors != [0] * count:
            raise workload.WorkloadError(f"the pending offsets were not stored: {errors}")

    def add_offsets(self) -> bytes:
        """Return the frame of AddOffsetsToTxn for the group."""
        request = message(
            "add_offsets_to_txn",
            "AddOffsetsToTxnRequest",
            transactional_id=ID,
            producer_id=self.producer_id,
            producer_epoch=0,
            group_id=GROUP,
        )
        return self.peer.frame(request, OLD_VERSION)

    def commit_offsets(self) -> bytes:
        """Return the frame of TxnOffsetCommit for one partition."""
        module = "txn_offset_commit"
        partition = message(module, "TxnOffsetCommitRequestPartition", partition_index=0, committed_offset=5)
        request = message(
            module,
            "TxnOffsetCommitRequest",
            transactional_id=ID,
            group_id=GROUP,
            producer_id=self.producer_id,
            producer_epoch=0,
            topics=[message(module, "TxnOffsetCommitRequestTopic", name=TOPIC, partitions=[partition])],
        )
        return self.peer.frame(request, OLD_VERSION)

    def add(self, index: int) -> bytes:
        """Return the frame of AddPartitionsToTxn for one partition."""
        module = "add_partitions_to_txn"
        topic = message(module, "AddPartitionsToTxnTopic", name=TOPIC, partitions=[index])
        return self.peer.frame(message(module, "AddPartitionsToTxnRequest", **self._named(topics=[topic])), OLD_VERSION)

    def end(self, epoch: int = 0, version: int = OLD_VERSION) -> bytes:
        """Return the frame of EndTxn."""
        request = message(
            "end_txn",
            "EndTxnRequest",
            transactional_id=ID,
            producer_id=self.producer_id,
            producer_epoch=epoch,
            committed=True,
        )
        return self.peer.frame(request, version)

    def _named(self, *, topics: list[Any]) -> dict[str, Any]:
        return {
            "v3_and_below_transactional_id": ID,
            "v3_and_below_producer_id": self.producer_id,
            "v3_and_below_producer_epoch": 0,
            "v3_and_below_topics": topics,
        }

    def produce_frames(self) -> Iterator[bytes]:
        """Yield the frames of Produce requests in sequence."""
        while True:
            request = workload.produce_request(self._batch(self.producer_id, self._sequence), acks=-1)
            request.transactional_id = ID
            self._sequence += 1
            yield self.peer.frame(request, PRODUCE_VERSION)

    def first_batches(self) -> list[bytes]:
        """Return the frames of Produce requests of `PARTITIONS` transactions, each with the next epoch (transaction version 2)."""
        requests = [
            workload.produce_request(self._batch(self.producer_id, 0, epoch), acks=-1) for epoch in range(PARTITIONS)
        ]
        for request in requests:
            request.transactional_id = ID
        return [self.peer.frame(request, PRODUCE_THAT_ADDS) for request in requests]

    def expect(self, state: TransactionState, partitions: int) -> None:
        """Raise WorkloadError if the transaction is not in this state with so many partitions."""
        data = self.transaction.data
        if (data.state, len(data.partitions)) != (state, partitions):
            raise workload.WorkloadError(f"the transaction is {data}")


@cache
def scene_of(idle: int, release_name: str = "3.9") -> Scene:
    """Return the scene of a release without records below its open transactions.

    Rows share it if it was made before they run: each runs in a forked process, with a copy. To open 1,000 transactions takes seconds under valgrind.
    """
    return Scene(idle, release_name=release_name)


def produce(idle: int) -> Work:
    """Return the row of Produce in an open transaction."""
    scene = scene_of(idle)
    scene.peer.exchange(scene.add(0))
    return Work(scene.peer, PRODUCE, PRODUCE_VERSION, scene.produce_frames(), scene.peer.exchange, workload.unthrottled)


def add_partitions(idle: int) -> Work:
    """Return the row of AddPartitionsToTxn, each for another partition."""
    scene = scene_of(idle)
    sent = 0

    def step(frame: bytes) -> None:
        nonlocal sent
        sent += 1
        scene.peer.exchange(frame)

    frames = map(scene.add, range(PARTITIONS))
    return Work(
        scene.peer,
        ADD_PARTITIONS,
        OLD_VERSION,
        frames,
        step,
        workload.unthrottled,
        lambda: scene.expect(TransactionState.ONGOING, sent),
    )


def transactions(scene: Scene, begin: bytes, frames: Iterator[bytes], key: int, version: int) -> Work:
    """Return a row of whole transactions of one request each: the frame `begin`, the request, EndTxn and its markers.

    frames: the requests. key, version: their API key and version.
    """
    end_frame = scene.end()

    def step(frame: bytes) -> None:
        scene.other.exchange(begin)
        scene.peer.exchange(frame)
        scene.other.exchange(end_frame)
        scene.peer.cluster.advance(1)

    def finish() -> None:
        scene.expect(TransactionState.COMPLETE_COMMIT, 0)

    return Work(scene.peer, key, version, frames, step, workload.unthrottled, finish)


def whole(idle: int) -> Work:
    """Return the row of a whole transaction: AddPartitionsToTxn, Produce, EndTxn and its markers."""
    scene = scene_of(idle)
    return transactions(scene, scene.add(0), scene.produce_frames(), PRODUCE, PRODUCE_VERSION)


def whole_of_version_2(idle: int) -> Work:
    """Return the row of a whole transaction of version 2 (KIP-890): Produce, which adds its partition, EndTxn and its markers."""
    scene = scene_of(idle, "4.2")
    ends = iter([scene.end(epoch, END_THAT_BUMPS) for epoch in range(PARTITIONS)])

    def step(frame: bytes) -> None:
        scene.peer.exchange(frame)
        scene.other.exchange(next(ends))
        scene.peer.cluster.advance(1)

    return Work(
        scene.peer,
        PRODUCE,
        PRODUCE_THAT_ADDS,
        iter(scene.first_batches()),
        step,
        workload.unthrottled,
        lambda: scene.expect(TransactionState.COMPLETE_COMMIT, 0),
    )


def init_producer_id(idle: int) -> Work:
    """Return the row of InitProducerId, which raises the epoch of the transactional id each time."""
    scene = scene_of(idle)
    init = message("init_producer_id", "InitProducerIdRequest", transactional_id=ID, transaction_timeout_ms=TIMEOUT_MS)
    return repeated(scene, init, INIT_PRODUCER_ID, INIT_VERSION)


def read_committed(idle: int) -> Work:
    """Return the row of a Fetch that returns the records below the open transactions."""
    records = 10
    scene = Scene(idle, before=records)
    request = workload.fetch_request(isolation_level=1)
    expected = workload.with_records(records * SMALL_VALUE, records * (SMALL_VALUE + 200))
    frame = scene.peer.frame(request, VERSIONS[FETCH])
    return Work(scene.peer, FETCH, VERSIONS[FETCH], iter(lambda: frame, None), scene.peer.exchange, expected)


def offsets_in_transactions(idle: int, *, own_groups: bool) -> Work:
    """Return the row of a transaction with offsets: AddOffsetsToTxn, TxnOffsetCommit, EndTxn and its markers."""
    scene = scene_of(idle)
    scene.commit_pending_offsets(idle, own_groups=own_groups)
    committed = scene.commit_offsets()
    return transactions(scene, scene.add_offsets(), iter(lambda: committed, None), TXN_OFFSET_COMMIT, OLD_VERSION)


def offset_commit(idle: int) -> Work:
    """Return the row of OffsetCommit in a group in which the open transactions have pending offsets."""
    scene = scene_of(idle)
    scene.commit_pending_offsets(idle, own_groups=False)
    partition = message("offset_commit", "OffsetCommitRequestPartition", partition_index=0, committed_offset=7)
    topic = message("offset_commit", "OffsetCommitRequestTopic", name=TOPIC, partitions=[partition])
    request = message("offset_commit", "OffsetCommitRequest", group_id=GROUP, topics=[topic])
    return workload.again(scene.peer, request, workload.OFFSET_COMMIT)


def stable_offset_fetch(idle: int, *, release_name: str) -> Work:
    """Return the row of OffsetFetch that requires stable offsets, in a group in which the open transactions have pending offsets.

    release_name: the Kafka release that the broker emulates; it decides which group coordinator the broker emulates.
    """
    scene = scene_of(idle, release_name)
    scene.commit_pending_offsets(idle, own_groups=False)
    topic = message("offset_fetch", "OffsetFetchRequestTopics", name=TOPIC, partition_indexes=[0])
    group = message("offset_fetch", "OffsetFetchRequestGroup", group_id=GROUP, topics=[topic])
    request = message("offset_fetch", "OffsetFetchRequest", groups=[group], require_stable=True)
    [fetched] = scene.peer.ask(request, OFFSET_FETCH, FETCH_OF_GROUPS).groups
    if fetched.topics[0].partitions[0].error_code != UNSTABLE:
        raise workload.WorkloadError(f"the offset is not pending: {fetched}")
    return repeated(scene, request, OFFSET_FETCH, FETCH_OF_GROUPS)


def describe_transactions(idle: int) -> Work:
    """Return the row of DescribeTransactions for one transactional id."""
    request = message("describe_transactions", "DescribeTransactionsRequest", transactional_ids=[ID])
    return repeated(scene_of(idle), request, DESCRIBE_TRANSACTIONS, DESCRIBE_VERSION)


def list_committed_offsets(idle: int) -> Work:
    """Return the row of ListOffsets for the last stable offset, which is that of the first open transaction."""
    request = ListOffsetsRequest(-1, 1, [ListOffsetsTopic(TOPIC, [ListOffsetsPartition(0, timestamp=-1)])])
    return repeated(scene_of(idle), request, LIST_OFFSETS, LIST_VERSION)


def verify_partition(idle: int) -> Work:
    """Return the row of AddPartitionsToTxn with which a partition leader asks whether a partition is in the producer's transaction (KIP-890)."""
    scene = scene_of(idle)
    scene.peer.exchange(scene.add(0))
    topic = AddPartitionsToTxnTopic(TOPIC, [0])
    verified = AddPartitionsToTxnTransaction(ID, scene.producer_id, 0, True, [topic])
    request = AddPartitionsToTxnRequest([verified])
    [answer] = scene.peer.ask(request, ADD_PARTITIONS, ADD_FOR_BROKERS).results_by_transaction
    if answer.topic_results[0].results_by_partition[0].partition_error_code:
        raise workload.WorkloadError(f"the partition is not in the transaction: {answer}")
    return repeated(scene, request, ADD_PARTITIONS, ADD_FOR_BROKERS)


def write_markers(idle: int) -> Work:
    """Return the row of WriteTxnMarkers, which writes one marker of the producer into the partition of the open transactions."""
    scene, sent = scene_of(idle), 0
    log = scene.node.replicas.find(TOPIC, 0).log
    end = log.log_end_offset
    marker = WritableTxnMarker(scene.producer_id, 0, True, [WritableTxnMarkerTopic(TOPIC, [0])])
    frame = scene.peer.frame(WriteTxnMarkersRequest([marker]), MARKER_VERSION)

    def step(frame: bytes) -> None:
        nonlocal sent
        sent += 1
        scene.peer.exchange(frame)

    def finish() -> None:
        if log.log_end_offset != end + sent:
            raise workload.WorkloadError(f"{sent} markers moved the end of the log from {end} to {log.log_end_offset}")

    return Work(scene.peer, WRITE_MARKERS, MARKER_VERSION, iter(lambda: frame, None), step, lambda _: True, finish)


def repeated(scene: Scene, request: Any, key: int, version: int) -> Work:
    """Return a row that sends the same request again and again. key, version: its API key and version."""
    frame = scene.peer.frame(request, version)
    return Work(scene.peer, key, version, iter(lambda: frame, None), scene.peer.exchange, workload.unthrottled)


PREPARED: dict[str, Callable[[int], Work]] = {
    "Produce": produce,
    "AddPartitionsToTxn": add_partitions,
    "a whole transaction": whole,
    "a whole transaction of version 2": whole_of_version_2,
    "InitProducerId": init_producer_id,
    "read_committed Fetch": read_committed,
    "a transaction with offsets of one group": partial(offsets_in_transactions, own_groups=False),
    "a transaction with offsets beside other groups": partial(offsets_in_transactions, own_groups=True),
    "OffsetCommit": offset_commit,
    "OffsetFetch of stable offsets in 3.9": partial(stable_offset_fetch, release_name="3.9"),
    "OffsetFetch of stable offsets in 4.2": partial(stable_offset_fetch, release_name="4.2"),
    "DescribeTransactions": describe_transactions,
    "ListOffsets of the last stable offset": list_committed_offsets,
    "AddPartitionsToTxn of a partition leader": verify_partition,
    "WriteTxnMarkers": write_markers,
}


def row(request: str, idle: int) -> str:
    """Return the name of a row."""
    return f"{request} beside {idle} open transactions"


if __name__ == "__main__":
    workload.ROWS.clear()
    workload.ROWS.update(
        {row(request, idle): partial(prepare, idle) for request, prepare in PREPARED.items() for idle in (FEW, MANY)}
    )
    for release_name in ("3.9", "4.2"):
        for idle in (FEW, MANY):
            scene_of(idle, release_name)
    raise SystemExit(workload.main())
