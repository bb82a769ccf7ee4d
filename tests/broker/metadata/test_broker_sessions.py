"""Brokers that stop without a controlled shutdown (M-14), in virtual time."""

from __future__ import annotations

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.metadata import MetadataRequest
from tests.support.scene import fill
from tests.support.wire import batch_of_bytes

pytestmark = pytest.mark.rule("M-14")
BOTH_LED = [(0, 0, [0, 1]), (1, 0, [1, 0])]
"""The leader, leader epoch and in-sync replicas of both partitions, while both brokers run."""
FAILED_OVER = [(1, 1, [1]), (1, 0, [1])]
"""The leader, leader epoch and in-sync replicas of both partitions after broker 1 has become the leader of partition 0."""


def made(**settings: str) -> VirtualCluster:
    """Return a cluster of three brokers, in which brokers 0 and 1 have the replicas of t-0 and t-1 and lead one each."""
    cluster = VirtualCluster(3, {"controlled.shutdown.enable": "false", **settings})
    controller = cluster.state.controller
    controller.put_topic(controller.plan_topic("t", assignment={0: [0, 1], 1: [1, 0]}))
    cluster.run()
    return cluster


def metadata(cluster: VirtualCluster) -> tuple[list[int], list[tuple[int, int, list[int]]]]:
    """Return (ids of the listed brokers, the partitions' leader, leader epoch and in-sync replicas), as broker 2 reports them."""
    response = cluster.connect(2).ask(MetadataRequest(None), 9)
    partitions = sorted(response.topics[0].partitions, key=lambda partition: partition.partition_index)
    brokers = sorted(broker.node_id for broker in response.brokers)
    return brokers, [(p.leader_id, p.leader_epoch, p.isr_nodes) for p in partitions]


@pytest.mark.parametrize("release", ["3.9", "4.2"])
@pytest.mark.parametrize(("settings", "timeout_ms"), [({}, 9000), ({"broker.session.timeout.ms": "700"}, 700)])
def test_broker_without_controlled_shutdown_is_fenced_when_its_session_expires(
    settings: dict[str, str], timeout_ms: int, release: str
) -> None:
    cluster = made(**settings)
    cluster.state.stop_broker(0)
    cluster.advance(timeout_ms - 1)
    assert metadata(cluster) == ([0, 1, 2], BOTH_LED)
    cluster.advance(1)
    assert metadata(cluster) == ([1, 2], FAILED_OVER)
    cluster.state.start_broker(0)
    cluster.advance(1000)
    assert metadata(cluster) == ([0, 1, 2], [(1, 1, [1, 0]), (1, 0, [1, 0])])


@pytest.mark.parametrize(
    ("settings", "up_ms", "fenced_after_ms"),
    [
        ({}, 1_500, 7_500),
        ({}, 4_000, 9_000),
        ({}, 5_999, 7_001),
        ({"broker.heartbeat.interval.ms": "500", "1.broker.heartbeat.interval.ms": "1"}, 1_200, 8_800),
        ({"0.broker.heartbeat.interval.ms": "0"}, 1_200, 9_000),
        ({"broker.session.timeout.ms": "100"}, 1_200, 0),
    ],
)
def test_stopped_broker_is_fenced_one_session_timeout_after_its_last_heartbeat(
    settings: dict[str, str], up_ms: int, fenced_after_ms: int
) -> None:
    cluster = made(**settings)
    for _ in range(2):
        cluster.advance(up_ms)
        cluster.state.stop_broker(0)
        if fenced_after_ms:
            cluster.advance(fenced_after_ms - 1)
            assert metadata(cluster)[0] == [0, 1, 2]
        cluster.advance(1)
        assert metadata(cluster)[0] == [1, 2]
        cluster.state.start_broker(0)  # it sends its first heartbeat at this moment


def test_broker_restarted_within_its_broker_session_is_fenced_before_it_rejoins() -> None:
    cluster = made()
    cluster.state.stop_broker(0)
    cluster.advance(2000)
    cluster.state.start_broker(0)
    cluster.advance(1000)
    rejoined = [0, 1, 2], [(1, 1, [1, 0]), (1, 0, [1, 0])]
    assert metadata(cluster) == rejoined
    cluster.advance(20_000)
    assert metadata(cluster) == rejoined  # the old session ended with the start


def test_metadata_omits_a_stopped_broker_only_if_controlled_shutdown_is_enabled() -> None:
    cluster = made(**{"1.controlled.shutdown.enable": "true"})
    cluster.state.stop_broker(1)
    assert metadata(cluster) == ([0, 2], [(0, 0, [0]), (0, 1, [0])])
    cluster.state.stop_broker(0)
    assert metadata(cluster)[0] == [0, 2]


def test_followers_fetch_nothing_from_a_stopped_leader_that_is_not_yet_fenced() -> None:
    cluster = made()
    follower = cluster.state.nodes[1].replicas.partitions["t", 0]
    cluster.state.nodes[1].replicas.following.cut_link(0, True, cluster.now_ms)
    fill(cluster, "t", batch_of_bytes(1000))
    cluster.state.nodes[1].replicas.following.cut_link(0, False, cluster.now_ms)
    cluster.state.stop_broker(0)
    cluster.run()
    cluster.advance(5000)
    assert follower.log.log_end_offset == 0


def test_broker_stopped_before_a_cluster_reset_is_not_fenced_after_the_reset() -> None:
    cluster = made()
    cluster.state.stop_broker(0)
    cluster.state.reset()
    cluster.topic("t", 1, 1)
    cluster.advance(20_000)
    assert metadata(cluster)[0] == [0, 1, 2]
