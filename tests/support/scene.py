"""What many tests of a cluster in virtual time begin with: topics that are filled, followers that are held, epochs that moved."""

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
    """Three brokers and topic `t` with one partition on all of them; broker 0 leads it."""
    cluster = VirtualCluster(3, config, semantics=semantics)
    cluster.topic("t", 1, 3)
    return cluster


def fill(cluster: VirtualCluster, topic: str, *made: bytes, partition: int = 0, acks: int = 1) -> None:
    """Append batches to a partition, through the broker that leads it."""
    leader, _ = cluster.state.controller.image.leader_of(topic, partition)
    writer = cluster.connect(leader, client_id="writer")
    for data in made:
        answer = produced(writer.ask(produce(topic, data, partition, acks), PRODUCE_VERSION))
        assert answer.error_code == 0, answer


def replica(cluster: VirtualCluster, broker_id: int, topic: str = "t", index: int = 0) -> Partition:
    return cluster.state.nodes[broker_id].replicas.partitions[(topic, index)]


def fetchers(cluster: VirtualCluster, broker_id: int, topic: str = "t", index: int = 0) -> Iterator[ReplicaFetcher]:
    for fetcher in cluster.state.nodes[broker_id].replicas.fetchers.values():
        if (topic, index) in fetcher.partitions:
            yield fetcher


def hold(cluster: VirtualCluster, *broker_ids: int, topic: str = "t", index: int = 0, at: int | None = None) -> None:
    """These followers take nothing more, or nothing at or above offset `at`."""
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
    """What Fetch names topics by from version 13 on."""
    return {name: topic.topic_id for name, topic in cluster.state.controller.image.topics.items()}


def only(response: Any) -> Any:
    """The data of the one partition of a fetch response."""
    [(_, data)] = flat(response)
    return data


def whole_batches(records: Any) -> list[BatchHeader]:
    """The headers of the batches that are complete in what a fetch returned; a cut-off tail is left out, as clients do."""
    data = bytes(records or b"")
    return [found.header for found in batches(data[: complete_bytes(data)])]


def base_offsets(response: Any) -> list[int]:
    return [header.base_offset for header in whole_batches(only(response).records)]


def offsets_told(data: Any) -> tuple[int, int, int]:
    """(high watermark, last stable offset, log start offset)."""
    return data.high_watermark, data.last_stable_offset, data.log_start_offset


def answered_at(client: MemoryClient, since_ms: int) -> list[int]:
    """When each answer came, in milliseconds since `since_ms`."""
    return [answer.at_ms - since_ms for answer in client.answers]


def lagging(semantics: str) -> VirtualCluster:
    """Five records at the leader and at broker 1; broker 2, in sync, has two and holds the high watermark there."""
    cluster = three(semantics)
    hold(cluster, 2, at=2)
    fill(cluster, "t", *(batch(b"%d" % i) for i in range(5)))
    cluster.advance(1000)  # under `kafka` a follower hears of a high watermark with its next fetch
    return cluster
