"""Transactions of client libraries, whose errors are those that Apache Kafka causes: all of a transaction becomes visible, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import NamedTuple

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION
from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import NONE, Producer
from kafkaproto.conformance.wire import batch
from kafkaproto.messages.elect_leaders import ElectLeadersRequest
from tests.support.transactions.stage import STAGES
from tests.support.transactions.transactor import COMMANDS, Transactor, TransactorError

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.clients, pytest.mark.timeout(300)]

OURS = [name for name in STAGES if name.startswith("ours")]
BOTH = (0, 1)
ELECTION_NOT_NEEDED = 84
STUCK = ("kafka-python", "transaction coordinator")
"""kafka-python 3.0.12 finds the new transaction coordinator and then sends nothing to it, with Apache Kafka, too."""
LOST_COORDINATOR = "franz-go", "unknown broker: unknown broker"
"""franz-go gives up if its metadata lacks the coordinator that it looked up a moment before. Its user aborts the transaction and repeats it."""
TIMEOUT_MS = 1_000
"""The shortest `transaction.timeout.ms` that librdkafka accepts."""


class Errors(NamedTuple):
    """The names of a client's errors: `fenced` by a newer instance when it commits, and `late` when it sends after its transaction timed out."""

    fenced: str
    late: str


ERRORS = {
    f"java-{KAFKA_VERSION}": Errors("ProducerFencedException", "InvalidProducerEpochException"),
    f"java-{NEWER_VERSION}": Errors("ProducerFencedException", "InvalidProducerEpochException"),
    "confluent-kafka": Errors("_FENCED", "INVALID_PRODUCER_EPOCH"),
    "kafka-python": Errors("ProducerFencedError", "InvalidProducerEpochError"),
    "aiokafka": Errors("ProducerFenced", "ProducerFenced"),
    "franz-go": Errors("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"),
    "kafkajs": Errors("INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_EPOCH"),
}


class Scene:
    """A client library on a cluster, and a topic with two partitions for its transactions. Its leader coordinates none of them."""

    def __init__(self, subject: Subject, library: str) -> None:
        self.subject = subject
        self.library = library
        self.producer = Producer(subject)
        self.transactional_id = self.producer.id
        self.group = Group(subject)
        while self.group.coordinator() == self.producer.coordinator():
            self.group = Group(subject)
        self.topic = new_topic(subject, assignment=self.away_from_coordinators(2))
        self.bootstrap = ",".join(f"{host}:{port}" for host, port in subject.bootstrap)

    def away_from_coordinators(self, count: int) -> dict[int, list[int]]:
        """Return an assignment of partitions whose leader coordinates neither the transactions nor the group."""
        brokers = range(len(self.subject.bootstrap))
        leader = next(
            broker for broker in brokers if broker not in (self.producer.coordinator(), self.group.coordinator())
        )
        return {index: [leader, *(broker for broker in brokers if broker != leader)] for index in range(count)}

    def transactor(self) -> Transactor:
        return Transactor(self.library, self.bootstrap)

    def write(self, transactor: Transactor, value: str, *partitions: int) -> None:
        for partition in partitions:
            transactor.call("send", topic=self.topic.name, partition=partition, value=value)

    def transact(self, transactor: Transactor, value: str, *, commit: bool) -> None:
        """Write a value to both partitions in a transaction."""
        transactor.call("begin")
        self.write(transactor, value, *BOTH)
        transactor.call("commit" if commit else "abort")

    def read(self, transactor: Transactor, isolation: str = "read_committed") -> list[list[str]]:
        """Return the values of each partition before the value "end"."""
        return [values[:-1] for values in transactor.read(self.topic.name, 2, isolation, "end")]


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest) -> Iterator[Subject]:
    subject = STAGES[request.param]()
    yield subject
    subject.stop()


@pytest.fixture
def scene(running: Subject, library: str) -> Iterator[Scene]:
    yield Scene(running, library)
    running.close_connections()
    running.restore()
    # Otherwise, one broker would soon lead all partitions of the internal topics.
    wait_until(running, lambda: elect_preferred(running), "preferred leaders lead")


def elect_preferred(subject: Subject) -> bool:
    """Elect the preferred leaders of all partitions, and return whether they lead."""
    answer = subject.ask_once(ElectLeadersRequest(0, None, 10_000), 2)
    errors = {p.error_code for result in answer.replica_election_results for p in result.partition_result}
    return errors <= {0, ELECTION_NOT_NEEDED}


on_every_stage = pytest.mark.parametrize("running", list(STAGES), indirect=True, scope="module")
on_ours = pytest.mark.parametrize("running", OURS, indirect=True, scope="module")
each_library = pytest.mark.parametrize("library", list(COMMANDS))


@on_every_stage
@each_library
def test_read_committed_consumer_sees_only_committed_transactions(scene: Scene) -> None:
    with scene.transactor() as transactor:
        transactor.init(scene.transactional_id)
        scene.transact(transactor, "kept", commit=True)
        scene.transact(transactor, "dropped", commit=False)
        scene.transact(transactor, "end", commit=True)
        assert scene.read(transactor) == [["kept"]] * 2
        assert scene.read(transactor, "read_uncommitted") == [["kept", "dropped"]] * 2


