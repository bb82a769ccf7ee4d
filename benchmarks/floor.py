"""Start a minimal asyncio server that responds to the requests of `benchmarks.race`.

It is not a broker: it has one partition per topic, understands one version of each request, and
checks only the CRC. The speed of a broker divided by the speed of this server shows how much of the
speed of bare asyncio the broker keeps. Records are stored in memory files if the system supports
such files.
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import gc
import os
import struct
import sys
import tempfile
from typing import IO, Any

import crc32c

PRODUCE, FETCH, METADATA, API_VERSIONS = 0, 1, 3, 18
OFFERED = ((PRODUCE, 0, 7), (FETCH, 4, 11), (METADATA, 1, 4), (API_VERSIONS, 0, 0))
SENDFILE_FROM_BYTES = 65536
BUFFER_BYTES = 65536
ANY_OFFSET = 1 << 62


def records_file() -> IO[bytes]:
    if hasattr(os, "memfd_create") and "--files" not in sys.argv:
        return os.fdopen(os.memfd_create("floor"), "r+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


class Log:
    """The log of one partition: a file with all batches, and a list with (base offset, byte position in the file) of each batch."""

    def __init__(self) -> None:
        self.file = records_file()
        self.size = 0
        self.next_offset = 0
        self.starts: list[tuple[int, int]] = []

    def append(self, batch: memoryview) -> tuple[int, bool]:
        checksum_holds = crc32c.crc32c(batch[21:]) == struct.unpack_from(">I", batch, 17)[0]
        base = self.next_offset
        struct.pack_into(">q", batch, 0, base)
        os.pwrite(self.file.fileno(), batch, self.size)
        self.starts.append((base, self.size))
        self.size += len(batch)
        self.next_offset += struct.unpack_from(">i", batch, 23)[0] + 1
        return base, checksum_holds

    def position(self, offset: int) -> int:
        if offset >= self.next_offset:
            return self.size
        return self.starts[bisect.bisect_right(self.starts, (offset, ANY_OFFSET)) - 1][1]


class Floor(asyncio.BufferedProtocol):
    """One client connection of the minimal server that this module runs. It decodes requests in the receive buffer, without copying frames."""

    logs: dict[bytes, Log] = {}  # noqa: RUF012 - the whole state of the program
    port = 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.buffer = memoryview(bytearray(BUFFER_BYTES))
        self.start = self.end = 0
        self.sending: asyncio.Task[None] | None = None

    def get_buffer(self, sizehint: int) -> memoryview:
        if self.end == len(self.buffer):
            received_bytes = self.end - self.start
            frame_bytes = (
                4 + int.from_bytes(self.buffer[self.start : self.start + 4], "big") if received_bytes >= 4 else 0
            )
            larger = memoryview(bytearray(max(frame_bytes, received_bytes) + BUFFER_BYTES))
            larger[:received_bytes] = self.buffer[self.start : self.end]
            self.buffer, self.start, self.end = larger, 0, received_bytes
        return self.buffer[self.end :]

    def buffer_updated(self, nbytes: int) -> None:
        self.end += nbytes
        while self.sending is None and self.end - self.start >= 4:
            stop = self.start + 4 + int.from_bytes(self.buffer[self.start : self.start + 4], "big")
            if stop > self.end:
                return
            frame = self.buffer[self.start + 4 : stop]
            self.start = stop
            self.handle(frame)
        if self.start == self.end:
            self.start = self.end = 0

    def handle(self, frame: memoryview) -> None:
        key, _version, correlation_id, client_id_bytes = struct.unpack_from(">hhih", frame)
        at = 10 + client_id_bytes
        if key == API_VERSIONS:
            body = b"".join(struct.pack(">hhh", *entry) for entry in OFFERED)
            self.reply(struct.pack(">ihi", correlation_id, 0, len(OFFERED)) + body)
        elif key == METADATA:
            broker = struct.pack(">ih9sih", 0, 9, b"127.0.0.1", self.port, -1)
            self.reply(struct.pack(">ii", correlation_id, 1) + broker + struct.pack(">ii", 0, 0))
        elif key == PRODUCE:
            self.produce(frame, at, correlation_id)
        else:
            self.fetch(frame, at, correlation_id)

    def produce(self, frame: memoryview, at: int, correlation_id: int) -> None:
        name, at = self.text(frame, at + 2 + 2 + 4 + 4)
        size = struct.unpack_from(">i", frame, at + 8)[0]
        log = self.logs.get(name) or self.logs.setdefault(name, Log())
        base, holds = log.append(frame[at + 12 : at + 12 + size])
        head = struct.pack(">iih", correlation_id, 1, len(name)) + name
        self.reply(head + struct.pack(">iihqqqi", 1, 0, 0 if holds else 2, base, -1, 0, 0))

    def fetch(self, frame: memoryview, at: int, correlation_id: int) -> None:
        name, at = self.text(frame, at + 4 + 4 + 4 + 4 + 1 + 4 + 4 + 4)
        offset, _log_start, limit = struct.unpack_from(">qqi", frame, at + 12)
        log = self.logs[name]
        position = log.position(offset)
        size = min(limit, log.size - position)
        head = struct.pack(">iihii", correlation_id, 0, 0, 0, 1) + struct.pack(">h", len(name)) + name
        head += struct.pack(">iihqqqiii", 1, 0, 0, log.next_offset, log.next_offset, 0, -1, -1, size)
        head = struct.pack(">i", len(head) + size) + head
        if size < SENDFILE_FROM_BYTES:
            self.transport.write(head + os.pread(log.file.fileno(), size, position))
        else:
            self.sending = asyncio.ensure_future(self.send(head, log, position, size))

    async def send(self, head: bytes, log: Log, position: int, size: int) -> None:
        self.transport.write(head)
        await asyncio.get_running_loop().sendfile(self.transport, log.file, position, size)
        self.sending = None
        self.buffer_updated(0)

    def reply(self, payload: bytes) -> None:
        self.transport.write(struct.pack(">i", len(payload)) + payload)

    @staticmethod
    def text(frame: memoryview, at: int) -> tuple[bytes, int]:
        length = struct.unpack_from(">h", frame, at)[0]
        return bytes(frame[at + 2 : at + 2 + length]), at + 2 + length


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Floor, "127.0.0.1", port)
    Floor.port = server.sockets[0].getsockname()[1]
    print(f"127.0.0.1:{Floor.port}", flush=True)
    gc.freeze()
    gc.disable()
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.floor", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("port", type=int, metavar="PORT", help="port to listen on; 0 picks a free one")
    parser.add_argument("--files", action="store_true", help="keep records in temporary files on disk, not in memory")
    asyncio.run(serve(parser.parse_args().port))
