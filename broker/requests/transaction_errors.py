"""The errors of transactions by API and version (TX-18, TX-22, TX-28, TX-36, TX-46, TX-68): one table for all handlers.

The transaction coordinator has one error for each situation. Older versions of an API know fewer errors, so each gets the one that it knows.
This module does not depend on wire messages.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkaproto.api import ApiKey
from kafkaproto.error_codes import ErrorCode


class Replacement(NamedTuple):
    """The error that replaces another one in versions below `first`, the first version that knows the original."""

    first: int
    instead: ErrorCode


NEVER = 1 << 15
"""A version that no API reaches: the original error is never returned."""
_OLD_EPOCH, _INVALID_STATE, _RETRY = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
_UNAVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE

TABLE: dict[int, dict[int, Replacement]] = {
    ApiKey.INIT_PRODUCER_ID: {ErrorCode.PRODUCER_FENCED: Replacement(4, _OLD_EPOCH)},
    ApiKey.ADD_PARTITIONS_TO_TXN: {ErrorCode.PRODUCER_FENCED: Replacement(2, _OLD_EPOCH)},
    ApiKey.ADD_OFFSETS_TO_TXN: {ErrorCode.PRODUCER_FENCED: Replacement(2, _OLD_EPOCH)},
    ApiKey.END_TXN: {ErrorCode.PRODUCER_FENCED: Replacement(2, _OLD_EPOCH)},
    ApiKey.PRODUCE: {
        ErrorCode.PRODUCER_FENCED: Replacement(NEVER, _OLD_EPOCH),
        ErrorCode.TRANSACTION_ABORTABLE: Replacement(11, _INVALID_STATE),
        ErrorCode.CONCURRENT_TRANSACTIONS: Replacement(12, _RETRY),
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Replacement(NEVER, _RETRY),
        ErrorCode.COORDINATOR_NOT_AVAILABLE: Replacement(NEVER, _RETRY),
        ErrorCode.NOT_COORDINATOR: Replacement(NEVER, _RETRY),
    },
    ApiKey.TXN_OFFSET_COMMIT: {
        ErrorCode.PRODUCER_FENCED: Replacement(NEVER, _OLD_EPOCH),
        ErrorCode.TRANSACTION_ABORTABLE: Replacement(4, _INVALID_STATE),
        ErrorCode.CONCURRENT_TRANSACTIONS: Replacement(5, _UNAVAILABLE),
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Replacement(NEVER, _UNAVAILABLE),
        ErrorCode.COORDINATOR_NOT_AVAILABLE: Replacement(NEVER, _UNAVAILABLE),
        ErrorCode.NOT_COORDINATOR: Replacement(NEVER, _UNAVAILABLE),
    },
}
"""By API, the errors of the transaction coordinator that some versions do not return. NOT_ENOUGH_REPLICAS makes old producers try again."""


def error_for(api_key: int, version: int, error_code: int) -> int:
    """Return the error that a client gets, in this version of an API, for an error of the transaction coordinator."""
    replacement = TABLE.get(api_key, {}).get(error_code)
    if replacement is None or version >= replacement.first:
        return int(error_code)
    return int(replacement.instead)
