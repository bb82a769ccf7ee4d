"""DescribeLogDirs and AlterReplicaLogDirs with one log directory per broker; the expected responses are those of Kafka 3.9.1."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kafkaproto.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafkaproto.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.support.scene import fill
from tests.support.wire import batch_of_bytes


@pytest.fixture
def cluster() -> VirtualCluster:
    """Return a cluster with t-0 and t-1 on brokers 0 and 1 and 1000 bytes in t-0; broker 2 has no replica."""
    virtual_cluster = VirtualCluster(3, {"log.dirs": "/data/a, /data/b"})
    controller = virtual_cluster.state.controller
    controller.put_topic(controller.plan_topic("t", assignment={0: [0, 1], 1: [0, 1]}))
    virtual_cluster.run()
    fill(virtual_cluster, "t", batch_of_bytes(1000))
    return virtual_cluster


def described(cluster: VirtualCluster, broker_id: int, requested: dict[str, list[int]] | None) -> dict[str, list[int]]:
    """Return topic to the size of each partition in a DescribeLogDirs response."""
    topics = (
        None if requested is None else [DescribableLogDirTopic(name, indexes) for name, indexes in requested.items()]
    )
    sizes = {}
    for version in (0, 2, 4):
        response = cluster.connect(broker_id).ask(DescribeLogDirsRequest(topics), version)
        [result] = response.results
        assert (response.error_code, result.error_code, result.log_dir) == (0, 0, "/data/a")
        sizes = {topic.name: [p.partition_size for p in topic.partitions] for topic in result.topics}
    return sizes


def test_describe_log_dirs_lists_only_replicas_hosted_by_the_broker(cluster: VirtualCluster) -> None:
    assert described(cluster, 0, {"t": [1, 0, 7, 1], "none": [0]}) == {"t": [0, 1000]}
    assert described(cluster, 1, None) == {"t": [1000, 0]}
    assert described(cluster, 0, {}) == described(cluster, 2, None) == {}


def test_each_broker_without_log_dir_settings_reports_its_own_log_directory() -> None:
    cluster = VirtualCluster(2)
    log_dirs = [cluster.connect(b).ask(DescribeLogDirsRequest(None), 4).results[0].log_dir for b in (0, 1)]
    assert log_dirs == ["/kafkaproto/broker-0", "/kafkaproto/broker-1"]


def volume(cluster: VirtualCluster, version: int = 4) -> tuple[int, int]:
    """Return (total bytes, usable bytes) in a DescribeLogDirs response."""
    [result] = cluster.connect().ask(DescribeLogDirsRequest(None), version).results
    return result.total_bytes, result.usable_bytes


@pytest.mark.rule("AD-49")
def test_describe_log_dirs_returns_the_memory_limit_as_size_of_an_in_memory_volume(cluster: VirtualCluster) -> None:
    budget = cluster.state.budget
    assert volume(cluster) == (budget.limit_bytes, budget.limit_bytes - budget.used_bytes)
    assert volume(cluster, 3) == (-1, -1)


@pytest.mark.rule("AD-49")
def test_describe_log_dirs_returns_the_size_of_the_file_system_of_the_data_dir(tmp_path: Path) -> None:
    cluster = VirtualCluster(1, data_dir=tmp_path / "data")
    total_bytes, usable_bytes = volume(cluster)
    assert total_bytes == shutil.disk_usage(tmp_path).total and 0 < usable_bytes <= total_bytes
    (tmp_path / "data").rename(tmp_path / "moved")
    assert volume(cluster) == (-1, -1)


@pytest.mark.parametrize(
    ("broker_id", "path", "errors"),
    [(0, "/data/a", [0, 3, 3]), (2, "/data/a", [9, 3, 3]), (0, "/data/b", [57] * 3), (2, "relative", [57] * 3)],
)
def test_alter_replica_log_dirs_accepts_only_the_current_directory_of_the_replica(
    cluster: VirtualCluster, broker_id: int, path: str, errors: list[int]
) -> None:
    topics = [AlterReplicaLogDirTopic("t", [0, 7]), AlterReplicaLogDirTopic("none", [0])]
    request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(path, topics)])
    for version in (0, 2):
        response = cluster.connect(broker_id).ask(request, version)
        assert [p.error_code for topic in response.results for p in topic.partitions] == errors


@pytest.fixture
def small_segments() -> VirtualCluster:
    """Return a cluster with t-0 on brokers 0 and 1 and four batches of 300 bytes in it, two in each segment."""
    virtual_cluster = VirtualCluster(2, {"log.dirs": "/data/a"})
    controller = virtual_cluster.state.controller
    controller.put_topic(
        controller.plan_topic("t", assignment={0: [0, 1]}, configs={"segment.bytes": "700", "retention.ms": "-1"})
    )
    virtual_cluster.run()
    for _ in range(4):
        fill(virtual_cluster, "t", batch_of_bytes(300))
    return virtual_cluster


@pytest.mark.rule("AD-41")
def test_describe_log_dirs_size_includes_the_whole_segment_that_holds_the_log_start(
    small_segments: VirtualCluster,
) -> None:
    sizes = []
    for offset in range(1, 5):
        delete_records(small_segments, "t", offset)
        sizes.append([described_size(small_segments, broker_id) for broker_id in (0, 1)])
    assert sizes == [[1200, 1200], [600, 600], [600, 600], [600, 600]]


@pytest.mark.rule("AD-41")
def test_log_dir_size_includes_deleted_records_until_the_active_segment_rolls(small_segments: VirtualCluster) -> None:
    fill(small_segments, "t", batch_of_bytes(300))
    delete_records(small_segments, "t", 5)
    assert described_size(small_segments, 0) == 300
    fill(small_segments, "t", batch_of_bytes(300))
    assert described_size(small_segments, 0) == 600
    fill(small_segments, "t", batch_of_bytes(300))
    assert described_size(small_segments, 0) == 900
    delete_records(small_segments, "t", 7)
    fill(small_segments, "t", batch_of_bytes(500))
    assert described_size(small_segments, 0) == 500


def described_size(cluster: VirtualCluster, broker_id: int) -> int:
    [size] = described(cluster, broker_id, {"t": [0]})["t"]
    return size


def delete_records(cluster: VirtualCluster, topic: str, offset: int) -> None:
    """Delete the records of partition 0 below an offset, on all replicas."""
    request = DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])], 5000)
    client = cluster.connect(0)
    client.send(request, 2)
    cluster.advance(2000)
    cluster.run()
    [partition] = client.answers[-1].message.topics[0].partitions
    assert (partition.error_code, partition.low_watermark) == (0, offset)
