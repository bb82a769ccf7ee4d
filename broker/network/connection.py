"""A connection without its socket: splits bytes into frames, handles one request at a time, and is muted while throttled (`KafkaChannel`).

A connection acts on its socket through the interface `Skin`. Time is an argument; the only timers are those of the throttle and of the idle timeout.
This module does not depend on asyncio, or on the meaning of an API.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kafkaproto.broker.network.frames import BufferPool, FrameError, FrameReader
from kafkaproto.broker.network.mute import MuteEvent, MuteState, next_state
from kafkaproto.broker.requests import pipeline
from kafkaproto.broker.runtime.events import CLIENT_ENDED, SOCKET_GONE
from kafkaproto.broker.runtime.timers import Timer

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node
    from kafkaproto.broker.requests.exchange import Exchange, Waiting

logger = logging.getLogger("kafkaproto.connection")

FRAMES_PER_TURN = 64
TURN_MS = 2.0
"""The time in ms for which a connection handles frames before it lets the other connections of the event loop continue."""
UNKNOWN = "unknown"
"""The default for the name and for the version of a client's software, until the client sends them with ApiVersions."""
THIS_SIDE = "closed from this side"
"""The default reason for closing a connection: the broker closed it."""


class Skin(Protocol):
    """Interface of the object that owns the socket of a client connection: it writes bytes and closes the socket."""

    def write(self, buffers: Sequence[object]) -> bool:
        """Send the buffers in order. Returns True if all bytes have been sent when the method returns.

        If it returns False, the owner of the socket calls `Connection.written` once all bytes are sent. Until then the connection does not
        change the buffers.
        """
        ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        """Close the socket of the connection, after sending the bytes that were passed to `write` before."""
        ...

    def call_soon(self) -> None:
        """Let the connection continue in a later iteration of the event loop, by a call of `Connection.proceed`.

        Until then, other connections can handle frames.
        """
        ...


