"""The sockets of a cluster: listeners of every broker, opened and closed as brokers start and stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.config.listeners import Listener, address_text, listeners_of
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.node import Node
from kafkaproto.broker.runtime.events import Observer
from kafkaproto.broker.server.channel import Channel
from kafkaproto.broker.server.loop import BrokerLoop, accepted

if TYPE_CHECKING:
    from kafkaproto.broker.server.tracing import Recording

logger = logging.getLogger("kafkaproto.server")

BACKLOG = 512
"""How many connections may wait to be accepted if `socket.listen.backlog.size` is not set. Kafka's 50 are too few for parallel test suites."""
BUFFER_OPTIONS = {"socket.send.buffer.bytes": socket.SO_SNDBUF, "socket.receive.buffer.bytes": socket.SO_RCVBUF}
"""Maps broker settings to socket options of a listener, which its connections inherit. If a setting is unset or -1, the system picks the size."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
HIGHEST_PORT = 65535
FREE_PORT_TRIES = 16


class Server(Observer):
    """The listening sockets of a cluster. `start` opens them, `stop` closes them and all connections. `bootstrap` has the addresses for clients.

    - host, port: where brokers without the setting `listeners` listen: the first broker on `port`, the others on the next ports; with port 0, each
      broker on a free port.
    - sendfile: whether to send large file ranges through sendfile; None uses sendfile only on Linux.
    - trace: a folder for a trace of all traffic, from the first connection on; None for no trace.
    """

    def __init__(
        self,
        cluster: Cluster,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        sendfile: bool | None = None,
        trace: str | os.PathLike[str] | None = None,
    ) -> None:
        self.cluster = cluster
        self._trace = trace
        self._recording: Recording | None = None
        self.loop = BrokerLoop(cluster, sendfile=sendfile)
        self._listeners: dict[int, list[Listener]] = {}
        self._open: dict[int, list[asyncio.Server]] = {}
        self._bound: dict[int, list[tuple[str, int]]] = {}
        self._opening: list[asyncio.Task[None]] = []
        self._one_opens = asyncio.Lock()
        for node in cluster.nodes:
            broker_port = port + cluster.nodes.ids.index(node.broker_id) if port else 0
            if broker_port > HIGHEST_PORT:
                raise ConfigError(
                    f"the port of broker {node.broker_id} must be at most {HIGHEST_PORT} (got {broker_port}); for example --port 9092"
                )
            self._listeners[node.broker_id] = listeners_of(node.config, host, broker_port)
            for listener in self._listeners[node.broker_id]:
                node.acceptor(listener.name)
        cluster.events.attach(self)

    def __repr__(self) -> str:
        if not self._bound:
            return "<Server not started>"
        addresses = ", ".join(self.bootstrap)
        return f"<Server {addresses}>" if self._open else f"<Server stopped, was at {addresses}>"

    async def start(self) -> None:
        """Bind every listener, then accept clients. Raises ConfigError if an address cannot be bound or the trace cannot be written."""
        try:
            for node in self.cluster.nodes:
                await self._bind_all(node)
            if self._trace is not None:
                from kafkaproto.broker.server.tracing import Recording  # most have no trace, and start without it

                self._recording = Recording(self.cluster, self._trace)
            for node in self.cluster.nodes:
                await self._serve(node)
        except BaseException:
            await self.stop()
            raise

    @property
    def bootstrap(self) -> list[str]:
        """Return host:port of every broker's first listener, as advertised to clients."""
        addresses = []
        for node in self.cluster.nodes:
            first = self._listeners[node.broker_id][0].name
            host, port = self.cluster.controller.image.brokers[node.broker_id].listeners[first]
            addresses.append(address_text(host, port))
        return addresses

    def bound_addresses(self, broker_id: int) -> list[tuple[str, int]]:
        """Return the (host, port) to which each listener of a broker is bound, in the order of the setting `listeners`.

        Metadata names the advertised addresses, which may differ (`advertised.listeners`). A stopped broker keeps its addresses.
        """
        return list(self._bound[broker_id])

    async def _bind_all(self, node: Node) -> None:
        """Bind the listeners of a broker, so that their addresses are known. Clients are accepted later."""
        advertised: dict[str, tuple[str, int]] = {}
        servers: list[asyncio.Server] = []
        bound: list[tuple[str, int]] = []
        self._open[node.broker_id] = servers
        ports = [port for _, port in self._bound.get(node.broker_id, [])]
        for i, listener in enumerate(self._listeners[node.broker_id]):
            port = ports[i] if i < len(ports) else listener.port  # a restarted broker keeps its ports
            server = await self._bind(node, listener, port)
            if self._open.get(node.broker_id) is not servers:
                server.close()  # the broker was stopped meanwhile
                return
            servers.append(server)
            port = server.sockets[0].getsockname()[1]
            bound.append((listener.host, port))
            if listener.host not in LOOPBACK:
                address = listener.host or "every address of this machine"
                logger.warning(
                    "broker %d listens on %s, port %d: other machines can reach it", node.broker_id, address, port
                )
            advertised[listener.name] = (
                listener.advertised_host or _reachable(listener.host),
                listener.advertised_port or port,
            )
        self._bound[node.broker_id] = bound
        self.loop.call(lambda: self.cluster.set_listeners(node.broker_id, advertised))

    async def _serve(self, node: Node) -> None:
        """Start to accept clients on the bound ports. Raises ConfigError if another process is already listening on one of these ports."""
        servers = self._open.get(node.broker_id, [])
        for i, server in enumerate(tuple(servers)):
            if self._open.get(node.broker_id) is not servers:
                return  # the broker was stopped meanwhile
            with _naming_listener(node, self._listeners[node.broker_id][i], self._bound[node.broker_id][i][1]):
                await server.start_serving()

    async def _bind(self, node: Node, listener: Listener, port: int) -> asyncio.Server:
        with _naming_listener(node, listener, port):
            if port:
                return await self._bind_port(node, listener, port)
            return await self._bind_free_port(node, listener)

    async def _bind_port(self, node: Node, listener: Listener, port: int) -> asyncio.Server:
        config = node.config
        server = await asyncio.get_running_loop().create_server(
            lambda: Channel(node, listener.name, self.loop),
            listener.host or None,
            port,
            backlog=config["socket.listen.backlog.size"] if config.is_given("socket.listen.backlog.size") else BACKLOG,
            start_serving=False,
        )
        for name, option in BUFFER_OPTIONS.items():
            if config.is_given(name) and config[name] >= 0:
                for listening in server.sockets:
                    listening.setsockopt(socket.SOL_SOCKET, option, config[name])
        return server

    async def _bind_free_port(self, node: Node, listener: Listener) -> asyncio.Server:
        """Bind a port that is free on every IP address of the listener's host name, such as localhost. Returns the asyncio server with this port."""
        for _ in range(FREE_PORT_TRIES):
            server = await self._bind_port(node, listener, 0)
            ports = {bound.getsockname()[1] for bound in server.sockets}
            if len(ports) == 1:
                return server
            server.close()
            for port in ports:
                with contextlib.suppress(OSError):
                    return await self._bind_port(node, listener, port)
        raise OSError(
            errno.EADDRINUSE,
            f"none of the {FREE_PORT_TRIES} ports tried is free on every IP address of {listener.host or 'this machine'}",
        )

    def broker_changed(self, broker_id: int, running: bool, now_ms: int) -> None:
        # A broker is stopped and started by control calls: its listeners follow.
        if not running:
            for server in self._open.pop(broker_id, []):
                server.close()
        else:
            self._opening.append(asyncio.ensure_future(self._listen_again(self.cluster.nodes[broker_id])))

    async def _listen_again(self, node: Node) -> None:
        """Open the listeners of a broker that was started again, unless they are open or the broker has been stopped since.

        Calls run one after another, even if they are for different brokers.
        """
        async with self._one_opens:
            if node.running and node.broker_id not in self._open:
                await self._bind_all(node)
                await self._serve(node)

    async def settled(self) -> None:
        """Wait until listeners that are being opened are open. Raises ConfigError if another process has started to use a port."""
        opening, self._opening = self._opening, []
        await asyncio.gather(*opening)

    async def stop(self) -> None:
        """Close all listeners and connections. Returns when the sockets are closed."""
        self.loop.stop()
        # These tasks are not cancelled: asyncio would lose the sockets that it has bound already.
        await asyncio.gather(*self._opening, return_exceptions=True)
        self._opening.clear()
        servers = [server for servers_of_broker in self._open.values() for server in servers_of_broker]
        self._open.clear()
        await close_servers(servers)
        for node in self.cluster.nodes:
            node.running = False
            node.close_connections()
        try:
            await self.loop.closed()
        finally:
            if self._recording is not None:
                self._recording.close()
            self.cluster.close()


