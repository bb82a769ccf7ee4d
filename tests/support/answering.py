"""A server that sends fixed bytes, for clients that must recognise an invalid response."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def answering(data: bytes | Callable[[int], bytes]) -> Iterator[int]:
    """Yield the port of a server that responds to the first bytes of each connection with `data` and closes the connection.

    `data` may be a function that builds the bytes from the server's port.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        response = data if isinstance(data, bytes) else data(listener.getsockname()[1])

        def serve() -> None:
            with suppress(OSError):
                while True:
                    accepted, _ = listener.accept()
                    with accepted, suppress(ConnectionError):
                        accepted.recv(65536)
                        accepted.sendall(response)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
