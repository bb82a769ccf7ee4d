"""A raw client: one connection, requests built with the codec, nothing retried, nothing hidden.

`SocketConnection` has a blocking socket; `virtual.VirtualConnection` has none. Must never know which clock the other end has: how one
waits is the subject's business (`subjects`).
"""

from __future__ import annotations

import select
import socket
from abc import ABC, abstractmethod
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


class Connection(ABC):
    """One connection to one broker. `frame` counts correlation ids; `take` gives what is there without waiting longer than told."""

    def __init__(self, client_id: str | None) -> None:
        self.client_id = client_id
        self.sent: dict[int, tuple[int, int, float]] = {}
        """Correlation id to (api key, version, when it was sent)."""
        self._next_id = 1
        self._received = bytearray()

    def frame(self, request: Any, version: int, now_ms: float = 0.0) -> bytes:
        """The bytes of the next request, length first; its answer is expected."""
        data = request_frame(request, version, self._next_id, self.client_id)
        self.sent[self._next_id] = key_of(request), version, now_ms
        self._next_id += 1
        return data

    @abstractmethod
    def send_bytes(self, data: bytes) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether the broker has closed the connection."""

    @abstractmethod
    def receive(self, seconds: float) -> bool:
        """Take bytes of the broker, or its end. Returns whether anything came within `seconds`."""

    def take(self, seconds: float) -> tuple[int, bytes] | None:
        """The next frame as (correlation id, frame without length), None if it is not there within `seconds`. Raises Closed."""
        while True:
            if len(self._received) >= LENGTH_BYTES:
                length = int.from_bytes(self._received[:LENGTH_BYTES], "big")
                if len(self._received) >= LENGTH_BYTES + length:
                    data = bytes(self._received[LENGTH_BYTES : LENGTH_BYTES + length])
                    del self._received[: LENGTH_BYTES + length]
                    return int.from_bytes(data[:4], "big", signed=True), data
            if self.ended:
                raise Closed(f"closed with {len(self._received)} bytes of an answer received")
            if not self.receive(seconds):
                return None

    def decode(self, correlation_id: int, data: bytes, now_ms: float) -> Answer:
        """A frame as an answer; trailing bytes behind it fail the test (X-1)."""
        key, version, sent_ms = self.sent.pop(correlation_id)
        return Answer(read_response(key, version, data).message, correlation_id, now_ms - sent_ms, data)


class SocketConnection(Connection):
    """A blocking socket. address: this machine's address that it comes from."""

    def __init__(self, host: str, port: int, client_id: str | None, address: str | None = None) -> None:
        super().__init__(client_id)
        source = None if address is None else (address, 0)
        self.socket = socket.create_connection((host, port), CONNECT_SECONDS, source)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ended = False

    @property
    def ended(self) -> bool:
        return self._ended

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self, seconds: float) -> bool:
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

    def close(self) -> None:
        self.socket.close()
