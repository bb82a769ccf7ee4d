"""`kafkaproto proxy`: forwards the traffic between clients and any cluster, and records a trace of it.

The proxy opens a local port for each broker that a response names, and replaces the brokers' addresses in responses with its own. It does not
buffer: while a client does not read, the proxy does not read from the broker. It does not support TLS. `kafkaproto.broker.proxy.connection`
handles the messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import socket
from typing import Any

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.proxy.connection import NotKafka, ProxyConnection
from kafkaproto.broker.runtime.clock import SystemClock, monotonic_ns
from kafkaproto.broker.runtime.events import CLIENT_ENDED
from kafkaproto.broker.server.server import LOOPBACK, close_servers
from kafkaproto.broker.server.trace_writer import TraceWriter, run_name
from kafkaproto.client import Client
from kafkaproto.errors import ProtocolError
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.trace.format import Entry, Event, encoded

logger = logging.getLogger("kafkaproto.proxy")

READ_BYTES = 256 * 1024
BACKLOG = 512
RESPONSE_SECONDS = 10.0
CLIENT_ID = "kafkaproto-proxy"
UNKNOWN_BROKER = -1
API_VERSIONS_VERSION, METADATA_VERSION = 0, 1
"""The versions of the ApiVersions and Metadata requests that the proxy itself sends: every broker since 0.10 supports them."""

Address = tuple[str, int]


class LocalPort:
    """A local port of the proxy. Connections to this port are forwarded to one broker.

    to: the broker's (host, port). broker: the broker's id, -1 until a response contains it. socket: the socket that is bound to the port. server: the
    asyncio server that accepts connections from this socket, None until it has started.
    """

    def __init__(self, listening: socket.socket, to: Address) -> None:
        self.socket = listening
        self.port: int = listening.getsockname()[1]
        self.to = to
        self.broker = UNKNOWN_BROKER
        self.server: asyncio.Server | None = None


class Proxy:
    """A proxy that forwards and records the traffic between clients and a Kafka cluster. `start` opens its ports, `stop` closes everything.

    `bootstrap`: the address for clients, after the start. to: the (host, port) of one broker of the cluster. trace: the folder for the
    trace. host, port: the address on which the proxy listens for the broker `to`; with port 0, on any free port. For each further broker,
    the proxy listens on the next higher port or, if that port is in use or `port` is 0, on any free port.
    """

    def __init__(self, to: Address, trace: str | os.PathLike[str], host: str = "127.0.0.1", port: int = 0) -> None:
        self._to = to
        self._folder = trace
        self._host = host
        self._next_port = port
        self._local_ports: dict[Address, LocalPort] = {}
        self._aliases: dict[Address, Address] = {}
        """Maps the address that the first broker advertises to the address that the constructor got for it, so that both get one local port.

        Empty until the advertised address is known.
        """
        self._seq = itertools.count(1)
        self._connections = itertools.count(1)
        self._running: set[asyncio.Task[None]] = set()
        self._writer: TraceWriter | None = None

    async def start(self) -> None:
        """Open the proxy's ports, and start to record.

        Raises ConfigError if no broker responds at the address that the constructor got as `to`, if a port cannot be opened, or if the folder for the
        trace cannot be used.
        """
        advertised = await self._ask_versions()
        brokers = await self._ask_brokers()
        try:
            local_port = self._bind(self._to, self._next_port)
            self._next_port += bool(self._next_port)
            self._writer = self._begin_trace(advertised, brokers)
            for broker in sorted(brokers, key=lambda item: item["id"]):
                if broker["port"] == self._to[1] and await _are_one(broker["host"], self._to[0]):
                    self._aliases[broker["host"], broker["port"]] = self._to
                self._local(broker["id"], broker["host"], broker["port"])
            await self._serve(local_port)
        except BaseException:
            await self.stop()
            raise

    @property
    def bootstrap(self) -> str:
        """Return host:port of the proxy, for the bootstrap setting of clients."""
        return _address_text((self._host, self._local_ports[self._to].port))

    async def stop(self) -> None:
        """Close all connections and ports, and write the rest of the trace."""
        await close_servers(
            [local_port.server for local_port in self._local_ports.values() if local_port.server is not None]
        )
        for local_port in self._local_ports.values():
            local_port.socket.close()
        while self._running:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
        if self._writer is not None:
            self._writer.close()

    # ---- the cluster ---------------------------------------------------------------------------------------------------------

    async def _ask_versions(self) -> dict[str, list[int]]:
        try:
            response = await self._send_request(ApiVersionsRequest(), API_VERSIONS_VERSION)
        except (OSError, EOFError, TimeoutError, ProtocolError) as error:
            raise ConfigError(
                f"no Kafka broker answers at {_address_text(self._to)}: {_why(error)}; give the address of a broker with --to, for example "
                f"--to localhost:9092 (a listener without TLS)"
            ) from None
        return {str(api.api_key): [api.min_version, api.max_version] for api in response.api_keys}

    async def _ask_brokers(self) -> list[dict[str, Any]]:
        """Return id, host, port and rack of each broker in a Metadata response; an empty list if the cluster does not respond to the proxy."""
        try:
            response = await self._send_request(MetadataRequest([]), METADATA_VERSION)
        except (OSError, EOFError, TimeoutError, ProtocolError) as error:
            logger.info(
                "the proxy learns the brokers from responses to clients, because it got no list of brokers from %s: %s",
                _address_text(self._to),
                _why(error),
            )
            return []
        return [
            {"id": broker.node_id, "host": broker.host, "port": broker.port, "rack": broker.rack}
            for broker in response.brokers
        ]

    async def _send_request(self, request: Any, version: int) -> Any:
        async with asyncio.timeout(RESPONSE_SECONDS):
            reader, writer = await asyncio.open_connection(*self._to)
            try:
                client = Client(CLIENT_ID)
                writer.write(client.send(request, version))
                while data := await reader.read(READ_BYTES):
                    for response in client.receive(data):
                        return response.message
                raise EOFError(
                    f"{self._to[0]}:{self._to[1]} closed the connection without a response to {type(request).__name__}"
                )
            finally:
                writer.close()

    def _begin_trace(self, advertised: dict[str, list[int]], brokers: list[dict[str, Any]]) -> TraceWriter:
        wall_ms = SystemClock().now_ms()
        return TraceWriter(
            self._folder,
            run_name(wall_ms),
            {
                "recorder": "kafkaproto proxy",
                "to": _address_text(self._to),
                "wall_ms": wall_ms,
                "at_ns": monotonic_ns(),
                "clock_ms": 0,
                "brokers": [
                    {"id": broker["id"], "rack": broker["rack"], "listeners": {"": [broker["host"], broker["port"]]}}
                    for broker in brokers
                ],
                "advertised": advertised,
            },
        )

    # ---- local ports ---------------------------------------------------------------------------------------------------------

    def _local(self, broker: int, host: str, port: int) -> int:
        """Return the local port for a broker. Opens the port when a response contains the broker for the first time.

        broker: the id of the broker, -1 if it is unknown. host, port: the address that the broker advertises. The kernel queues connections to the
        port until the proxy accepts them.
        """
        address = host, port
        local_port = self._local_ports.get(self._aliases.get(address, address))
        if local_port is None:
            local_port = self._bind(address, self._next_port)
            self._next_port += bool(self._next_port)
            self._start(self._serve(local_port))
        if broker != UNKNOWN_BROKER and local_port.broker != broker:
            local_port.broker = broker
            logger.info("port %d forwards to broker %d at %s", local_port.port, broker, _address_text(address))
        return local_port.port

    def _bind(self, to: Address, port: int) -> LocalPort:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            try:
                listening = socket.create_server((self._host, port), family=family, backlog=BACKLOG)
            except OSError:
                if not self._local_ports or not port:
                    raise
                logger.warning(
                    "port %d is in use; the proxy listens on a free port instead for the broker at %s",
                    port,
                    _address_text(to),
                )
                listening = socket.create_server((self._host, 0), family=family, backlog=BACKLOG)
        except (OSError, OverflowError) as error:
            own_address = _address_text((self._host, port))
            raise ConfigError(
                f"cannot listen on {own_address}: {_why(error)}; choose another port with --listen, or --listen 0 for any free port"
            ) from None
        if self._host not in LOOPBACK:
            logger.warning("port %d listens on %s: other machines can reach it", listening.getsockname()[1], self._host)
        local_port = self._local_ports[to] = LocalPort(listening, to)
        return local_port

    async def _serve(self, local_port: LocalPort) -> None:
        local_port.server = await asyncio.start_server(
            lambda reader, writer: self._start(self._connection(local_port, reader, writer)),
            sock=local_port.socket,
            limit=READ_BYTES,
        )

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    # ---- connections ---------------------------------------------------------------------------------------------------------

    async def _connection(
        self, local_port: LocalPort, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        number = next(self._connections)
        peer, own_address = writer.get_extra_info("peername"), writer.get_extra_info("sockname")
        self._event(
            "opened", local_port, connection=number, at=_address_text(own_address[:2]), peer=peer[0], port=peer[1]
        )
        open_ends = [writer]
        reason = "the proxy stops"
        connection = ProxyConnection(
            number,
            lambda: local_port.broker,
            lambda broker, host, port: (own_address[0], self._local(broker, host, port)),
            lambda: next(self._seq),
            self._record,
        )
        try:
            upstream_reader, upstream = await asyncio.open_connection(*local_port.to, limit=READ_BYTES)
            open_ends.append(upstream)
            reason = await _both_ways(connection, (reader, writer), (upstream_reader, upstream))
            if connection.waiting:
                logger.warning(
                    "connection %d: the broker at %s closed the connection with %d requests unanswered",
                    number,
                    _address_text(local_port.to),
                    connection.waiting,
                )
        except NotKafka as error:
            reason = str(error)
            logger.warning("connection %d from %s is closed: %s", number, peer[0], error)
        except OSError as error:
            if len(open_ends) == 1:
                reason = f"no broker at {_address_text(local_port.to)}: {_why(error)}"
                logger.warning("connection %d from %s is closed: %s", number, peer[0], reason)
            else:
                reason = _why(error)
                logger.info(
                    "connection %d from %s to the broker at %s ended: %s",
                    number,
                    peer[0],
                    _address_text(local_port.to),
                    reason,
                )
        except asyncio.CancelledError:
            for end in open_ends:
                end.transport.abort()
            raise
        finally:
            for end in open_ends:
                end.close()
            connection.ended(monotonic_ns())
            self._event("closed", local_port, connection=number, why=reason)
            for end in open_ends:
                with contextlib.suppress(OSError):
                    await end.wait_closed()

    def _record(self, entry: Entry) -> None:
        assert self._writer is not None
        self._writer.put(encoded(entry))

    def _event(self, kind: str, local_port: LocalPort, **facts: Any) -> None:
        common_facts = {"seq": next(self._seq), "clock_ms": 0, "at_ns": monotonic_ns(), "broker": local_port.broker}
        self._record(Event(kind, {**common_facts, **facts}))


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _both_ways(connection: ProxyConnection, client: Ends, broker: Ends) -> str:
    """Forward bytes in both directions until the broker closes its connection. Returns a text that says which side closed first.

    client, broker: the (reader, writer) of the connection to each side. If the client closes only its sending direction, it still gets the remaining
    responses. Raises NotKafka if either side does not use Kafka's protocol, OSError if a connection breaks.
    """
    requests = asyncio.ensure_future(_requests(connection, client, broker[1]))
    responses = asyncio.ensure_future(_responses(connection, broker[0], client[1]))
    try:
        await asyncio.wait((requests, responses), return_when=asyncio.FIRST_COMPLETED)
        reason = "the broker closed the connection"
        if requests.done():
            requests.result()
            reason = CLIENT_ENDED
        await responses
        if connection.broken is not None:
            raise connection.broken
        return reason
    finally:
        for task in (requests, responses):
            task.cancel()
        await asyncio.gather(requests, responses, return_exceptions=True)


async def _requests(connection: ProxyConnection, client: Ends, broker: asyncio.StreamWriter) -> None:
    reader, client_writer = client
    while data := await reader.read(READ_BYTES):
        on, response = connection.requested(data, monotonic_ns())
        if response:
            client_writer.write(response)
        if on:
            broker.write(on)
            await broker.drain()
        if connection.broken is not None:
            break
    broker.write_eof()


async def _responses(connection: ProxyConnection, broker: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
    while data := await broker.read(READ_BYTES):
        client.write(connection.responded(data, monotonic_ns()))
        await client.drain()


async def _are_one(name: str, other: str) -> bool:
    """Return whether two host names are equal or resolve to a common IP address."""
    if name == other:
        return True
    addresses: list[set[str]] = []
    for host in (name, other):
        with contextlib.suppress(OSError):
            infos = await asyncio.get_running_loop().getaddrinfo(host, None)
            addresses.append({str(address[4][0]) for address in infos})
    return len(addresses) == 2 and bool(addresses[0] & addresses[1])


def _address_text(address: Any) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _why(error: BaseException) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return f"no response within {RESPONSE_SECONDS:.0f} s"
    if isinstance(error, EOFError):
        return "the connection was closed"
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or repr(error)
