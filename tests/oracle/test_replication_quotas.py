"""Replication quotas and metric names compared with Kafka 3.9.1: equal results for equal events."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, kafka_jars
from kafkaproto.broker.observe.metrics import snapshot
from kafkaproto.broker.quota.replication_quotas import ReplicationQuota
from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.oracle.quotas import QuotaOracle
from tests.support.wire import limit, produce_of_bytes

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
START_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def kafka() -> Iterator[QuotaOracle]:
    with QuotaOracle(kafka_jars(KAFKA_VERSION)) as process:
        yield process


@pytest.mark.rule("R-3")
@pytest.mark.parametrize(("samples", "window_seconds"), [(11, 1), (10, 1), (2, 1), (1, 1), (3, 7)])
def test_replication_quota_rate_and_exceeded_state_equal_those_of_kafka(
    kafka: QuotaOracle, samples: int, window_seconds: int
) -> None:
    rng = Random(f"{samples} {window_seconds}")
    window_ms = 1000 * window_seconds
    ours = ReplicationQuota("LeaderReplication", samples, window_ms)
    now_ms = START_MS
    steps: list[list[Any]] = []
    results: list[tuple[bool, float]] = []

    def limit_to(bound: int) -> None:
        ours.limit(bound)
        steps.append(["limit", bound])

    limit_to(1000)
    for _ in range(20_000):
        choice = rng.random()
        if choice < 0.02:
            limit_to(rng.choice((0, 1, 1000, rng.randrange(5000))))
        elif choice < 0.6:
            size = rng.choice((0, 16, 16, rng.randrange(3000), rng.randrange(20_000)))
            ours.record(size, now_ms)
            steps.append(["record", now_ms, size])
        else:
            results.append((ours.exceeded(now_ms), ours.rate(now_ms)))
            steps.append(["look", now_ms])
        now_ms += rng.choice(
            (0, 0, 1, rng.randrange(window_ms), window_ms - 1, window_ms, samples * window_ms, rng.randrange(15_000))
        )
    assert {exceeded for exceeded, _ in results} == {False, True}
    assert results == kafka.replication_quota(samples, window_seconds, steps)


@pytest.mark.rule("Q-17", "R-10")
def test_quota_metrics_have_the_same_names_and_groups_and_tags_as_in_kafka(kafka: QuotaOracle) -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    for key in ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"):
        limit(cluster, "c", "ANONYMOUS", **{key: 1.0})
    client = cluster.connect(client_id="c")
    client.send(produce_of_bytes(client, "t", 1000), 9)
    now_ms = cluster.now_ms
    node = cluster.state.nodes[0]
    for manager in (node.quotas.produce, node.quotas.fetch, node.quotas.request):
        # Kafka's metric of throttle times exists before the first throttle, with the value NaN.
        manager.throttled("ANONYMOUS", "c", 1, manager.record("ANONYMOUS", "c", 1000, now_ms), now_ms)
    mutations = cluster.state.mutations
    for _ in range(2):
        wait_ms = mutations.take("ANONYMOUS", "c", 20, strict=False, now_ms=now_ms)
    assert wait_ms is not None
    mutations.throttled("ANONYMOUS", "c", 20, wait_ms, now_ms)
    ours = {(name.name, name.group, tuple(sorted(name.tags))) for name in snapshot(cluster.state, now_ms)}
    # Metrics of Kafka's other registry, of KIP-73 and of its socket server are missing in the oracle.
    beside = {"FetchSessionCache", "ReplicaManager", "BrokerTopicMetrics", "socket-server-metrics"}
    assert {metric for metric in ours if metric[1] not in beside} == {
        metric for metric in kafka.metric_names("ANONYMOUS", "c") if metric[1] != ""
    }
