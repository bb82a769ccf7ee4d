"""One socket: an asyncio.BufferedProtocol that moves bytes between a transport and a `Connection`. No other code touches a transport.

A response consists of bytes and file ranges, which are parts of the files of a log. Small responses are sent in one write. If a file range has 64 KiB
or more, or all file ranges together have more than 1 MiB, a task sends the response in parts. It sends file ranges of 64 KiB or more with sendfile,
if that is enabled. While the task runs, nothing else writes to the socket. To close the connection while the task runs, the channel cancels the task
and then aborts the transport. This module does not depend on Kafka requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from kafkaproto.broker.log.files import FileRange
from kafkaproto.broker.network.connection import Connection
from kafkaproto.broker.runtime.events import SOCKET_GONE
from kafkaproto.broker.server.loop import BrokerLoop

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node

logger = logging.getLogger("kafkaproto.channel")

SENDFILE_FROM_BYTES = 64 * 1024
"""The minimum size in bytes of a file range that is sent through sendfile."""
COPY_BYTES = 1024 * 1024
"""The maximum number of bytes of a response that are copied into memory at once.

The next bytes are copied when the kernel has accepted the previous ones.
"""


class Channel(asyncio.BufferedProtocol):
    """The asyncio protocol of one accepted socket, which belongs to the listener `listener_name` of broker `node`."""

    def __init__(self, node: Node, listener_name: str, loop: BrokerLoop) -> None:
        self._node = node
        self._listener_name = listener_name
        self._loop = loop
        self._transport: asyncio.Transport
        self._connection: Connection
        self._served = False
        self.address = "unknown"
        self._client_port = 0
        self._sending: asyncio.Task[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._wants_reading = True
        self._closing = False

    # ---- from the transport --------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)
        self._loop.opened(self)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self.address, self._client_port = peer[:2]
        now_ms = self._loop.now_ms()
        self._loop.enter(now_ms)
        try:
            self._node.acceptor(self._listener_name).accept(self, now_ms)
            if not self._served:
                self._wants_reading = False
                self._apply_reading()
        finally:
            self._loop.leave(now_ms)

    def serve(self, now_ms: int) -> None:
        """Start to read from the connection, because it has been admitted under the connection limits (W-12, W-13)."""
        if self._closing:
            return
        self._served = True
        self._connection = Connection(self._node, self._listener_name, self.address, self, self._loop.buffers, now_ms)
        self._connection.client_port = self._client_port
        if not self._node.running:
            self._connection.close("the broker has stopped")
        self.resume_reading()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._connection.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        now_ms = self._loop.now_ms()
        self._loop.enter(now_ms)
        try:
            self._connection.received(nbytes, now_ms)
        finally:
            self._loop.leave(now_ms)

    def eof_received(self) -> bool:
        now_ms = self._loop.now_ms()
        self._loop.enter(now_ms)
        try:
            self._connection.ended(now_ms)
        finally:
            self._loop.leave(now_ms)
        return True  # the connection closes when it has responded to all received requests

    def pause_writing(self) -> None:
        """Do nothing. asyncio calls this when the transport's write buffer is full, and `resume_writing` when the buffer has room again."""

    def resume_writing(self) -> None:
        if self._drained is not None:
            if not self._drained.done():
                self._drained.set_result(None)
        elif self._sending is None:
            self._out()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._loop.channel_closed(self)
        if self._drained is not None and not self._drained.done():
            self._drained.set_exception(ConnectionError("the socket is closed"))
        if not self._served:
            return
        now_ms = self._loop.now_ms()
        self._loop.enter(now_ms)
        try:
            self._connection.socket_closed(SOCKET_GONE if exc is None else f"{SOCKET_GONE}: {exc}")
        finally:
            self._loop.leave(now_ms)

    def _out(self) -> None:
        now_ms = self._loop.now_ms()
        self._loop.enter(now_ms)
        try:
            self._connection.written(now_ms)
        finally:
            self._loop.leave(now_ms)

    @property
    def is_sending(self) -> bool:
        """Return whether a separate task is sending a large response on this connection."""
        return self._sending is not None

    # ---- from the connection -------------------------------------------------------------------------------------------------

    def write(self, buffers: Sequence[object]) -> bool:
        transport = self._transport
        if len(buffers) == 1:
            transport.write(cast(bytes, buffers[0]))
        elif _goes_out_in_pieces(buffers):
            self._sending = asyncio.ensure_future(self._send(buffers))
            return False
        else:
            transport.write(b"".join([_whole(b) if type(b) is FileRange else cast(bytes, b) for b in buffers]))
        # A write that failed leaves nothing in the buffer; `connection_lost` comes, and no further request is to be handled (W-10).
        return transport.get_write_buffer_size() == 0 and not transport.is_closing()

    async def _send(self, buffers: Sequence[object]) -> None:
        """Send a response in parts. If an error occurs, or the task that runs this coroutine is cancelled, the connection is aborted.

        buffers: the response, as bytes and file ranges in order. Large file ranges are sent by sendfile if it is enabled, everything else by write.
        """
        transport = self._transport
        try:
            for buffer in buffers:
                if type(buffer) is not FileRange:
                    transport.write(cast(bytes, buffer))
                elif len(buffer) < SENDFILE_FROM_BYTES:
                    transport.write(_whole(buffer))
                elif self._loop.sendfile:
                    await self._send_file(buffer)
                else:
                    await self._send_copies(buffer)
                if transport.get_write_buffer_size() > COPY_BYTES:
                    await self._drain()
            await self._drain()
        except (OSError, RuntimeError, asyncio.CancelledError) as error:
            logger.info(
                "connection %d closed while a response was being sent: %r", self._connection.connection_id, error
            )
            # asyncio's future and this error refer to each other, and the frames between them to the file: release it now.
            error.__traceback__ = error.__cause__ = error.__context__ = None
            transport.abort()
            return
        finally:
            self._sending = None
        if not self._closing:
            self._apply_reading()  # sendfile resumes reading by itself
            self._out()

    async def _send_file(self, part: FileRange) -> None:
        # asyncio's sendfile waits for an empty buffer too, but a close during that wait makes it raise in the loop.
        await self._drain()
        loop = asyncio.get_running_loop()
        sent_bytes = await loop.sendfile(self._transport, part.file, part.offset, len(part), fallback=False)
        if sent_bytes != len(part):
            raise ConnectionError(
                f"the response to {self.address} is incomplete: only {sent_bytes} of {len(part)} bytes of a file of the log were sent, "
                "because the file became shorter; the client must send the request again"
            )

    async def _send_copies(self, part: FileRange) -> None:
        for start in range(0, len(part), COPY_BYTES):
            piece = FileRange(part.file, part.offset + start, min(COPY_BYTES, len(part) - start))
            self._transport.write(_whole(piece))
            await self._drain()

    async def _drain(self) -> None:
        """Wait until the kernel has accepted all written bytes. Raises ConnectionError if the socket is closed."""
        if self._transport.get_write_buffer_size():
            self._drained = asyncio.get_running_loop().create_future()
            try:
                await self._drained
            finally:
                self._drained = None
        if self._transport.is_closing():
            raise ConnectionError(f"the socket to {self.address} was closed while a response was being sent")

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
            self._sending.add_done_callback(self._abort)
            self._sending.cancel()
        elif self._transport.get_write_buffer_size():
            # Part of a response is unsent only if the connection is idle or the broker stops. The client may never read the rest.
            self._transport.abort()
        else:
            self._transport.close()

    def _abort(self, _: asyncio.Task[None]) -> None:
        """Abort the connection. asyncio calls this when the task that was sending a response has ended, because `close` cancelled the task."""
        self._sending = None
        self._transport.abort()

    def call_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._proceed)

    def _proceed(self) -> None:
        if not self._closing:
            now_ms = self._loop.now_ms()
            self._loop.enter(now_ms)
            try:
                self._connection.proceed(now_ms)
            finally:
                self._loop.leave(now_ms)


def _goes_out_in_pieces(buffers: Sequence[object]) -> bool:
    """Return whether a response must be sent in parts. buffers: the response, as bytes and ranges of log files, in order.

    A response must be sent in parts if it has a file range of 64 KiB or more, or if copies of all its file ranges would take more than 1 MiB.
    """
    ranges = [len(b) for b in buffers if type(b) is FileRange]
    return bool(ranges) and (max(ranges) >= SENDFILE_FROM_BYTES or sum(ranges) > COPY_BYTES)


def _whole(part: FileRange) -> bytes:
    """Return all bytes of a range of a log file. Raises ConnectionError if the file has fewer bytes: the response would be incomplete."""
    data = part.read()
    if len(data) != len(part):
        raise ConnectionError(
            f"the response is incomplete: only {len(data)} of {len(part)} bytes could be read from byte {part.offset} of a file of the log, "
            "because the log of the fetched partition was truncated; the client must send the fetch again"
        )
    return data
