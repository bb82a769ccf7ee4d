"""A process with a transactional producer: it produces, commits offsets of a group, and commits or aborts, as a Java producer does.

It repeats each request until it gets a final response, also to another coordinator and after a lost response. It uses one of the two forms of
KIP-890: with transaction version 2 the brokers add partitions themselves, and each transaction has its own epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kafkaproto.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkaproto.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kafkaproto.messages.end_txn import EndTxnRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkaproto.records.batch import TRANSACTIONAL, Compression, NewRecord, build_batch, read_header
from tests.simulation.client import UNSURE, E, TopicPartition
from tests.simulation.line import Line
from tests.simulation.process import Process
from tests.simulation.transaction_queries import TransactionQueries
from tests.simulation.world import World
from tests.support.broker.client_transactions import ClientTransaction, Outcome, TransactionalId
from tests.support.wire import produce, produced

ALL = -1
TOPICS = "clean", "ledger"
"""Topics that keep their records, so that the end of each transaction can be seen."""
COMPACTED = "compact"
"""The topic that keeps the last committed record of each key."""
TIMEOUTS_MS = 2_000, 8_000, 60_000
RETRIED = {*UNSURE, E.CONCURRENT_TRANSACTIONS}
FENCED = {E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH}
FATAL = {*FENCED, E.INVALID_TXN_STATE, E.INVALID_PRODUCER_ID_MAPPING, E.TRANSACTION_ABORTABLE}
FORGOTTEN = {E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.UNKNOWN_PRODUCER_ID}


class Pending(NamedTuple):
    """A batch without an acknowledgement. topic_id: the id of the topic for which the batch was made."""

    at: TopicPartition
    topic_id: bytes
    data: bytes


class TransactionalProcess(Process):
    """A process of a transactional id. adds_partitions: whether it uses transaction version 2. transaction: the open one, or None.

    is_fenced: whether a later process has got its epoch. had_company: whether another process may have fenced it. added: the partitions
    that are certainly in the transaction; tried: those that may be. ending: whether it is committing (True) or aborting (False).
    """

    def __init__(self, world: World, name: str, known: TransactionalId, client_id: str | None) -> None:
        super().__init__(world, name, client_id)
        chance = world.chance
        self.known = known
        is_release_4 = world.release != "3.9"
        self.adds_partitions = is_release_4 and chance.random() < 0.6
        self.produce_version = 12 if self.adds_partitions else chance.choice([3, 7, 9, 10, 11])
        self.old_version = chance.choice([0, 1, 2, 3])
        self.init_version = chance.choice([0, 2, 3, 4, 5] if is_release_4 else [0, 2, 3, 4])
        self.timeout_ms = chance.choice(TIMEOUTS_MS)
        self.producer = (-1, -1)
        self.has_epoch = False
        self.is_fenced = False
        self.had_company = False
        self.transaction: ClientTransaction | None = None
        self.added: set[TopicPartition | str] = set()
        self.tried: set[TopicPartition | str] = set()
        self.ending: bool | None = None
        self.committed = 0
        """How many transactions it has committed."""
        self.initialised: Callable[[], None] = lambda: None
        """A function that is called when this process has got an epoch."""
        self._keeps_id = False
        self._bumps = False
        self._sequences: dict[tuple[bytes, int], int] = {}
        self._pending: Pending | None = None
        self._pending_offset: int | None = None
        self._count = 0
        self._queries = TransactionQueries(self)

    # ---- one operation -------------------------------------------------------------------------------------------------------

    def act(self) -> None:
        if not self.is_idle:
            return
        draw = 0.5 if self.calm else self.world.chance.random()
        if draw < 0.02:
            self.pause()
        elif not self.has_epoch:
            self._init()
        elif self.ending is not None:
            self._end(self.ending)
        elif self._pending is not None or self._pending_offset is not None:
            self._repeat(gives_up=draw > 0.95)
        elif self.calm:
            self._act_calmly()
        elif draw < 0.1:
            self._queries.act()
        elif self.transaction is None or draw < 0.55:
            self._produce(self._place())
        elif draw < 0.7:
            self._commit_offset()
        elif self._can_end:
            self._end(self.world.chance.random() < 0.65)

    def _act_calmly(self) -> None:
        """Commit one transaction with a record and an offset, and then see whether all is complete."""
        if self.committed:
            self._queries.act()
        elif self.transaction is None:
            self._produce(("clean", 0))
        elif self.transaction.offset < 0:
            self._commit_offset()
        else:
            self._end(True)

    @property
    def _can_end(self) -> bool:
        """Return whether a part of the transaction has been acknowledged, so that the coordinator knows it."""
        return bool(self.added)

    @property
    def is_doubtful(self) -> bool:
        """Return whether the coordinator may have fenced this process or aborted its transaction."""
        transaction = self.transaction
        late = transaction is not None and self.world.now_ms - transaction.started_ms > self.timeout_ms
        return self.is_fenced or self.had_company or late

    @property
    def is_complete(self) -> bool:
        """Return whether it has seen that its last transaction is complete."""
        return self.committed > 0 and self._queries.is_complete

    def _place(self) -> TopicPartition:
        chance, topics = self.world.chance, self.world.topics
        draw = chance.random()
        names = sorted(topics) if draw < 0.1 else (COMPACTED,) if draw < 0.35 else TOPICS
        name = chance.choice([name for name in names if name in (*TOPICS, COMPACTED) or name.startswith("extra")])
        return name, chance.randrange(len(topics[name].partitions))

    def find_coordinator(self, key: str) -> int:
        if key == self.known.group_id:
            return self.world.cluster.state.coordinator_of(key)
        return self.world.cluster.state.nodes[0].transactions.coordinator_id(key)

    def end(self) -> None:
        self._give_up()
        super().end()

    def _ask(
        self,
        to: str | Line | None,
        request: Any,
        version: int,
        error_of: Callable[[Any], int],
        succeeded: Callable[[Any], None],
    ) -> None:
        """Send a request to a connection, or to the coordinator of `to`. A fenced process may not succeed."""
        was_fenced = self.is_fenced

        def on_response(answer: Any) -> None:
            error = error_of(answer)
            if error:
                self._failed(error)
                return
            assert not was_fenced, (
                f"{self.name}: {type(request).__name__} succeeded after a later process got its epoch"
            )
            succeeded(answer)

        if isinstance(to, str):
            self.send(to, request, version, on_response)
        else:
            self.send_to(to, request, version, on_response)

    def _failed(self, error: int) -> None:
        """Repeat the request later, or give up the transaction, for which there must be a reason."""
        if self.looks_elsewhere(error) or error in RETRIED:
            return
        if error == E.KAFKA_STORAGE_ERROR:
            assert self.world.refuses, f"{self.name}: the disk is well"
            return
        forgotten = error in FORGOTTEN and self._may_be_forgotten()
        assert (error in FATAL and self.is_doubtful) or forgotten, f"{self.name}: error {error} without a reason"
        self._give_up()
        self._keeps_id = self.world.chance.random() < 0.3
        if not self.calm and self.world.chance.random() < 0.2:
            self.end()

    def _may_be_forgotten(self) -> bool:
        """Return whether a replica may not know this producer because its records were deleted."""
        partition = None if self._pending is None else self.world.leader(*self._pending.at)
        return partition is None or partition.log.log_start_offset > 0

    def _give_up(self) -> None:
        """Forget the transaction. The coordinator must abort the transaction, unless this process has requested its commit."""
        transaction, self.transaction = self.transaction, None
        if transaction is not None:
            transaction.give_up()
        self._clear()
        self.has_epoch = False

    def _clear(self) -> None:
        self.added.clear()
        self.tried.clear()
        self.ending = self._pending = self._pending_offset = None

    # ---- epochs --------------------------------------------------------------------------------------------------------------

    def _init(self) -> None:
        keeps_id = self._keeps_id and self.producer[0] >= 0
        before = self.known.newest

        def initialised(answer: Any) -> None:
            self.producer = answer.producer_id, answer.producer_epoch
            assert self.producer > before, f"{self.name}: the epoch went back from {before} to {self.producer}"
            self._sequences.clear()
            self._keeps_id = False
            self.has_epoch, self.is_fenced = True, self.producer < self.known.newest
            self.known.newest = max(self.known.newest, self.producer)
            self.initialised()

        def on_response(answer: Any) -> None:
            error = answer.error_code
            if error == 0:
                initialised(answer)
            elif error in FENCED:
                assert keeps_id, f"{self.name}: error {error} for a new producer"
                self._keeps_id = False
            else:
                self._failed(error)

        version = max(3, self.init_version) if keeps_id else self.init_version
        request = InitProducerIdRequest(self.known.name, self.timeout_ms, *(self.producer if keeps_id else (-1, -1)))
        self.send(self.known.name, request, version, on_response)

    def _begin(self) -> ClientTransaction:
        if self.transaction is None:
            self._count += 1
            self.transaction = ClientTransaction(f"{self.name}/{self._count}", self.world.now_ms)
        return self.transaction

    # ---- records -------------------------------------------------------------------------------------------------------------

    def _produce(self, at: TopicPartition) -> None:
        transaction, world = self._begin(), self.world
        self.tried.add(at)
        if not self.adds_partitions and at not in self.added:
            self._add(at)
            return
        topic = world.image.topics[at[0]]
        records = [self._record(at[0], transaction) for _ in range(world.chance.choice([1, 1, 2]))]
        data = build_batch(
            records,
            compression=world.chance.choice([Compression.NONE, Compression.NONE, Compression.GZIP]),
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=self._sequences.get((topic.topic_id, at[1]), 0),
            attributes=TRANSACTIONAL,
        )
        self._pending = Pending(at, topic.topic_id, data)
        self._send_batch(self._pending)

    def _record(self, topic: str, transaction: ClientTransaction) -> NewRecord:
        """Return a record of the transaction; for the compacted topic with a repeated key, and sometimes a tombstone."""
        world, chance = self.world, self.world.chance
        value = f"{transaction.name}:{world.transactions.new_number()}".encode()
        world.transactions.by_value[value] = transaction
        if topic != COMPACTED:
            return NewRecord(value, None, world.now_ms)
        key = b"k%d" % chance.randrange(5)
        if chance.random() < 0.2:
            return NewRecord(None, key, world.now_ms, [("value", value)])
        return NewRecord(value, key, world.now_ms)

    def _add(self, at: TopicPartition) -> None:
        """Add a partition with AddPartitionsToTxn."""

        def error_of(answer: Any) -> int:
            return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

        request = AddPartitionsToTxnRequest(
            [], self.known.name, *self.producer, [AddPartitionsToTxnTopic(at[0], [at[1]])]
        )
        self._ask(self.known.name, request, self.old_version, error_of, lambda _: self.added.add(at))

    def _repeat(self, *, gives_up: bool) -> None:
        """Send the batch or the offset again that was not acknowledged, or abort because of it (KIP-360)."""
        if gives_up and self._can_end:
            self._bumps = self._pending is not None
            self._pending = self._pending_offset = None
            self._end(False)
        elif self._pending_offset is not None:
            self._send_offset(self._pending_offset)
        elif self._pending is not None:
            topic = self.world.image.topics.get(self._pending.at[0])
            if topic is None or topic.topic_id != self._pending.topic_id:
                self._pending = None  # its topic was deleted
            else:
                self._send_batch(self._pending)

    def _send_batch(self, pending: Pending) -> None:
        world, (at, topic_id, data) = self.world, pending
        line = self.line_to_leader(at)
        request = produce(at[0], data, at[1], acks=ALL, timeout_ms=world.chance.choice([100, 1500]))
        request.transactional_id = self.known.name

        def acknowledged(answer: Any) -> None:
            self._pending = None
            self.added.add(at)
            header = read_header(data)
            self._sequences[topic_id, at[1]] = header.base_sequence + header.last_offset_delta + 1
            partition = None if line is None else world.replica(line.broker_id, *at)
            if partition is not None and partition.topic_id == topic_id:
                base_offset = produced(answer).base_offset
                world.truth.acknowledged(partition, base_offset, header.last_offset_delta + 1, header.crc)

        self._ask(line, request, self.produce_version, lambda answer: produced(answer).error_code, acknowledged)

    # ---- offsets -------------------------------------------------------------------------------------------------------------

    def _commit_offset(self) -> None:
        transaction, group_id = self._begin(), self.known.group_id
        self.tried.add(group_id)
        if not self.adds_partitions and group_id not in self.added:
            request = AddOffsetsToTxnRequest(self.known.name, *self.producer, group_id)
            self._ask(
                self.known.name,
                request,
                self.old_version,
                lambda answer: answer.error_code,
                lambda _: self.added.add(group_id),
            )
            return
        self._pending_offset = self.world.transactions.new_number()
        self.known.offsets[self._pending_offset] = transaction
        self._send_offset(self._pending_offset)

    def _send_offset(self, number: int) -> None:
        name, index = self.known.place
        topics = [TxnOffsetCommitRequestTopic(name, [TxnOffsetCommitRequestPartition(index, number)])]
        request = TxnOffsetCommitRequest(self.known.name, self.known.group_id, *self.producer, topics=topics)

        def committed(_: Any) -> None:
            self._pending_offset = None
            self.added.add(self.known.group_id)
            self._begin().offset = number

        self._ask(
            self.known.group_id,
            request,
            5 if self.adds_partitions else self.old_version,
            lambda answer: int(answer.topics[0].partitions[0].error_code),
            committed,
        )

    # ---- commit and abort ----------------------------------------------------------------------------------------------------

    def _end(self, commits: bool) -> None:
        self.ending = commits
        transaction = self._begin()
        if commits and not self.is_fenced:
            transaction.may_commit = True
        request = EndTxnRequest(self.known.name, *self.producer, commits)

        def ended(answer: Any) -> None:
            transaction.end(Outcome.COMMITTED if commits else Outcome.ABORTED)
            self.transaction = None
            self.committed += commits
            self._clear()
            if self.adds_partitions:
                self.producer = answer.producer_id, answer.producer_epoch
                self.known.newest = max(self.known.newest, self.producer)
                self._sequences.clear()
            if self._bumps:
                self.has_epoch, self._keeps_id, self._bumps = False, True, False

        self._ask(
            self.known.name,
            request,
            5 if self.adds_partitions else self.old_version,
            lambda answer: answer.error_code,
            ended,
        )
