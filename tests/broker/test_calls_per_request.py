"""Quotas cost nothing to those who have none: the Python calls that one request makes, counted, against what they were before.

Counted from the bytes in the connection's buffer to the bytes that are handed to the socket, second request of its kind.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from broker.testing.memory import VirtualCluster
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.support.wire import batch, fetch, metadata, produce

BEFORE = {"produce": 88, "fetch": 99, "metadata": 49, "list offsets": 52}
"""With the commit before the quotas got their final form (1dbc9db), by this very file."""
MORE = 2

Make = Callable[[VirtualCluster], tuple[Any, int]]


def _list_offsets(_: VirtualCluster) -> tuple[Any, int]:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[partition])]), 6


REQUESTS: dict[str, Make] = {
    "produce": lambda _: (produce("t", batch(b"x" * 100)), 9),
    "fetch": lambda _: (fetch(("t", 0, 0)), 12),
    "metadata": lambda _: (metadata(), 9),
    "list offsets": _list_offsets,
}


class Socket:
    """What the bytes are handed to; answers at once as a socket with room does."""

    def write(self, buffers: Any) -> bool:
        return True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None: ...

    def call_soon(self) -> None: ...


def calls_of(action: Callable[[], None]) -> list[str]:
    """The names of the Python functions that were called."""
    names: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            names.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return names[1:]


def calls_per_request(name: str) -> list[str]:
    cluster = VirtualCluster()
    cluster.topic("t")
    client = cluster.connect()
    request, version = REQUESTS[name](cluster)
    client.ask(produce("t", batch(b"x" * 100)), 9)
    client.ask(request, version)
    frame = client.frame(request, version)
    connection = client.connection
    connection._skin = Socket()

    def send() -> None:
        connection.get_buffer()[: len(frame)] = frame
        connection.received(len(frame), cluster.now_ms)

    send()
    return calls_of(send)


@pytest.mark.rule("Q-1")
@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_makes_no_more_calls_than_before_there_were_quotas(name: str) -> None:
    calls = calls_per_request(name)
    assert len(calls) <= BEFORE[name] + MORE, calls
