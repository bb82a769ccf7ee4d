"""Reassignment of a partition to other brokers (KIP-455): new replicas are added, and old replicas are removed when the new replicas are in sync.

The functions return the next state of a partition and change nothing (`PartitionReassignmentReplicas`, `PartitionReassignmentRevert`). This module
does not depend on other partitions, the state of brokers or logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kafkaproto.broker.metadata.image import PartitionState


def with_reassignment(state: PartitionState, target: Sequence[int]) -> PartitionState:
    """Return the partition with a new reassignment to the brokers `target`. If a reassignment is in progress, the new one replaces it.

    The target replicas come first, in the order of `target`, so that the first of them is the preferred leader. The replicas to remove follow.
    """
    removing = tuple(r for r in state.replicas if r not in target)
    # A replica that an earlier reassignment is still adding stays among those to wait for.
    adding = tuple(r for r in target if r not in state.replicas or r in state.adding)
    replicas = (*target, *removing)
    return replace(
        state, replicas=replicas, adding=adding, removing=removing, partition_epoch=state.partition_epoch + 1
    )


def settled(state: PartitionState) -> PartitionState:
    """Return the partition with its reassignment completed if all added replicas are in sync; otherwise unchanged.

    The reassignment is not completed while none of the remaining replicas is in sync. Completing it removes the old replicas. If the leader is one of
    the old replicas, the caller must elect another leader. If any replica is removed, the leader epoch grows, so that requests with the old epoch can
    be rejected (`triggerLeaderEpochBumpForReplicaReassignmentIfNeeded`).
    """
    if not (state.adding or state.removing):
        return state
    isr = tuple(r for r in state.isr if r not in state.removing)
    if not isr or not set(state.adding) <= set(isr):
        return state
    return replace(
        state,
        replicas=tuple(r for r in state.replicas if r not in state.removing),
        isr=isr,
        adding=(),
        removing=(),
        leader_epoch=state.leader_epoch + bool(state.removing),
        partition_epoch=state.partition_epoch + 1,
    )


def cancelled(state: PartitionState) -> PartitionState:
    """Return the partition with its reassignment cancelled: without the replicas being added, but with the replicas that were to be removed.

    The replicas keep the order that `with_reassignment` gave them, so that the preferred leader may differ from the one before the reassignment.
    Raises ValueError if none of the remaining replicas is in sync.
    """
    isr = tuple(r for r in state.isr if r not in state.adding)
    if not isr:
        raise ValueError(
            f"The reassignment cannot be cancelled: it would remove the replicas {list(state.adding)}, and no other replica is in sync."
        )
    return replace(
        state,
        replicas=tuple(r for r in state.replicas if r not in state.adding),
        isr=isr,
        adding=(),
        removing=(),
        leader_epoch=state.leader_epoch + bool(state.adding),
        partition_epoch=state.partition_epoch + 1,
    )
