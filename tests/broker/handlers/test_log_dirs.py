"""DescribeLogDirs and AlterReplicaLogDirs: one directory per broker. The answers are those that the real 3.9.1 gave to the same."""

from __future__ import annotations

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kafkaproto.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.support.scene import fill
from tests.support.wire import batch_of_bytes


@pytest.fixture
def cluster() -> VirtualCluster:
    """Partitions t-0 and t-1 on brokers 0 and 1, with 1000 bytes in t-0; broker 2 has nothing."""
    made = VirtualCluster(3, {"log.dirs": "/data/a, /data/b"})
    controller = made.state.controller
    controller.create_topic(controller.plan_topic("t", assignment={0: [0, 1], 1: [0, 1]}))
    made.run()
    fill(made, "t", batch_of_bytes(1000))
    return made


def described(cluster: VirtualCluster, broker_id: int, asked: dict[str, list[int]] | None) -> dict[str, list[int]]:
    """Topic to the size of each partition told of."""
    topics = None if asked is None else [DescribableLogDirTopic(name, indexes) for name, indexes in asked.items()]
    told = {}
    for version in (0, 2, 4):
        answer = cluster.connect(broker_id).ask(DescribeLogDirsRequest(topics), version)
        [result] = answer.results
        assert (answer.error_code, result.error_code, result.log_dir, result.total_bytes) == (0, 0, "/data/a", -1)
        told = {topic.name: [p.partition_size for p in topic.partitions] for topic in result.topics}
    return told


def test_a_broker_tells_of_the_replicas_that_it_holds(cluster: VirtualCluster) -> None:
    assert described(cluster, 0, {"t": [1, 0, 7, 1], "none": [0]}) == {"t": [0, 1000]}
    assert described(cluster, 1, None) == {"t": [1000, 0]}
    assert described(cluster, 0, {}) == described(cluster, 2, None) == {}


def test_a_broker_without_settings_has_a_directory_of_its_own() -> None:
    cluster = VirtualCluster(2)
    told = [cluster.connect(b).ask(DescribeLogDirsRequest(None), 4).results[0].log_dir for b in (0, 1)]
    assert told == ["/kafkaproto/broker-0", "/kafkaproto/broker-1"]


@pytest.mark.parametrize(
    ("broker_id", "path", "errors"),
    [(0, "/data/a", [0, 3, 3]), (2, "/data/a", [9, 3, 3]), (0, "/data/b", [57] * 3), (2, "relative", [57] * 3)],
)
def test_a_replica_moves_to_where_it_is_and_nowhere_else(
    cluster: VirtualCluster, broker_id: int, path: str, errors: list[int]
) -> None:
    topics = [AlterReplicaLogDirTopic("t", [0, 7]), AlterReplicaLogDirTopic("none", [0])]
    request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(path, topics)])
    for version in (0, 2):
        answer = cluster.connect(broker_id).ask(request, version)
        assert [p.error_code for topic in answer.results for p in topic.partitions] == errors
