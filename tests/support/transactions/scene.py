"""A client library whose transactions write to a topic with two partitions, away from their coordinators.

It may also copy records and commit their offsets, and its coordinator's broker may stop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import NONE, Producer
from kafkaproto.conformance.wire import batch
from tests.support.transactions.transactor import Transactor, TransactorError

BOTH = (0, 1)
STUCK = ("kafka-python", "transaction coordinator")
"""kafka-python 3.0.12 drops a request to the transaction coordinator if it cannot connect to the coordinator's broker.

It then looks up the next coordinator and sends nothing to it (`Sender._maybe_send_pending_request`).
"""
LOST_COORDINATOR = "franz-go", "unknown broker: unknown broker"
"""franz-go 1.22.2 rarely fails its producer for good if a metadata update removes the coordinator's broker while it prepares AddPartitionsToTxn.

Only its metadata decides that (`Client.handleShardedReq`), and a new client has to repeat the transaction: see `continue_unless_lost`.
"""
NOTICE_MS = 1_000
"""How long kafka-python may take to notice that the coordinator closed the connection. It repeats a request that it sent before that."""
STUCK_SECONDS = 5.0
LEVELS = ("read_committed", "read_uncommitted")
FURTHER_MS = 200
"""How long a consumer reads on to show that it gets no record of an open transaction: two fetches that wait for records."""


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


def continue_unless_lost(scenario: Callable[[list[str]], list[str]], libraries: Sequence[str]) -> None:
    """Run a scenario in which clients lose their coordinator, and once more for each client that failed with `LOST_COORDINATOR`.

    The second time it must continue, because it fails rarely: a client that always fails would pass otherwise.

    scenario: a function that runs new clients of some libraries, and returns the libraries whose clients failed with this error.
    """
    lost = scenario(list(libraries))
    if lost:
        lost_again = scenario(lost)
        assert not lost_again, f"{', '.join(lost_again)} failed twice with {LOST_COORDINATOR[1]!r}"


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


class Loss:
    """A transaction whose coordinator's broker stops after the client has written to the first of two partitions.

    is_lost: whether the client has failed with `LOST_COORDINATOR`.
    """

    def __init__(self, scene: Scene, transactor: Transactor) -> None:
        self.scene = scene
        self.copy = Copy(scene)
        self.transactor = transactor
        self.is_lost = False
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
            self.is_lost = True
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