class Connection:
    """The connection of a client to one listener of a broker.

    The owner of the socket (`Skin`) calls `get_buffer`, `received`, `proceed`, `written`, `ended` and `lost`. The broker calls `respond` when the
    outcome of the request in progress is known, and `refuse` or `close` to close the connection. Timers end a throttle and detect an idle client.
    """

    def __init__(
        self, node: Node, listener_name: str, client_address: str, skin: Skin, pool: BufferPool, now_ms: int
    ) -> None:
        self.connection_id = next(node.cluster.connection_ids)
        self.node = node
        self.listener_name = listener_name
        self.client_address = client_address
        self.client_port = 0
        """The port of the client's socket; 0 if there is no socket."""
        self.client_software = UNKNOWN, UNKNOWN
        """The name and version of the client's software, from its last ApiVersions request."""
        self.refused_head = b""
        """The first bytes, at most eight, of a frame that was rejected because of its length; empty if no frame was rejected."""
        self.principal = "ANONYMOUS"
        self.received_ns = 0
        self.exchange: Exchange | None = None
        self.state = MuteState.NOT_MUTED
        self.parked: Waiting | None = None
        self.closed = False
        self._skin = skin
        self._frames = FrameReader(pool, node.socket_request_max_bytes)
        self._throttle_timer: Timer | None = None
        self._close_after_write = False
        self._peer_ended = False
        self._reading = True
        self._working = False
        self._active_ms = now_ms
        self._idle_timer: Timer | None = None
        node.connection_opened(self)
        self._watch_idle(now_ms)

    @property
    def active_ms(self) -> int:
        """Return the time, in ms of the cluster's clock, when a byte was last received or a response was last sent."""
        return self._active_ms

    # ---- bytes in ------------------------------------------------------------------------------------------------------------

    def get_buffer(self) -> memoryview:
        return self._frames.get_buffer()

    def received(self, count: int, now_ms: int) -> None:
        """Add `count` bytes, which the socket's owner wrote into the buffer from `get_buffer`, and handle each request that is now complete."""
        self._active_ms = now_ms
        if self.node.events.bytes_received is not None:
            self.node.events.bytes_received(self)
        self._frames.received(count)
        self._handle_frames(now_ms)

    def ended(self, now_ms: int) -> None:
        """Handle the end of the client's stream (half-close). Whole requests received before are still handled, in order (W-10)."""
        self._peer_ended = True
        self._handle_frames(now_ms)

    def proceed(self, now_ms: int) -> None:
        """Continue to handle the frames that were received. The owner of the connection's socket (`Skin`) calls this after `Skin.call_soon`."""
        self._handle_frames(now_ms)

    def _handle_frames(self, now_ms: int) -> None:
        """Handle received frames, one at a time, until one must wait, or FRAMES_PER_TURN or TURN_MS is reached. Then pause or resume reading."""
        if self._working or self.closed:
            return
        self._working = True
        frames = self._frames
        handled = 0
        clock = self.node.clock
        begun_ms = clock.precise_ms()
        try:
            while self.state is MuteState.NOT_MUTED and not self.closed:
                frame = frames.next_frame()
                if frame is None:
                    break
                handled += 1
                self.state = MuteState.MUTED_AND_RESPONSE_PENDING
                pipeline.begin(self.node, self, frame, now_ms)
                if frames.has_frame() and (handled == FRAMES_PER_TURN or clock.precise_ms() - begun_ms > TURN_MS):
                    self._skin.call_soon()
                    break
        except FrameError as error:
            self.refused_head = frames.head()
            self.refuse(str(error))
        except Exception:
            # A bug of the broker must not affect other connections (W-8).
            reason = "a request failed because of a bug in the broker; please report this traceback"
            logger.exception("%s: connection %d closed: %s", self.client_address, self.connection_id, reason)
            self.close("a request failed")
        finally:
            self._working = False
        self._after_frames()

    def _after_frames(self) -> None:
        frames = self._frames
        if self.closed:
            self._abandon()  # its handler may have parked the request meanwhile
            self._lose_response()
            frames.release()
            return
        frames.keep_rest()
        self._choose_reading()
        if self._peer_ended and self.state is MuteState.NOT_MUTED and not frames.has_frame():
            self.close(CLIENT_ENDED)

    def _choose_reading(self) -> None:
        """Pause reading while the connection is throttled (T-7) or a whole frame waits behind the request in progress; otherwise resume it."""
        is_throttled = self.state in (MuteState.MUTED_AND_THROTTLED, MuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING)
        should_read = not is_throttled and not self._frames.has_frame()
        if should_read != self._reading:
            self._reading = should_read
            if should_read:
                self._skin.resume_reading()
            else:
                self._skin.pause_reading()

    # ---- responses out -------------------------------------------------------------------------------------------------------

    def respond(self, buffers: Sequence[object] | None, throttle_ms: int, close: bool, now_ms: int) -> None:
        """Complete the request in progress: write its response, and mute the connection for its throttle time.

        buffers: the response, or None if there is none (acks=0). throttle_ms: the throttle time in ms, 0 for none; it starts before the response is
        written (T-6). close: whether to close the connection afterwards.
        """
        self.parked = None
        if self.closed:
            self._lose_response()
            return
        self._close_after_write = close
        if throttle_ms > 0:
            self.state = next_state(self.state, MuteEvent.THROTTLE_STARTED)
            self._throttle_timer = self.node.timers.at(now_ms + throttle_ms, self._throttle_over)
        if buffers is None or self._skin.write(buffers):
            self.written(now_ms)
        elif not self._working:
            self._choose_reading()

    def written(self, now_ms: int) -> None:
        """Complete the request in progress, because its whole response was passed to the kernel, or because it gets no response."""
        if self.closed:
            return
        self._active_ms = now_ms
        if self.node.events.response_sent is not None and self.exchange is not None:
            self.node.events.response_sent(self.exchange)
        self.exchange = None
        self.state = next_state(self.state, MuteEvent.RESPONSE_SENT)
        if self._close_after_write:
            self.close("a produce with acks=0 failed")
        elif not self._working:
            self._handle_frames(now_ms)

    def _throttle_over(self, now_ms: int) -> None:
        self._throttle_timer = None
        if not self.closed:
            if self.node.events.throttle_ended is not None:
                self.node.events.throttle_ended(self.connection_id, now_ms)
            self.state = next_state(self.state, MuteEvent.THROTTLE_ENDED)
            self._handle_frames(now_ms)

    # ---- closing -------------------------------------------------------------------------------------------------------------

    def refuse(self, reason: str) -> None:
        """Close the connection without a response, after an invalid frame or request (W-1, W-3, W-5). reason: text for the log and observers."""
        logger.debug("%s: connection %d closed: %s", self.client_address, self.connection_id, reason)
        self.close(reason)

    def close(self, why: str = THIS_SIDE) -> None:
        """Close the connection, and abandon its request in progress. why: the reason as text, for observers."""
        if not self.closed:
            self._forget(why)
            self._skin.close()

    def socket_closed(self, why: str = SOCKET_GONE) -> None:
        """Handle the closing of the socket: abandon the request in progress and release memory and timers. why: the reason, for observers."""
        if not self.closed:
            self._forget(why)

    def _forget(self, why: str) -> None:
        self.closed = True
        if not self._working:  # otherwise the handler that runs may still respond, which then does nothing
            self._lose_response()
        self.node.connection_closed(self, why)
        if self._throttle_timer is not None:
            self._throttle_timer.cancel()
            if self.node.events.throttle_ended is not None:
                self.node.events.throttle_ended(self.connection_id, self.node.actions.now_ms)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._abandon()
        if not self._working:
            self._frames.release()

    def _abandon(self) -> None:
        if self.parked is not None:
            self.parked.abandon()
            self.parked = None

    def _lose_response(self) -> None:
        """Report to observers that the response of the request in progress will never be sent completely."""
        exchange, self.exchange = self.exchange, None
        if exchange is not None and self.node.events.response_lost is not None:
            self.node.events.response_lost(exchange, self.node.actions.now_ms)

    def _watch_idle(self, now_ms: int) -> None:
        """Close the connection if it was idle for too long, even while it is muted or handles a request (T-11). Otherwise check again later."""
        limit_ms = self.node.connections_max_idle_ms
        if limit_ms <= 0:
            return
        if now_ms - self._active_ms >= limit_ms:
            reason = f"idle for {now_ms - self._active_ms} ms (connections.max.idle.ms={limit_ms})"
            logger.info("%s: connection %d closed: %s", self.client_address, self.connection_id, reason)
            self.close(reason)
        else:
            self._idle_timer = self.node.timers.at(self._active_ms + limit_ms, self._watch_idle)
