"""N-15: a follower's retention is its own, and its leader hears of it with the follower's next fetch."""

from __future__ import annotations

from tests.broker.scene import fill, replica, three
from tests.broker.wire import batch


def test_N15_the_leader_hears_of_a_log_start_that_a_follower_raised_by_itself() -> None:
    cluster = three("kafka")
    fill(cluster, "t", batch(), batch(), acks=-1)
    cluster.advance(10_000)
    leader, follower = replica(cluster, 0), replica(cluster, 1)
    follower.log.raise_log_start(2)
    follower.expired(cluster.now_ms)
    cluster.advance(500)  # replica.fetch.wait.max.ms
    assert {i: known.log_start_offset for i, known in leader.followers.items()} == {1: 2, 2: 0}
