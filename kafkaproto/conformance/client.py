"""A raw client: one connection whose requests are built with the codec. It retries nothing and hides nothing.

`SocketConnection` has a blocking socket. Other connections need none, for example one into a broker in the same process. Must never know
which clock the broker has: a `subject.Subject` waits for responses.
"""

from __future__ import annotations

import select
import socket
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from kafkaproto.client import Client, correlation_id_of, key_of
from kafkaproto.frame import take_frame

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
    """One connection to one broker. `frame` builds requests; `take` waits for a frame, `decode` reads it."""

    def __init__(self, client_id: str | None) -> None:
        self.client_id = client_id
        self._client = Client(client_id, in_order=False)  # the tests judge the order
        self._sent_ms: dict[int, float] = {}
        self.received = bytearray()
        """What came and is no whole frame yet: `receive` appends to it, `take` cuts frames off."""

    @property
    def sent(self) -> dict[int, tuple[int, int]]:
        """The requests that have no response yet: correlation id to (API key, version)."""
        return self._client.sent

    def frame(self, request: Any, version: int, now_ms: float = 0.0) -> bytes:
        """Return the bytes of the next request, length first. A response is expected, also to a Produce with acks=0."""
        correlation_id = self._client.next_id
        data = self._client.send(request, version)
        self.sent[correlation_id] = key_of(request), version
        self._sent_ms[correlation_id] = now_ms
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
        """Append bytes of the broker to `received`, or note its end. Returns whether anything came within `seconds`."""

    def take(self, seconds: float) -> tuple[int, bytes] | None:
        """Return the next frame as (correlation id, frame without length), None if it does not come within `seconds`.

        Raises Closed, and DecodeError for bytes that are no response.
        """
        while (data := take_frame(self.received)) is None:
            if self.ended:
                raise Closed(f"closed with {len(self.received)} bytes of an answer received")
            if not self.receive(seconds):
                return None
        return correlation_id_of(data), data

    def decode(self, correlation_id: int, data: bytes, now_ms: float) -> Answer:
        """Read a frame (X-1). Raises DecodeError, also for bytes behind the message, and UnexpectedResponse."""
        message = self._client.read(data).message
        return Answer(message, correlation_id, now_ms - self._sent_ms.pop(correlation_id), data)


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
        self.received += part
        self._ended = not part
        return True

    def close(self) -> None:
        self.socket.close()
