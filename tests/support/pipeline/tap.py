"""A listener in front of a broker that forwards all bytes, notes them with times, and can write them as a capture."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.pipeline.wire import CLIENT, SERVER, Line, Wire


class Traffic:
    """The bytes seen on connections. chunks: (ns, connection, sender, bytes); empty bytes mark the end of that direction."""

    def __init__(self) -> None:
        self.chunks: list[tuple[int, int, int, bytes]] = []

    def capture(self, wire: Wire, server: Callable[[int], int], path: Path) -> Path:
        """Write all bytes as packets of `wire`. server: maps a connection to the server port in the capture."""
        lines: dict[int, Line] = {}
        end_counts: dict[int, int] = {}
        for at_ns, number, by, data in self.chunks:
            wire.now_ns = max(wire.now_ns, at_ns)
            if number not in lines:
                lines[number] = wire.connect(40_000 + number, server(number))
            lines[number].says(by, data)
            if not data:
                end_counts[number] = end_counts.get(number, 0) + 1
                if end_counts[number] == 2:
                    lines[number].close()
        return wire.write(path)


LARGEST_SEGMENT_BYTES = 1400
"""As on Ethernet. Loopback segments hold up to 64 KB, so that nothing would be split or offloaded to a network card."""


class Tap(Traffic):
    """A forwarding listener: clients connect to `port`. Set `to_port`, the target, before the first connection."""

    def __init__(self) -> None:
        super().__init__()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, LARGEST_SEGMENT_BYTES)
        self.port: int = self._listener.getsockname()[1]
        self.to_port = 0
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._count = 0
        self._ends, self._end = socket.socketpair()
        self._selector.register(self._ends, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._ends:
                    return
                else:
                    self._pass_on(key)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection(("127.0.0.1", self.to_port))
        for sock in (client, server):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(client, selectors.EVENT_READ, (self._count, CLIENT, server))
        self._selector.register(server, selectors.EVENT_READ, (self._count, SERVER, client))
        self._count += 1

    def _pass_on(self, key: selectors.SelectorKey) -> None:
        number, by, other = key.data
        sock = key.fileobj
        assert isinstance(sock, socket.socket)
        try:
            data = sock.recv(1 << 16)
        except OSError:
            data = b""
        self.chunks.append((time.time_ns(), number, by, data))
        with suppress(OSError):  # a closed side receives nothing more, but is read to its end
            if data:
                other.sendall(data)
            else:
                other.shutdown(socket.SHUT_WR)
        if not data:
            self._selector.unregister(sock)

    def close(self) -> None:
        self._end.send(b"x")
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            if key.data is not None:
                key.data[2].close()
        self._end.close()
        self._selector.close()


@contextmanager
def tapped() -> Iterator[Tap]:
    tap = Tap()
    try:
        yield tap
    finally:
        tap.close()
