"""A parked response that cannot be encoded closes only its own connection (W-8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.delayed import Build, Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import FetchReply, Outcome
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.fetch import FetchRequest
from tests.support.wire import batch, fetch, metadata, produce


@pytest.mark.rule("W-8")
def test_waiting_fetch_whose_response_cannot_be_encoded_closes_only_its_connection() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    parked, other, writer = (cluster.connect() for _ in range(3))
    node = cluster.state.nodes[0]
    registered = node.apis[ApiKey.FETCH]

    def handler(exchange: Exchange, request: FetchRequest) -> Delayed:
        """Park every fetch, and return an invalid response for one client."""
        inner, outer = registered.handler(exchange, request), Delayed()
        assert isinstance(inner, Delayed)

        def spoiled(build: Build) -> Outcome:
            outcome = build()
            assert isinstance(outcome, FetchReply)
            if exchange.peer is parked.connection:
                # neither bytes nor a file range
                outcome.message.responses[0].partitions[0].records = 17  # type: ignore[assignment]
            return outcome

        inner.attach(lambda build, now_ms: outer.complete(lambda: spoiled(build), now_ms))
        return outer

    node.apis = {**node.apis, ApiKey.FETCH: replace(registered, handler=handler)}
    for client in (parked, other):
        client.send(fetch(("t", 0, 0), max_wait_ms=10_000), 11)
    writer.ask(produce("t", batch(b"v")), 9)
    assert parked.closed_ms == cluster.now_ms
    assert other.closed_ms is None
    assert len(other.answers) == 1
    assert writer.ask(metadata(), 1).brokers
