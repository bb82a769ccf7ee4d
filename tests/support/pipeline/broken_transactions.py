"""Faults of a broker in transactions, and the traffic that shows them; `broken.FAULTS` contains them.

Producers and consumers have a connection each to the broker that they need. Their requests are those of a client; nothing but the patched function
is wrong. All transactions write to the topic `other`.
"""

from __future__ import annotations

from typing import Any

from kafkaproto.broker.handlers import init_producer_id as init_handler
from kafkaproto.broker.log.producer_state import ProducerStates
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.replication.transaction_markers import MarkerSender, TransactionMarkers
from kafkaproto.broker.testing.memory import MemoryClient
from kafkaproto.broker.transaction import coordinator as coordinator_module
from kafkaproto.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kafkaproto.messages.end_txn import EndTxnRequest
from kafkaproto.messages.fetch import AbortedTransaction
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.records.batch import TRANSACTIONAL, read_header
from tests.support.pipeline.broken import FAULTS, TARGET, Patch, Scene, fault, only_for_target, record_bytes, wrapped
from tests.support.wire import batch, fetch, produce

TOPIC = "other"
TIMEOUT_MS = 60_000
REPLICATED_MS = 100
"""Time in which a request is replicated, and in which a transaction is completed."""


def ask(scene: Scene, client: MemoryClient, request: Any, version: int) -> Any:
    """Send a request, which may take a while, and return the response."""
    before = len(client.answers)
    client.send(request, version)
    scene.cluster.advance(REPLICATED_MS)
    assert len(client.answers) == before + 1, request
    return client.latest


def leader(scene: Scene, client_id: str) -> MemoryClient:
    """Return a connection to the leader of the topic."""
    [partition] = scene.cluster.state.controller.image.topics[TOPIC].partitions
    return scene.cluster.connect(partition.leader, client_id)


def read(scene: Scene, client_id: str, *, isolation: int = 0) -> None:
    ask(scene, leader(scene, client_id), fetch((TOPIC, 0, 0), isolation=isolation), 11)


def write(
    scene: Scene, client_id: str, producer: tuple[int, int], sequence: int, transactional_id: str | None = None
) -> int:
    """Produce a record of (producer id, epoch), and return the error."""
    attributes = 0 if transactional_id is None else TRANSACTIONAL
    data = batch(
        b"v", producer_id=producer[0], producer_epoch=producer[1], base_sequence=sequence, attributes=attributes
    )
    request = produce(TOPIC, data, acks=-1)
    request.transactional_id = transactional_id
    response = ask(scene, leader(scene, client_id), request, 11)
    return int(response.responses[0].partition_responses[0].error_code)


class Writer:
    """A producer with the transactional id `tx`."""

    def __init__(self, scene: Scene, client_id: str = TARGET) -> None:
        self.scene, self.client_id = scene, client_id
        while (coordinator := ask(scene, scene.good, FindCoordinatorRequest("tx", key_type=1), 3)).error_code:
            pass
        self.client = scene.cluster.connect(coordinator.node_id, client_id)
        self.sequence = 0
        self.init()

    def init(self) -> None:
        while (response := ask(self.scene, self.client, InitProducerIdRequest("tx", TIMEOUT_MS), 4)).error_code:
            assert response.error_code in (14, 16, 51), response
        self.producer = response.producer_id, response.producer_epoch

    def add(self) -> None:
        request = AddPartitionsToTxnRequest([], "tx", *self.producer, [AddPartitionsToTxnTopic(TOPIC, [0])])
        response = ask(self.scene, self.client, request, 3)
        assert response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0

    def write(self) -> None:
        """Produce a record in the transaction."""
        assert write(self.scene, self.client_id, self.producer, self.sequence, "tx") == 0
        self.sequence += 1

    def end(self, *, commit: bool) -> int:
        return int(ask(self.scene, self.client, EndTxnRequest("tx", *self.producer, commit), 3).error_code)

    def transaction(self, *, commit: bool) -> None:
        self.add()
        self.write()
        assert self.end(commit=commit) == 0


# ---- what clients do ---------------------------------------------------------------------------------------------------------


def commits_and_is_read(scene: Scene) -> None:
    writer = Writer(scene, "good")
    writer.transaction(commit=True)
    writer.transaction(commit=True)
    read(scene, TARGET, isolation=1)


def aborts_and_is_read(scene: Scene) -> None:
    writer = Writer(scene, "good")
    writer.transaction(commit=True)
    writer.transaction(commit=False)
    read(scene, TARGET, isolation=1)


def is_read_while_open(scene: Scene) -> None:
    writer = Writer(scene, "good")
    writer.transaction(commit=True)
    writer.add()
    writer.write()
    read(scene, TARGET)


def commits_a_transaction(scene: Scene) -> None:
    writer = Writer(scene)
    writer.transaction(commit=True)
    read(scene, TARGET)


