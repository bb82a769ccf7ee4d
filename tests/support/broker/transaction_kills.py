"""Transactional producers that work while their broker is killed again and again, and what is visible afterwards.

Each producer is a thread with its own connection: it writes records to several partitions, commits offsets of a group, and commits or aborts.
After a restart some go on where they were and repeat the request that got no response; the others are replaced by a new process, which aborts
what was open. Every check raises AssertionError.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkaproto.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kafkaproto.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.end_txn import EndTxnRequest
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkaproto.records.batch import TRANSACTIONAL, records
from tests.support.broker.client_transactions import ClientTransaction, Outcome, TransactionalId
from tests.support.broker.kills import LIFE_SECONDS, PATIENCE_SECONDS, BrokerProcesses, Client
from tests.support.broker.read_committed import visible_batches
from tests.support.wire import batch, fetch, flat, produce, produced

E = ErrorCode
TOPIC, GROUP = "t", "exactly-once"
PARTITIONS = PRODUCERS = 4
TIMEOUT_MS = 600_000
RETRIED = {
    E.NOT_COORDINATOR,
    E.COORDINATOR_NOT_AVAILABLE,
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.CONCURRENT_TRANSACTIONS,
    E.NOT_ENOUGH_REPLICAS,
}
OPTIONS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.min.isr": "1",
}


@dataclass
class Killed:
    """The counts of one run. continued: how many producers continued after a restart; open: how many transactions were open at a kill."""

    kills: int = 0
    committed: int = 0
    aborted: int = 0
    open: int = 0
    continued: int = 0


class Written(NamedTuple):
    """An acknowledged record."""

    transaction: ClientTransaction
    value: bytes
    partition: int
    offset: int


class Writer:
    """A transactional producer. adds_partitions: whether it uses transaction version 2. written: acknowledged records, not yet checked.

    pending: a function that repeats the request that got no response; None if there is no such request.
    """

    def __init__(self, number: int, values: Values, *, adds_partitions: bool, seed: int) -> None:
        self.known = TransactionalId(f"id-{number}", GROUP, (TOPIC, number))
        self.adds_partitions = adds_partitions
        self.random = Random(seed)
        self.producer: tuple[int, int] = (-1, -1)
        self.transaction: ClientTransaction | None = None
        self.written: list[Written] = []
        self.pending: Callable[[], None] | None = None
        self.ended = {Outcome.COMMITTED: 0, Outcome.ABORTED: 0}
        self._values = values
        self._added: set[int | str] = set()
        self._sequences: dict[int, int] = {}
        self._count = 0
        self.client: Client

    @property
    def is_open(self) -> bool:
        """Whether the coordinator has confirmed a part of the producer's transaction, but not its end."""
        return bool(self._added)

    def run(self, address: str) -> None:
        """Work until the broker is killed."""
        try:
            self.client = Client(address)
        except OSError:
            return
        try:
            while True:
                self.step()
        except (OSError, EOFError):
            return
        finally:
            self.client.socket.close()

    def step(self) -> None:
        if self.pending is not None:
            self.pending()
            return
        draw = self.random.random()
        if draw < 0.55 or self.transaction is None:
            self._produce(self.random.randrange(PARTITIONS))
        elif draw < 0.75:
            self._commit_offset()
        elif self.is_open:
            self.transaction.may_commit = self.random.random() < 0.65
            self._ask(partial(self._end, self.transaction.may_commit))

    def replace(self, address: str) -> None:
        """Continue as a new process, which knows nothing. The new epoch of this process aborts the open transaction."""
        if self.transaction is not None:
            self.transaction.give_up()
        self.transaction = None
        self._added.clear()
        self._sequences.clear()
        self.client = Client(address)
        self._ask(self._init)
        self._finish()
        self.client.socket.close()

    def _finish(self) -> None:
        while self.pending is not None:
            self.pending()

    def _begin(self) -> ClientTransaction:
        if self.transaction is None:
            self._count += 1
            self.transaction = ClientTransaction(f"{self.known.name}/{self._count}", 0)
        return self.transaction

    def _ask(self, request: Callable[[], None]) -> None:
        self.pending = request
        request()

    def _succeeds(self, error: int) -> bool:
        """Return whether a request succeeded; otherwise the producer repeats it. No producer is fenced here, so other errors are wrong."""
        assert error == 0 or error in RETRIED, f"{self.known.name}: error {error}, epoch {self.producer}"
        if error == 0:
            self.pending = None
        return error == 0

    def _init(self) -> None:
        response = self.client.ask(InitProducerIdRequest(self.known.name, TIMEOUT_MS), 4)
        if self._succeeds(response.error_code):
            self.producer = response.producer_id, response.producer_epoch
            assert self.producer > self.known.newest, f"the epoch went back from {self.known.newest} to {self.producer}"
            self.known.newest = self.producer

    def _produce(self, index: int) -> None:
        transaction = self._begin()
        if not self.adds_partitions and index not in self._added:
            self._ask(partial(self._add, index))
            return
        value = self._values.new(transaction)
        data = batch(
            value,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=self._sequences.get(index, 0),
            attributes=TRANSACTIONAL,
        )
        self._ask(partial(self._send, transaction, index, value, data))

    def _add(self, index: int) -> None:
        topics = [AddPartitionsToTxnTopic(TOPIC, [index])]
        response = self.client.ask(AddPartitionsToTxnRequest([], self.known.name, *self.producer, topics), 3)
        if self._succeeds(response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code):
            self._added.add(index)

    def _send(self, transaction: ClientTransaction, index: int, value: bytes, data: bytes) -> None:
        request = produce(TOPIC, data, index, acks=-1)
        request.transactional_id = self.known.name
        response = produced(self.client.ask(request, 12 if self.adds_partitions else 11))
        if self._succeeds(response.error_code):
            self._added.add(index)
            self._sequences[index] = self._sequences.get(index, 0) + 1
            self.written.append(Written(transaction, value, index, response.base_offset))

    def _commit_offset(self) -> None:
        if not self.adds_partitions and GROUP not in self._added:
            self._ask(self._add_offsets)
            return
        transaction, number = self._begin(), next(self._values.numbers)
        self.known.offsets[number] = transaction
        self._ask(partial(self._send_offset, transaction, number))

    def _add_offsets(self) -> None:
        response = self.client.ask(AddOffsetsToTxnRequest(self.known.name, *self.producer, GROUP), 3)
        if self._succeeds(response.error_code):
            self._added.add(GROUP)

    def _send_offset(self, transaction: ClientTransaction, number: int) -> None:
        topic, index = self.known.place
        topics = [TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(index, number)])]
        request = TxnOffsetCommitRequest(self.known.name, GROUP, *self.producer, topics=topics)
        response = self.client.ask(request, 5 if self.adds_partitions else 3)
        if self._succeeds(response.topics[0].partitions[0].error_code):
            self._added.add(GROUP)
            transaction.offset = number

    def _end(self, commits: bool) -> None:
        request = EndTxnRequest(self.known.name, *self.producer, commits)
        response = self.client.ask(request, 5 if self.adds_partitions else 3)
        if self._succeeds(response.error_code):
            outcome = Outcome.COMMITTED if commits else Outcome.ABORTED
            self._begin().end(outcome)
            self.ended[outcome] += 1
            self.transaction = None
            self._added.clear()
            if self.adds_partitions:
                self.producer = self.known.newest = response.producer_id, response.producer_epoch
                self._sequences.clear()


