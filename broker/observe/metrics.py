"""Kafka's broker metrics: a snapshot under Kafka's names, groups and tags, computed on request.

All names of metrics are in this module. Each package provides its own values; this module itself tracks only the queues of throttled connections. A
group is the `type` of Kafka's JMX name (`kafka.server:type=Fetch,user=...,client-id=...`). This module does not depend on wire messages. A snapshot
changes no state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kafkaproto.broker.quota.mutations import MutationQuotas
from kafkaproto.broker.quota.replication_quotas import ReplicationQuota
from kafkaproto.broker.quota.sensors import SensorMetrics, ThrottleReason
from kafkaproto.broker.runtime.events import Observer

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node
    from kafkaproto.broker.requests.exchange import Exchange

Tags = tuple[tuple[str, str], ...]

CONTROLLER = -1
"""The broker id of metrics that belong to the whole cluster."""


class MetricName(NamedTuple):
    """Identifies a metric. tags: (name, value) pairs in Kafka's order. broker_id: the broker, or CONTROLLER for metrics of the cluster."""

    name: str
    """Kafka's name of the metric, such as "byte-rate"."""
    group: str
    """Kafka's group of the metric, such as "Produce"."""
    tags: Tags
    broker_id: int


Metrics = dict[MetricName, float]
Values = Iterator[tuple[str, str, Tags, float]]
"""Metrics as tuples (name, group, tags, value)."""


class ThrottleQueues(Observer):
    """The queues of throttled connections, one per broker and quota.

    As in Kafka, a connection stays in its queue until its throttle time is over (T-10), even if the connection is closed or unmuted before.
    """

    def __init__(self) -> None:
        self._ends: list[tuple[int, int, str]] = []
        """A heap of (end of the throttle in ms, broker id, quota type) for each throttled connection."""

    def throttled(self, exchange: Exchange, throttle_ms: int, reason: Any, held: bool) -> None:
        if isinstance(reason, ThrottleReason):
            now_ms, throttle_ends = exchange.now_ms, self._ends
            heappush(throttle_ends, (now_ms + throttle_ms, exchange.node.broker_id, reason.quota))
            while throttle_ends and throttle_ends[0][0] <= now_ms:
                heappop(throttle_ends)

    def cleared(self, now_ms: int) -> None:
        self._ends.clear()

    def sizes(self, now_ms: int) -> Counter[tuple[int, str]]:
        """Return the number of throttled connections by (broker id, type of quota, such as "Produce")."""
        return Counter((broker_id, quota) for end_ms, broker_id, quota in self._ends if end_ms > now_ms)


class Measured(Protocol):
    """Interface of a cluster with the attributes from which `snapshot` computes the metrics."""

    mutations: MutationQuotas
    throttle_queues: ThrottleQueues

    @property
    def nodes(self) -> Iterable[Node]: ...


def snapshot(cluster: Measured, now_ms: int) -> Metrics:
    """Return the current metrics of all running brokers."""
    metrics: Metrics = {}
    queue_sizes = cluster.throttle_queues.sizes(now_ms)
    for node in cluster.nodes:
        if node.running:
            for name, group, tags, value in _of_broker(node, queue_sizes, now_ms):
                metrics[MetricName(name, group, tags, node.broker_id)] = value
    for sensor in cluster.mutations.metrics(now_ms):
        for name, group, tags, value in _of_mutations(sensor):
            metrics[MetricName(name, group, tags, CONTROLLER)] = value
    return metrics


def _of_broker(node: Node, waiting: Mapping[tuple[int, str], int], now_ms: int) -> Values:
    yield from _of_clients(node, now_ms)
    for quota_name in (*_RATE_NAMES, "ControllerMutation"):
        yield "queue-size", quota_name, (), float(waiting.get((node.broker_id, quota_name), 0))
    for quota in (node.replicas.leader_quota, node.replicas.follower_quota):
        yield from _of_replication(quota, now_ms)
    yield from _of_replicas(node, now_ms)
    yield from _of_sessions(node)
    for name, tags, rate in node.connection_quotas.metrics(now_ms):
        yield name, "socket-server-metrics", tuple(tags.items()), rate


# ---- client quotas (Q-17) ----------------------------------------------------------------------------------------------------------

_RATE_NAMES = {"Produce": "byte-rate", "Fetch": "byte-rate", "Request": "request-time"}


def _of_clients(node: Node, now_ms: int) -> Values:
    """Yield the metrics of the produce, fetch and request quotas, for each client identity (user, client id or both).

    Each identity has the metric byte-rate or request-time and, if one of its clients was throttled recently, throttle-time. If a request quota is
    configured, the last metric is exempt-request-time, measured for all clients together.
    """
    for sensor in node.quotas.metrics(now_ms):
        yield _RATE_NAMES[sensor.quota], sensor.quota, _identity(sensor), sensor.rate
        yield from _throttle_time(sensor)
    if node.quotas.request.enabled:
        yield "exempt-request-time", "Request", (), node.quotas.exempt_request_time.peek(now_ms)


def _of_mutations(sensor: SensorMetrics) -> Values:
    """Yield the rate at which partitions are created and deleted, the tokens left in the bucket, and the throttle time (KIP-599).

    sensor: the measurements of one user, client id or both. Values that were not measured are left out.
    """
    yield "mutation-rate", sensor.quota, _identity(sensor), sensor.rate
    if sensor.tokens is not None:
        yield "tokens", sensor.quota, _identity(sensor), sensor.tokens
    yield from _throttle_time(sensor)


def _throttle_time(sensor: SensorMetrics) -> Values:
    if sensor.mean_throttle_ms is not None:
        yield "throttle-time", sensor.quota, _identity(sensor), sensor.mean_throttle_ms


def _identity(sensor: SensorMetrics) -> Tags:
    return ("user", sensor.user), ("client-id", sensor.client_id)


# ---- replication and sessions (S-15) ----------------------------------------------------------------------------------


def _of_replication(quota: ReplicationQuota, now_ms: int) -> Values:
    """Yield the rate in bytes per second that `quota`, one of a broker's two replication quotas, measures for its throttled replicas."""
    yield "byte-rate", quota.group, (), quota.rate(now_ms)


def _of_replicas(node: Node, now_ms: int) -> Values:
    """Yield the lag and the write rate of replicas, two metrics that KIP-73 proposes for watching a reassignment. Kafka itself never had them.

    SumReplicaLag: the differences between the leader's and the follower's log end offset, summed over all follower replicas on this broker.
    PartitionBytesInRate: for each partition that this broker leads, the bytes per second that producers wrote since the replica was created.
    """
    replicas = node.replicas
    yield "SumReplicaLag", "ReplicaManager", (), float(sum(f.lag for f in replicas.fetchers.values()))
    for (topic, index), partition in replicas.partitions.items():
        if partition.is_leader:
            tags = (("topic", topic), ("partition", str(index)))
            yield "PartitionBytesInRate", "BrokerTopicMetrics", tags, partition.bytes_in_rate(now_ms)


def _of_sessions(node: Node) -> Values:
    """Yield the metrics of the fetch session cache. Kafka's metric of evictions has several attributes, of which only Count is reported."""
    cache = node.sessions
    yield "NumIncrementalFetchSessions", "FetchSessionCache", (), float(len(cache))
    yield "NumIncrementalFetchPartitionsCached", "FetchSessionCache", (), float(cache.partition_count)
    yield "IncrementalFetchSessionEvictionsPerSec", "FetchSessionCache", (), float(cache.evictions)
