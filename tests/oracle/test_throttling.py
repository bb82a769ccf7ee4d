"""Which versions make a client wait, asked of the response classes of two releases."""

from __future__ import annotations

import json

import pytest

from kafkaproto.api import APIS, ApiKey, codec
from kafkaproto.throttling import CLIENT_WAITS_SINCE, client_waits, told_since
from tests.support.oracle.oracle import Releases


@pytest.mark.java
@pytest.mark.rule("T-1")
def test_the_first_version_in_which_a_client_waits_is_that_of_the_java_client(releases: Releases) -> None:
    for oracle, _ in releases.all:
        theirs = {int(key): first for key, first in json.loads(oracle.ask("waits")).items() if int(key) in APIS}
        assert len(theirs) > 60
        assert theirs == {key: CLIENT_WAITS_SINCE.get(ApiKey(key), -1) for key in theirs}


@pytest.mark.rule("T-1")
def test_nobody_waits_who_is_not_told() -> None:
    for key in APIS:
        told = told_since(key)
        for version in range(APIS[key].min_version, APIS[key].max_version + 1):
            has_field = "throttle_time_ms" in dict(codec(key, version).response.fields)
            assert has_field == (told is not None and version >= told), (key, version)
            assert has_field or not client_waits(key, version)


@pytest.mark.rule("T-1")
@pytest.mark.parametrize(
    ("key", "told", "waits"),
    [(ApiKey.PRODUCE, 1, 6), (ApiKey.FETCH, 1, 8), (ApiKey.METADATA, 3, 6), (ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, None)],
)
def test_told_first_and_waiting_by_oneself_later(key: ApiKey, told: int, waits: int | None) -> None:
    assert told_since(key) == told
    first = next((v for v in range(APIS[key].max_version + 1) if client_waits(key, v)), None)
    assert first == waits
