"""A broker that plays a Kafka release offers the API versions of that release (M-9)."""

from __future__ import annotations

from pkgutil import iter_modules

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker import handlers
from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.config.release import RELEASES, ranges_of
from kafkaproto.broker.requests.registry import REGISTRY, load_handler


@pytest.mark.rule("M-9")
@pytest.mark.parametrize("release", RELEASES)
def test_broker_offers_the_api_versions_that_codec_and_emulated_release_support(release: str) -> None:
    offered = {key: (api.min_version, api.max_version) for key, api in Cluster(1, release_name=release).apis.items()}
    theirs = ranges_of(release)
    assert offered.keys() == REGISTRY.keys() & theirs.keys()
    for key, (low, high) in offered.items():
        assert (low, high) == (
            max(theirs[key][0], REGISTRY[key].min_version),
            min(theirs[key][1], REGISTRY[key].max_version),
        )


def test_each_handler_module_registers_the_api_that_the_module_is_named_after() -> None:
    modules = {module.name for module in iter_modules(handlers.__path__)}
    assert modules == {ApiKey(key).name.lower() for key in REGISTRY}
    for key in REGISTRY:
        handler, failed = load_handler(key)
        assert {handler.__module__, failed.__module__} == {f"{handlers.__name__}.{ApiKey(key).name.lower()}"}


@pytest.mark.rule("F-36")
@pytest.mark.parametrize(
    ("release", "produce", "fetch"), [("0.9", (0, 1), (0, 1)), ("0.10.2", (0, 2), (0, 3)), ("3.9", (0, 11), (0, 17))]
)
def test_emulated_kafka_before_4_0_offers_old_produce_and_fetch_versions(
    release: str, produce: tuple[int, int], fetch: tuple[int, int]
) -> None:
    apis = Cluster(1, release_name=release).apis
    assert [(apis[key].min_version, apis[key].max_version) for key in (0, 1)] == [produce, fetch]


@pytest.mark.rule("W-3")
def test_emulated_kafka_from_4_0_on_offers_produce_v0_but_accepts_only_v3_and_later() -> None:
    registrations = {release: Cluster(1, release_name=release).apis[0] for release in ("3.9", "4.0", "4.2")}
    versions = {release: (r.min_version, r.first_accepted, r.max_version) for release, r in registrations.items()}
    assert versions == {"3.9": (0, 0, 11), "4.0": (0, 3, 12), "4.2": (0, 3, 13)}


@pytest.mark.rule("F-36")
def test_emulated_kafka_4_0_offers_no_fetch_version_below_4() -> None:
    assert Cluster(1, release_name="4.0").apis[1].min_version == 4


def test_unknown_release_name_is_rejected_with_the_list_of_known_releases() -> None:
    assert "0.9" in RELEASES
    with pytest.raises(ValueError, match=r'unknown release "0\.8"; known are 0\.9, 0\.10\.0'):
        Cluster(1, release_name="0.8")
