"""A client on a real socket that is built on the codec and hides nothing: what is sent, when it is read, how it ends.

It never buffers what it did not ask for, so a test decides whether the kernel's buffers fill.
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
    """One answer: to which request, and what it says. data: the frame without its length."""

    correlation_id: int
    message: Any
    data: bytes


def frame(request: Any, version: int, correlation_id: int = 1, client_id: str | None = "raw") -> bytes:
    """Return the bytes of a request, length first."""
    return request_frame(request, version, correlation_id, client_id)


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(LENGTH_BYTES, "big") + payload


class RawClient:
    """`send` and `answer`, `ask` for both; `data` and `rest` for bytes as they are. Made by `connect`."""

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
        """Send one request; its correlation id."""
        correlation_id = self._client.next_id
        await self.send_bytes(self.frame(request, version))
        return correlation_id

    async def send_bytes(self, data: bytes) -> None:
        await asyncio.wait_for(asyncio.get_running_loop().sock_sendall(self.socket, data), PATIENCE_SECONDS)

    async def ask(self, request: Any, version: int) -> Any:
        await self.send(request, version)
        return (await self.answer()).message

    async def answer(self) -> Answer:
        """The next answer. Raises EOFError when the broker closed."""
        length = frame_length(await self.data(LENGTH_BYTES))
        assert length is not None
        data = await self.data(length)
        response = self._client.read(data)
        return Answer(response.correlation_id, response.message, data)

    async def data(self, count: int) -> bytes:
        """Exactly `count` bytes. Raises EOFError when the broker closed before."""
        loop = asyncio.get_running_loop()
        found = bytearray()
        while len(found) < count:
            part = await asyncio.wait_for(
                loop.sock_recv(self.socket, min(1 << 20, count - len(found))), PATIENCE_SECONDS
            )
            if not part:
                raise EOFError(f"closed after {len(found)} of {count} bytes")
            found += part
        return bytes(found)

    async def rest(self) -> bytes:
        """All until the broker closes; a reset is an end like any other."""
        loop = asyncio.get_running_loop()
        found = bytearray()
        with suppress(ConnectionError):
            while part := await asyncio.wait_for(loop.sock_recv(self.socket, 1 << 20), PATIENCE_SECONDS):
                found += part
        return bytes(found)

    def finish(self) -> None:
        """Send no more (the socket is half closed)."""
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Go without a word: what is unread and unsent is thrown away, and the broker sees a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self) -> None:
        self.socket.close()


async def connect(
    cluster: AsyncTestCluster, broker_id: int = 0, client_id: str | None = "raw", *, small_buffer: bool = False
) -> RawClient:
    """small_buffer: the kernel takes little for a client that does not read."""
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
    """A client that is closed whatever happens."""
    client = await connect(cluster, *args, **options)
    try:
        yield client
    finally:
        client.close()


@asynccontextmanager
async def serving(**arguments: Any) -> AsyncIterator[tuple[AsyncTestCluster, RawClient]]:
    """A cluster and a client of its first broker."""
    async with async_cluster(**arguments) as cluster, client_of(cluster) as client:
        yield cluster, client


def open_sockets(cluster: AsyncTestCluster) -> int:
    """How many connections of clients the cluster holds open, as the operating system sees it."""
    ports = {int(address.rpartition(":")[2]) for address in cluster.bootstrap_servers}
    return sum(sock.getsockname()[1] in ports for sock in _sockets_of_this_process() if _is_connected(sock))


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
    """Whether a client was accepted here, also one that has gone."""
    return not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


class Reads(Observer):
    """count: how often the cluster has read bytes of a client since `reads_of` began."""

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
    """Let the loop go on until `condition()` is true: for what no journal entry tells, such as a socket that is gone."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not condition():
        assert loop.time() < deadline, "it did not come true in time"
        await asyncio.sleep(0)
