"""A recorded trace for tests of trace readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.trace import format as trace_format
from kafkaproto.trace.format import Entry
from tests.support.recording import recorder_into
from tests.support.wire import batch, fetch, metadata, produce


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    entries: list[Entry] = []
    cluster = VirtualCluster()
    cluster.topic("t")
    cluster.state.record(recorder_into(entries))
    a, b = cluster.connect(client_id="a"), cluster.connect(client_id="b")
    a.ask(produce("t", batch(b"x" * 1000)), 9)
    a.ask(produce("t", batch(b"x"), partition=7), 9)
    a.send(produce("t", batch(b"x"), acks=0), 9)
    cluster.state.forced_throttles.add(ForcedThrottle(300, api="Fetch"))
    b.ask(fetch(("t", 0, 0)), 11)
    b.send(metadata(), 9)
    cluster.advance(300)
    written = [trace_format.encoded(entry) for entry in entries]
    half = len(written) // 2
    for number, part in enumerate((written[:half], written[half:])):
        (tmp_path / f"r-{number}.kptrace").write_bytes(trace_format.header({"run": "r"}) + b"".join(part))
    return tmp_path
