"""Common initial states for tests of a cluster in virtual time: filled topics, held followers, later epochs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkaproto.broker.replication.fetcher import ReplicaFetcher
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.records.batch import BatchHeader, batches, complete_bytes
from tests.support.wire import batch, flat, produce, produced

PRODUCE_VERSION = 9


def three(semantics: Any = "kip", **config: str) -> VirtualCluster:
    """Return three brokers with topic `t`: one partition with a replica on each broker, led by broker 0."""
    cluster = VirtualCluster(3, config, semantics=semantics)
    cluster.topic("t", 1, 3)
    return cluster


def fill(cluster: VirtualCluster, topic: str, *new_batches: bytes, partition: int = 0, acks: int = 1) -> None:
    """Append batches to a partition through its leader."""
    leader, _ = cluster.state.controller.image.leader_of(topic, partition)
    writer = cluster.connect(leader, client_id="writer")
    for data in new_batches:
        response = produced(writer.ask(produce(topic, data, partition, acks), PRODUCE_VERSION))
        assert response.error_code == 0, response


def replica(cluster: VirtualCluster, broker_id: int, topic: str = "t", index: int = 0) -> Partition:
    return cluster.state.nodes[broker_id].replicas.partitions[(topic, index)]


def fetchers(cluster: VirtualCluster, broker_id: int, topic: str = "t", index: int = 0) -> Iterator[ReplicaFetcher]:
    for fetcher in cluster.state.nodes[broker_id].replicas.fetchers.values():
        if (topic, index) in fetcher.partitions:
            yield fetcher


def hold(cluster: VirtualCluster, *broker_ids: int, topic: str = "t", index: int = 0, at: int | None = None) -> None:
    """Stop these followers from fetching records, or only records at or above offset `at`."""
    for broker_id in broker_ids:
        for fetcher in fetchers(cluster, broker_id, topic, index):
            fetcher.hold(topic, index, at, cluster.now_ms)


def release(cluster: VirtualCluster, *broker_ids: int, topic: str = "t", index: int = 0) -> None:
    for broker_id in broker_ids:
        cluster.state.nodes[broker_id].replicas.release(topic, index)
    cluster.run()


def elect(cluster: VirtualCluster, leader: int, topic: str = "t", index: int = 0) -> None:
    cluster.state.controller.elect(topic, index, leader)
    cluster.run()


def topic_ids(cluster: VirtualCluster) -> dict[str, bytes]:
    """Return the topic ids, which Fetch uses from version 13."""
    return {name: topic.topic_id for name, topic in cluster.state.controller.image.topics.items()}


def only(response: Any) -> Any:
    """Return the data of the only partition in a fetch response."""
    [(_, data)] = flat(response)
    return data


def whole_batches(records: Any) -> list[BatchHeader]:
    """Return the headers of complete batches in a fetch response; like clients, ignore a truncated batch at the end."""
    data = bytes(records or b"")
    return [whole.header for whole in batches(data[: complete_bytes(data)])]


def base_offsets(response: Any) -> list[int]:
    return [header.base_offset for header in whole_batches(only(response).records)]


def partition_offsets(data: Any) -> tuple[int, int, int]:
    """Return (high watermark, last stable offset, log start offset)."""
    return data.high_watermark, data.last_stable_offset, data.log_start_offset


def answered_at(client: MemoryClient, since_ms: int) -> list[int]:
    """Return when each response arrived, in milliseconds since `since_ms`."""
    return [response.at_ms - since_ms for response in client.answers]


def lagging(semantics: str) -> VirtualCluster:
    """Return a cluster whose broker 2 lags but is in sync: it has two of five records and holds back the high watermark."""
    cluster = three(semantics)
    hold(cluster, 2, at=2)
    fill(cluster, "t", *(batch(b"%d" % i) for i in range(5)))
    cluster.advance(1000)  # under `kafka` a follower learns a new high watermark from its next fetch
    return cluster
