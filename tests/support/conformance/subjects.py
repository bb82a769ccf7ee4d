"""What is tested: a running cluster of three brokers, its profile of settings, its clock, and what control over it we have.

`Ours` runs in a thread of the test, on the wall clock or on a manual one; `Foreign` is any address; `real_kafka.RealKafka` starts
Apache Kafka. A test asks a subject for connections, for time, and for control, and never which subject it is: where broker and
documents differ it asks for `semantics`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.broker.runtime.clock import ManualClock
from kafkaproto.testing import cluster
from tests.support.conformance.client import Answer, Closed, Connection, SocketConnection

PROFILES = Path(__file__).resolve().parents[2] / "conformance" / "profiles"
PATIENCE_MS = 15_000
TICK_SECONDS = 0.02


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
        self._topics = 0

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
        self._topics += 1
        return f"{prefix}-{self._topics}-{time.time_ns()}"

    @abstractmethod
    def now_ms(self) -> float: ...

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
        assert found is not None, f"no answer from {self.name} within {within_ms} ms"
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
        except KeyError:
            """An answer to what is no request."""
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


class Foreign(WallClock):
    """A broker at an address that we know nothing else of."""

    def __init__(self, bootstrap: list[tuple[str, int]], semantics: str, name: str = "foreign") -> None:
        super().__init__()
        self.name, self.semantics, self.bootstrap = name, semantics, bootstrap

    def _no_control(self) -> None:
        pytest.skip("not prepared: needs control over the brokers, which an address alone does not give")

    def stop_broker(self, broker_id: int) -> None:
        self._no_control()

    def start_broker(self, broker_id: int) -> None:
        self._no_control()

    def hold_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self._no_control()

    def release_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self._no_control()

    def restore(self) -> None:
        """We stopped nothing."""

    def stop(self) -> None:
        """It is not ours to stop."""


class Ours(WallClock):
    """Our broker, three of them in a thread, on the wall clock."""

    clock = "system"
    clock_slack_ms = 20.0
    jitter_ms = 0.0

    def __init__(self, profile: str, semantics: str) -> None:
        super().__init__()
        self.name, self.semantics = f"ours-{semantics}", semantics
        self._stack = ExitStack()
        config: dict[str, object] = dict(settings_of(profile))
        config |= {f"{i}.broker.rack": f"r{i}" for i in range(3)}
        self.cluster = self._stack.enter_context(
            cluster(3, config=config, profile="kafka", semantics=semantics, clock=self.clock)  # type: ignore[arg-type]
        )
        addresses = [address.rpartition(":") for address in self.cluster.bootstrap_servers]
        self.bootstrap = [(host, int(port)) for host, _, port in addresses]

    def stop_broker(self, broker_id: int) -> None:
        self.cluster.broker(broker_id).stop()

    def start_broker(self, broker_id: int) -> None:
        self.cluster.broker(broker_id).start()

    def hold_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self.cluster.follower(topic, partition, broker_id).hold()

    def release_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self.cluster.follower(topic, partition, broker_id).release()

    def restore(self) -> None:
        for broker_id in range(len(self.bootstrap)):
            self.start_broker(broker_id)

    def stop(self) -> None:
        self._stack.close()


class OursManual(Ours):
    """The same on a clock that moves only when a test waits: every time is exact."""

    clock = "manual"
    slack_ms = early_ms = 0.0
    clock_slack_ms = 0.0

    def __init__(self, profile: str, semantics: str) -> None:
        super().__init__(profile, semantics)
        self.name = f"ours-{semantics}-manual"
        assert isinstance(self.cluster.state.clock, ManualClock)

    def now_ms(self) -> float:
        return float(self.cluster.clock.now_ms())

    def pass_ms(self, delta_ms: float) -> None:
        self.cluster.clock.advance(int(delta_ms))

    def answer_or_none(self, connection: Connection, within_ms: float) -> Answer | None:
        limit = self.now_ms() + within_ms
        while True:
            self.cluster.clock.advance(0)  # all that was sent is handled, and what follows from it is written
            while (taken := connection.take(TICK_SECONDS)) is None and self._is_sending():
                """A sendfile takes real time and no virtual one."""
            if taken is not None:
                return connection.decode(*taken, self.now_ms())
            deadline = self.cluster.run_in_loop(self.cluster.state.timers.next_deadline_ms)
            if deadline is None or deadline > limit:
                self.pass_ms(max(0.0, limit - self.now_ms()))
                return None
            self.pass_ms(deadline - self.now_ms())

    @contextmanager
    def request_cost(self, api: str, cost_ms: float) -> Iterator[None]:
        self.cluster.set_request_cost(api, cost_ms)
        yield
        self.cluster.set_request_cost(api, 0)

    def _is_sending(self) -> bool:
        channels: Iterable[Any] = self.cluster.server.loop._channels
        return any(channel._sending is not None for channel in channels)
