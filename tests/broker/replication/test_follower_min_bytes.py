"""Followers that wait for replica.fetch.min.bytes, in virtual time."""

from __future__ import annotations

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.broker.replication_quotas import LEADER, set_list, set_rate
from tests.support.scene import elect, fill, replica
from tests.support.wire import batch_of_bytes, produce, produced

pytestmark = pytest.mark.rule("R-9")

WAIT_MS = 500
"""The default of replica.fetch.wait.max.ms."""


def followed(min_bytes: int, **settings: str) -> VirtualCluster:
    """Return two brokers with the topics t and u of one partition each, led by broker 0, after the followers' first fetches."""
    cluster = VirtualCluster(2, {"replica.fetch.min.bytes": str(min_bytes), **settings}, semantics="kafka")
    for name in ("t", "u"):
        cluster.state.controller.put_topic(cluster.state.controller.plan_topic(name, assignment={0: [0, 1]}))
        cluster.run()
    cluster.advance(10 * WAIT_MS)
    return cluster


def copied(cluster: VirtualCluster) -> tuple[int, int]:
    """Return how many batches of t and u the follower has."""
    return replica(cluster, 1, "t").log.log_end_offset, replica(cluster, 1, "u").log.log_end_offset


def test_acks_all_produce_waits_for_a_follower_that_waits_for_min_bytes() -> None:
    cluster = followed(1000)
    cluster.advance(100)
    client = cluster.connect(0)
    client.send(produce("t", batch_of_bytes(100), acks=-1, timeout_ms=30_000), 9)
    sent_ms = cluster.now_ms
    while not client.answers:
        cluster.advance(10)
    assert produced(client.latest).error_code == 0 and cluster.now_ms - sent_ms == WAIT_MS - 100


def test_follower_fetches_all_partitions_when_together_they_reach_min_bytes() -> None:
    cluster = followed(1000)
    fill(cluster, "t", batch_of_bytes(400), batch_of_bytes(400))
    cluster.advance(WAIT_MS - 1)
    assert copied(cluster) == (0, 0)
    fill(cluster, "u", batch_of_bytes(200))
    assert copied(cluster) == (2, 1)
    fill(cluster, "u", batch_of_bytes(999))
    cluster.advance(WAIT_MS - 1)
    assert copied(cluster) == (2, 1)  # the wait of the next fetch began when the last one ended
    cluster.advance(1)
    assert copied(cluster) == (2, 2)


def test_bytes_above_a_partition_maximum_do_not_count_towards_follower_min_bytes() -> None:
    cluster = followed(1000, **{"replica.fetch.max.bytes": "600"})
    fill(cluster, "t", *[batch_of_bytes(400)] * 3)
    cluster.advance(WAIT_MS - 1)
    assert copied(cluster) == (0, 0)
    fill(cluster, "u", batch_of_bytes(400))
    assert copied(cluster) == (1, 1)


def test_follower_min_bytes_above_the_response_maximum_is_lowered_to_the_maximum() -> None:
    cluster = followed(10_000, **{"replica.fetch.response.max.bytes": "1000"})
    fill(cluster, "t", batch_of_bytes(999))
    assert copied(cluster) == (0, 0)
    fill(cluster, "u", batch_of_bytes(100))
    assert copied(cluster) == (1, 0)


def test_follower_does_not_wait_for_min_bytes_if_the_records_end_at_a_segment_end() -> None:
    cluster = followed(10_000, **{"log.segment.bytes": "1000"})
    fill(cluster, "t", batch_of_bytes(800))
    assert copied(cluster) == (0, 0)
    fill(cluster, "t", batch_of_bytes(800))
    assert copied(cluster) == (1, 0)
    cluster.advance(WAIT_MS)
    assert copied(cluster) == (2, 0)


def test_bytes_of_a_throttled_partition_do_not_count_towards_follower_min_bytes() -> None:
    cluster = followed(1000, **{"replica.lag.time.max.ms": "1000"})
    replica(cluster, 1, "t").following.hold("t", 0, None, cluster.now_ms)  # type: ignore[union-attr]
    fill(cluster, "t", batch_of_bytes(5000))
    cluster.advance(3000)
    set_list(cluster, LEADER, "*", "t")
    set_rate(cluster, LEADER, 0)
    cluster.advance(2 * WAIT_MS)
    cluster.state.nodes[1].replicas.release("t", 0)
    fill(cluster, "u", batch_of_bytes(900))
    cluster.advance(1)
    assert copied(cluster) == (0, 0)
    fill(cluster, "u", batch_of_bytes(100))
    assert copied(cluster)[1] == 2


@pytest.mark.parametrize("settings", [{}, {"replica.fetch.wait.max.ms": "0"}])
def test_follower_fetches_a_new_record_at_once_if_min_bytes_or_the_wait_is_low(settings: dict[str, str]) -> None:
    cluster = followed(1000 if settings else 1, **settings)
    fill(cluster, "t", batch_of_bytes(100))
    cluster.advance(0)
    assert copied(cluster) == (1, 0)


def test_first_fetch_from_a_new_leader_returns_all_partitions_that_reach_min_bytes() -> None:
    cluster = followed(1000)
    for topic in ("t", "u"):
        replica(cluster, 1, topic).following.hold(topic, 0, None, cluster.now_ms)  # type: ignore[union-attr]
        fill(cluster, topic, batch_of_bytes(500))
    cluster.state.stop_broker(1)
    cluster.run()
    for topic in ("t", "u"):
        cluster.state.nodes[1].replicas.release(topic, 0)
    cluster.state.start_broker(1)
    cluster.run()
    assert copied(cluster) == (1, 1)


def test_follower_beyond_the_end_of_a_new_leader_does_not_wait_for_min_bytes() -> None:
    cluster = followed(1000)
    replica(cluster, 1, "t").log.restart_at(10)  # empty, so that it is not truncated before its first fetch
    for topic in ("t", "u"):
        cluster.state.nodes[1].replicas.following.unfollow(topic, 0)
        cluster.state.nodes[1].replicas.following.follow(replica(cluster, 1, topic))
    assert copied(cluster) == (10, 0)
    cluster.run()
    assert copied(cluster) == (0, 0)


def test_first_fetch_from_a_new_leader_waits_for_min_bytes() -> None:
    cluster = followed(1000)
    cluster.advance(WAIT_MS)
    elect(cluster, 1)
    fill(cluster, "t", batch_of_bytes(100))
    cluster.advance(WAIT_MS - 1)
    assert replica(cluster, 0, "t").log.log_end_offset == 0
    cluster.advance(1)
    assert replica(cluster, 0, "t").log.log_end_offset == 1
