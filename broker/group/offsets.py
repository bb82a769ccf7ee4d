"""Committed offsets: what is kept of one, and when it is forgotten (KIP-211).

Knows no member and no wire message; who may commit is decided in `commits`. Kafka's `OffsetAndMetadata`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

PartitionKey = tuple[str, int]
"""(topic name, partition index)."""


class CommittedOffset(NamedTuple):
    """One commit. leader_epoch -1: not given. expire_ms: of clients that ask for a retention (v2 to v4), else None."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expire_ms: int | None = None

    def is_expired(self, unused_since_ms: int, retention_ms: int, now_ms: int) -> bool:
        """unused_since_ms: from when on `retention_ms` counts."""
        if self.expire_ms is not None:
            return now_ms >= self.expire_ms
        return now_ms - unused_since_ms >= retention_ms


def is_too_long(metadata: str, max_bytes: int) -> bool:
    """`offset.metadata.max.bytes`, which Kafka compares with the number of UTF-16 units, not of bytes."""
    if len(metadata) * 2 <= max_bytes:
        return False
    return len(metadata.encode("utf-16-le", "surrogatepass")) // 2 > max_bytes


def expired(
    offsets: Mapping[PartitionKey, CommittedOffset],
    empty_since_ms: int | None,
    subscribed: frozenset[str],
    retention_ms: int,
    now_ms: int,
) -> list[PartitionKey]:
    """Keys of the offsets to forget. empty_since_ms: since when the group has no members; None: each commit counts by
    itself.

    subscribed: topics whose offsets are kept because members read them.
    """
    return [
        key
        for key, committed in offsets.items()
        if key[0] not in subscribed
        and committed.is_expired(
            committed.committed_ms if empty_since_ms is None else empty_since_ms, retention_ms, now_ms
        )
    ]
