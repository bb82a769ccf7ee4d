"""A raw client: one connection whose requests are built with the codec. It never retries and never hides an error.

`SocketConnection` uses a blocking socket. A test suite may add connections without a socket, for example to a broker in the same process. A
connection reads no clock: times are arguments of its methods, and `subject.Subject` waits for responses on the clock of the cluster under test.
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
    """Raised if the broker closed the connection instead of sending a response."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response and its arrival time.

    elapsed_ms: the time from sending the request to the arrival of the response, in ms on the clock of the cluster under test. data: the response
    frame without its length prefix.
    """

    message: Any
    correlation_id: int
    elapsed_ms: float
    data: bytes


class Connection(ABC):
    """One connection to one broker. `frame` encodes requests, `take` waits for a response frame, `decode` decodes the frame."""

    def __init__(self, client_id: str | None) -> None:
        self.client_id = client_id
        self._client = Client(client_id, in_order=False)  # the tests check the order themselves
        self._sent_ms: dict[int, float] = {}
        self.received = bytearray()
        """The received bytes that `take` has not returned yet. `receive` appends bytes at the end; `take` removes a whole frame at the start."""

    def sent_ms(self, correlation_id: int) -> float:
        """Return the send time of a pending request, in ms on the clock of the cluster under test."""
        return self._sent_ms[correlation_id]

    @property
    def sent(self) -> dict[int, tuple[int, int]]:
        """Return the requests that were sent and have no response yet, as a dict of correlation ids to (API key, version)."""
        return self._client.sent

    def frame(self, request: Any, version: int, now_ms: float = 0.0) -> bytes:
        """Encode the next request of the connection and return its bytes, with the length prefix, for the caller to send.

        now_ms: the time at which the caller sends the request; `Answer.elapsed_ms` is counted from this time. The request is then pending until its
        response arrives. A Produce request with acks=0 is pending, too, although a broker sends no response to it.
        """
        self.check(key_of(request), version)
        correlation_id = self._client.next_id
        data = self._client.send(request, version)
        self.sent[correlation_id] = key_of(request), version
        self._sent_ms[correlation_id] = now_ms
        return data

    def check(self, key: int, version: int) -> None:  # noqa: B027 - most connections send every version
        """Do nothing: this class sends requests in every version. `frame` calls this for each request.

        A subclass may raise an exception if the broker does not support this version of the API `key`.
        """

    @abstractmethod
    def send_bytes(self, data: bytes) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Return whether the broker has closed the connection."""

    @abstractmethod
    def receive(self, seconds: float) -> bool:
        """Wait at most `seconds` until bytes arrive or the broker closes the connection. Returns whether one of these happened.

        Appends the bytes to `received`. `ended` is True once the broker closed the connection.
        """

    def take(self, seconds: float) -> tuple[int, bytes] | None:
        """Return the next frame as (correlation id, frame without length prefix), or None if it does not arrive within `seconds`.

        Raises Closed if the broker has closed the connection, and DecodeError if the bytes are not a response.
        """
        while (data := take_frame(self.received)) is None:
            if self.ended:
                raise Closed(f"the broker closed the connection after {len(self.received)} bytes of a response")
            if not self.receive(seconds):
                return None
        return correlation_id_of(data), data

    def decode(self, correlation_id: int, data: bytes, now_ms: float) -> Answer:
        """Decode a response frame (X-1). data: the frame without its length prefix. now_ms: its arrival time.

        Raises UnexpectedResponse if no pending request has this correlation id. Raises DecodeError if the frame is damaged or longer than its
        message.
        """
        message = self._client.read(data).message
        return Answer(message, correlation_id, now_ms - self._sent_ms.pop(correlation_id), data)


class SocketConnection(Connection):
    """A connection over a blocking socket to the broker at `host` and `port`.

    client_id: the client id in the headers of the requests. address: the local IP address to connect from; None for any.
    """

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
        poller = select.poll()  # select() supports no descriptor above 1023
        poller.register(self.socket, select.POLLIN)
        if not poller.poll(seconds * 1000):
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
