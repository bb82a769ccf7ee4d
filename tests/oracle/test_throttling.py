"""Versions in which a client waits for throttles, compared with the response classes of two releases."""

from __future__ import annotations

import json

import pytest

from kafkaproto.api import APIS, ApiKey, codec
from kafkaproto.throttling import CLIENT_WAITS_SINCE, client_waits, throttle_time_since
from tests.support.oracle.oracle import Releases


@pytest.mark.java
@pytest.mark.rule("T-1")
def test_client_side_throttling_begins_at_the_same_api_version_as_in_the_java_client(releases: Releases) -> None:
    for oracle, _ in releases.all:
        theirs = {int(key): first for key, first in json.loads(oracle.ask("waits")).items() if int(key) in APIS}
        assert len(theirs) > 60
        assert theirs == {key: CLIENT_WAITS_SINCE.get(ApiKey(key), -1) for key in theirs}


@pytest.mark.rule("T-1")
def test_each_api_version_with_client_side_throttling_has_a_throttle_time_field() -> None:
    for key in APIS:
        is_reported = throttle_time_since(key)
        for version in range(APIS[key].min_version, APIS[key].max_version + 1):
            has_field = "throttle_time_ms" in dict(codec(key, version).response.fields)
            assert has_field == (is_reported is not None and version >= is_reported), (key, version)
            assert has_field or not client_waits(key, version)


@pytest.mark.rule("T-1")
@pytest.mark.parametrize(
    ("key", "is_reported", "waits"),
    [(ApiKey.PRODUCE, 1, 6), (ApiKey.FETCH, 1, 8), (ApiKey.METADATA, 3, 6), (ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, None)],
)
def test_throttle_time_and_client_side_throttling_begin_at_the_expected_api_versions(
    key: ApiKey, is_reported: int, waits: int | None
) -> None:
    assert throttle_time_since(key) == is_reported
    first = next((v for v in range(APIS[key].max_version + 1) if client_waits(key, v)), None)
    assert first == waits
