"""One complete seed: clients and faults in turn, with all checks after every step.

`simulate(seed)` raises `Broken`, which prints the whole conversation with virtual times. The same seed always gives the same conversation.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import NamedTuple

from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.messages.fetch import FetchResponse
from kafkaproto.records.batch import batches, complete_bytes
from tests.simulation.admin import Admin
from tests.simulation.client import Client
from tests.simulation.committed_consumer import CommittedConsumer
from tests.simulation.committer import Committer
from tests.simulation.consumer import Consumer
from tests.simulation.disk import Killed
from tests.simulation.faults import Faults
from tests.simulation.members import Members
from tests.simulation.mutator import Mutator
from tests.simulation.pipeliner import Pipeliner
from tests.simulation.prober import Prober
from tests.simulation.producer import Producer
from tests.simulation.transactional_ids import TransactionalIds
from tests.simulation.world import World

OPERATIONS = 300
CONTENTS_EVERY = 60
PATIENCE_MS = 600_000
SHOWN = 400
WITH_MEMBERS = 0.4
"""The share of steps in which members of a group act, too."""
WITH_TRANSACTIONS = 0.5
"""The share of steps in which the processes of a transactional id act, too."""
_VIEW = re.compile("<memory at 0x[0-9a-f]+>")


class Outcome(NamedTuple):
    """The result of one seed.

    limited_ms: virtual time during which a quota was set. throttles: count of each quota. digest: of the whole conversation, to compare two
    runs.
    """

    operations: int
    steps: int
    virtual_ms: int
    limited_ms: int
    throttles: Counter[str]
    digest: str


class Broken(AssertionError):
    """A seed that found a bug; its text is the conversation, newest last, and the failure."""


class Simulation:
    """The clients and faults of one seed."""

    def __init__(self, seed: int) -> None:
        self.world = world = World(seed)
        self.faults = Faults(world)
        self.faults.first_topics()
        chance = world.chance
        rack = chance.choice(["r0", "r1", "r2"])
        ids = [chance.choice(world.client_ids) for _ in range(8)]
        self.consumers = [
            Consumer(world, "leaders", chance.choice([7, 9, 11]), client_id=ids[0]),
            Consumer(world, "closest", chance.choice([11, 12, 13, 17]), rack, ids[1]),
            Consumer(world, "plain", chance.choice([4, 6, 12, 13, 15, 16]), client_id=ids[2]),
            CommittedConsumer(
                world, "committed", chance.choice([4, 7, 11, 13, 17]), chance.choice(["", rack]), client_id=ids[2]
            ),
        ]
        self.producers = [
            Producer(world, "plainly", idempotent=False, client_id=ids[3]),
            Producer(world, "limited", idempotent=False, client_id="limited"),
            Producer(world, "exactly-a", idempotent=True, client_id=ids[4]),
            Producer(world, "exactly-b", idempotent=True, client_id=ids[5]),
        ]
        self.admin = Admin(world, "admin")
        self.clients: list[Client] = [*self.consumers, *self.consumers, *self.producers, Prober(world, "prober")]
        if world.has_quotas:
            mutator = Mutator(world, "mutator", ids[6])
            self.clients += [self.admin, mutator, Pipeliner(world, "pipeliner", idempotent=False, client_id=ids[7])]
        if world.disk is not None:
            self.clients += [Committer(world, "committer")] * 2
        self.members = Members(world)
        self.transactional_ids = TransactionalIds(world)
        self.operations = 0
        self.steps = 0

    def run(self, operations: int) -> None:
        while self.operations < operations:
            try:
                self._step()
            except Killed:
                self.world.was_killed()
                self._check()
        self._come_to_rest()

    def _step(self) -> None:
        chance = self.world.chance
        self.steps += 1
        if chance.random() < 0.15:
            self.faults.act()
        else:
            self._act()
        if chance.random() < WITH_MEMBERS:
            self.members.act()
        if chance.random() < WITH_TRANSACTIONS:
            self.transactional_ids.act()
        self._reading()
        self._check()
        delta_ms = chance.choice([0, 0, 0, 1, 20, 150, 700])
        if delta_ms:
            self.world.advance(delta_ms)
            self._check()
        if self.steps % CONTENTS_EVERY == 0:
            self.world.truth.check_contents()
            self.world.charges.check()

    def _act(self) -> None:
        start = len(self.world.messages)
        try:
            self.world.chance.choice(self.clients).act()
        finally:
            self.operations += any(self._is_request(message) for _, _, message in self.world.messages[start:])

    @staticmethod
    def _is_request(what: object) -> bool:
        return type(what).__name__.endswith("Request")

    def _reading(self) -> None:
        """Sometimes make a client read slowly, or fast again."""
        chance = self.world.chance
        lines = [line for line in self.world.lines if line.is_open]
        if lines and chance.random() < 0.1:
            line = chance.choice(lines)
            line.slow = not line.slow
        for line in lines:
            if not line.slow or chance.random() < 0.5:
                line.read_on()

    def _check(self) -> None:
        self.world.check()
        for consumer in self.consumers:
            consumer.check()

    def _come_to_rest(self) -> None:
        """Stop the faults and wait: everything is replicated, all replicas are in sync, and the consumers read to the end."""
        world = self.world
        self.faults.end()
        self.admin.lift_all()
        for line in world.lines:
            if line.is_open and line.muted_until_ms > world.now_ms + 5000:
                line.hang_up()
        for line in [line for line in world.lines if line.is_open]:
            line.slow = False
            line.read_on()
        world.advance(10_000)
        self.transactional_ids.come_to_rest()
        self._await_coordinator_writes()
        for topic in world.image.topics.values():
            for state in topic.partitions:
                leader = world.leader(topic.name, state.index)
                assert leader is not None and set(state.isr) == set(state.replicas), (
                    f"not in sync: {topic.name}, {state}"
                )
                log = leader.log
                assert log.high_watermark == log.log_end_offset, f"{leader} is not replicated"
                is_over = "retention.ms" in topic.configs
                assert not is_over or log.log_start_offset == log.log_end_offset, f"{leader} keeps expired records"
        world.truth.check_contents()
        self.members.come_to_rest()
        for consumer in self.consumers:
            self._read_to_the_end(consumer)
            for history in world.truth.histories.values():
                if history.compacted and not history.internal and not history.transactions.misses_marker:
                    history.keys.check_read(consumer.seen.get(history.name, {}))
        world.charges.check_whole()

    def _await_coordinator_writes(self) -> None:
        """Let the followers copy what a coordinator has just written because a session expired."""
        for _ in range(10):
            leader = self.world.leader(OFFSETS_TOPIC, 0)
            if leader is None or leader.log.high_watermark == leader.log.log_end_offset:
                return
            self.world.advance(100)

    def _read_to_the_end(self, consumer: Consumer) -> None:
        deadline_ms = self.world.now_ms + PATIENCE_MS
        while any(self._is_behind(consumer, at) for at in consumer.positions):
            assert self.world.now_ms < deadline_ms, f"{consumer.name} starves: {consumer.positions}"
            consumer.act()
            self.world.advance(100)
            self._check()

    def _is_behind(self, consumer: Consumer, at: tuple[str, int]) -> bool:
        leader = self.world.leader(*at)
        if leader is None:
            return False
        end = consumer.end_of(leader.log)
        history = self.world.truth.of(leader)
        replica = self.world.replica(consumer.positions[at].broker_id, *at)
        if replica is not None and history.transactions.misses_marker:
            # The follower in the consumer's rack may keep a transaction open that has ended on the leader (TX-53).
            end = min(end, consumer.end_of(replica.log))
        if history.compacted:
            end = min(end, leader.log.runs.end_offset)
        return consumer.positions[at].offset < end


def simulate(seed: int, operations: int = OPERATIONS) -> Outcome:
    """Run one seed. Raises Broken."""
    simulation = Simulation(seed)
    world = simulation.world
    try:
        simulation.run(operations)
    except Exception as error:
        where = f"seed {seed}, {world.semantics}, after {simulation.operations} operations at {world.now_ms}"
        hint = f"again with: python -m tests.simulation {seed}"
        raise Broken(f"{conversation(world)}\n{type(error).__name__}: {error}\n{where}; {hint}") from error
    finally:
        world.close()
    virtual_ms = world.now_ms - world.messages[0][0]
    throttles = world.quotas.throttles
    return Outcome(simulation.operations, simulation.steps, virtual_ms, world.limited_ms, throttles, digest(world))


def conversation(world: World) -> str:
    """Return the end of the conversation, one line per message: virtual time since the first, sender, decoded message."""
    first_ms = world.messages[0][0] if world.messages else 0
    return "\n".join(
        f"{at_ms - first_ms:>8} {sender}: {in_words(message)}" for at_ms, sender, message in world.messages[-SHOWN:]
    )


def in_words(what: object) -> str:
    """Return a message as its classes print it, followed by the batches of a fetch response."""
    text = _VIEW.sub("view", str(what))
    if not isinstance(what, FetchResponse):
        return text
    read = []
    for topic in what.responses:
        for data in topic.partitions:
            record_bytes = bytes(data.records or b"")
            differences = ", ".join(
                f"{b.header.base_offset}-{b.header.last_offset}"
                for b in batches(record_bytes[: complete_bytes(record_bytes)])
            )
            read += (
                [f"{topic.topic or topic.topic_id.hex()}-{data.partition_index}: {differences}"] if record_bytes else []
            )
    return f"{text} {read}"


def digest(world: World) -> str:
    hash_of_run = hashlib.sha256()
    for at_ms, sender, message in world.messages:
        hash_of_run.update(f"{at_ms} {sender} {in_words(message)}\n".encode())
    return hash_of_run.hexdigest()
