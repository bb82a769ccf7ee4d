"""Metrics under Kafka's names (Q-17, R-10, R-12, S-15), compared with the broker's own quota arithmetic."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from kafkaproto.broker.observe.metrics import CONTROLLER, MetricName, ThrottleQueues, snapshot
from kafkaproto.broker.quota.entities import QuotaEntity
from kafkaproto.broker.quota.sensors import ThrottleReason
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaproto.testing import cluster as running_cluster
from tests.support.scene import fill, hold, three
from tests.support.wire import batch, batch_of_bytes, fetch, limit, produce_of_bytes


def value(cluster: VirtualCluster, name: str, group: str, broker_id: int = 0, **tags: str) -> float | None:
    key = MetricName(name, group, tuple((k.replace("_", "-"), v) for k, v in tags.items()), broker_id)
    return snapshot(cluster.state, cluster.now_ms).get(key)


@pytest.mark.rule("Q-17")
def test_broker_metrics_contain_byte_rate_and_throttle_time_of_a_throttled_client() -> None:
    cluster = VirtualCluster(2)
    cluster.topic("t")
    assert value(cluster, "byte-rate", "Produce", user="", client_id="test") is None
    limit(cluster, producer_byte_rate=1000.0)
    client = cluster.connect()
    client.send(produce_of_bytes(client, "t", 15_000), 9)
    tags = {"user": "", "client_id": "test"}
    assert value(cluster, "byte-rate", "Produce", **tags) == 1500.0
    assert value(cluster, "throttle-time", "Produce", **tags) == 5000.0
    assert value(cluster, "byte-rate", "Produce", 1, **tags) is None
    assert [value(cluster, "queue-size", "Produce", broker) for broker in (0, 1)] == [1.0, 0.0]
    assert value(cluster, "queue-size", "Fetch") == 0.0
    cluster.advance(4999)
    assert value(cluster, "queue-size", "Produce") == 1.0
    cluster.advance(1)
    assert value(cluster, "queue-size", "Produce") == 0.0
    other = cluster.connect()
    other.send(produce_of_bytes(other, "t", 1000), 9)
    assert value(cluster, "throttle-time", "Produce", **tags) == (5000 + 6000) / 2


def test_queue_size_metric_counts_only_throttles_that_have_not_ended() -> None:
    queues = ThrottleQueues()
    reason = ThrottleReason("Produce", "", "c", QuotaEntity(client_id="c"), 1.0, 1.0, 1.0, 1000, 1)

    def throttle(now_ms: int, throttle_ms: int) -> None:
        exchange = cast("Exchange", SimpleNamespace(now_ms=now_ms, node=SimpleNamespace(broker_id=0)))
        queues.throttled(exchange, throttle_ms, reason, held=False)

    throttle(0, 0)
    throttle(0, 1_000_000)
    for now_ms in range(0, 10_000, 10):
        throttle(now_ms, 10)
        assert len(queues._ends) == 2
    assert queues.sizes(9_990) == {(0, "Produce"): 2}


@pytest.mark.rule("Q-17")
def test_throttle_time_metric_of_a_single_throttle_disappears_after_one_minute() -> None:
    """The metric is an Avg of two samples of thirty seconds; Kafka's metric is NaN again when they have expired."""
    cluster = VirtualCluster()
    cluster.topic("t")
    limit(cluster, producer_byte_rate=1000.0)
    client = cluster.connect()
    client.send(produce_of_bytes(client, "t", 15_000), 9)
    for wait_ms, expected in ((59_999, 5000.0), (1, None)):
        cluster.advance(wait_ms)
        assert value(cluster, "throttle-time", "Produce", user="", client_id="test") == expected


