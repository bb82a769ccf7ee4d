"""The errors of transactions by API and version, cell by cell as Kafka 3.9.1 and 4.1.1 returned them (TX-68)."""

from __future__ import annotations

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.transaction_errors import error_for

OLD_EPOCH, INVALID_STATE, MAPPING, CONCURRENT, FENCED, ABORTABLE = 47, 48, 49, 51, 90, 120
UNAVAILABLE, NOT_COORDINATOR, NOT_ENOUGH_REPLICAS = 15, 16, 19


@pytest.mark.rule("TX-68")
@pytest.mark.parametrize(
    ("api", "error_code", "by_version"),
    [
        (ApiKey.INIT_PRODUCER_ID, FENCED, {3: OLD_EPOCH, 4: FENCED}),
        (ApiKey.ADD_PARTITIONS_TO_TXN, FENCED, {1: OLD_EPOCH, 2: FENCED}),
        (ApiKey.ADD_OFFSETS_TO_TXN, FENCED, {1: OLD_EPOCH, 2: FENCED}),
        (ApiKey.END_TXN, FENCED, {1: OLD_EPOCH, 2: FENCED, 5: FENCED}),
        (ApiKey.END_TXN, MAPPING, {0: MAPPING, 5: MAPPING}),
        (ApiKey.PRODUCE, FENCED, {3: OLD_EPOCH, 12: OLD_EPOCH}),
        (ApiKey.PRODUCE, ABORTABLE, {10: INVALID_STATE, 11: ABORTABLE}),
        (ApiKey.PRODUCE, CONCURRENT, {11: NOT_ENOUGH_REPLICAS, 12: CONCURRENT}),
        (ApiKey.PRODUCE, NOT_COORDINATOR, {3: NOT_ENOUGH_REPLICAS, 12: NOT_ENOUGH_REPLICAS}),
        (ApiKey.PRODUCE, MAPPING, {3: MAPPING, 12: MAPPING}),
        (ApiKey.TXN_OFFSET_COMMIT, FENCED, {0: OLD_EPOCH, 5: OLD_EPOCH}),
        (ApiKey.TXN_OFFSET_COMMIT, ABORTABLE, {3: INVALID_STATE, 4: ABORTABLE}),
        (ApiKey.TXN_OFFSET_COMMIT, CONCURRENT, {0: CONCURRENT, 5: CONCURRENT}),
        (ApiKey.TXN_OFFSET_COMMIT, NOT_COORDINATOR, {0: UNAVAILABLE, 5: UNAVAILABLE}),
    ],
)
def test_each_api_version_sends_a_transaction_error_as_kafka_3_9_and_4_1_do(
    api: ApiKey, error_code: int, by_version: dict[int, int]
) -> None:
    assert {version: error_for(api, version, error_code) for version in by_version} == by_version
