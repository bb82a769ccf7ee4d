"""ListOffsets sent to a follower. The conformance suite tests all other cases (L-1 to L-11)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.support.scene import fill
from tests.support.wire import batch

EARLIEST = -2


def log_start(client: MemoryClient, replica_id: int) -> int:
    request = ListOffsetsRequest(replica_id, 0, [ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, EARLIEST)])])
    return int(client.ask(request, 9).topics[0].partitions[0].offset)


@pytest.mark.rule("N-15")
def test_list_offsets_with_replica_id_minus_2_returns_the_log_start_of_a_follower() -> None:
    cluster = VirtualCluster(2)
    cluster.topic("t", 1, 2)
    fill(cluster, "t", *[batch(b"v")] * 3)
    cluster.state.nodes[1].replicas.partitions[("t", 0)].log.raise_log_start(2)
    assert log_start(cluster.connect(1), -2) == 2
    assert log_start(cluster.connect(0), -1) == 0
