"""A raw client on a blocking socket: one connection, requests built with the codec, nothing retried, nothing hidden.

Must never know what stands at the other end, nor which clock it has: how one waits is the subject's business (`subjects`).
"""

from __future__ import annotations

import select
import socket
from dataclasses import dataclass
from typing import Any

from kafkaproto.client import key_of, read_response, request_frame
from kafkaproto.frame import LENGTH_BYTES

CONNECT_SECONDS = 10.0


class Closed(Exception):
    """The broker closed the connection where an answer was expected."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. elapsed_ms: since its request was sent, in the subject's time. data: the frame without its length."""

    message: Any
    correlation_id: int
    elapsed_ms: float
    data: bytes


class Connection:
    """One connection to one broker. `frame` counts correlation ids; `read` takes what is there without waiting longer than told."""

    def __init__(self, host: str, port: int, client_id: str | None, address: str | None = None) -> None:
        self.client_id = client_id
        source = None if address is None else (address, 0)
        self.socket = socket.create_connection((host, port), CONNECT_SECONDS, source)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent: dict[int, tuple[int, int, float]] = {}
        """Correlation id to (api key, version, when it was sent)."""
        self._next_id = 1
        self._received = bytearray()
        self._ended = False

    def frame(self, request: Any, version: int, now_ms: float = 0.0) -> bytes:
        """The bytes of the next request, length first; its answer is expected."""
        data = request_frame(request, version, self._next_id, self.client_id)
        self.sent[self._next_id] = key_of(request), version, now_ms
        self._next_id += 1
        return data

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def take(self, seconds: float) -> tuple[int, bytes] | None:
        """The next frame as (correlation id, frame without length), None if it is not there within `seconds`. Raises Closed."""
        while True:
            if len(self._received) >= LENGTH_BYTES:
                length = int.from_bytes(self._received[:LENGTH_BYTES], "big")
                if len(self._received) >= LENGTH_BYTES + length:
                    data = bytes(self._received[LENGTH_BYTES : LENGTH_BYTES + length])
                    del self._received[: LENGTH_BYTES + length]
                    return int.from_bytes(data[:4], "big", signed=True), data
            if self._ended:
                raise Closed(f"closed with {len(self._received)} bytes of an answer received")
            if not self._readable(seconds):
                return None

    def _readable(self, seconds: float) -> bool:
        waiting = select.poll()  # not select(), which knows no descriptor above 1023
        waiting.register(self.socket, select.POLLIN)
        if not waiting.poll(seconds * 1000):
            return False
        try:
            part = self.socket.recv(1 << 20)
        except ConnectionError:
            part = b""
        self._received += part
        self._ended = not part
        return True

    def decode(self, correlation_id: int, data: bytes, now_ms: float) -> Answer:
        """A frame as an answer; trailing bytes behind it fail the test (X-1)."""
        key, version, sent_ms = self.sent.pop(correlation_id)
        return Answer(read_response(key, version, data).message, correlation_id, now_ms - sent_ms, data)

    def close(self) -> None:
        self.socket.close()
