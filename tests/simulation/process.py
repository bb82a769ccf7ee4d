"""A client process that depends on a coordinator: how it finds it, loses responses, pauses, crashes and stops its faults."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from kafkaproto.broker.errors import KafkaError
from tests.simulation.client import Client, E
from tests.simulation.line import Line
from tests.simulation.world import BROKERS, World

MOVED_COORDINATOR = {E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS}
PAUSES_MS = 1_500, 4_000, 9_000, 15_000


class Process(Client):
    """A process with one request in flight. calm: whether it never pauses or loses a response. is_gone: whether it has ended."""

    def __init__(self, world: World, name: str, client_id: str | None) -> None:
        super().__init__(world, name, client_id)
        self.is_gone = False
        self.calm = False
        self._coordinators: dict[str, int] = {}
        """The known coordinators, by group or transactional id."""
        self._waiting: Line | None = None
        self._paused_until_ms = 0

    @abstractmethod
    def find_coordinator(self, key: str) -> int:
        """Return the broker that coordinates a group or transactional id. Raises KafkaError while there is none."""

    def response_lost(self) -> None:
        """React to a response that never comes."""

    @property
    def is_busy(self) -> bool:
        """Whether a response is due."""
        return self._waiting is not None and self._waiting.is_open and bool(self._waiting.expected)

    @property
    def is_idle(self) -> bool:
        """Whether the process may send a request now: it has not ended, does not pause, and expects no response."""
        return not (self.is_gone or self.world.now_ms < self._paused_until_ms or self._is_waiting())

    def _is_waiting(self) -> bool:
        """Return whether a response is due. It may never come: the broker died, or the process gives up the connection."""
        line, lost = self._waiting, False
        if line is not None and line.expected:
            if line.is_open and not self.calm and self.world.chance.random() < 0.05:
                self.world.say("fault", f"{line.name} hangs up before the response")
                line.hang_up()
                self.world.cluster.run()
            if line.is_open:
                return True
            lost = True
        self._waiting = None
        if lost:
            self._coordinators.clear()
            self.response_lost()
        return False

    def pause(self) -> None:
        """Stop the process for a while; meanwhile the coordinator may fence it."""
        self._paused_until_ms = self.world.now_ms + self.world.chance.choice(PAUSES_MS)
        self.world.say("fault", f"{self.name} pauses until {self._paused_until_ms}")

    def crash(self) -> None:
        """End the process in the middle of what it does."""
        self.world.say("fault", f"{self.name} crashes")
        self.end()

    def end(self) -> None:
        """End the process."""
        self.is_gone = True
        for line in self.lines.values():
            if line.is_open:
                line.hang_up()
        self.world.cluster.run()

    def rest(self) -> None:
        """Stop all faults of this process."""
        self.calm = True
        self._paused_until_ms = 0

    # ---- requests ------------------------------------------------------------------------------------------------------------

    def send(self, key: str, request: Any, version: int, on_response: Callable[[Any], None]) -> bool:
        """Send a request to the coordinator of a group or transactional id. Returns False if there is none at the moment."""
        return self.send_to(self._line_to_coordinator(key), request, version, on_response)

    def send_to(self, line: Line | None, request: Any, version: int, on_response: Callable[[Any], None]) -> bool:
        """Send a request and wait for the response. Returns False if there is no connection, or another response is due."""
        if line is None or line.expected:
            return False
        self._waiting = line
        line.request(request, version, on_response)
        return True

    def _line_to_coordinator(self, key: str) -> Line | None:
        world = self.world
        if key not in self._coordinators:
            try:
                self._coordinators[key] = self.find_coordinator(key)
            except KafkaError:
                return None
            if not self.calm and world.chance.random() < 0.02:
                self._coordinators[key] = world.chance.randrange(BROKERS)  # outdated metadata
        line = self.line(self._coordinators[key])
        if line is None:
            del self._coordinators[key]
        return line

    def looks_elsewhere(self, error: int) -> bool:
        """Return whether a response says that the coordinator is another one or not ready; then it is looked up again."""
        if error in MOVED_COORDINATOR:
            self._coordinators.clear()
        return error in MOVED_COORDINATOR
