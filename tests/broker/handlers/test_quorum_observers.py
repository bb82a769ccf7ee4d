"""The observers in DescribeQuorum: their directory ids, and brokers that have stopped."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from kafkaproto.messages.unregister_broker import UnregisterBrokerRequest

pytestmark = pytest.mark.rule("AD-25")
LISTED_MS = 300_000
"""How long Kafka lists an observer after its last fetch."""


def partition(cluster: VirtualCluster, version: int = 2) -> Any:
    """Return the quorum of the metadata log, as broker 0 describes it."""
    topic = DescribeQuorumRequestTopicData("__cluster_metadata", [DescribeQuorumRequestPartitionData(0)])
    return cluster.connect(0).ask(DescribeQuorumRequest([topic]), version).topics[0].partitions[0]


def observers(cluster: VirtualCluster) -> dict[int, Any]:
    return {observer.replica_id: observer for observer in partition(cluster).observers}


def test_each_observer_in_describe_quorum_v2_has_a_directory_id_of_its_own() -> None:
    cluster = VirtualCluster(3)
    directories = {observer.replica_id: observer.replica_directory_id for observer in observers(cluster).values()}
    assert len({*directories.values()} - {bytes(16)}) == 2
    cluster.state.stop_broker(1)
    cluster.state.start_broker(1)
    assert {i: observer.replica_directory_id for i, observer in observers(cluster).items()} == directories
    assert [observer.replica_directory_id for observer in partition(cluster, 1).observers] == [bytes(16)] * 2


@pytest.mark.parametrize("controlled", ["true", "false"])
def test_stopped_broker_is_an_observer_until_5_minutes_after_its_last_fetch(controlled: str) -> None:
    cluster = VirtualCluster(3, {"controlled.shutdown.enable": controlled})
    cluster.state.stop_broker(2)
    stop_ms, end = cluster.now_ms, partition(cluster).high_watermark
    cluster.topic("t", 1, 1)
    cluster.advance(LISTED_MS - 1)
    assert partition(cluster).high_watermark > end
    stopped, running = observers(cluster)[2], observers(cluster)[1]
    assert (stopped.last_fetch_timestamp, stopped.last_caught_up_timestamp) == (stop_ms, stop_ms)
    assert stopped.log_end_offset == end
    assert (running.last_fetch_timestamp, running.log_end_offset) == (
        cluster.now_ms,
        partition(cluster).high_watermark,
    )
    cluster.advance(1)
    assert [*observers(cluster)] == [1]
    cluster.state.start_broker(2)
    assert observers(cluster)[2].last_fetch_timestamp == cluster.now_ms


def test_running_broker_that_is_unregistered_stays_an_observer() -> None:
    cluster = VirtualCluster(3)
    assert cluster.connect(0).ask(UnregisterBrokerRequest(1), 0).error_code == 0
    cluster.advance(2 * LISTED_MS)
    assert [*observers(cluster)] == [1, 2]
