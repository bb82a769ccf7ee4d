"""The levels of features that brokers of each release support, and those of a new cluster."""

from __future__ import annotations

import pytest

from kafkaproto.broker.config.features import initial_features, supported_features
from kafkaproto.broker.config.release import RELEASES

HIGHEST = {"3.3": 7, "3.4": 8, "3.5": 11, "3.6": 14, "3.7": 19, "3.8": 20, "3.9": 21, "4.0": 25, "4.1": 27, "4.2": 29}


@pytest.mark.rule("AD-23")
@pytest.mark.parametrize("release", RELEASES)
def test_default_metadata_version_is_the_last_production_version_of_the_release(release: str) -> None:
    """The numbers are `MetadataVersion.LATEST_PRODUCTION` in the jar of each release."""
    levels = supported_features(release)
    assert ("metadata.version" in levels) == (release in HIGHEST)
    if levels:
        assert levels["metadata.version"] == (7 if release >= "4" else 1, HIGHEST[release])
        assert initial_features(release)["metadata.version"] == HIGHEST[release]


@pytest.mark.rule("AD-22")
@pytest.mark.parametrize(
    ("release", "others"),
    [
        ("2.8", {}),
        ("3.8", {}),
        ("4.0", {"group.version": 1, "transaction.version": 2}),
        ("4.1", {"group.version": 1, "transaction.version": 2, "eligible.leader.replicas.version": 1}),
    ],
)
def test_new_cluster_has_the_default_feature_levels_of_its_release(release: str, others: dict[str, int]) -> None:
    levels = dict(initial_features(release))
    levels.pop("metadata.version", None)
    assert levels == others
    assert all(supported_features(release)[name][1] >= level for name, level in levels.items())
