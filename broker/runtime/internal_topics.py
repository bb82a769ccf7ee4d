"""Code that the group and the transaction coordinator share: the interface of a record in internal topics, and the errors after a failed append.

This module does not depend on groups, transactions or logs.
"""

from __future__ import annotations

from typing import Protocol

from kafkaproto.error_codes import ErrorCode

_NOT_AVAILABLE: dict[int, int] = dict.fromkeys(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ),
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
_NOT_COORDINATOR: dict[int, int] = dict.fromkeys(
    (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR), ErrorCode.NOT_COORDINATOR
)
LOG_ERRORS: dict[int, int] = _NOT_AVAILABLE | _NOT_COORDINATOR
"""Maps the error code of a failed append to an internal topic to the code that the coordinator's client gets (GC-39, GO-23, TX-7)."""


class KeyedRecord(Protocol):
    """Interface of a record in an internal topic. The value is None for a tombstone."""

    @property
    def offset(self) -> int: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...
