"""Fetches of old consumers without down-conversion (F-32), and what followers copy from the leader (N-9)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.scene import replica, three, topic_ids
from tests.support.wire import batch, errors, fetch, produce


@pytest.mark.rule("F-32")
@pytest.mark.parametrize(("version", "error"), [(0, 35), (3, 35), (4, 0), (17, 0)])
def test_fetch_v0_to_v3_gets_an_error_if_message_downconversion_enable_is_false(version: int, error: int) -> None:
    cluster = VirtualCluster()
    cluster.topic("t", message_downconversion_enable="false")
    request = fetch(("t", 0, 0), topic_ids=topic_ids(cluster), version=version)
    client = cluster.connect()
    assert errors(client.ask(request, version)) == [error]
    client.ask(produce("t", batch(b"v")), 9)
    assert errors(client.ask(request, version)) == [error]
    controller = cluster.state.controller
    controller.set_topic_configs("t", {})
    assert errors(client.ask(request, version)) == [0]  # a changed setting acts at once


@pytest.mark.rule("N-9")
def test_acks_all_produce_copies_a_raised_log_start_of_the_leader_to_the_followers() -> None:
    cluster = three()
    client = cluster.connect()
    for _ in range(3):
        client.ask(produce("t", batch(b"v"), acks=-1), 9)
    replica(cluster, 0).log.raise_log_start(2)
    client.ask(produce("t", batch(b"v"), acks=-1), 9)
    for broker_id in (1, 2):
        log = replica(cluster, broker_id).log
        assert (log.log_end_offset, log.high_watermark, log.log_start_offset) == (4, 4, 2)
