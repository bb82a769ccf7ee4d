"""The writer of a trace: a thread takes encoded entries from a queue and writes them to files of limited size.

The writer never blocks the broker. The queue is bounded in byte strings (each of one or more entries) and in bytes. Entries that do not fit are
dropped, and the trace says how many. Files are flushed ten times a second, and flushed entries survive `kill -9`. This module never looks into an
entry.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.trace import format as trace_format

logger = logging.getLogger("kafkaproto.trace")

QUEUE_PIECES = 20_000
QUEUE_BYTES = 32 * 1024 * 1024
ROUND_BYTES = 1024 * 1024
"""The maximum number of bytes of queued entries that the thread of a trace writer joins into one write.

Fewer writes are faster: each one releases the GIL (Python's interpreter lock), and the thread must then wait until the event loop releases it.
"""
FILE_BYTES = 64 * 1024 * 1024
REST_S = 0.1
"""How long, in seconds, the thread of a trace writer pauses before it writes the entries that were queued during the pause.

If the thread wrote each entry separately, it would compete with the event loop for the GIL (Python's interpreter lock) at every write.
"""


def run_name(wall_ms: int) -> str:
    """Return the name of a recording: its start time `wall_ms` (ms since the epoch) as text in UTC, and the id of this process."""
    return f"{datetime.fromtimestamp(wall_ms / 1000, UTC):%Y%m%dT%H%M%S}-{os.getpid()}"


class TraceWriter:
    """Writes the files of one trace: until `close`, a thread writes the entries passed to `put`.

    - folder: where the files are created.
    - run: the name of the recording, the beginning of each file name.
    - meta: facts about the recorded cluster, which the header of each file contains as JSON.
    - queue_pieces, queue_bytes: the maximum number of byte strings and of bytes in the queue; each call of `put` adds one byte string.
    - file_bytes: a new file is started before a file exceeds this size.

    Raises ConfigError if the folder cannot be written, or already has a recording named `run`.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        run: str,
        meta: dict[str, Any],
        *,
        queue_pieces: int = QUEUE_PIECES,
        queue_bytes: int = QUEUE_BYTES,
        file_bytes: int = FILE_BYTES,
    ) -> None:
        self._folder = Path(folder)
        self._run = run
        self._meta = meta
        self._queue: deque[bytes] = deque()
        self._queue_pieces = queue_pieces
        self._queue_bytes = queue_bytes
        self._put_bytes = self._taken_bytes = 0
        """Two totals: the number of bytes put into the queue so far, and the number of these bytes that the thread has written.

        Their difference counts towards `queue_bytes`. Only the event loop changes the first number, and only the thread the second, so no lock is
        needed.
        """
        self._file_bytes = file_bytes
        self._number = 0
        self._written = self._flushed = 0
        self.dropped = 0
        self._reported_dropped = 0
        self._ends = threading.Event()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = self._open()
        except OSError as error:
            raise ConfigError(
                f"trace folder {self._folder} cannot be written: {error.strerror or error}; give another folder, for example --trace ./trace"
            ) from None
        self._thread = threading.Thread(target=self._work, name="kafkaproto-trace", daemon=True)
        self._thread.start()

    def put(self, data: bytes, entries: int = 1) -> None:
        """Queue encoded entries for the thread that writes them, or drop them if the queue is full. Never waits.

        data: the entries, joined into one byte string. entries: the number of entries in `data`, which is added to the number of dropped entries if
        the queue is full. No lock is needed, because a deque's append and pop are atomic.
        """
        put_bytes = self._put_bytes + len(data)
        if len(self._queue) >= self._queue_pieces or put_bytes - self._taken_bytes > self._queue_bytes:
            self.dropped += entries
            return
        self._put_bytes = put_bytes
        self._queue.append(data)

    def close(self) -> None:
        """Write the queued entries, end the thread of this writer, and close the trace file."""
        self._ends.set()
        self._thread.join()

    def _open(self) -> Any:
        path = self._folder / f"{self._run}-{self._number:05d}{trace_format.SUFFIX}"
        file = path.open("xb")
        file.write(trace_format.header({**self._meta, "run": self._run, "file": self._number}))
        file.flush()
        self._written = self._flushed = file.tell()
        return file

    def _work(self) -> None:
        try:
            while not self._ends.wait(REST_S):
                self._drain()
            self._drain()
        except OSError as error:
            self._queue_pieces = 0  # from now on all entries are dropped
            logger.error("trace folder %s cannot be written: %s; nothing more is recorded", self._folder, error)
        finally:
            self._file.close()

    def _drain(self) -> None:
        queue = self._queue
        while queue:
            entries: list[bytes] = []
            room = min(ROUND_BYTES, self._file_bytes - self._written)
            while queue and len(queue[0]) <= room:
                entries.append(queue.popleft())
                room -= len(entries[-1])
            self._write(b"".join(entries or [queue.popleft()]))
        if self.dropped == self._reported_dropped and self._written == self._flushed:
            return
        if self.dropped != self._reported_dropped:
            self._reported_dropped = self.dropped
            facts = {"seq": 0, "clock_ms": 0, "broker": -1, "entries": self._reported_dropped}
            self._write(trace_format.event("dropped", facts), queued=False)
        self._file.flush()
        self._flushed = self._written

    def _write(self, data: bytes, *, queued: bool = True) -> None:
        """Write encoded entries to the current file, or to a new file if the current one would exceed `file_bytes`.

        data: the entries, joined into one byte string. queued: whether `data` comes from the queue. If so, its bytes stop counting towards the limit
        `queue_bytes` as soon as they are written.
        """
        if self._written + len(data) > self._file_bytes:
            self._file.close()
            self._number += 1
            self._file = self._open()
        self._file.write(data)
        self._written += len(data)
        if queued:
            self._taken_bytes += len(data)
