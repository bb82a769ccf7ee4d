"""Recorded traffic as a list instead of a file, and its frames as messages."""

from __future__ import annotations

from typing import Any

from kafkaproto.api import codec
from kafkaproto.broker.observe.recorder import Recorder
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.header import decode_request_header, decode_response_header
from kafkaproto.trace.format import VERSION, Entry, Event, Exchange, State
from kafkaproto.trace.reading import READERS


def recorder_into(entries: list[Entry], together: int = 1) -> Recorder:
    """Return a recorder whose entries are decoded at once."""

    def put(data: bytes, count: int) -> None:
        for _ in range(count):
            size, kind = int.from_bytes(data[:4], "big"), data[4]
            entries.append(READERS[VERSION][kind](data[5 : 5 + size]))
            data = data[5 + size :]
        assert not data

    return Recorder(put, together)


class Bench:
    """A cluster whose traffic is recorded into a list."""

    def __init__(self, **options: Any) -> None:
        self.entries: list[Entry] = []
        self.cluster = VirtualCluster(**options)
        self.cluster.topic("t", 3)
        self.cluster.state.record(recorder_into(self.entries))

    @property
    def exchanges(self) -> list[Exchange]:
        return [e for e in self.entries if isinstance(e, Exchange)]

    def moves(self, topic: str = "t") -> list[tuple[Any, ...]]:
        """Return (broker, partition, begins, high watermark, last stable offset, log start, log end) of each recorded move."""
        return [
            (e.broker, *log[1:]) for e in self.entries if isinstance(e, State) for log in e.logs if log.topic == topic
        ]

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [e.facts for e in self.entries if isinstance(e, Event) and e.kind == kind]


def decoded(exchange: Exchange) -> tuple[Any, Any, Any]:
    """Return (request header, request, response) of an exchange; both frames must decode completely."""
    view = memoryview(exchange.request)
    header, at = decode_request_header(view, 0, len(view))
    api = codec(header.api_key, header.api_version)
    request, end = api.decode_request(view, at, len(view))
    assert end == len(view)
    if not exchange.answered:
        return header, request, None
    view = memoryview(exchange.response)
    response_header, at = decode_response_header(header.api_key, header.api_version, view, 0, len(view))
    assert response_header.correlation_id == header.correlation_id
    response, end = api.decode_response(view, at, len(view))
    assert end == len(view)
    return header, request, response
