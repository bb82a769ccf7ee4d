"""Our broker without sockets, in virtual time: every time is exact, and nothing waits for a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.conformance.client import Answer, Connection
from kafkaproto.conformance.subject import Subject, settings_of

BROKERS = 3
LOOPBACK = "127.0.0.1"


class VirtualConnection(Connection):
    """A connection whose bytes go straight into a broker. Raises ConnectionRefusedError if the broker is stopped."""

    def __init__(self, cluster: VirtualCluster, broker_id: int, client_id: str | None, address: str | None) -> None:
        super().__init__(client_id)
        if not cluster.state.nodes[broker_id].running:
            raise ConnectionRefusedError(f"broker {broker_id} is stopped")
        self._line = _Line(cluster, broker_id, client_id, address or LOOPBACK)

    @property
    def ended(self) -> bool:
        return self._line.closed_ms is not None and not self._line.came

    def send_bytes(self, data: bytes) -> None:
        self._line.send_bytes(data)

    def receive(self, seconds: float) -> bool:
        came = bytes(self._line.came)
        self._line.came.clear()
        self.received += came
        return bool(came)

    def close(self) -> None:
        self._line.leave()


class _Line(MemoryClient):
    """A client that keeps responses as bytes, in `came`."""

    def __init__(self, cluster: VirtualCluster, broker_id: int, client_id: str | None, address: str) -> None:
        self.came = bytearray()
        self._in = cluster
        super().__init__(cluster, broker_id, client_id, address)

    def took(self, data: bytes) -> None:
        self.came += data

    def leave(self) -> None:
        """Close from this side."""
        if self.closed_ms is None and self.served_ms is not None:
            self.connection.lost()
        self.close()
        self._in.run()


class Virtual(Subject):
    """Three brokers in virtual time. Their addresses are made up: nobody listens."""

    slack_ms = early_ms = 0.0
    clock_slack_ms = 0.0

    def __init__(self, profile: str, semantics: str) -> None:
        super().__init__()
        self.name, self.semantics = f"virtual-{semantics}", semantics
        config = settings_of(profile) | {f"{i}.broker.rack": f"r{i}" for i in range(BROKERS)}
        self.cluster = VirtualCluster(BROKERS, config, profile="kafka", semantics=semantics)
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
        while (taken := connection.take(0)) is None:
            deadline = self.cluster.state.timers.next_deadline_ms()
            if deadline is None or deadline > limit:
                self.pass_ms(max(0.0, limit - self.now_ms()))
                return None
            self.pass_ms(max(0.0, deadline - self.now_ms()))
        return connection.decode(*taken, self.now_ms())

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
