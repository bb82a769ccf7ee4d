"""Moving a partition to other brokers (KIP-455): new replicas are added, and the old ones go when the new ones are in sync.

Pure functions from one partition state to the next (`PartitionReassignmentReplicas`, `PartitionReassignmentRevert`). Knows no
other partition, no broker's health and no log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kafkaproto.broker.metadata.image import PartitionState


def begun(state: PartitionState, target: Sequence[int]) -> PartitionState:
    """The state with `target` as its goal; a reassignment that is under way gets another goal.

    The replicas of the goal come first, in its order, so that the preferred leader is the goal's.
    """
    removing = tuple(r for r in state.replicas if r not in target)
    # who was being added and has not joined yet is still to be waited for
    adding = tuple(r for r in target if r not in state.replicas or r in state.adding)
    replicas = (*target, *removing)
    return replace(
        state, replicas=replicas, adding=adding, removing=removing, partition_epoch=state.partition_epoch + 1
    )


def settled(state: PartitionState) -> PartitionState:
    """The state without its old replicas once all that were added are in sync, else the same.

    The leader may be among those that go: whoever elects has to look. Losing a replica begins a leader epoch, so that
    what it still holds can be told from what comes (`triggerLeaderEpochBumpForReplicaReassignmentIfNeeded`).
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
    """The state as it was before: whoever was being added goes. ValueError if nobody else is in sync."""
    isr = tuple(r for r in state.isr if r not in state.adding)
    if not isr:
        raise ValueError(f"only {list(state.adding)}, which would go, are in sync")
    return replace(
        state,
        replicas=tuple(r for r in state.replicas if r not in state.adding),
        isr=isr,
        adding=(),
        removing=(),
        leader_epoch=state.leader_epoch + bool(state.adding),
        partition_epoch=state.partition_epoch + 1,
    )
