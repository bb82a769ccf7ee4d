"""A cluster of three brokers in virtual time, its clients' connections, and the conversation that a failing seed prints.

Everything is drawn from one seed. Must never know what the clients want or what is true of the logs (`clients`, `truth`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from broker.log.files import FileRange
from broker.replication.partition import Partition
from broker.testing.memory import Answered, MemoryClient, VirtualCluster
from tests.broker.wire import limit
from tests.simulation.truth import Truth

BROKERS = 3
LAG_MAX_MS = 2000
TIDY_MS = 1000
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
ACKS_NONE = 0

Heard = Callable[[Any], None]


class Complaints(logging.Handler):
    """What the broker logs as its own error: it goes on, a simulation shall not."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record))


class World:
    """chance: where everything random comes from. said: (virtual ms, who, what) of every frame, event and fault."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = Random(seed)
        config = {
            "replica.selector.class": RACK_AWARE,
            "min.insync.replicas": "2",
            "auto.create.topics.enable": "false",
            "replica.lag.time.max.ms": str(LAG_MAX_MS),
            "log.retention.check.interval.ms": str(TIDY_MS),
            "log.cleaner.backoff.ms": str(TIDY_MS),
            "replica.fetch.max.bytes": chance.choice(["1048576", "300"]),
            "kafkaproto.replica.delay.ms": chance.choice(["0", "0", "40"]),
            "auto.leader.rebalance.enable": chance.choice(["true", "false"]),
            "leader.imbalance.check.interval.seconds": "5",
            "max.incremental.fetch.session.cache.slots": chance.choice(["1000", "1000", "2"]),
            **{f"{broker_id}.broker.rack": f"r{broker_id}" for broker_id in range(BROKERS)},
        }
        self.semantics = chance.choice(["kafka", "kip"])
        self.cluster = VirtualCluster(BROKERS, config, semantics=self.semantics, seed=seed)
        self.said: list[tuple[int, str, object]] = []
        self.truth = Truth(self.cluster.state)
        self._complaints = Complaints()
        self._logger = logging.getLogger("kafkaproto")
        self._logger.addHandler(self._complaints)
        if chance.random() < 0.5:
            limit(self.cluster, client_id="limited", consumer_byte_rate=300.0, producer_byte_rate=400.0)

    def close(self) -> None:
        self._logger.removeHandler(self._complaints)
        self.cluster.state.close()

    @property
    def now_ms(self) -> int:
        return self.cluster.now_ms

    @property
    def image(self) -> Any:
        return self.cluster.state.controller.image

    def say(self, who: str, what: object) -> None:
        self.said.append((self.now_ms, who, what))

    def running(self) -> list[int]:
        return [node.broker_id for node in self.cluster.state.nodes if node.running]

    def replica(self, broker_id: int, topic: str, index: int) -> Partition | None:
        node = self.cluster.state.nodes[broker_id]
        return node.replicas.partitions.get((topic, index)) if node.running else None

    def leader(self, topic: str, index: int) -> Partition | None:
        """The replica that leads, None where nobody does."""
        state = self.image.partition(topic, index)
        return None if state is None or state.leader < 0 else self.replica(state.leader, topic, index)

    def check(self) -> None:
        """After a step: everything that always holds. Raises AssertionError."""
        assert not self._complaints.lines, f"the broker complained: {self._complaints.lines[0]}"
        self.truth.check(self.now_ms)

    def advance(self, delta_ms: int) -> None:
        """Let time pass in small parts, looking in between."""
        while delta_ms > 0:
            part = min(delta_ms, 500)
            self.cluster.advance(part)
            delta_ms -= part
            self.check()


class Line(MemoryClient):
    """One connection whose owner hears its answers, and which can be slow to read them.

    Checks X-5: in order, and not before a throttle has passed. A slow reader's bytes are taken twice, when they are written and
    when they are read: nothing may have been written over them.
    """

    def __init__(self, world: World, broker_id: int, name: str, client_id: str) -> None:
        self.world = world
        self.broker_id = broker_id
        self.name = f"{name}@{broker_id}"
        self.slow = False
        self.muted_until_ms = 0
        self.expected: deque[tuple[int, Heard]] = deque()
        self._unread_answer: tuple[Sequence[object], bytes] | None = None
        super().__init__(world.cluster, broker_id, client_id, "127.0.0.1")

    @property
    def is_open(self) -> bool:
        return self.closed_ms is None

    @property
    def is_idle(self) -> bool:
        """Nothing is under way, so that what is sent now is handled now."""
        return not self.expected and self._unread_answer is None and self.world.now_ms >= self.muted_until_ms

    def request(self, request: Any, version: int, heard: Heard) -> None:
        """Send; `heard` is called with the answer's message at the instant at which it leaves the broker."""
        self.world.say(self.name, request)
        if getattr(request, "acks", None) != ACKS_NONE:
            self.expected.append((self._next_id, heard))
        self.send(request, version)

    def write(self, buffers: Sequence[object]) -> bool:
        out = super().write(buffers)
        if not self.slow:
            return out
        self._unread_answer = buffers, _joined(buffers)
        return False

    def read_on(self) -> None:
        """A slow reader has read what was sent."""
        if self._unread_answer is None:
            return
        (buffers, sent), self._unread_answer = self._unread_answer, None
        assert _joined(buffers) == sent, "bytes were written over while they were being sent"
        self.connection.written(self.world.now_ms)
        self.world.cluster.run()

    def _take(self, buffers: Sequence[object]) -> None:
        super()._take(buffers)
        answer = self.answers.pop()
        self.world.say(f"{self.name} answered", answer.message)
        self._check_order(answer)
        _, heard = self.expected.popleft()
        heard(answer.message)

    def _check_order(self, answer: Answered) -> None:
        assert self.expected, "an answer that nobody asked for"
        assert answer.correlation_id == self.expected[0][0], "X-5: answers out of order"
        assert answer.at_ms >= self.muted_until_ms, f"X-5: answered while throttled until {self.muted_until_ms}"
        self.muted_until_ms = answer.at_ms + getattr(answer.message, "throttle_time_ms", 0)


def _joined(buffers: Sequence[object]) -> bytes:
    return b"".join(b.read() if isinstance(b, FileRange) else bytes(b) for b in buffers)  # type: ignore[call-overload]
