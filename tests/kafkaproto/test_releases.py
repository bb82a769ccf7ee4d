"""What releases of Kafka offer, and what two of them have in common. (``tests/oracle`` compares the table with jars.)"""

from __future__ import annotations

from itertools import pairwise

import pytest

from kafkaproto.api import APIS
from kafkaproto.releases import NAMES, common, releases, versions


def test_releases_are_listed_oldest_first() -> None:
    assert releases()[:6] == ["0.9", "0.10.0", "0.10.1", "0.10.2", "0.11", "1.0"]
    assert releases()[-4:] == ["3.9", "4.0", "4.1", "4.2"]


@pytest.mark.parametrize(
    ("release", "key", "expected"),
    [
        ("0.9", 1, (0, 1)),
        ("0.10.0", 18, (0, 0)),  # the first with ApiVersions
        ("0.10.2.2", 1, (0, 3)),
        ("0.11.0.3", 0, (0, 3)),  # the first with record batches
        ("2.3", 1, (0, 11)),  # the first with reads from the closest replica (KIP-392)
        ("3.9.1", 1, (0, 17)),
        ("4.0", 1, (4, 17)),
        ("4.2", 0, (0, 13)),
    ],
)
def test_versions_of_a_release(release: str, key: int, expected: tuple[int, int]) -> None:
    assert versions(release)[key] == expected


def test_every_api_of_the_table_has_a_name() -> None:
    assert {key for release in releases() for key in versions(release)} == {*APIS, *NAMES}
    assert not APIS.keys() & NAMES.keys()


def test_versions_only_grow_until_4_0_drops_the_old_ones() -> None:
    before_4 = releases()[: releases().index("4.0")]
    for older, newer in pairwise(before_4):
        for key, (_, high) in versions(older).items():
            assert versions(newer).get(key, (0, high))[1] >= high, (newer, key)


def test_what_is_asked_for_may_be_changed() -> None:
    versions("2.8").clear()
    assert versions("2.8")


def test_common_versions_are_those_that_both_have() -> None:
    assert common("3.9", "2.3")[1] == (0, 11)
    assert common("2.3", "3.9")[1] == (0, 11)
    assert common("3.9", "4.0")[1] == (4, 17)
    assert 1 not in common("4.0", "0.10.0"), "that client reads no fetch answer of that broker"
    assert 48 not in common("3.9", "2.5"), "quotas over the wire came with 2.6"


def test_a_client_of_kafka_4_sends_no_produce_request_below_3_whatever_brokers_say() -> None:
    assert versions("4.2")[0][0] == 0
    assert common("4.2", "3.9")[0] == (3, 11)
    assert common("3.9", "4.2")[0] == (3, 11)
    assert 0 not in common("4.2", "0.10.2")


@pytest.mark.parametrize("name", ["", "5.0", "0.7", "3", "3.9.x", "three"])
def test_an_unknown_release_is_refused_with_those_that_are_known(name: str) -> None:
    with pytest.raises(ValueError, match=r"known are 0\.9, 0\.10\.0.* 4\.2"):
        versions(name)
