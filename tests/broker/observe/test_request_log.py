"""Requests and connections in the debug log (B1)."""

from __future__ import annotations

import logging

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.wire import batch, produce

LOGGER = "kafkaproto.requests"


def test_connections_and_requests_are_logged_at_debug_level(caplog: pytest.LogCaptureFixture) -> None:
    cluster = VirtualCluster(detailed_journal=True)
    cluster.topic("orders")
    with caplog.at_level(logging.DEBUG, LOGGER):
        cluster.advance(20)
        client = cluster.connect(client_id="shop")
        client.ask(produce("orders", batch(b"v")), 9)
        client.send(produce("orders", batch(b"v"), acks=0), 9)
    answered, unanswered = cluster.state.journal.requests()
    assert [(entry.levelno, entry.getMessage()) for entry in caplog.records if entry.name == LOGGER] == [
        (logging.DEBUG, "+0.020 s broker 0 connection 1 opened from 127.0.0.1 on listener PLAINTEXT"),
        (logging.DEBUG, str(answered)),
        (logging.DEBUG, str(unanswered)),
    ]
    assert "shop: Produce v9 orders-0 offset 0 (" in str(answered)


def test_requests_are_not_logged_if_the_log_level_is_info(caplog: pytest.LogCaptureFixture) -> None:
    cluster = VirtualCluster(detailed_journal=True)
    with caplog.at_level(logging.INFO, LOGGER):
        cluster.topic("orders")
        cluster.connect().ask(produce("orders", batch(b"v")), 9)
    assert [entry for entry in caplog.records if entry.name == LOGGER] == []
