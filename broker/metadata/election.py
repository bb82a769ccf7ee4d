"""Choice of leaders and in-sync replicas after brokers stopped or started (`PartitionChangeBuilder` in Kafka)."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.config.features import ELIGIBLE_LEADER_REPLICAS
from kafkaproto.broker.config.release import has_eligible_leader_replicas, is_release_4_2
from kafkaproto.broker.metadata.image import NO_LEADER, Image, PartitionState
from kafkaproto.hash_order import java_order, scala_map_order


def among_the_living(image: Image, p: PartitionState, unclean: bool) -> PartitionState:
    """Return the partition `p` after brokers started or stopped, with a leader and in-sync replicas that are running.

    The leader is the first running replica in this order:

    a. the present leader, if it is in sync
    b. another in-sync replica, in the order of the replicas
    c. an eligible leader replica
    d. any replica, in the order of the replicas, if `unclean` (unclean.leader.election.enable) is true

    In cases c and d the new leader is the only member of the ISR. If none of a to d finds a replica, the partition has no leader. The ISR is then
    empty if the feature of eligible leader replicas (KIP-966) is enabled. Otherwise the ISR keeps its first member, although the broker of that
    replica does not run.
    """
    alive = image.is_alive
    isr = tuple(r for r in p.isr if alive(r)) or (() if ELIGIBLE_LEADER_REPLICAS in image.features else p.isr[:1])
    if alive(p.leader) and p.leader in isr:
        return p if isr == p.isr else replace(p, isr=isr, partition_epoch=p.partition_epoch + 1)
    leader = next((r for r in p.replicas if r in isr and alive(r)), NO_LEADER)
    if leader == NO_LEADER:
        candidates = (*p.eligible, *(p.replicas if unclean else ()))
        leader = next((r for r in candidates if alive(r)), NO_LEADER)
        isr = (leader,) if leader != NO_LEADER else isr
    if leader == p.leader and isr == p.isr:
        return p
    leader_epoch = p.leader_epoch + (leader != p.leader)
    return replace(p, isr=isr, leader=leader, leader_epoch=leader_epoch, partition_epoch=p.partition_epoch + 1)


def isr_order(old: Sequence[int], new: Set[int], release: str) -> tuple[int, ...]:
    """Return the in-sync replicas `new`, which a leader has proposed, in the order in which Kafka lists them (M-13).

    old: the present in-sync replicas. release: the Kafka release that the broker emulates. The order is that of the set in which Kafka's
    leader collects the proposed replicas (`CommittedPartitionState.isr`). Before 4.2, up to four replicas are ordered as in `old`, with added ids at
    the end; more replicas have the order of a Scala hash table. From 4.2 on, the order is that of a Java `HashSet`: ascending for ids below 16.
    """
    distinct = [*(r for r in old if r in new), *sorted(new - set(old))]
    return tuple(java_order(distinct, int) if is_release_4_2(release) else scala_map_order(distinct, int))


def with_eligible(old: Image, new: Image, changed: Sequence[str], config: ClusterConfig) -> Image:
    """Return the metadata image `new` with the eligible leader replicas of its changed partitions updated (AD-7).

    If the emulated Kafka release has no eligible leader replicas, `new` is returned unchanged. old, new: the metadata before and after a change.
    changed: the names of the topics that differ.
    """
    if not has_eligible_leader_replicas(config.release):
        return new
    from kafkaproto.broker.metadata.eligible import updated

    return updated(old, new, changed, config)


def without_eligible(image: Image, names: Sequence[str], config: ClusterConfig) -> Image:
    """Return the metadata image without the eligible leader replicas of the topics `names`, whose min.insync.replicas has changed."""
    if not has_eligible_leader_replicas(config.release):
        return image
    from kafkaproto.broker.metadata.eligible import removed

    return removed(image, names)
