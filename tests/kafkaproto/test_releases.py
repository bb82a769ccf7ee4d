"""API versions of Kafka releases and common versions of two releases. `tests/oracle` compares the table with Kafka's jars."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kafkaproto.api import APIS
from kafkaproto.releases import NAMES, common, releases, versions


def test_releases_function_returns_kafka_release_numbers_from_oldest_to_newest() -> None:
    assert releases()[:6] == ["0.9", "0.10.0", "0.10.1", "0.10.2", "0.11", "1.0"]
    assert releases()[-4:] == ["3.9", "4.0", "4.1", "4.2"]


@pytest.mark.parametrize(
    ("release", "key", "expected"),
    [
        ("0.9", 1, (0, 1)),
        ("0.10.0", 18, (0, 0)),  # the first release with ApiVersions
        ("0.10.2.2", 1, (0, 3)),
        ("0.11.0.3", 0, (0, 3)),  # the first release with record batches
        ("2.3", 1, (0, 11)),  # the first release with fetches from the closest replica (KIP-392)
        ("3.9.1", 1, (0, 17)),
        ("4.0", 1, (4, 17)),
        ("4.2", 0, (0, 13)),
    ],
)
def test_versions_function_returns_the_api_versions_of_a_kafka_release(
    release: str, key: int, expected: tuple[int, int]
) -> None:
    assert versions(release)[key] == expected


def test_every_api_key_of_every_kafka_release_has_an_api_name() -> None:
    assert {key for release in releases() for key in versions(release)} == {*APIS, *NAMES}
    assert not APIS.keys() & NAMES.keys()


def test_no_kafka_release_before_4_0_lowers_the_highest_version_of_an_api() -> None:
    before_4 = releases()[: releases().index("4.0")]
    for older, newer in pairwise(before_4):
        for key, (_, high) in versions(older).items():
            assert versions(newer).get(key, (0, high))[1] >= high, (newer, key)


def test_modifying_a_returned_api_version_table_does_not_change_later_results() -> None:
    versions("2.8").clear()
    assert versions("2.8")


def test_common_api_versions_of_two_kafka_releases_are_supported_by_both_releases() -> None:
    assert common("3.9", "2.3")[1] == (0, 11)
    assert common("2.3", "3.9")[1] == (0, 11)
    assert common("3.9", "4.0")[1] == (4, 17)
    assert 1 not in common("4.0", "0.10.0"), "that client cannot decode a fetch response of that broker"
    assert 48 not in common("3.9", "2.5"), "quotas over the wire came with 2.6"


def test_kafka_4_clients_send_no_produce_request_below_version_3() -> None:
    assert versions("4.2")[0][0] == 0
    assert common("4.2", "3.9")[0] == (3, 11)
    assert common("3.9", "4.2")[0] == (3, 11)
    assert 0 not in common("4.2", "0.10.2")


@pytest.mark.parametrize("name", ["", "5.0", "0.7", "3", "3.9.x", "three"])
def test_error_for_an_unknown_kafka_release_lists_the_known_releases(name: str) -> None:
    with pytest.raises(ValueError, match=r"known releases are 0\.9, 0\.10\.0.* 4\.2"):
        versions(name)
