"""OffsetForLeaderEpoch before a new leader has written any record. The conformance suite tests all other cases (E-1 to E-4, D4)."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.wire import batch, produce


def ask(client: MemoryClient, epoch: int) -> Any:
    topics = [OffsetForLeaderTopic("t", [OffsetForLeaderPartition(0, -1, epoch)])]
    return client.ask(OffsetForLeaderEpochRequest(-2, topics), 4).topics[0].partitions[0]


def epoch_end(answer: Any) -> tuple[int, int, int]:
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.rule("E-3")
def test_offset_for_leader_epoch_returns_the_epoch_of_a_new_leader_before_any_write() -> None:
    cluster = VirtualCluster(2)
    cluster.topic("t", 1, 2)
    cluster.connect().ask(produce("t", batch(b"v"), acks=-1), 9)
    cluster.state.controller.elect("t", 0, 1)
    cluster.run()
    client = cluster.connect(1)
    assert epoch_end(ask(client, 1)) == (0, 1, 1)
    assert epoch_end(ask(client, 0)) == (0, 0, 1)


@pytest.mark.rule("E-5")
def test_offset_for_leader_epoch_response_lists_partitions_in_request_order() -> None:
    cluster = VirtualCluster()
    for name in ("a", "b"):
        cluster.topic(name, 2)
    topics = [
        OffsetForLeaderTopic(name, [OffsetForLeaderPartition(p, -1, 0) for p in partitions])
        for name, partitions in (("b", (1, 0)), ("a", (0,)))
    ]
    response = cluster.connect().ask(OffsetForLeaderEpochRequest(-2, topics), 4)
    assert [(t.topic, [p.partition for p in t.partitions]) for t in response.topics] == [("b", [1, 0]), ("a", [0])]
