"""What Kafka calls the numbers of its brokers: a snapshot of them under its names, groups and tags, made when somebody asks.

The one place that knows these names. Each room gives its own numbers, and nothing is counted for a snapshot that is not counted
anyway. A group is the `type` of Kafka's JMX name (`kafka.server:type=Fetch,user=...,client-id=...`). Must never know wire messages.
Reading changes nothing.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
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
"""The broker id of what the cluster as a whole counts."""


class MetricName(NamedTuple):
    """Which number. tags: in Kafka's order. broker_id: whose; CONTROLLER for the cluster's."""

    name: str
    group: str
    tags: Tags
    broker_id: int


Metrics = dict[MetricName, float]
Found = Iterator[tuple[str, str, Tags, float]]
"""name, group, tags, value"""


class ThrottleQueues(Observer):
    """The queues of throttled connections, one per broker and quota.

    They are queues of delays, as Kafka's: a connection that is gone stays until its throttle time is over (T-10), so the end of a throttle
    and of a connection change nothing here.
    """

    def __init__(self) -> None:
        self._ends: deque[tuple[int, int, str]] = deque()
        """(end of the throttle, broker, quota), in the order in which the throttles began."""

    def throttled(self, exchange: Exchange, throttle_ms: int, reason: Any, held: bool) -> None:
        if isinstance(reason, ThrottleReason):
            now_ms, ends = exchange.now_ms, self._ends
            ends.append((now_ms + throttle_ms, exchange.node.broker_id, reason.quota))
            while ends[0][0] <= now_ms:
                ends.popleft()

    def cleared(self, now_ms: int) -> None:
        self._ends.clear()

    def sizes(self, now_ms: int) -> Counter[tuple[int, str]]:
        """How many wait, by broker id and quota."""
        return Counter((broker_id, quota) for end_ms, broker_id, quota in self._ends if end_ms > now_ms)


class Measured(Protocol):
    """What a snapshot reads of a cluster."""

    mutations: MutationQuotas
    throttle_queues: ThrottleQueues

    @property
    def nodes(self) -> Sequence[Node]: ...


def snapshot(cluster: Measured, now_ms: int) -> Metrics:
    """All numbers of all brokers that run, as of now."""
    found: Metrics = {}
    waiting = cluster.throttle_queues.sizes(now_ms)
    for node in cluster.nodes:
        if node.running:
            for name, group, tags, value in _of_broker(node, waiting, now_ms):
                found[MetricName(name, group, tags, node.broker_id)] = value
    for one in cluster.mutations.metrics(now_ms):
        for name, group, tags, value in _of_mutations(one):
            found[MetricName(name, group, tags, CONTROLLER)] = value
    return found


def _of_broker(node: Node, waiting: Mapping[tuple[int, str], int], now_ms: int) -> Found:
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


def _of_clients(node: Node, now_ms: int) -> Found:
    """byte-rate, request-time and throttle-time of each identity; the last only once it was throttled."""
    for one in node.quotas.metrics(now_ms):
        yield _RATE_NAMES[one.quota], one.quota, _identity(one), one.rate
        yield from _throttle_time(one)
    if node.quotas.request.enabled:
        yield "exempt-request-time", "Request", (), node.quotas.exempt_request_time.peek(now_ms)


def _of_mutations(one: SensorMetrics) -> Found:
    """KIP-599: how fast topics and partitions are made, and what is left in the bucket."""
    yield "mutation-rate", one.quota, _identity(one), one.rate
    if one.tokens is not None:
        yield "tokens", one.quota, _identity(one), one.tokens
    yield from _throttle_time(one)


def _throttle_time(one: SensorMetrics) -> Found:
    if one.mean_throttle_ms is not None:
        yield "throttle-time", one.quota, _identity(one), one.mean_throttle_ms


def _identity(one: SensorMetrics) -> Tags:
    return ("user", one.user), ("client-id", one.client_id)


# ---- replication and sessions (S-15) ----------------------------------------------------------------------------------


def _of_replication(quota: ReplicationQuota, now_ms: int) -> Found:
    """What of the throttled lists went or came; 0 while nothing is listed and limited."""
    yield "byte-rate", quota.group, (), quota.rate(now_ms)


def _of_replicas(node: Node, now_ms: int) -> Found:
    """What KIP-73 asks for to watch a reassignment with. Kafka itself never had these two.

    SumReplicaLag: records that this broker's followers lack. PartitionBytesInRate: what producers wrote to a partition since this
    broker holds it, per second.
    """
    replicas = node.replicas
    yield "SumReplicaLag", "ReplicaManager", (), float(sum(f.lag for f in replicas.fetchers.values()))
    for (topic, index), partition in replicas.partitions.items():
        if partition.is_leader:
            tags = (("topic", topic), ("partition", str(index)))
            yield "PartitionBytesInRate", "BrokerTopicMetrics", tags, partition.bytes_in_rate(now_ms)


def _of_sessions(node: Node) -> Found:
    """Kafka has a meter of evictions per shard, whose Count this is."""
    cache = node.sessions
    yield "NumIncrementalFetchSessions", "FetchSessionCache", (), float(len(cache))
    yield "NumIncrementalFetchPartitionsCached", "FetchSessionCache", (), float(cache.partition_count)
    yield "IncrementalFetchSessionEvictionsPerSec", "FetchSessionCache", (), float(cache.evictions)
