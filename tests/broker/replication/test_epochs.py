"""OffsetForLeaderEpoch and epochs on the wire (E-1 to E-5, D4, scenario 23)."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.scene import hold
from tests.support.wire import batch, errors, fetch, produce


def ask(
    client: MemoryClient,
    epoch: int,
    version: int = 4,
    *,
    topic: str = "t",
    partition: int = 0,
    current: int = -1,
    replica_id: int = -2,
) -> Any:
    wanted = OffsetForLeaderPartition(partition, current if version >= 2 else -1, epoch)
    request = OffsetForLeaderEpochRequest(replica_id if version >= 3 else -2, [OffsetForLeaderTopic(topic, [wanted])])
    return client.ask(request, version).topics[0].partitions[0]


def told(answer: Any) -> tuple[int, int, int]:
    return answer.error_code, answer.leader_epoch, answer.end_offset


def with_epochs(semantics: Any = "kip") -> VirtualCluster:
    """Scenario 23's cache {0: 10, 2: 13, 4: 17}, but beginning at 0: epochs 0, 2 and 4 at offsets 0, 3 and 7; 9 records."""
    cluster = VirtualCluster(3, semantics=semantics)
    cluster.topic("t", 1, 2)
    for records, leaders in ((3, (1, 0)), (4, (1, 0)), (2, ())):
        client = cluster.connect(0)
        for _ in range(records):
            client.ask(produce("t", batch(b"v"), acks=-1), 9)
        for leader in leaders:
            cluster.state.controller.elect("t", 0, leader)
            cluster.run()
    return cluster


@pytest.mark.rule("E-3")
@pytest.mark.parametrize(
    ("asked", "epoch", "end"), [(0, 0, 3), (1, 0, 3), (2, 2, 7), (3, 2, 7), (4, 4, 9), (5, -1, -1), (-1, -1, -1)]
)
def test_where_each_epoch_ended(asked: int, epoch: int, end: int) -> None:
    cluster = with_epochs()
    assert told(ask(cluster.connect(0), asked)) == (0, epoch, end)


@pytest.mark.rule("E-3")
def test_becoming_leader_adds_the_epoch_before_any_write() -> None:
    cluster = with_epochs()
    cluster.state.controller.elect("t", 0, 1)
    cluster.run()
    client = cluster.connect(1)
    assert told(ask(client, 5)) == (0, 5, 9)
    assert told(ask(client, 4)) == (0, 4, 9)


@pytest.mark.rule("E-1")
@pytest.mark.parametrize("version", range(5))
def test_every_version_answers_and_the_epoch_is_told_from_version_1_on(version: int) -> None:
    cluster = with_epochs()
    assert told(ask(cluster.connect(0), 2, version)) == (0, 2 if version >= 1 else -1, 7)


@pytest.mark.rule("E-2")
def test_unknown_is_3_and_a_follower_or_a_stranger_6() -> None:
    cluster = with_epochs()
    assert told(ask(cluster.connect(0), 0, topic="none")) == (3, -1, -1)
    assert told(ask(cluster.connect(0), 0, partition=5)) == (3, -1, -1)
    assert told(ask(cluster.connect(1), 0)) == (6, -1, -1)
    assert told(ask(cluster.connect(2), 0)) == (6, -1, -1)


@pytest.mark.rule("E-2")
@pytest.mark.parametrize(("current", "leader", "follower"), [(-1, 0, 6), (4, 0, 6), (3, 74, 74), (5, 75, 75)])
def test_the_current_epoch_is_checked_before_leadership(current: int, leader: int, follower: int) -> None:
    cluster = with_epochs()
    assert ask(cluster.connect(0), 0, current=current).error_code == leader
    assert ask(cluster.connect(1), 0, current=current).error_code == follower


@pytest.mark.rule("E-5")
def test_topics_and_partitions_are_answered_as_asked() -> None:
    cluster = VirtualCluster()
    for name in ("a", "b"):
        cluster.topic(name, 2)
    asked = [
        OffsetForLeaderTopic(name, [OffsetForLeaderPartition(p, -1, 0) for p in partitions])
        for name, partitions in (("b", (1, 0)), ("a", (0,)))
    ]
    answer = cluster.connect().ask(OffsetForLeaderEpochRequest(-2, asked), 4)
    assert [(t.topic, [p.partition for p in t.partitions]) for t in answer.topics] == [("b", [1, 0]), ("a", [0])]


@pytest.mark.rule("D4")
@pytest.mark.parametrize(("semantics", "end"), [("kip", 1), ("kafka", 3)])
def test_under_kip_a_consumer_hears_no_end_beyond_the_high_watermark(semantics: Any, end: int) -> None:
    cluster = VirtualCluster(2, semantics=semantics)
    cluster.topic("t", 1, 2)
    client = cluster.connect()
    client.ask(produce("t", batch(b"v"), acks=-1), 9)
    hold(cluster, 1)
    for _ in range(2):
        client.ask(produce("t", batch(b"v")), 9)
    assert told(ask(client, 0, replica_id=-1)) == (0, 0, end)
    assert told(ask(client, 0, replica_id=1)) == (0, 0, 3)
    assert told(ask(client, 0, version=2)) == (0, 0, 3)


@pytest.mark.rule("D4")
@pytest.mark.parametrize(("semantics", "error"), [("kip", 78), ("kafka", 0)])
def test_under_kip_a_new_leader_that_does_not_know_its_high_watermark_answers_78(semantics: Any, error: int) -> None:
    cluster = VirtualCluster(2, semantics=semantics)
    cluster.topic("t", 1, 2)
    client = cluster.connect()
    client.ask(produce("t", batch(b"v")), 9)
    follower = cluster.state.nodes[1].replicas.partitions[("t", 0)]
    follower.log.high_watermark = 0
    for node in cluster.state.nodes:
        node.running = node.broker_id == 1  # nobody fetches from the new leader
    cluster.state.controller.elect("t", 0, 1)
    assert follower.high_watermark_unknown()
    assert ask(cluster.connect(1), 1, replica_id=-1).error_code == error
    assert ask(cluster.connect(1), 0, replica_id=-1).error_code == 0


@pytest.mark.rule("F-25")
@pytest.mark.parametrize(("epoch", "error"), [(-1, 0), (4, 0), (3, 74), (5, 75)])
def test_leader_and_follower_check_the_epoch_of_a_fetch_alike(epoch: int, error: int) -> None:
    cluster = with_epochs()
    for broker_id in (0, 1):
        assert errors(cluster.connect(broker_id).ask(fetch(("t", 0, 0), epoch=epoch), 11)) == [error]
