"""A broker plays a release: it offers that release's versions, as far as it has them (M-9)."""

from __future__ import annotations

import pytest

from broker.cluster import Cluster
from broker.registry import REGISTRY
from broker.release import RELEASES, ranges_of
from kafkaproto.releases import releases


@pytest.mark.parametrize("release", RELEASES)
def test_M9_a_broker_offers_what_its_release_and_it_both_have(release: str) -> None:
    offered = {key: (one.min_version, one.max_version) for key, one in Cluster(1, release_name=release).apis.items()}
    theirs = ranges_of(release)
    assert offered.keys() == REGISTRY.keys() & theirs.keys()
    for key, (low, high) in offered.items():
        assert (low, high) == (
            max(theirs[key][0], REGISTRY[key].min_version),
            min(theirs[key][1], REGISTRY[key].max_version),
        )


def test_releases_whose_clients_write_no_magic_2_are_refused_by_name() -> None:
    older = [release for release in releases() if release not in RELEASES]
    assert older == ["0.9", "0.10.0", "0.10.1", "0.10.2"]
    for release in older:
        with pytest.raises(ValueError, match=f"'{release}' is not known; allowed: 0.11, 1.0"):
            Cluster(1, release_name=release)
