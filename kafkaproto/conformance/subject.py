"""What is tested: a running cluster of three brokers, its profile of settings, its clock, and what control over it we have.

`foreign.Foreign` is any address; other kinds come from whoever runs the suite (`plugin`). A test asks a subject for connections, for time,
and for control, and never which subject it is: where broker and documents differ it asks for `semantics`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from kafkaproto.client import UnexpectedResponse
from kafkaproto.conformance.client import Answer, Closed, Connection, SocketConnection

PROFILES = Path(__file__).resolve().parent / "profiles"
PATIENCE_MS = 15_000


def profiles() -> list[str]:
    """Return the names of the profiles."""
    return sorted(path.stem for path in PROFILES.glob("*.properties"))


def settings_of(profile: str) -> dict[str, str]:
    """The broker settings of a profile, which each broker of a subject is started with."""
    lines = (PROFILES / f"{profile}.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


class Subject(ABC):
    """A cluster under test. Times are in ms of the subject's own clock."""

    name: str
    semantics: str
    slack_ms: float
    """How much later than asked an answer may come."""
    early_ms: float = 1
    """How much earlier it may seem to come: brokers read their clocks in whole milliseconds. More is never right."""
    clock_slack_ms: float
    """How far this client's idea of when it sent may be from the broker's of when it came; 0: they are one clock."""
    jitter_ms: float = 0
    """How far a throttle time may be off where no clock matters: a broker that reads its clock twice in a request."""
    bootstrap: list[tuple[str, int]]
    """By broker id."""
    creates = assigns = True
    """Whether CreateTopics is served, and whether it takes assignments."""
    metadata_version = 12
    """In which a test looks around."""
    first_id = 0
    """The broker that leads everything where a test does not say."""

    def __init__(self) -> None:
        self._open: list[Connection] = []
        self.names: list[str] = []
        """The topic names that were given to tests."""

    # ---- connections and time ------------------------------------------------------------------------------------------------

    def connect(
        self, broker_id: int = 0, client_id: str | None = "conformance", address: str | None = None
    ) -> Connection:
        """A connection to one broker, from an address of this machine; it is closed at the end of the test."""
        made = self.open(broker_id, client_id, address)
        self._open.append(made)
        return made

    def open(self, broker_id: int = 0, client_id: str | None = "conformance", address: str | None = None) -> Connection:
        """A connection that its user closes."""
        return SocketConnection(*self.bootstrap[broker_id], client_id, address)

    def close_connections(self) -> None:
        for connection in self._open:
            connection.close()
        self._open.clear()

    def new_name(self, prefix: str = "t") -> str:
        """A topic name that no other test has, also not in a run before this one on the same cluster."""
        self.names.append(f"{prefix}-{len(self.names) + 1}-{time.time_ns()}")
        return self.names[-1]

    @abstractmethod
    def now_ms(self) -> float: ...

    def epoch_ms(self) -> int:
        """What the brokers' clocks show, in ms since 1970."""
        return int(time.time() * 1000)

    @abstractmethod
    def pass_ms(self, delta_ms: float) -> None:
        """Let time pass."""

    def send(self, connection: Connection, request: Any, version: int) -> int:
        """Send one request; its correlation id."""
        data = connection.frame(request, version, self.now_ms())
        connection.send_bytes(data)
        return max(connection.sent)

    def ask(self, connection: Connection, request: Any, version: int) -> Any:
        """Send one request and return the message of its answer."""
        self.send(connection, request, version)
        return self.answer(connection).message

    def ask_once(self, request: Any, version: int, broker_id: int = 0) -> Any:
        """The same over a connection that is used for this alone."""
        with closing(self.open(broker_id)) as connection:
            return self.ask(connection, request, version)

    def answer(self, connection: Connection, within_ms: float = PATIENCE_MS) -> Answer:
        """The next answer. Fails when it does not come in time. Raises Closed."""
        found = self.answer_or_none(connection, within_ms)
        assert found is not None, f"no response within {within_ms:.0f} ms"
        return found

    @abstractmethod
    def answer_or_none(self, connection: Connection, within_ms: float) -> Answer | None:
        """The next answer, or None when it does not come within `within_ms` of the subject's time. Raises Closed."""

    def closed(self, connection: Connection, within_ms: float = PATIENCE_MS) -> bool:
        """Whether the broker closes the connection in time without another word."""
        try:
            self.answer_or_none(connection, within_ms)
        except Closed:
            return True
        except UnexpectedResponse:
            """A response to bytes that are no request."""
        return False

    def assert_took(self, answer: Answer, wanted_ms: float) -> None:
        """The answer came `wanted_ms` after its request: earlier and later only by what this subject's clock needs."""
        assert wanted_ms - self.early_ms <= answer.elapsed_ms <= wanted_ms + self.slack_ms, (
            f"answered after {answer.elapsed_ms:.1f} ms, wanted {wanted_ms} to {wanted_ms + self.slack_ms}"
        )

    @contextmanager
    def request_cost(self, api: str, cost_ms: float) -> Iterator[None]:
        """What handling a request of an API costs, where that is not measured."""
        yield

    # ---- control: what nobody but who started the cluster has --------------------------------------------------------------------

    @abstractmethod
    def stop_broker(self, broker_id: int) -> None:
        """End a broker as a process ends; others take over what it led."""

    @abstractmethod
    def start_broker(self, broker_id: int) -> None:
        """It comes back on its port."""

    @abstractmethod
    def hold_follower(self, topic: str, partition: int, broker_id: int) -> None:
        """From now on this broker takes nothing from the leader, and stays in the ISR as long as the settings let it."""

    @abstractmethod
    def release_follower(self, topic: str, partition: int, broker_id: int) -> None: ...

    @abstractmethod
    def restore(self) -> None:
        """Start what a test has left stopped, so that the next one is not harmed."""

    @abstractmethod
    def stop(self) -> None: ...


class WallClock(Subject):
    """A subject whose time is the wall's."""

    slack_ms = 250.0
    clock_slack_ms = 100.0
    jitter_ms = 10.0

    def now_ms(self) -> float:
        return time.monotonic() * 1000

    def pass_ms(self, delta_ms: float) -> None:
        time.sleep(delta_ms / 1000)

    def answer_or_none(self, connection: Connection, within_ms: float) -> Answer | None:
        taken = connection.take(within_ms / 1000)
        return None if taken is None else connection.decode(*taken, self.now_ms())
