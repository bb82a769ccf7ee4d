"""Groups whose coordinator collects records (`group.coordinator.append.linger.ms`) and then cannot append them."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.broker.processes import committed

LINGER_MS = 800
CONFIG = {
    "group.coordinator.append.linger.ms": str(LINGER_MS),
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "offsets.topic.num.partitions": "1",
}
NONE, NOT_COORDINATOR = 0, 16
pytestmark = pytest.mark.rule("GO-4")


class Scene:
    """A cluster with one broker, and the offsets that group `g` has committed for topic `t`."""

    def __init__(self, release: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = VirtualCluster(1, CONFIG, release_name=release)
        self.cluster.topic("t", 2)
        self.monkeypatch = monkeypatch
        assert self.commit(0, 1) == NONE

    def commit(self, index: int, offset: int, *, fails: bool = False) -> int:
        """Commit an offset, and return the error code. fails: whether the log cannot be written when the linger ends."""
        request = OffsetCommitRequest(
            "g", topics=[OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(index, offset)])]
        )
        return int(self.ask(request, 8, fails=fails).topics[0].partitions[0].error_code)

    def ask(self, request: Any, version: int, *, fails: bool) -> Any:
        """Send a request, and return the response after the linger. fails: whether the log cannot be written when the linger ends."""
        peer = self.cluster.connect(self.cluster.state.coordinator_of("g"))
        peer.send(request, version)
        if fails:
            with self.monkeypatch.context() as patch:
                patch.setattr("kafkaproto.broker.log.replica_log.ReplicaLog.append", _fail)
                self.cluster.advance(LINGER_MS)
        else:
            self.cluster.advance(LINGER_MS)
        [answer] = peer.answers
        return answer.message

    def committed(self) -> list[int]:
        return [committed(self.cluster, "g", "t", index) for index in (0, 1)]


def _fail(*_args: object) -> None:
    raise StorageError("the disk is full")


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_offset_commit_has_no_effect_if_collected_records_cannot_be_appended(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(release, monkeypatch)
    assert scene.commit(0, 99, fails=True) == NOT_COORDINATOR
    assert scene.committed() == [1, -1]
    assert scene.commit(1, 5) == NONE
    assert scene.committed() == [1, 5]


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_delete_groups_deletes_nothing_if_collected_tombstones_cannot_be_appended(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(release, monkeypatch)
    response = scene.ask(DeleteGroupsRequest(["g"]), 2, fails=True)
    assert response.results[0].error_code == NOT_COORDINATOR
    assert scene.committed() == [1, -1]
    assert scene.ask(DeleteGroupsRequest(["g"]), 2, fails=False).results[0].error_code == NONE
    assert scene.committed() == [-1, -1]


@pytest.mark.rule("GO-25")
@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_recreated_topic_has_no_offsets_if_collected_tombstones_are_not_appended(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(release, monkeypatch)
    scene.cluster.state.controller.delete_topic("t")
    with monkeypatch.context() as patch:
        patch.setattr("kafkaproto.broker.log.replica_log.ReplicaLog.append", _fail)
        scene.cluster.advance(LINGER_MS)
    scene.cluster.topic("t", 2)
    assert scene.committed() == [-1, -1]
