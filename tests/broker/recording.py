"""What a broker records, as a list instead of a file."""

from __future__ import annotations

from broker.trace import Recorder
from kafkaproto.trace.format import READERS, VERSION, Entry


def recorder_into(entries: list[Entry], together: int = 1) -> Recorder:
    """A recorder whose entries are read at once, when they are handed over."""

    def put(some: list[bytes]) -> None:
        for data in some:
            kind, body = data[4], data[5:]
            assert int.from_bytes(data[:4], "big") == len(body)
            entries.append(READERS[VERSION][kind](body))

    return Recorder(put, together)