def commits_two_transactions(scene: Scene) -> None:
    writer = Writer(scene)
    writer.transaction(commit=True)
    writer.transaction(commit=True)
    read(scene, TARGET)


def writes_with_an_old_epoch(scene: Scene) -> None:
    for epoch, sequence in ((0, 0), (1, 0), (0, 1)):
        write(scene, TARGET, (990, epoch), sequence)
    read(scene, TARGET)


def begins_an_epoch_in_the_middle(scene: Scene) -> None:
    for epoch, sequence in ((0, 0), (1, 3)):
        write(scene, TARGET, (990, epoch), sequence)
    read(scene, TARGET)


def begins_twice(scene: Scene) -> None:
    Writer(scene, "good")
    Writer(scene)


def ends_after_being_fenced(scene: Scene) -> None:
    old = Writer(scene)
    old.add()
    old.write()
    Writer(scene, "good")
    old.end(commit=False)
    read(scene, "good")


def writes_after_being_fenced(scene: Scene) -> None:
    old = Writer(scene)
    Writer(scene, "good")
    write(scene, TARGET, old.producer, 0, "tx")
    read(scene, "good")


# ---- faults ------------------------------------------------------------------------------------------------------------------


@fault(commits_and_is_read, "24")
def committed_transaction_listed_as_aborted(patch: Patch) -> None:
    def partition(original: Any, index: int, result: Any) -> Any:
        partition_data = original(index, result)
        first = read_header(record_bytes(partition_data.records))
        partition_data.aborted_transactions = [AbortedTransaction(first.producer_id, first.base_offset)]
        return partition_data

    only_for_target(patch, partition)


@fault(aborts_and_is_read, "11-aborted")
def aborted_transaction_listed_nowhere(patch: Patch) -> None:
    def partition(original: Any, index: int, result: Any) -> Any:
        partition_data = original(index, result)
        partition_data.aborted_transactions = []
        return partition_data

    only_for_target(patch, partition)


@fault(is_read_while_open, "25")
def stable_offset_of_a_response_passes_an_open_transaction(patch: Patch) -> None:
    def partition(original: Any, index: int, result: Any) -> Any:
        partition_data = original(index, result)
        partition_data.last_stable_offset = partition_data.high_watermark
        return partition_data

    only_for_target(patch, partition)


@fault(commits_a_transaction, "25-moved")
def stable_offset_follows_the_high_watermark(patch: Patch) -> None:
    patch.setattr(ReplicaLog, "last_stable_offset", property(lambda log: log.high_watermark))


@fault(writes_with_an_old_epoch, "26")
def batch_of_an_old_epoch_appended(patch: Patch) -> None:
    patch.setattr(ProducerStates, "check", lambda *_: None)


@fault(begins_an_epoch_in_the_middle, "26-first")
def first_sequence_of_an_epoch_not_checked(patch: Patch) -> None:
    patch.setattr(ProducerStates, "check", lambda *_: None)


@fault(begins_twice, "26-responses")
def epoch_given_twice(patch: Patch) -> None:
    def response(original: Any, exchange: Any, result: Any) -> Any:
        is_wrong = exchange.client_id == TARGET and result.epoch > 0
        return original(exchange, result._replace(epoch=result.epoch - 1) if is_wrong else result)

    wrapped(patch, init_handler, "_response", response)


@fault(ends_after_being_fenced, "27")
def end_of_a_fenced_producer_accepted(patch: Patch) -> None:
    def must_end(original: Any, transaction: Any, request: Any) -> bool:
        is_old = request.epoch < transaction.data.epoch
        return not is_old and bool(original(transaction, request))

    wrapped(patch, coordinator_module, "must_end", must_end)


@fault(writes_after_being_fenced, "27")
def batch_of_a_fenced_producer_appended(patch: Patch) -> None:
    patch.setattr(ProducerStates, "needs_verification", lambda *_: False)


@fault(commits_a_transaction, "28")
def abort_marker_written_after_a_commit(patch: Patch) -> None:
    def write_marker(original: Any, self: Any, marker: Any, key: Any, now_ms: int, done: Any) -> None:
        original(self, marker._replace(committed=False) if key[0] == TOPIC else marker, key, now_ms, done)

    wrapped(patch, TransactionMarkers, "write", write_marker)


@fault(commits_two_transactions, "28")
def marker_left_out(patch: Patch) -> None:
    left_out: list[Any] = []

    def write_marker(original: Any, self: Any, marker: Any, key: Any, now_ms: int, done: Any) -> None:
        if key[0] == TOPIC and not left_out:
            left_out.append(key)
            done(0, now_ms)
        else:
            original(self, marker, key, now_ms, done)

    wrapped(patch, MarkerSender, "write", write_marker)


NAMES = tuple(name for name, injected in FAULTS.items() if injected.breaks.__module__ == __name__)
