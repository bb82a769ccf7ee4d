"""A broker that sends what is no response is a broken connection to kafka_py, which a read then tries again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafkaproto.pipeline.kafka_py.connection import Connection
from kafkaproto.pipeline.kafka_py.options import ClientSettings


@contextmanager
def answering(data: bytes) -> Iterator[int]:
    """Yield the port of a server that answers the first bytes of each connection with `data` and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    accepted, _ = listener.accept()
                except OSError:
                    return
                with accepted:
                    accepted.recv(65536)
                    accepted.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xff\xff\xff\xff", "sent frame at byte 0: a length of -1"),
        (b"\x00\x00\x00\x00", "holds no response header"),
        (b"\x00\x00\x00\x04\x00\x00\x00\x01", "ApiVersionsResponse"),
        (b"\x00\x00\x00\x04\x00\x00\x00\x09", "a response to request 9 instead of 1"),
        (b"\x00\x00\x00\x09\x00", "closed the connection"),
    ],
)
def test_a_damaged_response_is_a_connection_error(data: bytes, text: str) -> None:
    with answering(data) as port, pytest.raises(ConnectionError, match=text):
        Connection("127.0.0.1", port, ClientSettings((f"127.0.0.1:{port}",)))
