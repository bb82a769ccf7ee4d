"""A client on a real socket that exposes each step: what it sends, when it reads, how it closes.

It reads nothing ahead, so that a test controls whether the kernel's buffers fill.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkaproto.broker.runtime.events import Observer
from kafkaproto.client import Client, key_of, request_frame
from kafkaproto.frame import LENGTH_BYTES, frame_length
from kafkaproto.testing import async_cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from kafkaproto.testing import AsyncTestCluster

PATIENCE_SECONDS = 10.0
SMALL_BUFFER_BYTES = 4096


class Answer(NamedTuple):
    """One response with the header of its request. data: the frame without its length."""

    correlation_id: int
    message: Any
    data: bytes


def frame(request: Any, version: int, correlation_id: int = 1, client_id: str | None = "raw") -> bytes:
    """Return the bytes of a request, length first."""
    return request_frame(request, version, correlation_id, client_id)


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(LENGTH_BYTES, "big") + payload


class RawClient:
    """A client whose test calls `send` and `answer`, or `ask` for both; `data` and `rest` return raw bytes. Created by `connect`."""

    def __init__(self, sock: socket.socket, client_id: str | None) -> None:
        self.socket = sock
        self.client_id = client_id
        self._client = Client(client_id, in_order=False)  # the tests judge the order

    def frame(self, request: Any, version: int) -> bytes:
        """Return the bytes of the next request. A response is expected, also to a Produce with acks=0."""
        correlation_id = self._client.next_id
        data = self._client.send(request, version)
        self._client.sent[correlation_id] = key_of(request), version
        return data

    async def send(self, request: Any, version: int) -> int:
        """Send one request and return its correlation id."""
        correlation_id = self._client.next_id
        await self.send_bytes(self.frame(request, version))
        return correlation_id

    async def send_bytes(self, data: bytes) -> None:
        await asyncio.wait_for(asyncio.get_running_loop().sock_sendall(self.socket, data), PATIENCE_SECONDS)

    async def ask(self, request: Any, version: int) -> Any:
        await self.send(request, version)
        return (await self.answer()).message

    async def answer(self) -> Answer:
        """Return the next response. Raises EOFError if the broker closes the connection."""
        length = frame_length(await self.data(LENGTH_BYTES))
        assert length is not None
        data = await self.data(length)
        response = self._client.read(data)
        return Answer(response.correlation_id, response.message, data)

    async def data(self, count: int) -> bytes:
        """Return exactly `count` bytes. Raises EOFError if the broker closes the connection first."""
        loop = asyncio.get_running_loop()
        received = bytearray()
        while len(received) < count:
            part = await asyncio.wait_for(
                loop.sock_recv(self.socket, min(1 << 20, count - len(received))), PATIENCE_SECONDS
            )
            if not part:
                raise EOFError(f"closed after {len(received)} of {count} bytes")
            received += part
        return bytes(received)

    async def rest(self) -> bytes:
        """Return all bytes until the broker closes the connection, normally or with a reset."""
        loop = asyncio.get_running_loop()
        received = bytearray()
        with suppress(ConnectionError):
            while part := await asyncio.wait_for(loop.sock_recv(self.socket, 1 << 20), PATIENCE_SECONDS):
                received += part
        return bytes(received)

    def finish(self) -> None:
        """Close the sending direction of the socket."""
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Abort the connection with a reset; unread and unsent data are lost."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self) -> None:
        self.socket.close()


async def connect(
    cluster: AsyncTestCluster, broker_id: int = 0, client_id: str | None = "raw", *, small_buffer: bool = False
) -> RawClient:
    """Connect to a broker. small_buffer: the kernel buffers little for a client that does not read."""
    host, _, port = cluster.bootstrap_servers[broker_id].rpartition(":")
    return await connect_to(host, int(port), client_id, small_buffer=small_buffer)


async def connect_to(host: str, port: int, client_id: str | None = "raw", *, small_buffer: bool = False) -> RawClient:
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    sock.setblocking(False)
    if small_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
    try:
        await asyncio.get_running_loop().sock_connect(sock, (host.strip("[]"), port))
    except OSError:
        sock.close()
        raise
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return RawClient(sock, client_id)


@asynccontextmanager
async def client_of(cluster: AsyncTestCluster, *args: Any, **options: Any) -> AsyncIterator[RawClient]:
    """Connect a client that is closed at the end of the block."""
    client = await connect(cluster, *args, **options)
    try:
        yield client
    finally:
        client.close()


@asynccontextmanager
async def serving(**arguments: Any) -> AsyncIterator[tuple[AsyncTestCluster, RawClient]]:
    """Start a cluster and connect a client to its first broker."""
    async with async_cluster(**arguments) as cluster, client_of(cluster) as client:
        yield cluster, client


def open_sockets(cluster: AsyncTestCluster) -> int:
    """Return how many client connections the cluster holds open, according to the operating system."""
    return len(buffer_sizes(cluster))


def buffer_sizes(cluster: AsyncTestCluster) -> list[tuple[int, int]]:
    """Return (send buffer, receive buffer) in bytes of each client connection of the cluster, as the operating system counts them."""
    ports = {int(address.rpartition(":")[2]) for address in cluster.bootstrap_servers}
    return [
        (sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF), sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
        for sock in _sockets_of_this_process()
        if _is_connected(sock) and sock.getsockname()[1] in ports
    ]


def _sockets_of_this_process() -> Iterator[socket.socket]:
    for name in os.listdir("/dev/fd"):
        try:
            sock = socket.socket(fileno=int(name))
        except OSError:
            continue
        try:
            if sock.family in (socket.AF_INET, socket.AF_INET6) and sock.type == socket.SOCK_STREAM:
                yield sock
        finally:
            sock.detach()


def _is_connected(sock: socket.socket) -> bool:
    """Return whether the socket belongs to an accepted client, even one that has disconnected."""
    return not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


class Reads(Observer):
    """Counts reads. count: how often the cluster has read client bytes since `reads_of` began."""

    def __init__(self) -> None:
        self.count = 0

    def bytes_received(self, connection: Any) -> None:
        self.count += 1


@contextmanager
def reads_of(cluster: AsyncTestCluster) -> Iterator[Reads]:
    reads = Reads()
    cluster.state.events.attach(reads)
    try:
        yield reads
    finally:
        cluster.state.events.detach(reads)


async def until(condition: Any, seconds: float = PATIENCE_SECONDS) -> None:
    """Run the event loop until `condition()` is true; for states without a journal entry, such as a closed socket."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not condition():
        assert loop.time() < deadline, "the condition did not become true in time"
        await asyncio.sleep(0)
