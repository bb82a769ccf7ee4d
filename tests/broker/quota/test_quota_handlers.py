"""AlterClientQuotas and DescribeClientQuotas of a broker, and the effect of an altered quota on the next request."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from kafkaproto.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from kafkaproto.messages.metadata import MetadataRequest

VERSIONS = (0, 1)
Entity = list[tuple[str, str | None]]


def entry(entity: Entity, *ops: OpData) -> AlterClientQuotasRequestEntryData:
    return AlterClientQuotasRequestEntryData([AlterClientQuotasRequestEntityData(*e) for e in entity], list(ops))


def alter(*entries: AlterClientQuotasRequestEntryData, validate_only: bool = False) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(list(entries), validate_only)


def described_values(answer: Any) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    return {
        tuple((e.entity_type, e.entity_name) for e in quota_entry.entity): {v.key: v.value for v in quota_entry.values}
        for quota_entry in answer.entries
    }


@pytest.mark.rule("Q-20")
@pytest.mark.parametrize("version", VERSIONS)
def test_alter_client_quotas_returns_one_result_for_each_entity(version: int) -> None:
    client = VirtualCluster().connect()
    both: Entity = [("user", None), ("client-id", "c")]
    request = alter(
        entry(both, OpData("producer_byte_rate", 1000.0), OpData("request_percentage", 12.5)),
        entry([("user", "u")], OpData("producer_byte_rate", -1.0)),
    )
    assert client.ask(alter(*request.entries, validate_only=True), version).entries[0].error_code == 0
    everything = DescribeClientQuotasRequest()
    assert client.ask(everything, version).entries == []
    good, bad = client.ask(request, version).entries
    assert (good.error_code, good.error_message) == (0, None)
    assert [(e.entity_type, e.entity_name) for e in good.entity] == [("client-id", "c"), ("user", None)]
    assert bad.error_code == 42 and "greater than 0" in bad.error_message
    response = client.ask(everything, version)
    assert described_values(response) == {
        tuple(reversed(both)): {"producer_byte_rate": 1000.0, "request_percentage": 12.5}
    }
    exact = DescribeClientQuotasRequest([ComponentData("client-id", 0, "c")], True)
    assert client.ask(exact, version).entries == []


@pytest.mark.rule("Q-21")
@pytest.mark.parametrize("version", VERSIONS)
def test_describe_client_quotas_with_an_invalid_filter_returns_an_error(version: int) -> None:
    client = VirtualCluster().connect()
    for component, code in ((ComponentData("weather", 2, None), 35), (ComponentData("user", 7, None), 42)):
        response = client.ask(DescribeClientQuotasRequest([component]), version)
        assert (response.error_code, response.entries) == (code, None) and response.error_message


@pytest.mark.rule("Q-10")
def test_altered_quota_applies_to_the_next_request_on_every_broker() -> None:
    cluster = VirtualCluster(2)
    admin, client = cluster.connect(0, "admin"), cluster.connect(1, "c")
    assert client.ask(MetadataRequest([]), 8).throttle_time_ms == 0
    admin.ask(alter(entry([("client-id", "c")], OpData("producer_byte_rate", 100.0))), 1)
    assert cluster.state.nodes[1].quotas.produce.bound("ANONYMOUS", "c") == 100.0
    admin.ask(alter(entry([("client-id", "c")], OpData("producer_byte_rate", 0.0, True))), 1)
    assert cluster.state.nodes[1].quotas.produce.bound("ANONYMOUS", "c") is None
