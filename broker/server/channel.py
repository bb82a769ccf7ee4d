"""One socket: an asyncio.BufferedProtocol that moves bytes between a transport and a `Connection`. The only code that touches a transport.

Small answers go out in one write. A range of a file of 64 KiB or more goes out through sendfile, in a task of its own; while that runs
the channel is SENDING: nothing else writes, and a close first cancels and awaits it (house §4). Knows nothing of requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from broker.log.files import FileRange
from broker.network.connection import Connection

if TYPE_CHECKING:
    from broker.node import Node
    from broker.server.loop import BrokerLoop

logger = logging.getLogger("kafkaproto.channel")

SENDFILE_FROM_BYTES = 64 * 1024
COPY_BYTES = 1024 * 1024


class Channel(asyncio.BufferedProtocol):
    """Created by a listener for each accepted socket."""

    def __init__(self, node: Node, listener_name: str, loop: BrokerLoop) -> None:
        self._node = node
        self._listener_name = listener_name
        self._loop = loop
        self._transport: asyncio.Transport
        self._connection: Connection
        self._sending: asyncio.Task[None] | None = None
        self._wants_reading = True
        self._closing = False

    # ---- from the transport --------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)
        peer = transport.get_extra_info("peername")
        address = peer[0] if isinstance(peer, tuple) else "unknown"
        now_ms = self._loop.now_ms()
        self._connection = Connection(self._node, self._listener_name, address, self, self._loop.buffers, now_ms)
        if not self._node.running:
            self._connection.close()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._connection.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        now_ms = self._loop.now_ms()
        self._loop.enter(now_ms)
        self._connection.received(nbytes, now_ms)
        self._loop.leave(now_ms)

    def eof_received(self) -> bool:
        now_ms = self._loop.now_ms()
        self._loop.enter(now_ms)
        self._connection.ended(now_ms)
        self._loop.leave(now_ms)
        return True  # the connection closes when it has answered what came

    def pause_writing(self) -> None:
        """The kernel did not take all: `resume_writing` will tell when it has."""

    def resume_writing(self) -> None:
        if self._sending is None:
            self._out()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        if self._sending is not None:
            self._sending.cancel()
        self._connection.lost()

    def _out(self) -> None:
        now_ms = self._loop.now_ms()
        self._loop.enter(now_ms)
        self._connection.written(now_ms)
        self._loop.leave(now_ms)

    # ---- from the connection -------------------------------------------------------------------------------------------------

    def write(self, buffers: Sequence[object]) -> bool:
        transport = self._transport
        if len(buffers) == 1:
            transport.write(cast(bytes, buffers[0]))
        elif self._loop.sendfile and any(type(b) is FileRange and len(b) >= SENDFILE_FROM_BYTES for b in buffers):
            self._sending = asyncio.ensure_future(self._send(buffers))
            return False
        else:
            transport.write(b"".join([b.read() if type(b) is FileRange else cast(bytes, b) for b in buffers]))
        return transport.get_write_buffer_size() == 0

    async def _send(self, buffers: Sequence[object]) -> None:
        """Bytes by write, ranges by sendfile, in order. An error after the header means the stream is broken: abort."""
        transport = self._transport
        loop = asyncio.get_running_loop()
        try:
            for buffer in buffers:
                if type(buffer) is not FileRange:
                    transport.write(cast(bytes, buffer))
                elif len(buffer) < SENDFILE_FROM_BYTES:
                    transport.write(buffer.read())
                else:
                    sent = await loop.sendfile(transport, buffer.file, buffer.offset, len(buffer), fallback=False)
                    if sent != len(buffer):
                        raise ConnectionError(f"{sent} of {len(buffer)} bytes were sent")
        except asyncio.CancelledError:
            transport.abort()
            return
        except (OSError, RuntimeError) as error:
            logger.info("connection %d ended while sending: %s", self._connection.connection_id, error)
            transport.abort()
            return
        finally:
            self._sending = None
        if self._closing:
            transport.abort()
            return
        self._apply_reading()  # sendfile resumes reading by itself
        if transport.get_write_buffer_size() == 0:
            self._out()

    def pause_reading(self) -> None:
        self._wants_reading = False
        if self._sending is None:
            self._apply_reading()

    def resume_reading(self) -> None:
        self._wants_reading = True
        if self._sending is None:
            self._apply_reading()

    def _apply_reading(self) -> None:
        transport = self._transport
        if transport.is_closing():
            return
        if self._wants_reading and not transport.is_reading():
            transport.resume_reading()
        elif not self._wants_reading and transport.is_reading():
            transport.pause_reading()

    def close(self) -> None:
        self._closing = True
        if self._sending is not None:
            self._sending.cancel()
        elif self._transport.get_write_buffer_size():
            # Only an idle close or a stop finds an answer half out: its reader has stalled, and would hold the socket for ever.
            self._transport.abort()
        else:
            self._transport.close()

    def call_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._proceed)

    def _proceed(self) -> None:
        if not self._closing:
            now_ms = self._loop.now_ms()
            self._loop.enter(now_ms)
            self._connection.proceed(now_ms)
            self._loop.leave(now_ms)
