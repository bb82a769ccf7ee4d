"""The cluster under test (the subject): running brokers, a profile of settings, a clock, and functions that control the brokers.

`foreign.Foreign` is a cluster at any address; other kinds come from test suites that start their own clusters (see the module `plugin`).
A test uses a subject's connections, clock and control functions, and does not depend on the kind of the subject. Where Kafka's code differs from its
design documents, the attribute `semantics` is "kip" if the subject follows the documents, and "kafka" if it follows the code.
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
from kafkaproto.conformance.served import Complete

PROFILES = Path(__file__).resolve().parent / "profiles"
PATIENCE_MS = 15_000
SLACK_MS = 250.0
"""The default of the option `--slack-ms`: how many milliseconds later than expected a response may arrive."""


def profiles() -> list[str]:
    """Return the names of the settings profiles (files of broker settings) of the conformance suite."""
    return sorted(path.stem for path in PROFILES.glob("*.properties"))


def settings_of(profile: str) -> dict[str, str]:
    """Return the broker settings in a profile, a file of the conformance suite. Tests of this profile expect that every broker has these settings."""
    lines = (PROFILES / f"{profile}.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


class Subject(Complete, ABC):
    """A cluster under test. All times are in ms on the clock of this cluster."""

    name: str
    semantics: str
    slack_ms: float
    """How many milliseconds later than expected a response may arrive."""
    early_ms: float = 1
    """How many milliseconds earlier than expected a response may seem to arrive, because brokers read their clocks in whole milliseconds."""
    clock_slack_ms: float
    """How many milliseconds a client's send time may differ from the broker's receive time; 0 if both use the same clock."""
    jitter_ms: float = 0
    """The largest tolerated difference in ms between a throttle time and its expected value.

    The two can differ although client and broker use the same clock: a broker may read its clock twice while it handles a request.
    """
    bootstrap: list[tuple[str, int]]
    """The brokers' addresses, indexed by broker id."""
    creates = assigns = True
    """creates: whether the brokers support CreateTopics. assigns: whether CreateTopics accepts replica assignments."""
    metadata_version = 12
    """The version of the Metadata requests with which tests look up topics and brokers."""
    first_id = 0
    """The id of the cluster's first broker, which leads all partitions of a new topic by default."""

    def __init__(self) -> None:
        self._open: list[Connection] = []
        self.names: list[str] = []
        """The names that `new_name` has returned so far, for topics, groups and other things.

        When the tests end, `foreign.Foreign.stop` deletes the topics that have one of these names.
        """

    # ---- connections and time ------------------------------------------------------------------------------------------------

    def connect(
        self, broker_id: int = 0, client_id: str | None = "conformance", address: str | None = None
    ) -> Connection:
        """Open a connection to one broker. The test need not close it, because all connections are closed at the end of the test.

        client_id: the client id in the headers of the requests. address: the local IP address to connect from; None for any.
        """
        connection = self.open(broker_id, client_id, address)
        self._open.append(connection)
        return connection

    def open(self, broker_id: int = 0, client_id: str | None = "conformance", address: str | None = None) -> Connection:
        """Open a connection to one broker. The current test must close the connection.

        client_id: the client id in the headers of the requests. address: the local IP address to connect from; None for any.
        """
        return SocketConnection(*self.bootstrap[broker_id], client_id, address)

    def need_broker(self, broker_id: int) -> None:
        """Skip the current test if the cluster under test has no broker with this id."""

    def close_connections(self) -> None:
        for connection in self._open:
            connection.close()
        self._open.clear()

    def new_name(self, prefix: str = "t") -> str:
        """Return a name for a topic, group or other thing that starts with `prefix` and that no earlier run on the same cluster has used."""
        self.names.append(f"{prefix}-{len(self.names) + 1}-{time.time_ns()}")
        return self.names[-1]

    @abstractmethod
    def now_ms(self) -> float: ...

    def epoch_ms(self) -> int:
        """Return the time on the brokers' clocks, in ms since 1970."""
        return int(time.time() * 1000)

    @abstractmethod
    def pass_ms(self, delta_ms: float) -> None:
        """Let `delta_ms` milliseconds pass on the clock of the cluster under test."""

    def send(self, connection: Connection, request: Any, version: int) -> int:
        """Send one request and return its correlation id."""
        data = connection.frame(request, version, self.now_ms())
        connection.send_bytes(data)
        return max(connection.sent)

    def ask(self, connection: Connection, request: Any, version: int) -> Any:
        """Send one request and return the message of its response."""
        self.send(connection, request, version)
        return self.answer(connection).message

    def ask_once(self, request: Any, version: int, broker_id: int = 0) -> Any:
        """Send one request over a connection of its own, and return the message of the response."""
        with closing(self.open(broker_id)) as connection:
            return self.ask(connection, request, version)

    def answer(self, connection: Connection, within_ms: float = PATIENCE_MS) -> Answer:
        """Return the next response on a connection.

        Raises AssertionError if it does not arrive within `within_ms` on the clock of the cluster under test, and Closed if the broker closes the
        connection.
        """
        response = self.answer_or_none(connection, within_ms)
        assert response is not None, f"no response within {within_ms:.0f} ms"
        return response

    @abstractmethod
    def answer_or_none(self, connection: Connection, within_ms: float) -> Answer | None:
        """Return the next response, or None if it does not arrive within `within_ms` on the clock of the cluster under test.

        Raises Closed if the broker closes the connection.
        """

    def closed(self, connection: Connection, within_ms: float = PATIENCE_MS) -> bool:
        """Return whether the broker closes the connection within `within_ms` without sending a response."""
        try:
            self.answer_or_none(connection, within_ms)
        except Closed:
            return True
        except UnexpectedResponse:
            """A response to bytes that are not a request."""
        return False

    def assert_took(self, response: Answer, expected_ms: float) -> None:
        """Check that a response arrived `expected_ms` after its request, within the tolerances of the clock of the cluster under test."""
        assert expected_ms - self.early_ms <= response.elapsed_ms <= expected_ms + self.slack_ms, (
            f"answered after {response.elapsed_ms:.1f} ms, expected {expected_ms} to {expected_ms + self.slack_ms}"
        )

    @contextmanager
    def request_cost(self, api: str, cost_ms: float) -> Iterator[None]:
        """Make every request of one API take `cost_ms` of handler time until the end of the `with` block.

        api: the name of the API, such as "Metadata". Does nothing if the cluster under test measures the real handler time.
        """
        yield

    # ---- control functions, which only the program that started the cluster has ---------------------------------------------------

    @abstractmethod
    def stop_broker(self, broker_id: int) -> None:
        """Terminate the process of a broker; other brokers become leaders of its partitions."""

    @abstractmethod
    def start_broker(self, broker_id: int) -> None:
        """Start a stopped broker again on the same port."""

    @abstractmethod
    def hold_follower(self, topic: str, partition: int, broker_id: int) -> None:
        """Stop a broker from fetching a partition from its leader. The broker stays in the ISR as long as `replica.lag.time.max.ms` allows."""

    @abstractmethod
    def release_follower(self, topic: str, partition: int, broker_id: int) -> None: ...

    @abstractmethod
    def restore(self) -> None:
        """Start the brokers that a test has stopped and not started again, so that the next test is not affected."""

    @abstractmethod
    def stop(self) -> None: ...


class WallClock(Subject):
    """A cluster under test (`Subject`) whose clock is the wall clock."""

    slack_ms = SLACK_MS
    clock_slack_ms = 100.0
    jitter_ms = 10.0

    def now_ms(self) -> float:
        return time.monotonic() * 1000

    def pass_ms(self, delta_ms: float) -> None:
        time.sleep(delta_ms / 1000)

    def answer_or_none(self, connection: Connection, within_ms: float) -> Answer | None:
        frame = connection.take(within_ms / 1000)
        return None if frame is None else connection.decode(*frame, self.now_ms())
