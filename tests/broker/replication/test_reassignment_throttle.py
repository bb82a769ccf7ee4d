"""A throttled reassignment with the requests of kafka-reassign-partitions, in virtual time (R-11)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.support.wire import batch_of_bytes, produce

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
LEADER, FOLLOWER = "leader.replication.throttled", "follower.replication.throttled"
RATES = [f"{LEADER}.rate", f"{FOLLOWER}.rate"]
LISTS = {f"{LEADER}.replicas": "0:0", f"{FOLLOWER}.replicas": "0:1"}
BATCHES, BATCH_BYTES = 30, 10_000


def alter(cluster: VirtualCluster, kind: int, name: str, operation: int, values: Mapping[str, str | None]) -> None:
    """Change settings of a topic or of a broker; a broker's settings are changed by a request to that broker."""
    configs = [AlterableConfig(name=key, config_operation=operation, value=value) for key, value in values.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, configs)])
    response = cluster.connect(int(name) if kind == BROKER else 0).ask(request, 1)
    assert [(result.error_code, result.error_message) for result in response.responses] == [(0, None)]


def set_rates(cluster: VirtualCluster, rate: int) -> None:
    for broker in ("0", "1"):
        alter(cluster, BROKER, broker, SET, dict.fromkeys(RATES, str(rate)))


def configs(cluster: VirtualCluster, kind: int, name: str) -> dict[str, str | None]:
    """Return the throttle settings that are set on the resource itself."""
    client = cluster.connect(int(name) if kind == BROKER else 0)
    response = client.ask(DescribeConfigsRequest([DescribeConfigsResource(kind, name)]), 1)
    own = {TOPIC: 1, BROKER: 2}[kind]  # sources DYNAMIC_TOPIC_CONFIG and DYNAMIC_BROKER_CONFIG
    return {c.name: c.value for c in response.results[0].configs if "throttled" in c.name and c.config_source == own}


def moving(client: MemoryClient) -> list[tuple[list[int], list[int], list[int]]]:
    """Return (replicas, adding, removing) of each partition that is being reassigned."""
    response = client.ask(ListPartitionReassignmentsRequest(timeout_ms=1000, topics=None), 0)
    return [
        (list(p.replicas), list(p.adding_replicas), list(p.removing_replicas))
        for topic in response.topics
        for p in topic.partitions
    ]


@pytest.mark.rule("R-11")
@pytest.mark.parametrize("semantics", ["kip", "kafka"])
def test_throttled_reassignment_is_slow_until_the_rate_is_raised_and_then_completes(semantics: str) -> None:
    cluster = VirtualCluster(2, {"replica.fetch.max.bytes": "20000"}, semantics=semantics)
    controller = cluster.state.controller
    controller.put_topic(controller.plan_topic("foo", -1, -1, {0: [0]}, {}))
    cluster.run()
    client = cluster.connect()
    for _ in range(BATCHES):
        client.ask(produce("foo", batch_of_bytes(BATCH_BYTES)), 9)

    alter(cluster, TOPIC, "foo", SET, LISTS)
    set_rates(cluster, 10_000)
    partition = ReassignablePartition(partition_index=0, replicas=[1])
    move = AlterPartitionReassignmentsRequest(timeout_ms=1000, topics=[ReassignableTopic("foo", [partition])])
    assert client.ask(move, 0).error_code == 0
    assert configs(cluster, TOPIC, "foo") == LISTS
    assert configs(cluster, BROKER, "1") == dict.fromkeys(RATES, "10000")

    cluster.advance(2000)
    assert moving(client) == [([1, 0], [1], [0])], "300 KB at 10 KB/s take longer than two seconds"
    set_rates(cluster, 100_000_000)
    cluster.advance(5000)
    assert moving(client) == [], "the higher rate holds for the next fetch"
    state = controller.image.partition("foo", 0)
    assert state is not None and (state.replicas, state.isr) == ((1,), (1,))

    assert configs(cluster, TOPIC, "foo") == LISTS, "the end of the move removes nothing"
    alter(cluster, TOPIC, "foo", DELETE, dict.fromkeys(LISTS))
    for broker in ("0", "1"):
        alter(cluster, BROKER, broker, DELETE, dict.fromkeys(RATES))
    assert configs(cluster, TOPIC, "foo") == configs(cluster, BROKER, "0") == configs(cluster, BROKER, "1") == {}
