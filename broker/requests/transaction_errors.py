"""Tables of the errors that each version of an API returns for transactions, for all handlers (TX-18, TX-22, TX-28, TX-36, TX-46, TX-68).

The transaction coordinator and the group coordinator have one error for each situation. Older versions of an API do not define every error; in these
versions the broker returns another error instead. This module does not depend on wire messages.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkaproto.api import ApiKey
from kafkaproto.error_codes import ErrorCode


class Replacement(NamedTuple):
    """A rule that replaces an error of a coordinator: the versions of an API below version `first` return the error `instead`."""

    first: int
    instead: ErrorCode


NEVER = 1 << 15
"""A value of `Replacement.first` that is above the versions of every API: no version returns the original error."""
_OLD_EPOCH, _INVALID_STATE, _RETRY = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
_UNAVAILABLE, _LOADING = ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

TABLE: dict[int, dict[int, Replacement]] = {
    ApiKey.INIT_PRODUCER_ID: {ErrorCode.PRODUCER_FENCED: Replacement(4, _OLD_EPOCH)},
    ApiKey.ADD_PARTITIONS_TO_TXN: {ErrorCode.PRODUCER_FENCED: Replacement(2, _OLD_EPOCH)},
    ApiKey.ADD_OFFSETS_TO_TXN: {ErrorCode.PRODUCER_FENCED: Replacement(2, _OLD_EPOCH)},
    ApiKey.END_TXN: {ErrorCode.PRODUCER_FENCED: Replacement(2, _OLD_EPOCH)},
    ApiKey.PRODUCE: {
        ErrorCode.PRODUCER_FENCED: Replacement(NEVER, _OLD_EPOCH),
        ErrorCode.TRANSACTION_ABORTABLE: Replacement(11, _INVALID_STATE),
        ErrorCode.CONCURRENT_TRANSACTIONS: Replacement(12, _RETRY),
        ErrorCode.NETWORK_EXCEPTION: Replacement(NEVER, _RETRY),
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Replacement(NEVER, _RETRY),
        ErrorCode.COORDINATOR_NOT_AVAILABLE: Replacement(NEVER, _RETRY),
        ErrorCode.NOT_COORDINATOR: Replacement(NEVER, _RETRY),
    },
    ApiKey.TXN_OFFSET_COMMIT: {
        ErrorCode.PRODUCER_FENCED: Replacement(NEVER, _OLD_EPOCH),
        ErrorCode.TRANSACTION_ABORTABLE: Replacement(4, _INVALID_STATE),
        ErrorCode.NETWORK_EXCEPTION: Replacement(NEVER, _LOADING),
    },
}
"""Maps an API and an error of the transaction coordinator to a `Replacement`: the error that some or all versions of the API return instead.

For example, Produce returns NOT_ENOUGH_REPLICAS (19) while the coordinator is loading, because producers then send the batch again. For
TxnOffsetCommit, the result may be replaced once more, as `GROUP_TABLE` says.
"""


GROUP_TABLE: dict[int, dict[int, Replacement]] = {
    ApiKey.TXN_OFFSET_COMMIT: {_LOADING: Replacement(2, _UNAVAILABLE)},
}
"""Maps an API and an error of the group coordinator to a `Replacement`: the error that API versions below `Replacement.first` return instead."""


def error_for(api_key: int, version: int, error_code: int) -> int:
    """Return the error that a client gets, in this version of an API, for an error of the transaction coordinator."""
    return _replaced(TABLE, api_key, version, error_code)


def group_error_for(api_key: int, version: int, error_code: int) -> int:
    """Return the error that a client gets, in this version of an API, for an error of the group coordinator."""
    return _replaced(GROUP_TABLE, api_key, version, error_code)


def _replaced(table: dict[int, dict[int, Replacement]], api_key: int, version: int, error_code: int) -> int:
    replacement = table.get(api_key, {}).get(error_code)
    if replacement is None or version >= replacement.first:
        return int(error_code)
    return int(replacement.instead)
