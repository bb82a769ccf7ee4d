"""Connection limits and connection rates (W-12, W-13) in virtual time, with the numbers of Kafka's SocketServerTest."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.quota.addresses import canonical
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
    """Send IncrementalAlterConfigs from a connection that no limit affects, and return the error code."""
    resource = AlterConfigsResource(4, broker, [AlterableConfig(name, 0, value) for name, value in configs])
    admin = cluster.connect(address="10.9.9.9", listener="ADMIN")
    code: int = admin.ask(IncrementalAlterConfigsRequest([resource], validate_only), 1).responses[0].error_code
    admin.connection.close()
    cluster.run()
    return code


def limit_ip(cluster: VirtualCluster, address: str | None, rate: float | None) -> None:
    op = QuotaOp("connection_creation_rate", rate or 0, remove=rate is None)
    (result,) = cluster.state.quota_store.alter([QuotaAlteration([("ip", address)], [op])], False)
    assert result.error_code == 0


def served(client: MemoryClient) -> bool:
    return client.served_ms is not None and client.closed_ms is None


def events(cluster: VirtualCluster, kind: str) -> list[dict[str, Any]]:
    return [event.facts for event in cluster.state.journal.events(kind)]


# ---- W-12: number of connections -----------------------------------------------------------------------------------------------


@pytest.mark.rule("W-12")
def test_connection_above_max_connections_per_ip_is_closed_and_uses_no_slot() -> None:
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
def test_max_connections_per_ip_of_zero_allows_only_addresses_with_an_override() -> None:
    cluster = cluster_with(max_connections_per_ip="0", max_connections_per_ip_overrides="127.0.0.1:2, ::1:1")
    assert [served(cluster.connect()) for _ in range(3)] == [True, True, False]
    assert [served(cluster.connect(address="::1")) for _ in range(2)] == [True, False]
    assert not served(cluster.connect(address="10.0.0.1"))


@pytest.mark.rule("W-12")
def test_connections_from_all_spellings_of_an_address_share_its_connection_limit() -> None:
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
def test_invalid_connection_limits_are_rejected_at_start(config: dict[str, str]) -> None:
    with pytest.raises(
        ConfigError,
        match=r"for example|must be an integer|unknown broker setting|only if max.connections.per.ip.overrides",
    ):
        VirtualCluster(config=config)


@pytest.mark.rule("W-12")
def test_connection_above_max_connections_waits_until_another_connection_closes() -> None:
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
    second.connection.socket_closed()
    cluster.run()
    assert served(fourth)


@pytest.mark.rule("W-12")
def test_max_connections_of_one_listener_does_not_limit_another_listener() -> None:
    cluster = VirtualCluster(config={"listener.name.outside.max.connections": "1"})
    first, second = cluster.connect(listener="OUTSIDE"), cluster.connect(listener="OUTSIDE")
    assert served(first) and second.served_ms is None
    assert all(served(cluster.connect(listener="INSIDE")) for _ in range(5))
    first.connection.close()
    cluster.run()
    assert served(second)


@pytest.mark.rule("W-12")
def test_inter_broker_connection_at_max_connections_closes_the_longest_idle_client() -> None:
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
    # The listener's limit is also the broker's: the fourth connection waits, and only clients are closed in favour of others.
    brokers = [cluster.connect(listener="INSIDE") for _ in range(3)]
    assert [served(b) for b in brokers] == [True, True, False]
    assert [served(c) for c in clients] == [False, False, False]


@pytest.mark.rule("W-12")
def test_second_connection_to_a_broker_with_one_listener_waits_at_max_connections_1() -> None:
    cluster = VirtualCluster(config={"max.connections": "1"})
    first = cluster.connect()
    assert cluster.connect().served_ms is None
    assert served(first)


@pytest.mark.rule("W-12")
def test_connection_limits_can_be_changed_while_the_broker_runs() -> None:
    cluster = cluster_with(inter_broker_listener_name="ADMIN")
    cluster.state.nodes[0].acceptor("ADMIN")
    clients = []
    for _ in range(4):
        clients.append(cluster.connect())
        cluster.advance(1)
    assert alter(cluster, ("max.connections", "3")) == 0  # the connection of the request is the third
    assert [served(c) for c in clients] == [False, False, True, True]
    third, waiting = cluster.connect(), cluster.connect()
    assert served(third) and waiting.served_ms is None
    assert alter(cluster, ("max.connections", "5")) == 0
    assert served(waiting)
    assert alter(cluster, ("max.connections.per.ip", "1")) == 0
    assert alter(cluster, ("max.connections", "1000")) == 0
    # Existing connections stay open.
    assert [served(c) for c in (*clients, third, waiting)] == [False, False, False, True, True, True]
    assert not served(cluster.connect())
    assert alter(cluster, ("max.connections.per.ip.overrides", f"{HOME}:5")) == 0
    assert served(cluster.connect())


@pytest.mark.rule("W-12")
def test_invalid_connection_limit_changes_are_rejected_and_change_nothing() -> None:
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
def test_max_connections_of_a_listener_can_be_altered_and_described_at_runtime() -> None:
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
def test_connections_waiting_for_a_slot_are_closed_when_the_broker_stops() -> None:
    cluster = cluster_with(max_connections="1")
    limit_ip(cluster, "10.0.0.1", 1)
    cluster.connect()
    waiting = cluster.connect()
    cluster.state.stop_broker(0)
    assert waiting.closed_ms is not None and waiting.served_ms is None


# ---- W-13: connection rates ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("W-13")
def test_connections_above_the_creation_rate_are_delayed_and_accepted_in_order() -> None:
    cluster = cluster_with(max_connection_creation_rate="5", quota_window_num="2")
    start_ms = cluster.now_ms
    clients = [cluster.connect() for _ in range(8)]
    assert [c.served_ms is not None for c in clients] == [True] * 5 + [False] * 3
    cluster.advance(199)
    assert clients[5].served_ms is None
    cluster.advance(1)
    assert clients[5].served_ms == start_ms + 200  # (6 in one second - 5) / 5
    cluster.advance(60_000)
    assert all(served(c) for c in clients)
    waits = [facts["throttle_ms"] for facts in events(cluster, "connection delayed")]
    served_at = [c.served_ms or 0 for c in clients[4:]]
    assert [after - before for before, after in pairwise(served_at)] == waits
    assert len(waits) == 3 and max(waits) <= 1000


@pytest.mark.rule("W-13")
def test_no_connection_is_delayed_longer_than_one_quota_window() -> None:
    cluster = cluster_with(max_connection_creation_rate="1", quota_window_num="2")
    for _ in range(6):
        cluster.connect()
    cluster.advance(60_000)
    waits = [facts["throttle_ms"] for facts in events(cluster, "connection delayed")]
    assert waits[0] == 1000 and max(waits) == 1000
    assert cluster.state.nodes[0].connection_quotas.total == 6


@pytest.mark.rule("W-13")
def test_listener_connection_rate_delays_only_connections_of_that_listener() -> None:
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
def test_inter_broker_listener_is_not_delayed_by_the_broker_connection_rate() -> None:
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
def test_raised_connection_rate_limit_does_not_shorten_delays_that_have_started() -> None:
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
def test_connection_above_the_rate_limit_of_its_ip_is_closed_after_200_ms() -> None:
    cluster = cluster_with(quota_window_num="2")
    limit_ip(cluster, HOME, 5)
    clients = [cluster.connect() for _ in range(7)]  # testConnectionRatePerIp
    assert [served(c) for c in clients] == [True] * 5 + [False] * 2
    start_ms = cluster.now_ms
    clients[5].send(metadata(), 1)
    cluster.advance(199)
    assert [c.closed_ms for c in clients[5:]] == [None, None]
    cluster.advance(1)
    assert [c.closed_ms for c in clients[5:]] == [start_ms + 200] * 2
    assert clients[5].answers == []
    assert [f["throttle_ms"] for f in events(cluster, "connection throttled")] == [200, 200]
    # The next window includes the five of the first: it is at its limit, and rejected connections were not counted.
    quotas = cluster.state.nodes[0].connection_quotas
    rates = {tuple(tags.items()): rate for _, tags, rate in quotas.metrics(start_ms)}
    assert set(rates.values()) == {5}
    assert set(rates) == {(), (("listener", "PLAINTEXT"),), (("ip", HOME),)}


@pytest.mark.rule("W-13")
def test_stopping_broker_closes_a_connection_that_is_delayed_by_an_ip_quota() -> None:
    cluster = cluster_with(quota_window_num="2")
    limit_ip(cluster, HOME, 1)
    delayed = [cluster.connect() for _ in range(2)][1]
    stopped_ms = cluster.now_ms
    cluster.state.stop_broker(0)
    assert (delayed.served_ms, delayed.closed_ms) == (None, stopped_ms)
    cluster.state.start_broker(0)
    cluster.advance(10_000)
    cluster.state.stop_broker(0)
    assert delayed.closed_ms == stopped_ms


@pytest.mark.rule("W-13")
def test_ip_quota_limits_one_address_and_the_default_ip_quota_every_other_address() -> None:
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
def test_ip_quota_for_localhost_limits_connections_from_127_0_0_1() -> None:
    cluster = cluster_with(quota_window_num="2")
    limit_ip(cluster, "localhost", 1)
    assert [served(cluster.connect()) for _ in range(2)] == [True, False]


@pytest.mark.rule("W-13")
def test_connection_throttled_by_an_ip_quota_does_not_delay_later_connections() -> None:
    cluster = cluster_with(quota_window_num="2", max_connection_creation_rate="2")
    limit_ip(cluster, "10.0.0.1", 1)
    results = [cluster.connect(address=a) for a in ("10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.1")]
    assert [served(c) for c in results] == [True, False, True, False]


@pytest.mark.rule("W-13")
def test_ip_addresses_idle_for_an_hour_are_removed_from_the_connection_quotas() -> None:
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
