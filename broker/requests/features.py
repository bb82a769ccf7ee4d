"""Changes the levels of features in a cluster's metadata image, and the settings that depend on a feature.

Only `eligible.leader.replicas.version` has such settings: when it is enabled, Kafka moves `min.insync.replicas` from single brokers to the whole
cluster (KIP-966).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from kafkaproto.broker.config.cluster_config import ALL_BROKERS
from kafkaproto.broker.config.features import ELIGIBLE_LEADER_REPLICAS

if TYPE_CHECKING:
    from kafkaproto.broker.node import SharedState


def finalize(cluster: SharedState, levels: Mapping[str, int]) -> None:
    """Replace the finalized levels of a cluster's features.

    levels: maps the name of a feature to its new level, 1 or higher; a feature that is missing has level 0. Raises KafkaError KAFKA_STORAGE_ERROR
    (56) if the change cannot be persisted.
    """
    image, config = cluster.controller.image, cluster.config
    is_enabled = ELIGIBLE_LEADER_REPLICAS in levels
    was_enabled = ELIGIBLE_LEADER_REPLICAS in image.features
    layers: dict[int, dict[str, str]] = {}
    if is_enabled and not was_enabled:
        layers = config.with_min_insync_replicas_of_the_cluster()
    elif was_enabled and not is_enabled:
        layers = {ALL_BROKERS: config.dynamic_texts(ALL_BROKERS)}  # now settings like others, which must be persisted
    for owner, layer in layers.items():
        cluster.remember_config(owner, layer)
    cluster.controller.publish(replace(image, features=MappingProxyType(dict(levels))), ())
    config.has_eligible_leader_replicas = is_enabled
    if is_enabled and not was_enabled:
        cluster.controller.give_leaders()  # partitions without a leader have eligible ones from now on
    for owner, layer in layers.items():
        config.set_dynamic(owner, layer)
    if layers:
        cluster.setting_changed()
