"""The features of each Kafka release: which levels its brokers support, and which levels a new cluster has (KIP-584).

The levels are those of the classes `BrokerFeatures`, `MetadataVersion` and `Feature` (before 4.0 `Features`) in the jars of each release.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

METADATA_VERSION, KRAFT_VERSION, TRANSACTION_VERSION = "metadata.version", "kraft.version", "transaction.version"
GROUP_VERSION, ELIGIBLE_LEADER_REPLICAS = "group.version", "eligible.leader.replicas.version"
Levels = tuple[int, int]
"""The lowest and the highest level of a feature that the brokers of a release support, such as (0, 1)."""

_METADATA_VERSIONS: Mapping[str, Levels] = {
    "3.3": (1, 7),
    "3.4": (1, 8),
    "3.5": (1, 11),
    "3.6": (1, 14),
    "3.7": (1, 19),
    "3.8": (1, 20),
    "3.9": (1, 21),
    "4.0": (7, 25),
    "4.1": (7, 27),
    "4.2": (7, 29),
}
"""Maps each release to its levels of `metadata.version`. Releases before 3.3 have no such feature; their brokers use ZooKeeper by default."""
_OTHERS: Mapping[str, Mapping[str, Levels]] = {
    "3.9": {KRAFT_VERSION: (0, 1)},
    "4.0": {
        KRAFT_VERSION: (0, 1),
        TRANSACTION_VERSION: (0, 2),
        GROUP_VERSION: (0, 1),
        ELIGIBLE_LEADER_REPLICAS: (0, 1),
    },
    "4.1": {"share.version": (0, 1)},
    "4.2": {"streams.version": (0, 1)},
}
"""Maps a release to features that brokers support from this release on, with the lowest and highest level of each feature.

`metadata.version` is not included.
"""
_NOT_IN_NEW_CLUSTERS: Mapping[str, frozenset[str]] = {
    "4.0": frozenset({ELIGIBLE_LEADER_REPLICAS}),
    "4.1": frozenset({"share.version"}),
}
"""Maps a release to the features that it supports and whose level in a new cluster is 0.

`kraft.version` is not listed: its level is 0 in every new cluster, as in Kafka with static controllers (KIP-853).
"""


def supported_features(release: str) -> Mapping[str, Levels]:
    """Return the levels that brokers of a release support, by feature and sorted by name. Empty before 3.3."""
    if release not in _METADATA_VERSIONS:
        return MappingProxyType({})
    features = {METADATA_VERSION: _METADATA_VERSIONS[release]}
    for first, added in _OTHERS.items():
        if list(_METADATA_VERSIONS).index(first) <= list(_METADATA_VERSIONS).index(release):
            features |= added
    return MappingProxyType(dict(sorted(features.items())))


def initial_features(release: str) -> Mapping[str, int]:
    """Return the finalized levels of the features in a new cluster of a release, without features whose level is 0."""
    without = _NOT_IN_NEW_CLUSTERS.get(release, frozenset()) | {KRAFT_VERSION}
    levels = {name: highest for name, (_, highest) in supported_features(release).items() if name not in without}
    return MappingProxyType(levels)


def changed_levels(release: str, levels: Mapping[str, int]) -> dict[str, int]:
    """Return, by feature, the current levels of a cluster that differ from the levels of a new cluster of `release`.

    levels: the current levels. A feature that is missing in `levels`, or that a new cluster does not finalize, counts as level 0.
    """
    initial = initial_features(release)
    return {
        name: levels.get(name, 0) for name in supported_features(release) if levels.get(name, 0) != initial.get(name, 0)
    }


def restored_features(release: str, changed: Mapping[str, int]) -> Mapping[str, int]:
    """Return the finalized levels, by feature, of a cluster that is restarted as Kafka release `release`. Features with level 0 are left out.

    changed: the levels that `changed_levels` returned before the restart, perhaps for another release. Levels that `release` does not support are
    ignored. A feature without a level in `changed` gets the level of a new cluster.
    """
    supported = supported_features(release)
    levels = dict(initial_features(release))
    for name, level in changed.items():
        lowest, highest = supported.get(name, (0, -1))
        if lowest <= level <= highest:
            levels[name] = level
    return MappingProxyType({name: level for name, level in levels.items() if level})
