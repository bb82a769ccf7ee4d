"""Unclean elections at intervals (`unclean.leader.election.interval.ms`), in virtual time."""

from __future__ import annotations

import pytest

from kafkaproto.broker.metadata.image import NO_LEADER
from kafkaproto.broker.testing.memory import VirtualCluster

UNCLEAN, INTERVAL = "unclean.leader.election.enable", "unclean.leader.election.interval.ms"


def leaderless(release: str = "3.9", **config: str) -> VirtualCluster:
    """Return a cluster in which the only running replica of a partition is not in sync. config: settings with underscores in place of dots."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    cluster = VirtualCluster(2, settings, release_name=release)
    cluster.topic("t", 1, 2)
    follower = 1 - leader(cluster)
    cluster.state.stop_broker(follower)
    cluster.state.stop_broker(1 - follower)
    cluster.state.start_broker(follower)
    cluster.run()
    assert leader(cluster) == NO_LEADER
    return cluster


def leader(cluster: VirtualCluster) -> int:
    return cluster.state.controller.image.leader_of("t", 0)[0]


def allow(cluster: VirtualCluster, where: str) -> None:
    if where == "topic":
        cluster.state.controller.set_topic_configs("t", {UNCLEAN: "true"})
    else:
        cluster.state.config.set_dynamic(-1, {UNCLEAN: "true"})
        cluster.state.setting_changed()


@pytest.mark.parametrize("release", ["3.9", "4.2"])
@pytest.mark.parametrize("where", ["topic", "all brokers"])
def test_leaderless_partition_gets_leader_5_minutes_after_enabling_unclean_election(release: str, where: str) -> None:
    cluster = leaderless(release)
    cluster.advance(3_600_000)
    allow(cluster, where)
    cluster.advance(299_999)
    assert leader(cluster) == NO_LEADER
    cluster.advance(1)
    assert leader(cluster) != NO_LEADER


def test_unclean_leader_election_interval_ms_1000_elects_a_leader_after_1000_ms() -> None:
    cluster = leaderless(unclean_leader_election_interval_ms="1000")
    allow(cluster, "topic")
    cluster.advance(1000)
    assert leader(cluster) != NO_LEADER


def test_unclean_election_disabled_before_its_interval_ends_elects_no_leader() -> None:
    cluster = leaderless()
    allow(cluster, "topic")
    cluster.advance(100_000)
    cluster.state.controller.set_topic_configs("t", {})
    cluster.advance(3_600_000)
    assert leader(cluster) == NO_LEADER


def test_unclean_election_timer_never_runs_if_disabled_or_if_all_replicas_are_down() -> None:
    cluster = leaderless()
    assert len(cluster.state.timers) == 0
    for broker_id in (0, 1):
        cluster.state.stop_broker(broker_id)
    allow(cluster, "topic")
    assert len(cluster.state.timers) == 0
