"""Exceptions of a log. Their error codes are Kafka's numbers. This module does not depend on wire messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkaproto.error_codes import ErrorCode

_WITHOUT_LOG_START = frozenset(
    {ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
)


class RecordError(NamedTuple):
    """A record in a batch that was rejected: its index in the batch, and the reason (Produce v8, KIP-467)."""

    batch_index: int
    message: str


class OffsetOutOfRange(Exception):
    """Raised for an offset below a replica's log start offset or above its log end offset (F-16)."""

    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(f"offset {offset} is outside {log_start_offset}..{log_end_offset}")
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset


class InvalidBatch(Exception):
    """Raised for a batch that must not be appended, with the fields of the Produce response.

    `record_errors`: the rejected records with their reasons; empty if the batch is rejected as a whole (P-10). `before_append`: True if the failed
    check uses only the request and no state of the partition (P-4). `log_start_known`: whether the response contains the log start offset of the
    partition instead of -1 (P-2).
    """

    def __init__(
        self,
        error_code: ErrorCode,
        message: str,
        record_errors: Sequence[RecordError] = (),
        *,
        before_append: bool = False,
    ) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message
        self.record_errors = record_errors
        self.before_append = before_append
        self.log_start_known = not before_append and error_code not in _WITHOUT_LOG_START


class StorageError(Exception):
    """Raised if bytes of a log cannot be written (full disk, no descriptors) or do not contain the expected batches.

    A failed append changes nothing, and the client that sent the batch gets KAFKA_STORAGE_ERROR (56).
    """
