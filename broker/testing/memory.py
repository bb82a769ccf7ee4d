"""A cluster and its clients in one process without sockets: the bytes of requests are passed directly to the broker's `Connection` objects.

Each decoded response has the time at which it was sent. The cluster's clock moves only when the test advances it, so that a throttle of 30 seconds
is tested in no time, with exact numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.log.files import FileRange
from kafkaproto.broker.network.connection import Connection
from kafkaproto.broker.network.frames import BufferPool
from kafkaproto.broker.runtime.clock import ManualClock
from kafkaproto.client import Client, request_frame
from kafkaproto.errors import DecodeError, ProtocolError
from kafkaproto.frame import LENGTH_BYTES

LISTENER = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class Answered:
    """One response that a client received.

    at_ms: when the broker sent it, in ms of the cluster's clock. correlation_id: the id of the request, which the response repeats. message: the
    decoded body. size_bytes: the size of the frame without its length prefix.
    """

    at_ms: int
    correlation_id: int
    message: Any
    size_bytes: int


class VirtualCluster:
    """A cluster whose time stands still until `advance`. `connect` returns clients. Its addresses are invented, because it opens no sockets.

    clock: None for a new clock. To open the data directory of an earlier cluster, pass the clock of that cluster, so that time continues. options:
    further arguments of `Cluster`.
    """

    def __init__(
        self,
        brokers: int = 1,
        config: dict[str, str] | None = None,
        *,
        clock: ManualClock | None = None,
        **options: Any,
    ) -> None:
        self.clock = clock or ManualClock()
        self.state = Cluster(brokers, config, clock=self.clock, **options)
        self.pool = BufferPool()
        self._soon: list[MemoryClient] = []
        self._failed: list[Exception] = []
        for node in self.state.nodes:
            self.state.set_listeners(node.broker_id, {LISTENER: (f"broker{node.broker_id}", 9092)})
        self.run()

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms()

    def topic(self, name: str, partitions: int = 1, replication_factor: int = 1, **configs: str) -> None:
        """Create a topic. configs: settings of the topic, whose names have underscores instead of dots, such as retention_ms="1000"."""
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        controller = self.state.controller
        controller.put_topic(controller.plan_topic(name, partitions, replication_factor, None, settings))
        self.run()

    def connect(
        self,
        broker_id: int | None = None,
        client_id: str | None = "test",
        address: str = "127.0.0.1",
        listener: str = LISTENER,
    ) -> MemoryClient:
        """Return a client with a new connection. The connection may have to wait until the broker admits it and sets the client's `served_ms`.

        broker_id: the broker to connect to; None for the first. client_id: the client id in the header of each request; None for none. address: the
        IP address of the client. listener: the name of the broker's listener.
        """
        first_id = self.state.nodes.ids[0]
        return MemoryClient(self, first_id if broker_id is None else broker_id, client_id, address, listener)

    def run(self) -> None:
        """Let the brokers handle the requests sent so far and everything that follows from them, without advancing the cluster's clock."""
        self.state.actions.run(self.now_ms)
        while self._soon:
            client = self._soon.pop(0)
            client.connection.proceed(self.now_ms)
            self.state.actions.run(self.now_ms)
        if self._failed:
            raise self._failed.pop()

    def advance(self, delta_ms: int) -> None:
        """Let `delta_ms` milliseconds pass, and fire each timer at its exact time."""
        target = self.now_ms + delta_ms
        while True:
            deadline = self.state.timers.next_deadline_ms()
            if deadline is None or deadline > target:
                break
            self.clock.advance(max(0, deadline - self.now_ms))
            self.state.run_due(self.now_ms)
            self.run()
        self.clock.advance(target - self.now_ms)
        self.state.actions.now_ms = self.now_ms

    def call_soon(self, client: MemoryClient) -> None:
        self._soon.append(client)

    def fail(self, error: Exception) -> None:
        """Make `run` raise `error`, for example the error about a response that a client cannot decode.

        Clients call this method instead of raising the error, because the broker, which calls them, would only log it.
        """
        self._failed.append(error)


