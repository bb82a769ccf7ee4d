"""What a log refuses, as exceptions. Error codes are Kafka's numbers; nothing here knows a wire message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkaproto.error_codes import ErrorCode

_ANSWERED_WITHOUT_LOG_START = frozenset(
    {ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
)


class RecordError(NamedTuple):
    """One refused record of a batch: its index in the batch and why (Produce v8, KIP-467)."""

    batch_index: int
    message: str


class OffsetOutOfRange(Exception):
    """An offset below the log start or above the log end of this replica (F-16)."""

    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(f"offset {offset} is outside {log_start_offset}..{log_end_offset}")
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset


class InvalidBatch(Exception):
    """A batch that must not be appended, as a Produce response tells it.

    `error_code` is Kafka's number; `record_errors` is empty unless single records were judged (P-10);
    `log_start_known` tells whether the answer carries the real log start offset or -1 (P-2).
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
        self.log_start_known = not before_append and error_code not in _ANSWERED_WITHOUT_LOG_START


class StorageError(Exception):
    """The store could not take bytes (full disk, no descriptors). Nothing was appended. Kafka's error 56."""
