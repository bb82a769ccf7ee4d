"""Transactions of client libraries, whose errors are those that Apache Kafka causes: all of a transaction becomes visible, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import NONE, Producer
from kafkaproto.conformance.wire import batch
from kafkaproto.messages.elect_leaders import ElectLeadersRequest
from tests.support.transactions.errors import ERRORS
from tests.support.transactions.stage import STAGES
from tests.support.transactions.transactor import COMMANDS, Transactor, TransactorError

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.clients, pytest.mark.timeout(300)]

OURS = [name for name in STAGES if name.startswith("ours")]
APACHE_KAFKA = [name for name in STAGES if name not in OURS]
BOTH = (0, 1)
ELECTION_NOT_NEEDED = 84
STUCK = ("kafka-python", "transaction coordinator")
"""kafka-python 3.0.12 drops a request to the transaction coordinator if it cannot connect to the coordinator's broker.

It then looks up the new coordinator and sends nothing to it (`Sender._maybe_send_pending_request`).
"""
LOST_COORDINATOR = "franz-go", "unknown broker: unknown broker"
"""franz-go 1.22.2 rarely fails its producer for good if a metadata update removes the coordinator's broker while it prepares AddPartitionsToTxn.

Only its metadata decides that (`Client.handleShardedReq`), and a new client has to repeat the transaction.
"""
NOTICE_MS = 1_000
"""How long kafka-python may take to notice that the coordinator closed the connection. It repeats a request that it sent before that."""
STUCK_SECONDS = 5.0
LEVELS = ("read_committed", "read_uncommitted")
FURTHER_MS = 200
"""How long a consumer reads on to show that it gets no record of an open transaction: two fetches that wait for records."""
TIMEOUT_MS = 1_000
"""The shortest `transaction.timeout.ms` that librdkafka accepts."""


class Levels(NamedTuple):
    """What consumers of both isolation levels read: a list of values for each partition."""

    committed: list[list[str]]
    uncommitted: list[list[str]]


class Scene:
    """A client library on a cluster, and a topic with two partitions for its transactions. The topic's leader coordinates none of the transactions.

    index: the partition of `__transaction_state` that has the transactional id; None for any.
    """

    def __init__(self, subject: Subject, library: str, index: int | None = None) -> None:
        self.subject = subject
        self.library = library
        self.producer = Producer(subject, index=index)
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

    def read(self, transactor: Transactor) -> Levels:
        """Return what consumers read before the value "end"."""
        committed, uncommitted = (transactor.read(self.topic.name, 2, level, "end") for level in LEVELS)
        return Levels([values[:-1] for values in committed], [values[:-1] for values in uncommitted])

    def read_open(self, transactor: Transactor, last_committed: str, last: str) -> Levels:
        """Return what consumers read while a transaction is open whose last value is `last`."""
        committed = transactor.read(self.topic.name, 2, LEVELS[0], last_committed, FURTHER_MS)
        return Levels(committed, transactor.read(self.topic.name, 2, LEVELS[1], last))


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest) -> Iterator[Subject]:
    subject = STAGES[request.param]()
    yield subject
    subject.stop()


@pytest.fixture
def stage(running: Subject) -> Iterator[Subject]:
    yield running
    running.close_connections()
    running.restore()
    # Otherwise, one broker would soon lead all partitions of the internal topics.
    wait_until(running, lambda: elect_preferred(running), "preferred leaders lead")


@pytest.fixture
def scene(stage: Subject, library: str) -> Scene:
    return Scene(stage, library)


def elect_preferred(subject: Subject) -> bool:
    """Elect the preferred leaders of all partitions, and return whether they lead."""
    answer = subject.ask_once(ElectLeadersRequest(0, None, 10_000), 2)
    errors = {p.error_code for result in answer.replica_election_results for p in result.partition_result}
    return errors <= {0, ELECTION_NOT_NEEDED}


on_every_stage = pytest.mark.parametrize("running", list(STAGES), indirect=True, scope="module")
on_ours = pytest.mark.parametrize("running", OURS, indirect=True, scope="module")
on_apache_kafka = pytest.mark.parametrize("running", APACHE_KAFKA, indirect=True, scope="module")
each_library = pytest.mark.parametrize("library", list(COMMANDS))


@on_every_stage
@each_library
def test_read_committed_consumer_reads_only_records_of_committed_transactions(scene: Scene) -> None:
    with scene.transactor() as transactor:
        transactor.init(scene.transactional_id)
        scene.transact(transactor, "kept", commit=True)
        scene.transact(transactor, "dropped", commit=False)
        transactor.call("begin")
        scene.write(transactor, "open", *BOTH)
        assert scene.read_open(transactor, "kept", "open") == ([["kept"]] * 2, [["kept", "dropped", "open"]] * 2)
        transactor.call("commit")
        scene.transact(transactor, "end", commit=True)
        assert scene.read(transactor) == ([["kept", "open"]] * 2, [["kept", "dropped", "open"]] * 2)


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
        assert scene.read(second) == ([[], []], [["of the first"], []])


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
        assert scene.read(successor) == ([[], []], [["late"], []])


FIRST_WRITE = 3
"""The number of steps of `Copy.steps` up to the one that writes to the first partition."""


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

    def read_all(self) -> Levels:
        """Write the last transaction with a new process, which aborts an open one, and return what consumers read before it."""
        with self.scene.transactor() as transactor:
            transactor.init(self.scene.transactional_id)
            self.scene.transact(transactor, "end", commit=True)
            return self.scene.read(transactor)


@on_every_stage
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
    assert copy.read_all() == ([["2"]] * 2, [["3", "2", "4"]] * 2)


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
    committed, uncommitted = copy.read_all()
    assert committed in ([[str(offset), str(offset + 1)]] * 2, [[str(offset)]] * 2)
    assert copy.committed() == int(committed[0][-1])
    written = [str(number) for number in range(FIRST_WRITE, offset + 2)]
    assert uncommitted == [written, written[1:]]


class Loss:
    """A transaction whose coordinator's broker stops after the client has written to the first of two partitions."""

    def __init__(self, scene: Scene, transactor: Transactor) -> None:
        self.scene = scene
        self.copy = Copy(scene)
        self.transactor = transactor
        self.copy.init(transactor)
        transactor.call("begin")
        scene.write(transactor, "1", 0)

    def resume(self, *, is_stuck: bool) -> Levels:
        """Write to the second partition and commit, unless the client gives up. Returns what consumers should read.

        is_stuck: whether the client should no longer respond.
        """
        given_up = Levels([[], []], [["1"], []])
        if is_stuck:
            self.scene.subject.pass_ms(NOTICE_MS)
            self.transactor.send("send", topic=self.scene.topic.name, partition=1, value="1")
            assert not self.transactor.responds(STUCK_SECONDS), f"{self.scene.library} continues"
            return given_up
        try:
            self.scene.write(self.transactor, "1", 1)
        except TransactorError as error:
            if (self.scene.library, str(error)) != LOST_COORDINATOR:
                raise
            return given_up
        self.copy.add_offset(self.transactor, 1)
        self.transactor.call("commit")
        return Levels([["1"]] * 2, [["1"]] * 2)

    def check(self, expected: Levels) -> None:
        """Check what consumers read, and which offset the group has. All brokers must run."""
        is_committed = any(expected.committed)
        if not is_committed:
            [added] = self.scene.producer.describe().topics
            assert added.partitions == [0], f"{self.scene.library} has not given up"
        assert self.copy.read_all() == expected, self.scene.library
        assert self.copy.committed() == (1 if is_committed else NONE), self.scene.library


