"""What a broker records, as a list instead of a file."""

from __future__ import annotations

from broker.trace import Recorder
from kafkaproto.trace.format import READERS, VERSION, Entry


def recorder_into(entries: list[Entry], together: int = 1) -> Recorder:
    """A recorder whose entries are read at once, when they are handed over."""

    def put(data: bytes, count: int) -> None:
        for _ in range(count):
            size, kind = int.from_bytes(data[:4], "big"), data[4]
            entries.append(READERS[VERSION][kind](data[5 : 5 + size]))
            data = data[5 + size :]
        assert not data

    return Recorder(put, together)
