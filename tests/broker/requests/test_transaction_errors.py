"""The errors of transactions by API and version, as the code of Kafka 3.9.1 and 4.2.0 decides them (TX-68).

Both releases have the same tables. The comments name the classes that replace an error.
"""

from __future__ import annotations

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.transaction_errors import GROUP_TABLE, TABLE, error_for, group_error_for
from kafkaproto.error_codes import ErrorCode as E

OLD_EPOCH, INVALID_STATE, RETRY = E.INVALID_PRODUCER_EPOCH, E.INVALID_TXN_STATE, E.NOT_ENOUGH_REPLICAS
LATEST = {
    ApiKey.INIT_PRODUCER_ID: 5,
    ApiKey.ADD_PARTITIONS_TO_TXN: 5,
    ApiKey.ADD_OFFSETS_TO_TXN: 4,
    ApiKey.END_TXN: 5,
    ApiKey.PRODUCE: 13,
    ApiKey.TXN_OFFSET_COMMIT: 5,
}
"""The highest version of each API in Kafka 4.2.0."""
REPLACED: dict[tuple[ApiKey, E], tuple[int, E]] = {
    # KafkaApis
    (ApiKey.INIT_PRODUCER_ID, E.PRODUCER_FENCED): (4, OLD_EPOCH),
    (ApiKey.ADD_PARTITIONS_TO_TXN, E.PRODUCER_FENCED): (2, OLD_EPOCH),
    (ApiKey.ADD_OFFSETS_TO_TXN, E.PRODUCER_FENCED): (2, OLD_EPOCH),
    (ApiKey.END_TXN, E.PRODUCER_FENCED): (2, OLD_EPOCH),
    # AddPartitionsToTxnManager
    (ApiKey.PRODUCE, E.PRODUCER_FENCED): (14, OLD_EPOCH),
    (ApiKey.PRODUCE, E.TRANSACTION_ABORTABLE): (11, INVALID_STATE),
    (ApiKey.TXN_OFFSET_COMMIT, E.PRODUCER_FENCED): (6, OLD_EPOCH),
    (ApiKey.TXN_OFFSET_COMMIT, E.TRANSACTION_ABORTABLE): (4, INVALID_STATE),
    # ReplicaManager.handleProduceAppend
    (ApiKey.PRODUCE, E.CONCURRENT_TRANSACTIONS): (12, RETRY),
    (ApiKey.PRODUCE, E.NETWORK_EXCEPTION): (14, RETRY),
    (ApiKey.PRODUCE, E.COORDINATOR_LOAD_IN_PROGRESS): (14, RETRY),
    (ApiKey.PRODUCE, E.COORDINATOR_NOT_AVAILABLE): (14, RETRY),
    (ApiKey.PRODUCE, E.NOT_COORDINATOR): (14, RETRY),
    # GroupMetadataManager.maybeConvertOffsetCommitError (3.9.1), CoordinatorOperationExceptionHelper (4.2.0)
    (ApiKey.TXN_OFFSET_COMMIT, E.NETWORK_EXCEPTION): (6, E.COORDINATOR_LOAD_IN_PROGRESS),
}
"""Maps an API and an error of the transaction coordinator to the first version that returns this error, and to the error of the versions below it."""
ERRORS = {E.NONE, E.INVALID_PRODUCER_ID_MAPPING, *(error for table in TABLE.values() for error in table)}
"""Every error of the table, and two that no API replaces."""


@pytest.mark.rule("TX-68")
@pytest.mark.parametrize("api", list(LATEST))
def test_transaction_error_code_in_each_api_version_equals_the_code_kafka_returns(api: ApiKey) -> None:
    for error in ERRORS:
        first, instead = REPLACED.get((api, E(error)), (0, E.NONE))
        for version in range(LATEST[api] + 1):
            assert error_for(api, version, error) == (instead if version < first else error), (error, version)


@pytest.mark.rule("TX-68")
def test_old_api_versions_replace_the_same_transaction_errors_as_in_kafka() -> None:
    assert {(api, error) for api, table in TABLE.items() for error in table} == set(REPLACED)
    assert {(api, error) for api, table in GROUP_TABLE.items() for error in table} == {
        (ApiKey.TXN_OFFSET_COMMIT, E.COORDINATOR_LOAD_IN_PROGRESS)
    }


@pytest.mark.rule("TX-46", "TX-68")
def test_txn_offset_commit_v0_v1_return_coordinator_not_available_while_group_loads() -> None:
    loading, unavailable = E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE
    for api, latest in LATEST.items():
        for version in range(latest + 1):
            is_old = api == ApiKey.TXN_OFFSET_COMMIT and version < 2
            assert group_error_for(api, version, loading) == (unavailable if is_old else loading)
            assert group_error_for(api, version, E.NOT_COORDINATOR) == E.NOT_COORDINATOR
            assert group_error_for(api, version, unavailable) == unavailable
