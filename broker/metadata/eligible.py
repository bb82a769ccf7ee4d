"""Eligible leader replicas (KIP-966): replicas that are no longer in sync, but have all committed records of their partition (AD-7).

While the ISR is smaller than min.insync.replicas, the partition commits nothing. Therefore, if the ISR is this small after a replica has left it, the
replica misses no committed record, and stays eligible to lead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kafkaproto.broker.config.cluster_config import MIN_INSYNC_REPLICAS, ClusterConfig
from kafkaproto.broker.config.features import ELIGIBLE_LEADER_REPLICAS
from kafkaproto.broker.metadata.image import NO_LEADER, Image, PartitionState


def updated(old: Image, new: Image, changed: Sequence[str], config: ClusterConfig) -> Image:
    """Return the metadata image `new` with updated eligible leader replicas of each partition whose state differs from that in `old`.

    If the feature (KIP-966) is disabled, these partitions have no eligible leader replicas afterwards. changed: the names of the topics that differ.
    """
    enabled = ELIGIBLE_LEADER_REPLICAS in new.features
    topics = {}
    for name in changed:
        before, after = old.topics.get(name), new.topics.get(name)
        if before is None or after is None or before.partitions == after.partitions:
            continue
        min_isr = int(config.topic_value(-1, after.configs, MIN_INSYNC_REPLICAS)) if enabled else 0
        partitions = tuple(
            p if p.index >= len(before.partitions) else _updated(before.partitions[p.index], p, min_isr)
            for p in after.partitions
        )
        if partitions != after.partitions:
            topics[name] = replace(after, partitions=partitions)
    return new.with_topics(topics) if topics else new


def removed(image: Image, names: Iterable[str]) -> Image:
    """Return the metadata image without the eligible leader replicas and the last known leaders of the partitions of the topics `names`."""
    changed_topics = {}
    for topic in (image.topics[name] for name in names):
        partitions = tuple(_with(p, (), ()) for p in topic.partitions)
        if partitions != topic.partitions:
            changed_topics[topic.name] = replace(topic, partitions=partitions)
    return image.with_topics(changed_topics) if changed_topics else image


def _updated(before: PartitionState, after: PartitionState, min_isr: int) -> PartitionState:
    """Return `after` with new values of `eligible` (eligible leader replicas) and `last_known` (the last leader, if the ISR is empty).

    before, after: the partition before and after a change. After an unclean election both values are empty. min_isr: the topic's
    min.insync.replicas, 0 if the feature (KIP-966) is disabled.
    """
    if (before.isr, before.leader, before.replicas) == (after.isr, after.leader, after.replicas):
        return after
    eligible: tuple[int, ...] = ()
    last_known: tuple[int, ...] = ()
    former = {*before.isr, *before.eligible}
    if len(after.isr) < min(min_isr, len(after.replicas)) and (after.leader in former or after.leader == NO_LEADER):
        eligible = tuple(sorted((former - set(after.isr)) & set(after.replicas)))
        if not after.isr:
            last_known = before.last_known if before.leader == NO_LEADER else (before.leader,)
    return _with(after, eligible, last_known)


def _with(p: PartitionState, eligible: tuple[int, ...], last_known: tuple[int, ...]) -> PartitionState:
    if p.eligible == eligible and p.last_known == last_known:
        return p
    return replace(p, eligible=eligible, last_known=last_known)
