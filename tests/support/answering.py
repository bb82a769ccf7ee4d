"""A server that sends fixed bytes, for clients that must recognise what is no response."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def answering(data: bytes) -> Iterator[int]:
    """Yield the port of a server that answers the first bytes of each connection with `data` and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    accepted, _ = listener.accept()
                    with accepted, suppress(ConnectionError):
                        accepted.recv(65536)
                        accepted.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