class MemoryClient:
    """One connection of a client. `send` and `ask` send a request; `ask` also returns its response. `answers` lists all responses so far.

    served_ms: when the broker admitted the connection, None until then. closed_ms: when the broker closed the connection, None while it is open.
    Both times are in ms of the cluster's clock.
    """

    connection: Connection

    def __init__(
        self,
        cluster: VirtualCluster,
        broker_id: int,
        client_id: str | None,
        address: str,
        listener: str = LISTENER,
    ) -> None:
        self._cluster = cluster
        self._node = cluster.state.nodes[broker_id]
        self._listener = listener
        self.address = address
        self.served_ms: int | None = None
        self._client = Client(client_id, in_order=False)
        self.answers: list[Answered] = []
        self.closed_ms: int | None = None
        self.reading = True
        self.received_bytes = 0
        self._unread = bytearray()
        self._node.acceptor(listener).accept(self, cluster.now_ms)
        cluster.run()

    # ---- what a test does ----------------------------------------------------------------------------------------------------

    def send(self, request: Any, version: int, *, trailing: bytes = b"") -> int:
        """Send one request and return its correlation id. `trailing` bytes follow the body, inside the frame."""
        correlation_id = self._client.next_id
        self.send_bytes(self.next_frame(request, version) + trailing, patch_length=bool(trailing))
        return correlation_id

    @property
    def client_id(self) -> str | None:
        """Return the client id that is in the header of each request; None if the requests have none."""
        return self._client.client_id

    @property
    def next_id(self) -> int:
        """Return the correlation id of the next request."""
        return self._client.next_id

    def frame(self, request: Any, version: int, correlation_id: int = 0) -> bytes:
        """Return the bytes of a request, length first, without sending them. If a response is expected, call `expect` before you send the bytes."""
        return request_frame(request, version, correlation_id, self.client_id)

    def next_frame(self, request: Any, version: int) -> bytes:
        """Return the bytes of a request, length first, for the test to send with `send_bytes`.

        Unlike `frame`, this method uses up the next correlation id, and registers the request, so that its response can be decoded.
        """
        return self._client.send(request, version)

    def expect(self, correlation_id: int, api_key: int, version: int) -> None:
        """Register a request whose bytes the test builds itself, so that its response can be decoded.

        correlation_id, api_key, version: the values in the header of the request.
        """
        self._client.sent[correlation_id] = api_key, version

    def send_bytes(self, data: bytes, *, patch_length: bool = False) -> None:
        """Send any bytes. While the broker does not read from the connection, the bytes are buffered, as the kernel would buffer them.

        patch_length: True if `data` is one frame with a wrong length prefix, which this method corrects before sending.
        """
        if patch_length:
            data = (len(data) - LENGTH_BYTES).to_bytes(LENGTH_BYTES, "big") + data[LENGTH_BYTES:]
        self._unread += data
        self._deliver()
        self._cluster.run()

    def ask(self, request: Any, version: int) -> Any:
        """Send a request and return its response. Raises AssertionError unless the broker responds without an advance of the cluster's clock."""
        count_before = len(self.answers)
        self.send(request, version)
        assert len(self.answers) == count_before + 1, f"{type(request).__name__} v{version} was not answered at once"
        return self.answers[-1].message

    def finish(self) -> None:
        """Half close the connection: nothing more is sent, but responses are still received."""
        self.connection.ended(self._cluster.now_ms)
        self._cluster.run()

    @property
    def latest(self) -> Any:
        return self.answers[-1].message

    def _deliver(self) -> None:
        while self._unread and self.reading and self.served_ms is not None and self.closed_ms is None:
            buffer = self.connection.get_buffer()
            count = min(len(buffer), len(self._unread))
            buffer[:count] = self._unread[:count]
            del self._unread[:count]
            self.connection.received(count, self._cluster.now_ms)

    # ---- what the acceptor does (Caller) -------------------------------------------------------------------------------------

    def serve(self, now_ms: int) -> None:
        self.served_ms = now_ms
        self.connection = Connection(self._node, self._listener, self.address, self, self._cluster.pool, now_ms)
        self.resume_reading()

    # ---- what the connection does (Skin) -------------------------------------------------------------------------------------

    def write(self, buffers: Sequence[object]) -> bool:
        try:
            self._take(buffers)
        except ProtocolError as error:
            self._cluster.fail(error)
        return True

    def _take(self, buffers: Sequence[object]) -> None:
        data = b"".join(b.read() if isinstance(b, FileRange) else bytes(b) for b in buffers)  # type: ignore[call-overload]
        self.received_bytes += len(data)
        self.took(data)

    def took(self, data: bytes) -> None:
        """Decode the responses in `data`, the bytes that the broker has just sent, and add them to `answers`.

        Raises DecodeError if a response cannot be decoded, and UnexpectedResponse if it belongs to no pending request.
        """
        for response in self._client.receive(data):
            size_bytes = len(response.data)
            self.answers.append(Answered(self._cluster.now_ms, response.correlation_id, response.message, size_bytes))

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True
        if self._unread:
            self._cluster.state.actions.soon(lambda _: self._deliver())

    def close(self) -> None:
        self.closed_ms = self._cluster.now_ms
        if self._client.unread_bytes:
            self._cluster.fail(DecodeError("frame", 0, f"closed after {self._client.unread_bytes} bytes of a response"))

    def call_soon(self) -> None:
        self._cluster.call_soon(self)