@contextlib.contextmanager
def _naming_listener(node: Node, listener: Listener, port: int) -> Iterator[None]:
    """Return a context manager for opening a listener: it replaces an OSError by a ConfigError that names the broker and the address.

    port: the port to open. The error names this port and the host of `listener`, whose own port can be another one.
    """
    try:
        yield
    except OSError as error:
        reason = "the port is in use" if error.errno == errno.EADDRINUSE else (error.strerror or str(error))
        raise ConfigError(
            f"broker {node.broker_id} cannot listen on {listener.host or '*'}:{port}: {reason}; "
            f"choose another port with --port, or --port 0 for any free port"
        ) from None


async def close_servers(servers: Sequence[asyncio.Server]) -> None:
    """Stop accepting connections on these asyncio servers, and finish setting up connections that are already accepted."""
    for server in servers:
        for sock in server.sockets:
            # asyncio loses a connection whose server closes between `accept` and `connection_made`: accept no more, finish the
            # connections in between, and only then close.
            asyncio.get_running_loop().remove_reader(sock.fileno())
    await accepted()
    for server in servers:
        server.close()


def _reachable(host: str) -> str:
    """Return the host to advertise for a listener bound to `host`: this machine's name if it is bound to every address, as in Kafka, else `host`."""
    return socket.getfqdn() if host in ("", "0.0.0.0", "::") else host
