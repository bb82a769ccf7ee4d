"""A parked request whose answer cannot be built (W-8): its own connection ends, the others and the turn go on."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.handlers import fetch as fetch_handler
from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.wire import batch, fetch, metadata, produce


@pytest.mark.rule("W-8")
def test_a_parked_answer_that_cannot_be_sent_ends_its_own_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    parked, other, writer = (cluster.connect() for _ in range(3))
    for client in (parked, other):
        client.send(fetch(("t", 0, 0), max_wait_ms=10_000), 11)
    grouped = fetch_handler._grouped
    calls: list[Any] = []

    def broken(*arguments: Any) -> Any:
        calls.append(arguments)
        made = grouped(*arguments)
        if len(calls) == 1:
            made[0].partitions[0].records = 17  # no bytes, and no range of a file
        return made

    monkeypatch.setattr(fetch_handler, "_grouped", broken)
    writer.ask(produce("t", batch(b"v")), 9)
    assert parked.closed_ms == cluster.now_ms
    assert other.closed_ms is None
    assert len(other.answers) == 1
    assert writer.ask(metadata(), 1).brokers
