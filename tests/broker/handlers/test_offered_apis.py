"""The ApiVersions response is that of a real Kafka with the same settings, also if they change the protocols of groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.conformance.offered import NOT_IN_3_9
from kafkaproto.conformance.subject import settings_of
from kafkaproto.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.support.conformance.real_kafka import NewerKafka, RealKafka

PROTOCOLS = "group.coordinator.rebalance.protocols"
CONSUMER_GROUP_APIS = {68, 69}


def contents(ask: Callable[[Any, int], Any], version: int) -> dict[str, Any]:
    """Return the APIs of an ApiVersions response in its order, and its features, each with its lowest and highest version.

    APIs of share and streams groups are left out.

    ask: sends a request in a version to a broker, and returns the message of the response.
    """
    request = ApiVersionsRequest("a-client", "1.0") if version >= 3 else ApiVersionsRequest()
    response: ApiVersionsResponse = ask(request, version)
    assert response.error_code == 0
    apis = [(api.api_key, api.min_version, api.max_version) for api in response.api_keys]
    return {
        "APIs": [api for api in apis if api[0] not in NOT_IN_3_9],
        "ZooKeeper migration": response.zk_migration_ready,
        "supported": {f.name: (f.min_version, f.max_version) for f in response.supported_features or []},
        "finalized": {f.name: (f.min_version_level, f.max_version_level) for f in response.finalized_features or []},
    }


@pytest.mark.java
@pytest.mark.timeout(120)
@pytest.mark.rule("M-9", "M-10", "AD-10", "AD-22")
@pytest.mark.parametrize(
    ("start", "protocols"),
    [
        (RealKafka, None),
        (RealKafka, "classic,consumer"),
        (NewerKafka, None),
        (NewerKafka, "classic"),
    ],
    ids=["3.9-default", "3.9-consumer", "4.2-default", "4.2-classic"],
)
def test_emulated_and_real_kafka_with_equal_settings_return_the_same_api_versions(
    start: type[RealKafka], protocols: str | None
) -> None:
    changes = {} if protocols is None else {PROTOCOLS: protocols}
    release = start.kafka.rpartition(".")[0]
    ours = VirtualCluster(3, settings_of("default") | changes, profile="kafka", release_name=release)
    connection = ours.connect(0)
    kafka = start("default", changes)
    try:
        for version in range(5):
            expected = contents(kafka.ask_once, version)
            assert contents(connection.ask, version) == expected
            assert {key for key, *_ in expected["APIs"]} >= CONSUMER_GROUP_APIS
    finally:
        kafka.close_connections()
        kafka.stop()
