"""Topic ids of committed offsets are recovered from a data directory, and compared with the id of a topic that was created again."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaproto.broker.group.all_groups import AllGroups
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.support.broker.processes import Processes, committed

BY_ID = 10


def topic_id(cluster: VirtualCluster) -> bytes:
    return cluster.state.controller.image.topics["t"].topic_id


def commit_by_id(cluster: VirtualCluster, offset: int) -> int:
    topic = OffsetCommitRequestTopic(topic_id=topic_id(cluster), partitions=[OffsetCommitRequestPartition(0, offset)])
    response = cluster.connect(cluster.state.coordinator_of("g")).ask(OffsetCommitRequest("g", topics=[topic]), BY_ID)
    return int(response.topics[0].partitions[0].error_code)


def committed_by_id(cluster: VirtualCluster, *, require_stable: bool = False) -> int:
    topic = OffsetFetchRequestTopics(topic_id=topic_id(cluster), partition_indexes=[0])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=[topic])], require_stable=require_stable)
    response = cluster.connect(cluster.state.coordinator_of("g")).ask(request, BY_ID)
    return int(response.groups[0].topics[0].partitions[0].committed_offset)


@pytest.mark.rule("GO-6", "GO-34")
def test_topic_id_of_a_committed_offset_survives_restarts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The offset belongs to the deleted topic, also after restarts: the deletion of the offset is lost as in a crash."""
    processes = Processes(tmp_path, release_name="4.2")
    processes.cluster.topic("t")
    assert commit_by_id(processes.cluster, 7) == 0
    assert committed_by_id(processes.crash_and_restart()) == 7
    with monkeypatch.context() as killed:
        killed.setattr(AllGroups, "forget_topics", lambda *_: None)
        processes.cluster.state.controller.delete_topic("t")
        processes.cluster.topic("t")
    for cluster in (processes.cluster, processes.crash_and_restart(), processes.crash_and_restart()):
        assert (committed_by_id(cluster), committed_by_id(cluster, require_stable=True)) == (-1, -1)
        assert committed(cluster, "g", "t") == 7
    assert commit_by_id(processes.cluster, 8) == 0
    assert committed_by_id(processes.crash_and_restart()) == 8
