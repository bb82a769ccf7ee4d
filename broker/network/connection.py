"""One connection without its socket: frames in, answers out, one request in flight, mute while throttled (`KafkaChannel`, `Processor`).

What it does to the socket it says through `Skin`. Time is an argument; the only timers are the mute and the idle close.
Must never know asyncio, nor what an API means.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kafkaproto.broker.network.frames import BufferPool, FrameError, FrameReader
from kafkaproto.broker.network.mute import MuteEvent, MuteState, after
from kafkaproto.broker.requests import pipeline
from kafkaproto.broker.runtime.timers import Timer

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node
    from kafkaproto.broker.requests.exchange import Exchange, Waiting

logger = logging.getLogger("kafkaproto.connection")

FRAMES_PER_TURN = 64
TURN_MS = 2.0
"""After so many frames, or so long, the other connections of the loop have their turn."""
THIS_SIDE, CLIENT_ENDED, SOCKET_GONE = "closed from this side", "the client sends no more", "its socket is gone"
"""Why a connection is over."""


class Skin(Protocol):
    """What a connection asks of whoever holds the socket."""

    def write(self, buffers: Sequence[object]) -> bool:
        """Send in order; True if all is out already, else `Connection.written` is called when it is. Buffers are not touched again."""
        ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        """End the connection; what was written before still goes out."""
        ...

    def call_soon(self) -> None:
        """Call `Connection.proceed` after other connections had their turn."""
        ...


class Connection:
    """A client at one listener of a broker.

    The skin calls `get_buffer`, `received`, `written`, `ended`, `lost`; nothing else drives it but its timers.
    """

    def __init__(
        self, node: Node, listener_name: str, client_address: str, skin: Skin, pool: BufferPool, now_ms: int
    ) -> None:
        self.connection_id = next(node.cluster.connection_ids)
        self.node = node
        self.listener_name = listener_name
        self.client_address = client_address
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
        node.joined(self)
        self._watch_idle(now_ms)

    @property
    def active_ms(self) -> int:
        """When a byte last came or an answer went out."""
        return self._active_ms

    # ---- bytes in ------------------------------------------------------------------------------------------------------------

    def get_buffer(self) -> memoryview:
        return self._frames.get_buffer()

    def received(self, count: int, now_ms: int) -> None:
        """`count` bytes came into the buffer that `get_buffer` gave."""
        self._active_ms = now_ms
        if self.node.events.bytes_received is not None:
            self.node.events.bytes_received(self)
        self._frames.received(count)
        self._work(now_ms)

    def ended(self, now_ms: int) -> None:
        """The peer sends no more. What it has sent whole is still answered, in order (W-10)."""
        self._peer_ended = True
        self._work(now_ms)

    def proceed(self, now_ms: int) -> None:
        """Go on with the frames that were left for later."""
        self._work(now_ms)

    def _work(self, now_ms: int) -> None:
        """Handle whole frames while no request is in progress, and then decide whether to read on."""
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
            self.refuse(str(error))
        except Exception:
            # A bug of ours, and nobody else's affair (W-8).
            why = "a request failed"
            logger.exception("%s: connection %d closed: %s", self.client_address, self.connection_id, why)
            self.close(why)
        finally:
            self._working = False
        self._after_work()

    def _after_work(self) -> None:
        frames = self._frames
        if self.closed:
            self._abandon()  # its handler may have parked it since
            self._lose_response()
            frames.release()
            return
        frames.keep_rest()
        self._choose_reading()
        if self._peer_ended and self.state is MuteState.NOT_MUTED and not frames.has_frame():
            self.close(CLIENT_ENDED)

    def _choose_reading(self) -> None:
        """Not while throttled (T-7), and not while one whole frame waits behind the one in progress."""
        throttled = self.state in (MuteState.MUTED_AND_THROTTLED, MuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING)
        wanted = not throttled and not self._frames.has_frame()
        if wanted != self._reading:
            self._reading = wanted
            if wanted:
                self._skin.resume_reading()
            else:
                self._skin.pause_reading()

    # ---- answers out ---------------------------------------------------------------------------------------------------------

    def answer(self, buffers: Sequence[object] | None, throttle_ms: int, close: bool, now_ms: int) -> None:
        """The request in progress is done. None: no bytes go back (acks=0). The throttle starts before the response is written (T-6)."""
        self.parked = None
        if self.closed:
            self._lose_response()
            return
        self._close_after_write = close
        if throttle_ms > 0:
            self.state = after(self.state, MuteEvent.THROTTLE_STARTED)
            self._throttle_timer = self.node.timers.at(now_ms + throttle_ms, self._throttle_over)
        if buffers is None or self._skin.write(buffers):
            self.written(now_ms)
        elif not self._working:
            self._choose_reading()

    def written(self, now_ms: int) -> None:
        """The whole response is with the kernel, or there is none."""
        if self.closed:
            return
        self._active_ms = now_ms
        if self.node.events.response_sent is not None and self.exchange is not None:
            self.node.events.response_sent(self.exchange)
        self.exchange = None
        self.state = after(self.state, MuteEvent.RESPONSE_SENT)
        if self._close_after_write:
            self.close("a produce with acks=0 failed")
        elif not self._working:
            self._work(now_ms)

    def _throttle_over(self, now_ms: int) -> None:
        self._throttle_timer = None
        if not self.closed:
            if self.node.events.throttle_ended is not None:
                self.node.events.throttle_ended(self.connection_id, now_ms)
            self.state = after(self.state, MuteEvent.THROTTLE_ENDED)
            self._work(now_ms)

    # ---- the end -------------------------------------------------------------------------------------------------------------

    def refuse(self, why: str) -> None:
        """Bytes that are no Kafka: closed without an answer (W-1, W-3, W-5)."""
        logger.info("%s: connection %d closed: %s", self.client_address, self.connection_id, why)
        self.close(why)

    def close(self, why: str = THIS_SIDE) -> None:
        """Close from this side; what is still in progress is forgotten."""
        if not self.closed:
            self._forget(why)
            self._skin.close()

    def lost(self, why: str = SOCKET_GONE) -> None:
        """The socket is gone."""
        if not self.closed:
            self._forget(why)

    def _forget(self, why: str) -> None:
        self.closed = True
        if not self._working:  # else its handler may still answer, to nobody
            self._lose_response()
        self.node.left(self, why)
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
        """Report that the response of the request in progress was not sent, or that there will be none."""
        exchange, self.exchange = self.exchange, None
        if exchange is not None and self.node.events.response_lost is not None:
            self.node.events.response_lost(exchange, self.node.actions.now_ms)

    def _watch_idle(self, now_ms: int) -> None:
        """T-11: neither a mute nor a request in progress keeps an idle connection open."""
        limit_ms = self.node.connections_max_idle_ms
        if limit_ms <= 0:
            return
        if now_ms - self._active_ms >= limit_ms:
            self.refuse(f"idle for {now_ms - self._active_ms} ms (connections.max.idle.ms={limit_ms})")
        else:
            self._idle_timer = self.node.timers.at(self._active_ms + limit_ms, self._watch_idle)