@pytest.mark.rule("Q-17")
def test_throttle_time_metric_disappears_after_the_configured_sample_windows() -> None:
    """Three windows of 1 s expire 3 s after the throttle. Broker 1 has Kafka's defaults, 2 windows of 30 s."""
    config = {"0.metrics.num.samples": 3, "0.metrics.sample.window.ms": 1000}
    cluster = VirtualCluster(2, config)
    cluster.topic("t")
    limit(cluster, producer_byte_rate=1000.0)
    for broker in (0, 1):
        client = cluster.connect(broker)
        client.send(produce_of_bytes(client, "t", 15_000), 9)  # charged also if the broker is not the leader

    def throttle_times() -> list[float | None]:
        return [value(cluster, "throttle-time", "Produce", broker, user="", client_id="test") for broker in (0, 1)]

    assert [value(cluster, "byte-rate", "Produce", broker, user="", client_id="test") for broker in (0, 1)] == [
        1500.0
    ] * 2
    cluster.advance(2_999)
    assert throttle_times() == [5000.0, 5000.0]
    cluster.advance(1)
    assert throttle_times() == [None, 5000.0]


@pytest.mark.rule("Q-17", "Q-18")
@pytest.mark.parametrize(
    ("config", "rate", "seen_for_ms"),
    [({}, 0.1, 60_000), ({"metrics.num.samples": 4, "metrics.sample.window.ms": 500}, 2.0, 2000)],
)
def test_mutation_rate_metric_is_measured_over_the_configured_sample_windows(
    config: dict[str, int], rate: float, seen_for_ms: int
) -> None:
    cluster = VirtualCluster(config=config)
    limit(cluster, controller_mutation_rate=1.0)
    cluster.connect().ask(CreateTopicsRequest([CreatableTopic("t", 3, 1)], 1000), 5)

    def seen() -> float | None:
        return value(cluster, "mutation-rate", "ControllerMutation", CONTROLLER, user="", client_id="test")

    assert seen() == pytest.approx(rate)
    cluster.advance(seen_for_ms - 1)
    assert seen() != 0
    cluster.advance(1)
    assert seen() == 0


@pytest.mark.rule("Q-17", "T-10")
def test_queue_size_metric_includes_a_disconnected_client_until_its_throttle_ends() -> None:
    """The queue contains delays, not connections."""
    cluster = VirtualCluster()
    cluster.topic("t")
    limit(cluster, producer_byte_rate=1000.0)
    client = cluster.connect()
    client.send(produce_of_bytes(client, "t", 15_000), 9)
    client.connection.socket_closed()
    cluster.advance(4999)
    assert value(cluster, "queue-size", "Produce") == 1.0
    cluster.advance(1)
    assert value(cluster, "queue-size", "Produce") == 0.0


@pytest.mark.rule("Q-17")
def test_follower_fetch_adds_to_metric_exempt_request_time_and_client_fetch_does_not() -> None:
    """Exempt requests have no quota, so this rate has the windows of metrics: 3 of 10 s here, of which at least 2 count."""
    cluster = VirtualCluster(config={"metrics.num.samples": 3, "metrics.sample.window.ms": 10_000})
    cluster.topic("t")
    assert value(cluster, "exempt-request-time", "Request") is None
    limit(cluster, request_percentage=50.0)
    cluster.state.request_cost_ms["Fetch"] = 20.0
    cluster.connect().ask(fetch(("t", 0, 0)), 11)
    cluster.connect().ask(fetch(("t", 0, 0), replica_id=0), 11)
    assert value(cluster, "request-time", "Request", user="", client_id="test") == pytest.approx(0.2)
    assert value(cluster, "exempt-request-time", "Request") == pytest.approx(0.1)


@pytest.mark.rule("R-10")
def test_metrics_contain_replication_byte_rates_of_throttled_leaders_and_followers() -> None:
    cluster = three()
    assert value(cluster, "byte-rate", "LeaderReplication") == 0.0
    for side in ("leader", "follower"):
        controller = cluster.state.controller
        configs = {**controller.image.topics["t"].configs, f"{side}.replication.throttled.replicas": "*"}
        controller.set_topic_configs("t", configs)
    cluster.run()
    fill(cluster, "t", batch_of_bytes(50_000), acks=-1)
    assert [value(cluster, "byte-rate", "FollowerReplication", b) for b in range(3)] == [0.0, 50_000.0, 50_000.0]
    leader = value(cluster, "byte-rate", "LeaderReplication")
    assert leader is not None and 100_000 < leader < 101_000
    assert value(cluster, "byte-rate", "LeaderReplication", 1) == 0.0


