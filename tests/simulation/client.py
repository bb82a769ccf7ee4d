"""The base class of a simulation's clients: a connection to each broker and a choice of the next operation.

A client performs one operation at a time and checks the response. An invalid response is an AssertionError.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from kafkaproto.error_codes import ErrorCode
from tests.simulation.line import Line
from tests.simulation.world import World

E = ErrorCode
TopicPartition = tuple[str, int]
MOVED = {
    E.NOT_LEADER_OR_FOLLOWER,
    E.UNKNOWN_TOPIC_OR_PARTITION,
    E.NOT_ENOUGH_REPLICAS,
    E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
}
UNSURE = {*MOVED, E.REQUEST_TIMED_OUT}


class Client(ABC):
    """A client of a simulation. lines: one connection per broker, replaced after the broker closes it."""

    def __init__(self, world: World, name: str, client_id: str | None = "test") -> None:
        self.world = world
        self.name = name
        self.client_id = client_id
        self.lines: dict[int, Line] = {}

    @abstractmethod
    def act(self) -> None:
        """Perform one operation."""

    def line(self, broker_id: int) -> Line | None:
        """Return the connection to a broker, or None while the broker is down."""
        line = self.lines.get(broker_id)
        if line is not None and line.is_open:
            return line
        if broker_id not in self.world.running():
            return None
        line = self.lines[broker_id] = Line(self.world, broker_id, self.name, self.client_id)
        self.connected(broker_id)
        return line

    def connected(self, broker_id: int) -> None:  # noqa: B027 - most clients have no state to reset
        """Reset the client's state after a new connection to a broker."""

    def some_partition(self) -> TopicPartition:
        topics = self.world.topics
        name = self.world.chance.choice(sorted(topics))
        return name, self.world.chance.randrange(len(topics[name].partitions))

    def line_to_leader(self, at: TopicPartition) -> Line | None:
        leader, _ = self.world.image.leader_of(*at)
        return None if leader < 0 else self.line(leader)
