"""This broker without sockets, in virtual time: every time is exact."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.conformance.client import Answer, Connection
from kafkaproto.conformance.served import Newer
from kafkaproto.conformance.subject import Subject, settings_of

BROKERS = 3
LOOPBACK = "127.0.0.1"
RELEASE, NEWER_RELEASE = "3.9", "4.2"
"""The releases whose behaviour the suite checks."""


class VirtualConnection(Connection):
    """A connection whose bytes go directly to a broker. Raises ConnectionRefusedError if the broker is stopped."""

    def __init__(self, cluster: VirtualCluster, broker_id: int, client_id: str | None, address: str | None) -> None:
        super().__init__(client_id)
        if not cluster.state.nodes[broker_id].running:
            raise ConnectionRefusedError(f"broker {broker_id} is stopped")
        self._line = _Line(cluster, broker_id, client_id, address or LOOPBACK)

    @property
    def ended(self) -> bool:
        return self._line.closed_ms is not None and not self._line.received

    def send_bytes(self, data: bytes) -> None:
        self._line.send_bytes(data)

    def receive(self, seconds: float) -> bool:
        received = bytes(self._line.received)
        self._line.received.clear()
        self.received += received
        return bool(received)

    def close(self) -> None:
        self._line.leave()


class _Line(MemoryClient):
    """A client that keeps response bytes in `received`."""

    def __init__(self, cluster: VirtualCluster, broker_id: int, client_id: str | None, address: str) -> None:
        self.received = bytearray()
        self._in = cluster
        super().__init__(cluster, broker_id, client_id, address)

    def took(self, data: bytes) -> None:
        self.received += data

    def leave(self) -> None:
        """Close the connection from the client's side."""
        if self.closed_ms is None and self.served_ms is not None:
            self.connection.socket_closed()
        self.close()
        self._in.run()


class Virtual(Subject):
    """Three brokers in virtual time. Nothing listens on their addresses."""

    slack_ms = early_ms = 0.0
    clock_slack_ms = 0.0

    def __init__(self, profile: str, semantics: str, release: str = RELEASE) -> None:
        super().__init__()
        self.name, self.semantics = f"virtual-{semantics}", semantics
        config = settings_of(profile) | {f"{i}.broker.rack": f"r{i}" for i in range(BROKERS)}
        self.cluster = VirtualCluster(BROKERS, config, profile="kafka", semantics=semantics, release_name=release)
        self.bootstrap = [(f"broker{i}", 9092) for i in range(BROKERS)]

    def open(self, broker_id: int = 0, client_id: str | None = "conformance", address: str | None = None) -> Connection:
        return VirtualConnection(self.cluster, broker_id, client_id, address)

    def now_ms(self) -> float:
        return float(self.cluster.now_ms)

    def epoch_ms(self) -> int:
        return int(self.now_ms())

    def pass_ms(self, delta_ms: float) -> None:
        self.cluster.advance(int(delta_ms))

    def answer_or_none(self, connection: Connection, within_ms: float) -> Answer | None:
        limit = self.now_ms() + within_ms
        while (received := connection.take(0)) is None:
            deadline = self.cluster.state.timers.next_deadline_ms()
            if deadline is None or deadline > limit:
                self.pass_ms(max(0.0, limit - self.now_ms()))
                return None
            self.pass_ms(max(0.0, deadline - self.now_ms()))
        return connection.decode(*received, self.now_ms())

    @contextmanager
    def request_cost(self, api: str, cost_ms: float) -> Iterator[None]:
        self.cluster.state.set_request_cost(api, cost_ms)
        yield
        self.cluster.state.set_request_cost(api, 0)

    def stop_broker(self, broker_id: int) -> None:
        self.cluster.state.stop_broker(broker_id)
        self.cluster.run()

    def start_broker(self, broker_id: int) -> None:
        self.cluster.state.start_broker(broker_id)
        self.cluster.run()

    def hold_follower(self, topic: str, partition: int, broker_id: int) -> None:
        following = self.cluster.state.nodes[broker_id].replicas.following
        leader_id, _ = self.cluster.state.controller.image.leader_of(topic, partition)
        following.fetchers[leader_id].hold(topic, partition, None, self.cluster.now_ms)

    def release_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self.cluster.state.nodes[broker_id].replicas.release(topic, partition)
        self.cluster.run()

    def restore(self) -> None:
        for broker_id in range(BROKERS):
            self.start_broker(broker_id)

    def stop(self) -> None:
        self.cluster.state.close()


class VirtualNewer(Newer, Virtual):
    """Brokers in virtual time that emulate Kafka 4.2."""

    release = NEWER_RELEASE

    def __init__(self, profile: str, semantics: str = "kafka") -> None:
        super().__init__(profile, semantics, self.release)
        self.name = f"virtual-{semantics}-{self.release}"