@on_ours
@each_library
@pytest.mark.parametrize("kind", ["transaction coordinator", "group coordinator"])
def test_transaction_continues_while_its_coordinator_broker_is_stopped(scene: Scene, kind: str) -> None:
    coordinators = [scene.producer, scene.group]
    with scene.transactor() as transactor:
        loss = Loss(scene, transactor)
        scene.subject.stop_broker(coordinators[kind == "group coordinator"].coordinator())
        expected = loss.resume(is_stuck=(scene.library, kind) == STUCK)
    scene.subject.restore()
    loss.check(expected)


@on_apache_kafka
def test_real_kafka_transactions_survive_a_coordinator_stop_except_in_kafka_python(stage: Subject) -> None:
    # One stop of a broker for all clients: Apache Kafka takes seconds to stop and start one.
    with ExitStack() as stack:
        scenes = [Scene(stage, library, index=0) for library in COMMANDS]
        losses = [Loss(scene, stack.enter_context(scene.transactor())) for scene in scenes]
        stage.stop_broker(scenes[0].producer.coordinator())
        expected = [loss.resume(is_stuck=loss.scene.library == STUCK[0]) for loss in losses]
    stage.restore()
    for loss, levels in zip(losses, expected, strict=True):
        loss.check(levels)


@on_ours
@each_library
def test_commit_completes_if_the_coordinator_stops_before_the_markers_are_replicated(scene: Scene) -> None:
    copy = Copy(scene)
    with scene.transactor() as transactor:
        copy.init(transactor)
        scene.transact(transactor, "before", commit=True)
        transactor.call("begin")
        scene.write(transactor, "decided", *BOTH)
        copy.add_offset(transactor, 1)
        # While a follower in the ISR lacks the markers, they are not committed.
        follower = scene.group.coordinator()
        for partition in BOTH:
            scene.subject.hold_follower(scene.topic.name, partition, follower)
        transactor.call("commit")
        coordinator = scene.producer.coordinator()
        scene.subject.stop_broker(coordinator)
        scene.subject.start_broker(coordinator)
        assert scene.producer.coordinator() != coordinator
        scene.producer.wait_for("PrepareCommit")
        seen = scene.read_open(transactor, "before", "decided")
        assert seen == ([["before"]] * 2, [["before", "decided"]] * 2)
        for partition in BOTH:
            scene.subject.release_follower(scene.topic.name, partition, follower)
        scene.producer.wait_for("CompleteCommit")
        assert scene.read_open(transactor, "decided", "decided") == ([["before", "decided"]] * 2,) * 2
        assert copy.committed() == 1