@pytest.mark.rule("R-12")
def test_metrics_contain_the_lag_of_a_follower_and_the_byte_rate_of_a_partition() -> None:
    cluster = three()
    fill(cluster, "t", batch(b"a"))
    hold(cluster, 2)
    cluster.advance(10_000)
    before = replica_bytes(cluster)
    fill(cluster, "t", *[batch_of_bytes(1000)] * 5)
    assert [value(cluster, "SumReplicaLag", "ReplicaManager", b) for b in range(3)] == [0.0, 0.0, 5.0]
    rate = value(cluster, "PartitionBytesInRate", "BrokerTopicMetrics", topic="t", partition="0")
    assert rate == (before + 5000) / 10
    assert value(cluster, "PartitionBytesInRate", "BrokerTopicMetrics", 1, topic="t", partition="0") is None


def replica_bytes(cluster: VirtualCluster) -> int:
    return cluster.state.nodes[0].replicas.partitions[("t", 0)].log.store.end_position


@pytest.mark.rule("S-15")
def test_metrics_count_cached_fetch_sessions_and_evicted_fetch_sessions() -> None:
    cluster = VirtualCluster(1, {"max.incremental.fetch.session.cache.slots": "2"})
    cluster.topic("t", 3)
    cluster.topic("u", 1)

    def values_shown() -> list[float | None]:
        return [
            value(cluster, name, "FetchSessionCache")
            for name in (
                "NumIncrementalFetchSessions",
                "NumIncrementalFetchPartitionsCached",
                "IncrementalFetchSessionEvictionsPerSec",
            )
        ]

    assert values_shown() == [0.0, 0.0, 0.0]
    for partitions in ([0, 1, 2], [0]):
        cluster.connect().ask(fetch(*[("t", p, 0) for p in partitions], session=(0, 0)), 11)
        cluster.advance(1)
    assert values_shown() == [2.0, 4.0, 0.0]
    cluster.advance(120_001)
    cluster.connect().ask(fetch(("t", 0, 0), ("u", 0, 0), session=(0, 0)), 11)
    assert values_shown() == [2.0, 3.0, 1.0]


@pytest.mark.rule("Q-17")
def test_metrics_of_a_running_cluster_can_be_filtered_by_name_and_tags() -> None:
    with running_cluster(2, {"t": 1}, clock="manual") as c:
        c.set_quota(client_id="a", producer_byte_rate=10.0)
        assert c.metrics("queue-size", "Produce", broker=1) == {MetricName("queue-size", "Produce", (), 1): 0.0}
        assert {key.broker_id for key in c.metrics(group="FetchSessionCache")} == {0, 1}
        assert c.metrics(client_id="a") == {}
        assert c.metrics("no such") == {}
        c.broker(1).stop()
        assert {key.broker_id for key in c.metrics()} <= {0, CONTROLLER}


@pytest.mark.rule("W-13")
def test_connection_rate_of_an_ip_address_is_a_metric_only_if_the_ip_has_a_quota() -> None:
    cluster = VirtualCluster()
    cluster.state.quota_store.set(QuotaEntity(ip="127.0.0.1"), "connection_creation_rate", 100)
    for address in ("127.0.0.1", "127.0.0.1", "10.0.0.1"):
        cluster.connect(address=address)
    group = "socket-server-metrics"
    assert value(cluster, "broker-connection-accept-rate", group) == pytest.approx(0.3)
    assert value(cluster, "connection-accept-rate", group, listener="PLAINTEXT") == pytest.approx(0.3)
    assert value(cluster, "connection-accept-rate", group, ip="127.0.0.1") == pytest.approx(0.2)
    assert value(cluster, "connection-accept-rate", group, ip="10.0.0.1") is None
