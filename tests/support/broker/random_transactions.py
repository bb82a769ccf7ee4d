"""Random transactions of three producers, while brokers stop, leaders and coordinators move, and responses are lost; with checks of the result.

`RandomTransactions(seed, newer).play()` raises AssertionError, with the seed, if a committed record or offset is not visible, an aborted one is,
a transaction stays open, or the replicas of a partition disagree.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.conformance.client import Closed
from kafkaproto.conformance.groups import OFFSETS_TOPIC, Group
from kafkaproto.conformance.transactions import Producer
from kafkaproto.conformance.wire import batch, produce
from kafkaproto.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkaproto.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kafkaproto.messages.end_txn import EndTxnRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkaproto.records.batch import TRANSACTIONAL, records
from tests.support.broker.transaction_bench import TRANSACTIONS, TransactionBench
from tests.support.conformance.virtual import BROKERS

COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"
"""The outcome of a record or an offset, as its producer knows it: UNKNOWN if the response was lost or leaves the outcome open."""
CONCURRENT_TRANSACTIONS = 51
MAYBE_WRITTEN = frozenset({6, 7, 20})
"""Errors of Produce after which the record may be in the log."""
TIMEOUT_MS = 20_000
ENDED = ("Empty", "CompleteCommit", "CompleteAbort")
Place = tuple[str, int]


@dataclass
class Writer:
    """A transactional producer. adds_partitions: whether it uses transaction version 2. offset_key: the partition whose offsets it commits.

    may_write: False if it needs a new epoch before it can write. open_values, open_offset: the records and the offset of its open
    transaction. offsets: all offsets that it committed, in order, with their outcomes.
    """

    producer: Producer
    adds_partitions: bool
    offset_key: Place
    may_write: bool = True
    open_values: list[bytes] = field(default_factory=list)
    open_offset: int | None = None
    sequences: dict[Place, int] = field(default_factory=dict)
    added: set[Place] = field(default_factory=set)
    offsets: list[tuple[int, str]] = field(default_factory=list)

    @property
    def numbers(self) -> tuple[int, int]:
        return self.producer.producer_id, self.producer.epoch


class RandomTransactions:
    """One run. newer: whether the brokers emulate Kafka 4.2, so that some producers use transaction version 2."""

    def __init__(self, seed: int, *, newer: bool) -> None:
        self.seed, self.newer = seed, newer
        self.random = Random(seed)
        min_isr = str(self.random.choice([1, 2]))
        self.bench = TransactionBench({"transaction.state.log.min.isr": min_isr}, newer=newer)
        self.state = self.bench.cluster.state
        topics = [(self.bench.topic(count), count) for count in (2, 1)]
        self.partitions = [(topic.name, index) for topic, count in topics for index in range(count)]
        self.group = Group(self.bench)
        self.group_index = self.group.index
        self.outcomes: dict[bytes, str] = {}
        self.last_value = 0
        self.writers = [self._writer(key) for key in self.partitions]

    def _writer(self, offset_key: Place) -> Writer:
        producer = Producer(self.bench)
        producer.init(timeout_ms=TIMEOUT_MS)
        return Writer(producer, self.newer and self.random.random() < 0.5, offset_key)

    def play(self) -> Counter[str]:
        """Play the run and check its result. Returns how many records had each outcome."""
        for _ in range(self.random.randrange(20, 60)):
            self._step()
        for writer in self.writers:  # what is open now is aborted by its timeout
            self.outcomes.update(dict.fromkeys(writer.open_values, ABORTED))
            if writer.open_offset is not None:
                writer.offsets.append((writer.open_offset, ABORTED))
        for broker_id in range(BROKERS):
            self.bench.start_broker(broker_id)
        self.bench.pass_ms(120_000)
        self._check_records()
        self._check_offsets()
        for writer in self.writers:
            assert writer.producer.describe().transaction_state in ENDED, self._about(writer.producer.id)
        self.bench.stop()
        return Counter(self.outcomes.values())

    def _about(self, detail: object) -> str:
        return f"seed {self.seed}, newer={self.newer}: {detail}"

    # What happens

    def _step(self) -> None:
        writer, number = self.random.choice(self.writers), self.random.random()
        if number < 0.08:
            if sum(node.running for node in self.state.nodes) == BROKERS:
                self.bench.stop_broker(self.random.randrange(BROKERS))
        elif number < 0.16:
            for broker_id in range(BROKERS):
                self.bench.start_broker(broker_id)
            self.bench.pass_ms(self.random.choice([0, 10, 100]))
        elif number < 0.26:
            self._elect(writer)
        elif number < 0.34:
            self.bench.pass_ms(self.random.choice([1, 20, 500, 15_000]))
        elif not writer.may_write or number < 0.38:
            self._init(writer)
        elif number < 0.46:
            if writer.open_values:
                self._commit_offset(writer)
        elif number < 0.78:
            self._produce(writer, self.random.choice(self.partitions))
        elif writer.open_values:
            self._end(writer)

    def _elect(self, writer: Writer) -> None:
        """Move a coordinator or a leader to another in-sync replica."""
        own_index = self.bench.state_partition(writer.producer).index
        places = [(TRANSACTIONS, own_index), (OFFSETS_TOPIC, self.group_index), self.random.choice(self.partitions)]
        topic, index = self.random.choice(places)
        in_sync = self.state.controller.image.topics[topic].partitions[index].isr
        self.state.controller.elect(topic, index, self.random.choice(in_sync))
        self.bench.cluster.run()

    def _ask(self, broker_id: int, request: Any, version: int) -> Any:
        """Send a request over a connection of its own; None if there is no response before the client gives up."""
        if broker_id < 0 or not self.state.nodes[broker_id].running:
            return None
        connection = self.bench.open(broker_id)
        try:
            self.bench.send(connection, request, version)
            response = self.bench.answer_or_none(connection, self.random.choice([0, 1, 5, 50, 2000]))
        except Closed:
            return None
        finally:
            connection.close()
        return None if response is None else response.message

    def _coordinator(self, writer: Writer) -> int:
        return self.bench.state_partition(writer.producer).leader

    def _leader(self, place: Place) -> int:
        return int(self.state.controller.image.leader_of(*place)[0])

    def _give_up(self, writer: Writer) -> None:
        """Forget the open transaction, whose end the producer does not know."""
        for value in writer.open_values:
            self.outcomes.setdefault(value, UNKNOWN)
        if writer.open_offset is not None:
            writer.offsets.append((writer.open_offset, UNKNOWN))
        writer.open_values, writer.open_offset, writer.added, writer.may_write = [], None, set(), False

    def _init(self, writer: Writer) -> None:
        self._give_up(writer)
        response = self._ask(self._coordinator(writer), InitProducerIdRequest(writer.producer.id, TIMEOUT_MS), 4)
        if response is not None and response.error_code == 0:
            writer.producer.producer_id, writer.producer.epoch = response.producer_id, response.producer_epoch
            writer.may_write, writer.sequences = True, {}

    def _is_added(self, writer: Writer, error_code: int | None) -> bool:
        """Return whether partitions were added. After any other error than CONCURRENT_TRANSACTIONS the producer needs a new epoch."""
        if error_code not in (0, CONCURRENT_TRANSACTIONS):
            writer.may_write = False
        return error_code == 0

    def _commit_offset(self, writer: Writer) -> None:
        if not writer.adds_partitions:
            request = AddOffsetsToTxnRequest(writer.producer.id, *writer.numbers, self.group.id)
            response = self._ask(self._coordinator(writer), request, 3)
            if not self._is_added(writer, None if response is None else response.error_code):
                return
        self.last_value += 1
        name, index = writer.offset_key
        topics = [TxnOffsetCommitRequestTopic(name, [TxnOffsetCommitRequestPartition(index, self.last_value)])]
        commit = TxnOffsetCommitRequest(writer.producer.id, self.group.id, *writer.numbers, topics=topics)
        leader = self._leader((OFFSETS_TOPIC, self.group_index))
        response = self._ask(leader, commit, 5 if writer.adds_partitions else 3)
        if response is not None and response.topics[0].partitions[0].error_code == 0:
            writer.open_offset = self.last_value
        else:
            writer.offsets.append((self.last_value, UNKNOWN))
            writer.may_write = False

    def _produce(self, writer: Writer, place: Place) -> None:
        name, index = place
        if not writer.adds_partitions and place not in writer.added:
            request = AddPartitionsToTxnRequest(
                [], writer.producer.id, *writer.numbers, [AddPartitionsToTxnTopic(name, [index])]
            )
            response = self._ask(self._coordinator(writer), request, 3)
            results = None if response is None else response.results_by_topic_v3_and_below[0].results_by_partition
            if not self._is_added(writer, None if results is None else results[0].partition_error_code):
                return
            writer.added.add(place)
        self.last_value += 1
        value = b"%d" % self.last_value
        data = batch(
            value,
            timestamp=self.bench.epoch_ms(),
            producer_id=writer.producer.producer_id,
            producer_epoch=writer.producer.epoch,
            base_sequence=writer.sequences.get(place, 0),
            attributes=TRANSACTIONAL,
        )
        produced = produce(name, data, index, acks=-1)
        produced.transactional_id = writer.producer.id
        response = self._ask(self._leader(place), produced, 12 if writer.adds_partitions else 11)
        error_code = None if response is None else response.responses[0].partition_responses[0].error_code
        if error_code == 0:
            writer.sequences[place] = writer.sequences.get(place, 0) + 1
            writer.open_values.append(value)
            return
        self.outcomes[value] = UNKNOWN if error_code is None or error_code in MAYBE_WRITTEN else ABORTED
        writer.may_write = writer.may_write and error_code == CONCURRENT_TRANSACTIONS

    def _end(self, writer: Writer) -> None:
        commits = self.random.random() < 0.6
        request = EndTxnRequest(writer.producer.id, *writer.numbers, commits)
        response = self._ask(self._coordinator(writer), request, 5 if writer.adds_partitions else 3)
        if response is None or response.error_code not in (0, CONCURRENT_TRANSACTIONS):
            self._give_up(writer)
        elif response.error_code == 0:
            outcome = COMMITTED if commits else ABORTED
            self.outcomes.update(dict.fromkeys(writer.open_values, outcome))
            if writer.open_offset is not None:
                writer.offsets.append((writer.open_offset, outcome))
            writer.open_values, writer.open_offset, writer.added = [], None, set()
            if writer.adds_partitions:
                writer.producer.producer_id, writer.producer.epoch = response.producer_id, response.producer_epoch
                writer.sequences = {}

    # What must hold afterwards

    def _check_records(self) -> None:
        visible: list[bytes] = []
        for place in self.partitions:
            logs = [node.replicas.partitions[place].log for node in self.state.nodes]
            leader = logs[self._leader(place)]
            ends = leader.last_stable_offset, leader.high_watermark, leader.log_end_offset
            assert len(set(ends)) == 1, self._about(f"{place} ends at {ends}")
            assert len({_summary(log) for log in logs}) == 1, self._about(f"the replicas of {place} differ")
            visible += _read_committed(leader)
        assert len(visible) == len(set(visible)), self._about("a record is visible twice")
        for value, outcome in self.outcomes.items():
            is_right = outcome == UNKNOWN or (value in visible) == (outcome == COMMITTED)
            assert is_right, self._about(f"record {value!r} is {outcome}")

    def _check_offsets(self) -> None:
        """Compare the committed offsets in memory, and then those that another coordinator loads."""
        for _ in range(2):
            state = self.state.controller.image.topics[OFFSETS_TOPIC].partitions[self.group_index]
            group = self.state.nodes[state.leader].groups.groups.get_any(self.group.id)
            assert group is None or not (group.staged or group.pending_offsets), self._about("offsets are pending")
            for writer in self.writers:
                committed = None if group is None else group.offsets.get(writer.offset_key)
                offset = 0 if committed is None else committed.offset
                last = max((number for number, outcome in writer.offsets if outcome == COMMITTED), default=0)
                is_right = offset == last or (offset, UNKNOWN) in writer.offsets
                assert is_right, self._about(f"offset {offset} of {writer.offset_key}, committed were {writer.offsets}")
            other = next(replica for replica in state.isr if replica != state.leader)
            self.state.controller.elect(OFFSETS_TOPIC, self.group_index, other)
            self.bench.cluster.run()


def _summary(log: ReplicaLog) -> tuple[object, ...]:
    """Return what all replicas of a partition must agree on."""
    producers = log.producers.producers.items()
    states = tuple(sorted((i, e.epoch, e.last_sequence, e.first_open_offset) for i, e in producers))
    return log.log_end_offset, log.producers.transactions.aborted, states


def _read_committed(log: ReplicaLog) -> list[bytes]:
    """Return the values that a read_committed consumer gets from a log."""
    aborted = log.producers.transactions.aborted
    return [
        bytes(record.value or b"")
        for position, header in log.batches(log.log_start_offset)
        if not header.is_control
        and not any(
            a.producer_id == header.producer_id and a.first_offset <= header.base_offset < a.last_offset
            for a in aborted
        )
        for record in records(log.store.read(position, header.size))
    ]
