"""How many connections there may be and how fast they come (W-12, W-13), in virtual time; with SocketServerTest's numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.quota.connection_quotas import canonical
from kafkaproto.broker.quota.store import QuotaAlteration, QuotaOp
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.wire import metadata

HOME = "127.0.0.1"


def cluster_with(**config: str) -> VirtualCluster:
    return VirtualCluster(config={name.replace("_", "."): value for name, value in config.items()})


def alter(cluster: VirtualCluster, *configs: tuple[str, str], broker: str = "0", validate_only: bool = False) -> int:
    """The error code. Asked by a caller that no limit keeps out."""
    resource = AlterConfigsResource(4, broker, [AlterableConfig(name, 0, value) for name, value in configs])
    asker = cluster.connect(address="10.9.9.9", listener="ADMIN")
    code: int = asker.ask(IncrementalAlterConfigsRequest([resource], validate_only), 1).responses[0].error_code
    asker.connection.close()
    cluster.run()
    return code


def limit_ip(cluster: VirtualCluster, address: str | None, rate: float | None) -> None:
    op = QuotaOp("connection_creation_rate", rate or 0, remove=rate is None)
    (result,) = cluster.state.quota_store.alter([QuotaAlteration([("ip", address)], [op])], False)
    assert result.error_code == 0


def served(client: MemoryClient) -> bool:
    return client.served_ms is not None and client.closed_ms is None


def events(cluster: VirtualCluster, kind: str) -> list[dict[str, Any]]:
    return [seen.facts for seen in cluster.state.journal.events(kind)]


# ---- W-12: how many ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("W-12")
def test_the_surplus_connection_of_an_address_is_closed_at_once_and_counts_no_longer() -> None:
    cluster = cluster_with(max_connections_per_ip="2")
    first, second, third = (cluster.connect() for _ in range(3))
    assert served(first) and served(second)
    assert (third.served_ms, third.closed_ms) == (None, cluster.now_ms)
    assert served(cluster.connect(address="10.0.0.1"))
    first.connection.close()
    assert served(cluster.connect())
    assert not served(cluster.connect())
    assert events(cluster, "connection refused")[0] == {"listener": "PLAINTEXT", "address": HOME}


@pytest.mark.rule("W-12")
def test_zero_per_address_lets_in_only_whom_an_override_names() -> None:
    cluster = cluster_with(max_connections_per_ip="0", max_connections_per_ip_overrides="127.0.0.1:2, ::1:1")
    assert [served(cluster.connect()) for _ in range(3)] == [True, True, False]
    assert [served(cluster.connect(address="::1")) for _ in range(2)] == [True, False]
    assert not served(cluster.connect(address="10.0.0.1"))


@pytest.mark.rule("W-12")
def test_an_override_may_be_stricter_and_knows_an_address_by_any_spelling() -> None:
    cluster = cluster_with(max_connections_per_ip="3", max_connections_per_ip_overrides="localhost:1")
    assert [served(cluster.connect(address=a)) for a in ("::ffff:127.0.0.1", HOME)] == [True, False]
    assert [canonical(a) for a in ("::0001", "::FFFF:1.2.3.4", "nobody")] == ["::1", "1.2.3.4", "nobody"]


@pytest.mark.rule("W-12")
@pytest.mark.parametrize(
    "config",
    [
        {"max.connections.per.ip": "0"},
        {"max.connections.per.ip.overrides": "127.0.0.1"},
        {"max.connections.per.ip.overrides": "127.0.0.1:many"},
        {"max.connections.per.ip.overrides": ":5"},
        {"0.max.connections.per.ip": "0"},
        {"max.connections": "-1"},
        {"listener.name.plaintext.max.connections": "-1"},
        {"listener.name.plaintext.num.partitions": "1"},
    ],
)
def test_settings_that_cannot_be_are_refused_at_start(config: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="for example"):
        VirtualCluster(config=config)


@pytest.mark.rule("W-12")
def test_when_all_slots_are_taken_a_caller_waits_until_one_is_free() -> None:
    cluster = cluster_with(max_connections="2")
    first, second, third, fourth = (cluster.connect() for _ in range(4))
    third.send(metadata(), 1)
    cluster.advance(60_000)
    assert (third.served_ms, third.closed_ms, third.answers) == (None, None, [])
    first.connection.close()
    cluster.run()
    assert third.served_ms == cluster.now_ms
    assert len(third.answers) == 1
    assert fourth.served_ms is None
    second.connection.lost()
    cluster.run()
    assert served(fourth)


@pytest.mark.rule("W-12")
def test_a_listener_has_a_limit_of_its_own() -> None:
    cluster = VirtualCluster(config={"listener.name.outside.max.connections": "1"})
    first, second = cluster.connect(listener="OUTSIDE"), cluster.connect(listener="OUTSIDE")
    assert served(first) and second.served_ms is None
    assert all(served(cluster.connect(listener="INSIDE")) for _ in range(5))
    first.connection.close()
    cluster.run()
    assert served(second)


@pytest.mark.rule("W-12")
def test_the_brokers_listener_takes_the_slot_of_the_least_recently_used_client() -> None:
    cluster = VirtualCluster(config={"max.connections": "3", "inter.broker.listener.name": "INSIDE"})
    cluster.state.nodes[0].acceptor("INSIDE")
    clients = []
    for _ in range(3):
        clients.append(cluster.connect())
        cluster.advance(1)
    clients[0].ask(metadata(), 1)
    broker = cluster.connect(listener="INSIDE")
    assert served(broker)
    assert [served(c) for c in clients] == [True, False, True]
    waiting = cluster.connect()
    assert waiting.served_ms is None
    # Its own limit is the broker's, too: the fourth of them waits, and only clients are closed for the others.
    brokers = [cluster.connect(listener="INSIDE") for _ in range(3)]
    assert [served(b) for b in brokers] == [True, True, False]
    assert [served(c) for c in clients] == [False, False, False]


@pytest.mark.rule("W-12")
def test_the_only_listener_is_not_protected() -> None:
    cluster = VirtualCluster(config={"max.connections": "1"})
    first = cluster.connect()
    assert cluster.connect().served_ms is None
    assert served(first)


@pytest.mark.rule("W-12")
def test_limits_change_while_the_broker_runs() -> None:
    cluster = cluster_with(inter_broker_listener_name="ADMIN")
    cluster.state.nodes[0].acceptor("ADMIN")
    clients = []
    for _ in range(4):
        clients.append(cluster.connect())
        cluster.advance(1)
    assert alter(cluster, ("max.connections", "3")) == 0  # whoever asks for it is the third
    assert [served(c) for c in clients] == [False, False, True, True]
    third, waiting = cluster.connect(), cluster.connect()
    assert served(third) and waiting.served_ms is None
    assert alter(cluster, ("max.connections", "5")) == 0
    assert served(waiting)
    assert alter(cluster, ("max.connections.per.ip", "1")) == 0
    assert alter(cluster, ("max.connections", "1000")) == 0
    assert [served(c) for c in (*clients, third, waiting)] == [False, False, False, True, True, True]  # who is in stays
    assert not served(cluster.connect())
    assert alter(cluster, ("max.connections.per.ip.overrides", f"{HOME}:5")) == 0
    assert served(cluster.connect())


@pytest.mark.rule("W-12")
def test_changes_that_cannot_be_are_refused_and_change_nothing() -> None:
    cluster = cluster_with()
    refused = [
        alter(cluster, ("max.connections.per.ip", "0")),
        alter(cluster, ("max.connections.per.ip.overrides", "x")),
        alter(cluster, ("max.connections", "0")),
        alter(cluster, ("max.connection.creation.rate", "0")),
        alter(cluster, ("listener.name.plaintext.max.connections", "0"), broker=""),
    ]
    assert refused == [42] * 5
    assert not cluster.state.config.dynamic_all and not cluster.state.config.dynamic_broker.get(0)
    assert alter(cluster, ("max.connections", "1"), validate_only=True) == 0
    assert all(served(cluster.connect()) for _ in range(3))


@pytest.mark.rule("W-12")
def test_a_listeners_setting_is_changed_and_described_under_its_name() -> None:
    cluster = cluster_with(inter_broker_listener_name="ADMIN")
    name = "listener.name.plaintext.max.connections"
    assert alter(cluster, (name, "1")) == 0
    first = cluster.connect()
    assert served(first) and cluster.connect().served_ms is None
    described = cluster.connect(listener="ADMIN").ask(
        DescribeConfigsRequest([DescribeConfigsResource(4, "0", [name, "max.connections"])]), 1
    )
    assert {c.name: c.value for c in described.results[0].configs} == {name: "1", "max.connections": str(2**31 - 1)}


@pytest.mark.rule("W-12")
def test_whoever_waits_when_the_broker_stops_is_closed() -> None:
    cluster = cluster_with(max_connections="1")
    limit_ip(cluster, "10.0.0.1", 1)
    cluster.connect()
    waiting = cluster.connect()
    cluster.state.stop_broker(0)
    assert waiting.closed_ms is not None and waiting.served_ms is None


# ---- W-13: how fast ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("W-13")
def test_connections_above_the_rate_are_let_in_later_one_after_the_other() -> None:
    cluster = cluster_with(max_connection_creation_rate="5", quota_window_num="2")
    begun_ms = cluster.now_ms
    clients = [cluster.connect() for _ in range(8)]
    assert [c.served_ms is not None for c in clients] == [True] * 5 + [False] * 3
    cluster.advance(199)
    assert clients[5].served_ms is None
    cluster.advance(1)
    assert clients[5].served_ms == begun_ms + 200  # (6 in one second - 5) / 5
    cluster.advance(60_000)
    assert all(served(c) for c in clients)
    waits = [facts["throttle_ms"] for facts in events(cluster, "connection delayed")]
    served_at = [c.served_ms or 0 for c in clients[4:]]
    assert [after - before for before, after in pairwise(served_at)] == waits
    assert len(waits) == 3 and max(waits) <= 1000


@pytest.mark.rule("W-13")
def test_nobody_waits_longer_than_one_window() -> None:
    cluster = cluster_with(max_connection_creation_rate="1", quota_window_num="2")
    for _ in range(6):
        cluster.connect()
    cluster.advance(60_000)
    waits = [facts["throttle_ms"] for facts in events(cluster, "connection delayed")]
    assert waits[0] == 1000 and max(waits) == 1000
    assert cluster.state.nodes[0].connection_quotas.total == 6


@pytest.mark.rule("W-13")
def test_a_listeners_rate_holds_beside_the_brokers_and_only_its_callers_wait() -> None:
    cluster = VirtualCluster(
        config={"listener.name.outside.max.connection.creation.rate": "1", "quota.window.num": "2"}
    )
    assert served(cluster.connect(listener="OUTSIDE"))
    waiting = cluster.connect(listener="OUTSIDE")
    assert waiting.served_ms is None
    assert all(served(cluster.connect(listener="INSIDE")) for _ in range(5))
    cluster.advance(1000)
    assert served(waiting)


@pytest.mark.rule("W-13")
def test_the_brokers_listener_does_not_wait_for_the_brokers_rate() -> None:
    cluster = cluster_with(max_connection_creation_rate="1", quota_window_num="2", inter_broker_listener_name="INSIDE")
    cluster.state.nodes[0].acceptor("INSIDE")
    assert served(cluster.connect())
    assert cluster.connect().served_ms is None
    quotas = cluster.state.nodes[0].connection_quotas
    before = {name: rate for name, tags, rate in quotas.metrics(cluster.now_ms) if not tags}
    cluster.connect(listener="INSIDE")
    after = {name: rate for name, tags, rate in quotas.metrics(cluster.now_ms) if not tags}
    assert before == after == {"broker-connection-accept-rate": 2}


@pytest.mark.rule("W-13")
def test_a_changed_rate_holds_for_the_next_caller_but_whoever_waits_goes_on_waiting() -> None:
    cluster = cluster_with(max_connection_creation_rate="1", quota_window_num="2", inter_broker_listener_name="ADMIN")
    cluster.state.nodes[0].acceptor("ADMIN")
    cluster.connect()
    first, second = cluster.connect(), cluster.connect()
    assert alter(cluster, ("max.connection.creation.rate", "1000")) == 0
    cluster.advance(999)
    assert first.served_ms is None
    cluster.advance(1)
    assert served(first) and served(second)


@pytest.mark.rule("W-13")
def test_throttled_by_its_address_a_caller_is_held_unserved_then_closed_and_not_counted() -> None:
    cluster = cluster_with(quota_window_num="2")
    limit_ip(cluster, HOME, 5)
    clients = [cluster.connect() for _ in range(7)]  # testConnectionRatePerIp
    assert [served(c) for c in clients] == [True] * 5 + [False] * 2
    begun_ms = cluster.now_ms
    clients[5].send(metadata(), 1)
    cluster.advance(199)
    assert [c.closed_ms for c in clients[5:]] == [None, None]
    cluster.advance(1)
    assert [c.closed_ms for c in clients[5:]] == [begun_ms + 200] * 2
    assert clients[5].answers == []
    assert [f["throttle_ms"] for f in events(cluster, "connection throttled")] == [200, 200]
    # The next window has the five of the first as its past: it is at its limit, and nobody was counted who was not let in.
    quotas = cluster.state.nodes[0].connection_quotas
    rates = {tuple(tags.items()): rate for _, tags, rate in quotas.metrics(begun_ms)}
    assert set(rates.values()) == {5}
    assert set(rates) == {(), (("listener", "PLAINTEXT"),), (("ip", HOME),)}


@pytest.mark.rule("W-13")
def test_a_held_caller_is_closed_once_when_the_broker_stops() -> None:
    cluster = cluster_with(quota_window_num="2")
    limit_ip(cluster, HOME, 1)
    held = [cluster.connect() for _ in range(2)][1]
    stopped_ms = cluster.now_ms
    cluster.state.stop_broker(0)
    assert (held.served_ms, held.closed_ms) == (None, stopped_ms)
    cluster.state.start_broker(0)
    cluster.advance(10_000)
    cluster.state.stop_broker(0)
    assert held.closed_ms == stopped_ms


@pytest.mark.rule("W-13")
def test_other_addresses_are_served_and_the_default_is_for_each_that_has_no_quota_of_its_own() -> None:
    cluster = cluster_with(quota_window_num="2")
    limit_ip(cluster, None, 1)
    limit_ip(cluster, "10.0.0.1", 3)
    assert [served(cluster.connect(address="10.0.0.2")) for _ in range(2)] == [True, False]
    assert [served(cluster.connect(address="10.0.0.3")) for _ in range(2)] == [True, False]
    assert [served(cluster.connect(address="10.0.0.1")) for _ in range(4)] == [True, True, True, False]
    limit_ip(cluster, "10.0.0.1", None)
    assert not served(cluster.connect(address="10.0.0.1"))
    limit_ip(cluster, None, None)
    assert served(cluster.connect(address="10.0.0.1"))


@pytest.mark.rule("W-13")
def test_an_ip_quota_knows_localhost() -> None:
    cluster = cluster_with(quota_window_num="2")
    limit_ip(cluster, "localhost", 1)
    assert [served(cluster.connect()) for _ in range(2)] == [True, False]


@pytest.mark.rule("W-13")
def test_a_throttled_caller_frees_the_way_for_those_behind_it() -> None:
    cluster = cluster_with(quota_window_num="2", max_connection_creation_rate="2")
    limit_ip(cluster, "10.0.0.1", 1)
    results = [cluster.connect(address=a) for a in ("10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.1")]
    assert [served(c) for c in results] == [True, False, True, False]


@pytest.mark.rule("W-13")
def test_addresses_that_were_not_seen_for_an_hour_are_forgotten() -> None:
    cluster = cluster_with()
    limit_ip(cluster, None, 1000)
    quotas = cluster.state.nodes[0].connection_quotas
    quotas.add_listener("PLAINTEXT")
    now_ms = cluster.now_ms
    for n in range(5000):
        quotas.address_throttle_ms("PLAINTEXT", f"10.0.{n >> 8}.{n & 255}", now_ms)
    assert len([1 for _, tags, _ in quotas.metrics(now_ms) if "ip" in tags]) == 5000
    quotas.address_throttle_ms("PLAINTEXT", "10.1.0.1", now_ms + 3_600_001)
    assert len([1 for _, tags, _ in quotas.metrics(now_ms) if "ip" in tags]) == 1