@on_every_stage
@each_library
def test_second_producer_with_the_same_transactional_id_fences_the_first(scene: Scene) -> None:
    with scene.transactor() as first, scene.transactor() as second:
        first.init(scene.transactional_id)
        first.call("begin")
        scene.write(first, "of the first", 0)
        second.init(scene.transactional_id)
        with pytest.raises(TransactorError) as raised:
            first.call("commit")
        assert raised.value.name == ERRORS[scene.library].fenced
        scene.transact(second, "end", commit=True)
        assert scene.read(second) == [[], []]


@on_every_stage
@each_library
def test_transaction_that_times_out_is_aborted(scene: Scene) -> None:
    with scene.transactor() as late, scene.transactor() as successor:
        late.init(scene.transactional_id, timeout_ms=TIMEOUT_MS)
        late.call("begin")
        scene.write(late, "late", 0)
        scene.producer.wait_for("CompleteAbort")
        with pytest.raises(TransactorError) as raised:
            scene.write(late, "later", 0)
        assert raised.value.name == ERRORS[scene.library].late
        successor.init(scene.transactional_id)
        scene.transact(successor, "end", commit=True)
        assert scene.read(successor) == [[], []]


class Copy:
    """Transactions that write a record to both partitions of the scene and commit the next offset of an input topic in a group."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.group = scene.group
        self.input = new_topic(scene.subject, assignment=scene.away_from_coordinators(1))
        self.input.fill(*(batch(b"%d" % offset) for offset in range(20)))

    def init(self, transactor: Transactor) -> None:
        transactor.init(self.scene.transactional_id, self.group.id, self.input.name)

    def add_offset(self, transactor: Transactor, offset: int) -> None:
        transactor.call("offsets", topic=self.input.name, offset=offset)

    def committed(self) -> int:
        """Return the committed offset of the group, -1 before the first one."""
        return self.group.committed({self.input.name: [0]})[self.input.name, 0]

    def steps(self, transactor: Transactor, offset: int) -> list[Callable[[], object]]:
        """Return the steps of a process that copies one record."""
        return [
            lambda: self.init(transactor),
            lambda: transactor.call("begin"),
            lambda: self.scene.write(transactor, str(offset), 0),
            lambda: self.scene.write(transactor, str(offset), 1),
            lambda: self.add_offset(transactor, offset),
            lambda: transactor.call("commit"),
        ]

    def read_all(self) -> list[list[str]]:
        """Write the last transaction with a new process, which aborts an open one, and return the committed values of both partitions."""
        with self.scene.transactor() as transactor:
            transactor.init(self.scene.transactional_id)
            self.scene.transact(transactor, "end", commit=True)
            return self.scene.read(transactor)


@on_ours
@each_library
def test_offsets_are_committed_or_aborted_with_the_transaction(scene: Scene) -> None:
    copy = Copy(scene)
    with scene.transactor() as transactor:
        copy.init(transactor)
        for offset, end, committed in ((3, "abort", NONE), (2, "commit", 2), (4, "abort", 2)):
            transactor.call("begin")
            scene.write(transactor, str(offset), *BOTH)
            before = copy.committed()
            copy.add_offset(transactor, offset)
            assert copy.committed() == before
            transactor.call(end)
            wait_until(
                scene.subject, lambda expected=committed: copy.committed() == expected, f"{committed} is committed"
            )
    assert copy.read_all() == [["2"]] * 2


@on_ours
@each_library
def test_transaction_of_a_client_killed_at_any_step_is_never_partly_visible(scene: Scene) -> None:
    copy = Copy(scene)
    offset = 0
    is_complete = False
    while not is_complete:
        offset += 1
        with scene.transactor() as transactor:
            steps = copy.steps(transactor, offset)
            is_complete = offset == len(steps)
            for step in steps[:offset]:
                step()
    with scene.transactor() as transactor:
        for step in copy.steps(transactor, offset + 1)[:-1]:
            step()
        transactor.send("commit")
        scene.subject.pass_ms(3)
    values = copy.read_all()
    assert values in ([[str(offset), str(offset + 1)]] * 2, [[str(offset)]] * 2)
    assert copy.committed() == int(values[0][-1])


@on_ours
@each_library
@pytest.mark.parametrize("kind", ["transaction coordinator", "group coordinator"])
def test_transaction_continues_while_its_coordinator_broker_is_stopped(scene: Scene, kind: str) -> None:
    is_stuck = (scene.library, kind) == STUCK
    coordinators = [scene.producer, scene.group]
    copy = Copy(scene)
    with scene.transactor() as transactor:
        copy.init(transactor)
        transactor.call("begin")
        scene.write(transactor, "1", 0)
        scene.subject.stop_broker(coordinators[kind == "group coordinator"].coordinator())
        with pytest.raises(TransactorError, match="Timeout") if is_stuck else nullcontext():
            try:
                scene.write(transactor, "1", 1)
            except TransactorError as error:
                if (scene.library, str(error)) != LOST_COORDINATOR:
                    raise
                transactor.call("abort")
                transactor.call("begin")
                scene.write(transactor, "1", 0, 1)
            copy.add_offset(transactor, 1)
            transactor.call("commit")
    scene.subject.restore()
    assert copy.read_all() == [[] if is_stuck else ["1"]] * 2
    assert copy.committed() == (NONE if is_stuck else 1)
