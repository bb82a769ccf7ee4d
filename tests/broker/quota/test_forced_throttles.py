"""Forced throttles: clients see the requested throttle time and mute, and nothing else changes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kafkaproto.broker.network.mute import MuteState
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.testing import cluster as started
from tests.support.wire import batch, fetch, limit, metadata, produce, produce_of_bytes, produced, sizes


@pytest.fixture
def cluster() -> VirtualCluster:
    virtual_cluster = VirtualCluster()
    virtual_cluster.topic("t")
    return virtual_cluster


def force(cluster: VirtualCluster, throttle_ms: int, **fields: Any) -> ForcedThrottle:
    return cluster.state.forced_throttles.add(ForcedThrottle(throttle_ms, **fields))


def test_forced_throttle_with_times_3_throttles_only_the_next_three_produces(cluster: VirtualCluster) -> None:
    rule = force(cluster, 700, api="Produce", client_id="X", times=3)
    x, y = cluster.connect(client_id="X"), cluster.connect(client_id="Y")
    throttles_ms = []
    for _ in range(4):
        assert y.ask(produce("t", batch(b"y")), 9).throttle_time_ms == 0
        response = x.ask(produce("t", batch(b"x")), 9)
        assert produced(response).error_code == 0
        throttles_ms.append(response.throttle_time_ms)
        assert x.connection.state is (MuteState.MUTED_AND_THROTTLED if throttles_ms[-1] else MuteState.NOT_MUTED)
        assert x.ask(metadata(), 9).throttle_time_ms == 0 if not throttles_ms[-1] else True
        cluster.advance(700)
    assert throttles_ms == [700, 700, 700, 0]
    assert rule.hits == 3 and rule.is_spent and cluster.state.forced_throttles.active == []
    throttles = cluster.state.journal.throttles("Produce", client_id="X")
    assert [(s.throttle_time_ms, s.reason, s.ended_ms) for s in throttles] == [
        (700, rule, s.at_ms + 700) for s in throttles
    ]


def test_requests_pipelined_behind_a_forced_throttle_wait_until_the_throttle_ends(cluster: VirtualCluster) -> None:
    force(cluster, 30_000, api="Metadata", times=1)
    client = cluster.connect()
    client.ask(metadata(), 9)
    client.send(metadata(), 9)
    cluster.advance(29_999)
    assert len(client.answers) == 1
    cluster.advance(1)
    assert len(client.answers) == 2


def test_fetch_with_a_forced_throttle_is_empty_and_charged_no_bytes(cluster: VirtualCluster) -> None:
    limit(cluster, client_id="test", consumer_byte_rate=1000.0)
    cluster.connect(client_id="writer").ask(produce("t", batch(b"v" * 5000)), 9)
    client = cluster.connect()
    force(cluster, 250, api="Fetch", times=1)
    response = client.ask(fetch(("t", 0, 0)), 11)
    assert (response.throttle_time_ms, response.error_code, response.responses) == (250, 0, [])
    cluster.advance(250)
    again = client.ask(fetch(("t", 0, 0)), 11)
    assert again.throttle_time_ms == 0 and sizes(again)[0] > 5000
    [usage] = list(cluster.state.nodes[0].quotas.fetch.metrics(cluster.now_ms))
    assert 5000 < usage.rate * 10 < 6000  # charged once


def test_forced_throttle_replaces_a_quota_throttle_but_the_bytes_are_still_charged(cluster: VirtualCluster) -> None:
    limit(cluster, producer_byte_rate=1000.0)
    force(cluster, 5, times=1)
    client = cluster.connect()
    assert client.ask(produce_of_bytes(client, "t", 15_000), 9).throttle_time_ms == 5
    cluster.advance(5)
    # The bytes were charged nevertheless.
    assert client.ask(produce_of_bytes(client, "t", 1000), 9).throttle_time_ms == 5995  # 16 s of quota in 10.005 s


def test_forced_throttle_of_an_acks_0_produce_mutes_the_connection(cluster: VirtualCluster) -> None:
    force(cluster, 400, api="Produce", times=1)
    client = cluster.connect()
    client.send(produce("t", batch(b"x"), acks=0), 9)
    client.send(metadata(), 9)
    cluster.advance(399)
    assert client.answers == []
    cluster.advance(1)
    assert len(client.answers) == 1


def test_forced_throttle_mutes_connection_if_the_response_has_no_throttle_time_field(cluster: VirtualCluster) -> None:
    force(cluster, 100, api="Metadata")
    client = cluster.connect()
    client.ask(metadata(), 0)
    assert client.connection.state is MuteState.MUTED_AND_THROTTLED


@pytest.mark.rule("T-5")
def test_forced_throttles_never_apply_to_follower_fetches() -> None:
    cluster = VirtualCluster(3)
    cluster.topic("t", 1, 3)
    rule = force(cluster, 10_000)
    follower = cluster.connect(client_id="writer")
    assert follower.ask(fetch(("t", 0, 0), replica_id=2, max_wait_ms=0), 11).throttle_time_ms == 0
    assert rule.hits == 0


def test_only_the_first_matching_forced_throttle_rule_sets_the_throttle_time(cluster: VirtualCluster) -> None:
    first, second = force(cluster, 1, user="ANONYMOUS", times=1), force(cluster, 2, broker_id=0)
    other = force(cluster, 3, broker_id=1)
    client = cluster.connect()
    assert client.ask(metadata(), 9).throttle_time_ms == 1
    cluster.advance(1)
    assert client.ask(metadata(), 9).throttle_time_ms == 2
    cluster.advance(2)
    cluster.state.forced_throttles.cancel(second)
    assert client.ask(metadata(), 9).throttle_time_ms == 0
    assert (first.hits, second.hits, other.hits) == (1, 1, 0)


def test_cluster_reset_removes_forced_throttle_rules(cluster: VirtualCluster) -> None:
    force(cluster, 10)
    cluster.state.reset()
    assert cluster.connect().ask(metadata(), 9).throttle_time_ms == 0


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"throttle_ms": 0}, "throttle_ms must be 1 to 2147483647 (got 0); for example 700"),
        ({"throttle_ms": 2**31}, "throttle_ms must be 1 to 2147483647 (got 2147483648)"),
        ({"throttle_ms": True}, "throttle_ms must be 1 to 2147483647 (got True)"),
        ({"throttle_ms": 1.5}, "throttle_ms must be 1 to 2147483647 (got 1.5)"),
        ({}, "throttle_ms is missing"),
        ({"throttle_ms": 1, "times": 0}, "times must be at least 1, or None for always (got 0); for example 3"),
        ({"throttle_ms": 1, "api": "Produces"}, "unknown API 'Produces'; did you mean 'Produce'?"),
        ({"throttle_ms": 1, "client_id": 5}, "client_id must be a str, or None for any (got 5)"),
        ({"throttle_ms": 1, "broker_id": "0"}, "broker_id must be a broker id, or None for any (got '0')"),
        ({"throttle_ms": 1, "clientid": "x"}, 'unknown field "clientid" of a forced throttle'),
        ({"throttle_ms": 1, "hits": 3}, 'unknown field "hits" of a forced throttle'),
    ],
)
def test_invalid_forced_throttle_rule_is_rejected_with_the_name_of_the_field(
    fields: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(named)):
        ForcedThrottle.from_json(fields)


def test_forced_throttle_rule_survives_a_json_round_trip() -> None:
    rule = ForcedThrottle.from_json({"throttle_ms": 700, "api": "Produce", "client_id": "X", "times": 3})
    as_json = rule.to_json()
    assert (as_json.pop("rule_id"), as_json.pop("hits")) == (rule.rule_id, 0)
    assert ForcedThrottle.from_json(as_json).to_json() | {"rule_id": 0} == rule.to_json() | {"rule_id": 0}


def test_forced_throttles_can_be_added_and_cancelled_by_cluster_methods() -> None:
    with started(topics={"t": 1}, clock="manual") as c:
        rule = c.force_throttle(700, api="Fetch")
        assert c.state.forced_throttles.active == [rule]
        c.cancel_throttle(rule)
        c.cancel_throttle(rule)
        assert c.state.forced_throttles.active == []
        c.set_request_cost("Metadata", 4)
        assert c.state.request_cost_ms == {"Metadata": 4}
        for api, cost in (("Metadat", 4), ("Metadata", -1), ("Metadata", float("nan"))):
            with pytest.raises(
                ValueError, match=r"did you mean 'Metadata'|cost_ms must be at least 0 milliseconds .*example"
            ):
                c.set_request_cost(api, cost)
    with started() as c, pytest.raises(ValueError, match="clock='manual'"):
        c.set_request_cost("Metadata", 4)
