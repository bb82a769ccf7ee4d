"""Eligible leader replicas in the controller (KIP-966): who becomes one, who leads, and what survives a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kafkaproto.broker.config.dynamic import ALL_BROKERS, BrokerResource, Change, Operation, change
from kafkaproto.broker.metadata.image import NO_LEADER, PartitionState
from kafkaproto.broker.requests.features import finalize
from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.broker.processes import Processes, values, write
from tests.support.scene import hold

pytestmark = pytest.mark.rule("AD-7")
Roles = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def made(release: str = "4.2", replicas: tuple[int, ...] = (0, 1, 2), **configs: str) -> VirtualCluster:
    """Return four brokers of a release with topic `t`, which has one partition and min.insync.replicas 2."""
    cluster = VirtualCluster(4, release_name=release)
    controller = cluster.state.controller
    settings = {"min.insync.replicas": "2", **{name.replace("_", "."): value for name, value in configs.items()}}
    controller.put_topic(controller.plan_topic("t", assignment={0: replicas}, configs=settings))
    cluster.run()
    return cluster


def state(cluster: VirtualCluster) -> PartitionState:
    partition = cluster.state.controller.image.partition("t", 0)
    assert partition is not None
    return partition


def roles(cluster: VirtualCluster) -> Roles:
    """Return leader, in-sync replicas, eligible leader replicas and last known leader of the partition."""
    partition = state(cluster)
    return partition.leader, partition.isr, partition.eligible, partition.last_known


def stop(cluster: VirtualCluster, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        cluster.state.controller.broker_stopped(broker_id)


def test_replica_becomes_an_eligible_leader_when_the_isr_falls_below_its_minimum() -> None:
    cluster = made()
    stop(cluster, 2)
    assert roles(cluster) == (0, (0, 1), (), ())
    stop(cluster, 1)
    assert roles(cluster) == (0, (0,), (1,), ())
    cluster.state.controller.broker_started(1)
    cluster.state.controller.change_isr({("t", 0): [0, 1]})
    assert roles(cluster) == (0, (0, 1), (), ())


def test_partition_with_an_empty_isr_is_led_only_by_an_eligible_leader_replica() -> None:
    cluster = made()
    stop(cluster, 2, 1, 0)
    assert roles(cluster) == (NO_LEADER, (), (0, 1), (0,))
    cluster.state.controller.broker_started(2)
    assert roles(cluster) == (NO_LEADER, (), (0, 1), (0,))
    cluster.state.controller.broker_started(1)
    assert roles(cluster) == (1, (1,), (0,), ())


def test_unclean_election_leaves_no_eligible_leader_replicas() -> None:
    automatic, requested = made(unclean_leader_election_enable="true"), made()
    for cluster in (automatic, requested):
        stop(cluster, 2, 1, 0)
        cluster.state.controller.broker_started(2)
    assert roles(automatic) == (2, (2,), (), ())
    requested.state.controller.elect_unclean("t", 0)
    assert roles(requested) == (2, (2,), (), ())


def test_unclean_election_prefers_an_eligible_leader_replica_to_other_replicas() -> None:
    cluster = made(unclean_leader_election_enable="true")
    stop(cluster, 0, 1, 2)
    assert roles(cluster) == (NO_LEADER, (), (1, 2), (2,))
    for broker_id in (0, 1):
        broker = cluster.state.controller.image.brokers[broker_id]
        cluster.state.controller.set_broker(replace(broker, alive=True))
    cluster.state.controller.give_leaders()
    assert roles(cluster) == (1, (1,), (2,), ())


@pytest.mark.parametrize("minimum", ["1", "3"])
def test_changing_min_insync_replicas_of_a_topic_removes_eligible_leader_replicas(minimum: str) -> None:
    cluster = made()
    stop(cluster, 2, 1)
    controller = cluster.state.controller
    controller.set_topic_configs("t", {"min.insync.replicas": "2", "retention.ms": "5"})
    assert roles(cluster) == (0, (0,), (1,), ())
    controller.set_topic_configs("t", {"min.insync.replicas": minimum})
    assert roles(cluster) == (0, (0,), (), ())


def test_changing_min_insync_replicas_cluster_wide_removes_eligible_leader_replicas() -> None:
    cluster = made()
    stop(cluster, 2, 1)
    resource = BrokerResource(cluster.state, ALL_BROKERS)
    change(resource, [Change("log.retention.ms", Operation.SET, "5")], strict_kip=True)
    assert roles(cluster) == (0, (0,), (1,), ())
    change(resource, [Change("min.insync.replicas", Operation.SET, "3")], strict_kip=True)
    assert roles(cluster) == (0, (0,), (), ())


def test_disabling_the_elr_feature_clears_the_elr_at_the_next_partition_change() -> None:
    cluster = made()
    stop(cluster, 2, 1)
    levels = dict(cluster.state.controller.image.features)
    enabled = levels.pop("eligible.leader.replicas.version")
    finalize(cluster.state, levels)
    assert roles(cluster) == (0, (0,), (1,), ())
    stop(cluster, 0)
    assert roles(cluster) == (NO_LEADER, (0,), (), ())
    epoch = state(cluster).leader_epoch
    finalize(cluster.state, levels | {"eligible.leader.replicas.version": enabled})
    assert roles(cluster) == (NO_LEADER, (), (0,), ())
    assert state(cluster).leader_epoch == epoch


def test_releases_before_4_1_have_no_eligible_leader_replicas() -> None:
    cluster = made("3.9")
    stop(cluster, 2, 1, 0)
    assert roles(cluster) == (NO_LEADER, (0,), (), ())


def test_replica_removed_by_a_reassignment_is_no_longer_an_eligible_leader() -> None:
    cluster = made(replicas=(0, 1))
    stop(cluster, 1)
    assert roles(cluster) == (0, (0,), (1,), ())
    controller = cluster.state.controller
    controller.reassign("t", 0, [0, 3])
    controller.change_isr({("t", 0): [0, 3]})
    assert (state(cluster).replicas, *roles(cluster)) == ((0, 3), 0, (0, 3), (), ())


def test_cluster_restart_with_an_empty_isr_elects_an_eligible_leader_replica(tmp_path: Path) -> None:
    processes = Processes(tmp_path, brokers=3, release_name="4.2")
    processes.cluster.topic("t", 1, 3, min_insync_replicas="2")
    stop(processes.cluster, 0, 1, 2)
    assert roles(processes.cluster) == (NO_LEADER, (), (1, 2), (2,))
    assert state(processes.crash_and_restart()).leader == 1


def test_records_that_only_the_last_leader_had_survive_a_restart_without_a_leader(tmp_path: Path) -> None:
    """Both replicas are eligible when the process ends, and the one with the lower id leads afterwards."""
    processes = Processes(tmp_path, brokers=2, release_name="4.2")
    cluster = processes.cluster
    controller = cluster.state.controller
    controller.put_topic(controller.plan_topic("t", assignment={0: (1, 0)}, configs={"min.insync.replicas": "2"}))
    cluster.run()
    write(cluster, "t", b"a", acks=-1)
    hold(cluster, 0)
    write(cluster, "t", b"b", acks=1)
    for broker_id in (0, 1):
        cluster.state.stop_broker(broker_id)
    assert roles(cluster) == (NO_LEADER, (), (0, 1), (1,))
    processes.end()
    after = processes.restart()
    assert roles(after)[0] == 0
    assert values(after, "t") == [(0, b"a"), (1, b"b")]
