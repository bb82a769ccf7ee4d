"""ListOffsets just after an election, and from a follower. The conformance suite asks for everything else (L-1 to L-10)."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.records.batch import NewRecord, build_batch
from tests.support.scene import hold, release
from tests.support.wire import produce

LATEST, EARLIEST = -1, -2


def ask(client: MemoryClient, timestamp: int, version: int = 9, *, replica_id: int = -1) -> Any:
    wanted = ListOffsetsPartition(0, -1, timestamp)
    request = ListOffsetsRequest(replica_id, 0, [ListOffsetsTopic("t", [wanted])])
    return client.ask(request, version).topics[0].partitions[0]


def write(client: MemoryClient, *timestamps: int) -> None:
    """Append a batch of one record for each timestamp."""
    for timestamp in timestamps:
        client.ask(produce("t", build_batch([NewRecord(b"v", None, timestamp)])), 9)


def elected() -> VirtualCluster:
    """Kafka's testMonotonicOffsetsAfterLeaderChange: five records, two of them committed, and a new leader that does not know."""
    cluster = VirtualCluster(3)
    cluster.topic("t", 1, 3)
    client = cluster.connect()
    hold(cluster, 2, at=2)
    write(client, 10, 11, 12, 13, 14)
    assert cluster.state.nodes[1].replicas.partitions[("t", 0)].log.high_watermark == 2
    hold(cluster, 1)
    for broker_id in (0, 2):
        for fetcher in cluster.state.nodes[broker_id].replicas.fetchers.values():
            fetcher.cut_link(True, cluster.now_ms)
    cluster.state.controller.elect("t", 0, 1)
    # Nobody has fetched from the new leader yet: its high watermark stays below the start of its epoch.
    for broker_id in (0, 2):
        for fetcher in cluster.state.nodes[broker_id].replicas.fetchers.values():
            fetcher.cut_link(True, cluster.now_ms)
    cluster.run()
    return cluster


@pytest.mark.rule("L-8")
def test_a_new_leader_does_not_tell_what_it_cannot_know_yet() -> None:
    cluster = elected()
    client = cluster.connect(1)
    assert ask(client, LATEST).error_code == 78
    assert ask(client, LATEST, 4).error_code == 5
    assert ask(client, 100).error_code == 78
    assert ask(client, LATEST, replica_id=-2).offset == 5
    assert (ask(client, EARLIEST).error_code, ask(client, EARLIEST).offset) == (0, 0)
    found = ask(client, 11)
    assert (found.error_code, found.offset, found.timestamp) == (0, 1, 11)
    for broker_id in (0, 2):
        for fetcher in cluster.state.nodes[broker_id].replicas.fetchers.values():
            fetcher.cut_link(False, cluster.now_ms)
    release(cluster, 2)
    assert ask(client, LATEST).offset == 5
    assert (ask(client, 100).error_code, ask(client, 100).offset) == (0, -1)


@pytest.mark.rule("N-15")
def test_a_follower_tells_its_own_log_start_to_a_debugging_consumer() -> None:
    cluster = VirtualCluster(2)
    cluster.topic("t", 1, 2)
    write(cluster.connect(), 1, 2, 3)
    cluster.state.nodes[1].replicas.partitions[("t", 0)].log.raise_log_start(2)
    assert ask(cluster.connect(1), EARLIEST, replica_id=-2).offset == 2
    assert ask(cluster.connect(0), EARLIEST).offset == 0