class Values:
    """The values of all records, with their transactions. numbers: yields unique numbers for values and offsets."""

    def __init__(self) -> None:
        self.transactions: dict[bytes, ClientTransaction] = {}
        self.numbers = count(1)

    def new(self, transaction: ClientTransaction) -> bytes:
        value = b"%d" % next(self.numbers)
        self.transactions[value] = transaction
        return value


class Reader:
    """A read_committed consumer of all partitions. ends: the last high watermark of each partition."""

    def __init__(self, values: Values) -> None:
        self.positions = [0] * PARTITIONS
        self.ends = [0] * PARTITIONS
        self.visible: set[bytes] = set()
        self._values = values

    def read(self, client: Client) -> None:
        """Read each partition to its last stable offset, and check that only whole committed transactions are visible."""
        for index in range(PARTITIONS):
            while True:
                [(_, data)] = flat(client.ask(fetch((TOPIC, index, self.positions[index]), isolation=1), 11))
                assert data.error_code == 0, data
                self.ends[index] = data.high_watermark
                if self.positions[index] >= data.last_stable_offset:
                    break
                self._take(index, data)

    def _take(self, index: int, data: Any) -> None:
        start = self.positions[index]
        for entry in visible_batches(data):
            self.positions[index] = entry.batch.header.next_offset
            for record in () if entry.batch.header.is_control else records(entry.batch.view):
                value = bytes(record.value or b"")
                if record.offset < start:
                    continue
                assert value not in self.visible, f"{value!r} is visible twice"
                self._values.transactions[value].decide(f"{TOPIC}-{index}", entry.is_visible)
                if entry.is_visible:
                    self.visible.add(value)

    def check(self, writers: list[Writer]) -> None:
        """Compare the acknowledged records with those that are visible."""
        for writer in writers:
            for written in writer.written:
                assert written.offset < self.ends[written.partition], f"{written} is lost"
                is_read = written.offset < self.positions[written.partition]
                must_show = is_read and written.transaction.outcome is Outcome.COMMITTED
                assert not must_show or written.value in self.visible, f"{written} was committed and is not visible"
            writer.written = [w for w in writer.written if w.offset >= self.positions[w.partition]]


def check_offsets(client: Client, writers: list[Writer], *, is_last: bool) -> None:
    """Compare the committed offset of each producer with its transactions. is_last: whether no transaction is open any more."""
    topics = [OffsetFetchRequestTopics(TOPIC, partition_indexes=[writer.known.place[1]]) for writer in writers]
    for writer, topic in zip(writers, topics, strict=True):
        group_id = writer.known.group_id
        while True:
            groups = [OffsetFetchRequestGroup(group_id, None, -1, [topic])]
            [group] = client.ask(OffsetFetchRequest(groups=groups, require_stable=True), 9).groups
            if group.error_code:
                assert group.error_code in RETRIED, group
                continue
            [partition] = group.topics[0].partitions
            if partition.error_code == 0 or not is_last:
                break
        if partition.error_code:
            assert partition.error_code == E.UNSTABLE_OFFSET_COMMIT, partition
            continue
        committed, allowed = partition.committed_offset, writer.known.stable_offsets()
        assert committed in allowed, f"{writer.known.name}: {committed} is committed, not one of {sorted(allowed)}"
        for number, transaction in writer.known.offsets.items():
            is_shown = transaction.offset == number and True in transaction.decisions.values()
            assert not (is_last and is_shown) or number <= committed, f"{transaction.name}: offset {number} is lost"


def prepare(address: str) -> None:
    """Create the topic if this is the first process, and wait for both coordinators."""
    client = Client(address)
    assignments = [CreatableReplicaAssignment(i, [0]) for i in range(PARTITIONS)]
    created = client.ask(CreateTopicsRequest([CreatableTopic(TOPIC, -1, -1, assignments)], 10_000), 5).topics[0]
    assert created.error_code in (0, E.TOPIC_ALREADY_EXISTS), created
    for key, kind in ((GROUP, 0), ("id-0", 1)):
        while client.ask(FindCoordinatorRequest(key, kind), 3).error_code:
            pass
    client.socket.close()


def run(processes: BrokerProcesses, folder: Path, kills: int, seed: int, *, release: str) -> Killed:
    """Kill a broker `kills` times while producers work, and check what is visible after each restart. Returns the counts."""
    random, counts, values = Random(seed), Killed(), Values()
    newer = not release.startswith("3.")
    writers = [Writer(i, values, adds_partitions=newer and i % 2 == 0, seed=seed + i) for i in range(PRODUCERS)]
    reader = Reader(values)
    options = ["--port", "0", "--brokers", "1", "--data-dir", str(folder / "data"), "--release", release]
    options += [word for name, value in OPTIONS.items() for word in ("-c", f"{name}={value}")]
    for number in range(kills + 1):
        with processes.start(options, 1) as process, ThreadPoolExecutor(len(writers)) as threads:
            [address] = process.addresses
            prepare(address)
            is_last = number == kills
            for writer in writers:
                if is_last or number == 0 or random.random() < 0.5:
                    writer.replace(address)
                else:
                    counts.continued += 1
            client = Client(address)
            reader.read(client)
            reader.check(writers)
            check_offsets(client, writers, is_last=is_last)
            if is_last:
                _check_end(client, reader, values, writers)
            client.socket.close()
            if is_last:
                break
            process.kill_after(random.uniform(*LIFE_SECONDS))
            work = [threads.submit(writer.run, address) for writer in writers]
            for future in work:
                future.result()
        counts.open += sum(writer.is_open for writer in writers)
        counts.kills += 1
    counts.committed = sum(writer.ended[Outcome.COMMITTED] for writer in writers)
    counts.aborted = sum(writer.ended[Outcome.ABORTED] for writer in writers)
    return counts


def _check_end(client: Client, reader: Reader, values: Values, writers: list[Writer]) -> None:
    """Check that no transaction is open, and that exactly the records of committed ones are visible."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while reader.positions != reader.ends:
        assert time.monotonic() < deadline, f"a transaction stays open: {reader.positions} of {reader.ends} are stable"
        reader.read(client)
    reader.check(writers)
    for value in reader.visible:
        transaction = values.transactions[value]
        assert transaction.can_be_visible, f"{value!r} of {transaction.name} is visible"
