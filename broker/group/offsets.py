"""Committed offsets: the stored fields, and when they expire (KIP-211).

This module does not depend on members or wire messages; `commits` decides which requests may commit. Corresponds to Kafka's `OffsetAndMetadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import (
    scala_copy_order,
    scala_filtered_order,
    scala_table_order,
    topic_id_partition_hash_bits,
)

K = TypeVar("K", bound=str | bytes)
PartitionKey = tuple[str, int]
"""Identifies a partition: (topic name, partition index)."""
NO_TOPIC_ID = bytes(16)
"""The topic id of an offset that was committed by topic name, and of a topic that a request names without an id."""


class CommittedOffset(NamedTuple):
    """One committed offset of a group.

    leader_epoch: the leader epoch that the client sent with the offset; -1 if it sent none. metadata: the text that the client sent with the offset.
    expire_ms: when the offset expires, if the client sent a retention time (OffsetCommit v2 to v4), otherwise None. topic_id: the topic id in the
    client's commit (OffsetCommit v10); NO_TOPIC_ID if the commit has the topic's name instead.
    """

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expire_ms: int | None = None
    topic_id: bytes = NO_TOPIC_ID

    def is_expired(self, unused_since_ms: int, retention_ms: int, now_ms: int) -> bool:
        """Return whether the offset has expired.

        If the commit has its own expiry time, only that time counts. Otherwise the offset expires `retention_ms` after `unused_since_ms`: the time of
        the commit, or the time at which the last member left the group.
        """
        if self.expire_ms is not None:
            return now_ms >= self.expire_ms
        return now_ms - unused_since_ms >= retention_ms

    def belongs_to(self, topic_id: bytes) -> bool:
        """Return whether the offset was committed for the topic with this id (GO-34).

        A topic that is deleted and created again has the same name but another id. The result is also True if the commit, or the request that reads
        the offset, names the topic without an id, so that the id is NO_TOPIC_ID.
        """
        return NO_TOPIC_ID in (self.topic_id, topic_id) or self.topic_id == topic_id


def expiry_ms(now_ms: int, retention_ms: int) -> int:
    """Return the time in ms at which an offset that is committed at `now_ms` with the retention time `retention_ms` expires.

    retention_ms: any int64. The result is the sum, which wraps around as Java's `long` does. For a very large retention time, the result is therefore
    in the past, and the next check for expired offsets deletes the offset.
    """
    total_ms = now_ms + retention_ms
    return total_ms if total_ms < 1 << 63 else total_ms - (1 << 64)


def is_too_long(metadata: str, max_bytes: int) -> bool:
    """Return whether the metadata of a committed offset is too long: more than `max_bytes` (`offset.metadata.max.bytes`).

    As in Kafka, the length is counted in UTF-16 units, in spite of the setting's name.
    """
    if len(metadata) * 2 <= max_bytes:
        return False
    return len(metadata.encode("utf-16-le", "surrogatepass")) // 2 > max_bytes


def split_by_metadata(
    offsets: Mapping[PartitionKey, CommittedOffset], max_bytes: int, *, in_scala_order: bool
) -> tuple[dict[PartitionKey, CommittedOffset], dict[PartitionKey, int]]:
    """Return (the offsets that may be stored, an error code for each partition whose offset has too long metadata).

    max_bytes: the maximum length of metadata (`offset.metadata.max.bytes`). The error code is OFFSET_METADATA_TOO_LARGE (12). in_scala_order: whether
    the offsets that may be stored have the order in which Kafka's group coordinator in Scala writes them, otherwise that of `offsets` (GO-4).
    """
    errors = {
        key: int(ErrorCode.OFFSET_METADATA_TOO_LARGE)
        for key, committed in offsets.items()
        if is_too_long(committed.metadata, max_bytes)
    }
    accepted = {key: committed for key, committed in offsets.items() if key not in errors}
    if in_scala_order and len(accepted) > 1:
        keys = scala_table_order(offsets, topic_id_partition_hash_bits)
        accepted = {key: offsets[key] for key in scala_filtered_order(keys, accepted, topic_id_partition_hash_bits)}
    return accepted, errors


def expired(
    offsets: Mapping[PartitionKey, CommittedOffset],
    empty_since_ms: int | None,
    subscribed: frozenset[str],
    retention_ms: int,
    now_ms: int,
) -> list[PartitionKey]:
    """Return the partitions whose committed offsets have expired, because their retention time has passed.

    empty_since_ms: when the last member left the group, from which `retention_ms` counts; None if it counts from each commit. subscribed: topics
    whose offsets are kept because members subscribe to them.
    """
    return [
        key
        for key, committed in offsets.items()
        if key[0] not in subscribed
        and committed.is_expired(
            committed.committed_ms if empty_since_ms is None else empty_since_ms, retention_ms, now_ms
        )
    ]


def commit_order(
    topics: Sequence[tuple[str, Sequence[int]]], results: Mapping[PartitionKey, int]
) -> dict[PartitionKey, int]:
    """Return the results of an offset commit in the order of Kafka's group coordinator in Scala: that of a hash table (GO-36).

    topics: the topics of the request with their partition indexes. results: maps the processed partitions to their error codes.
    """
    if len(results) < 2:
        return dict(results)
    processed = [(topic, index) for topic, indexes in topics for index in indexes if (topic, index) in results]
    return {key: results[key] for key in scala_copy_order(processed, topic_id_partition_hash_bits)}


def errors_by_topic(
    topics: Sequence[tuple[K, Sequence[int]]],
    results: Mapping[tuple[K, int], int],
    otherwise: Callable[[K], int],
    unknown_topics: Collection[K] = (),
    *,
    repeats: bool = False,
) -> list[tuple[K, list[tuple[int, int]]]]:
    """Return the error codes for a response to OffsetCommit or OffsetDelete, in Kafka's order (GO-15).

    The result has the form [(topic, [(partition, error), ...]), ...].

    - topics: the topics of the request, by name or by id, with their partition indexes.
    - results: maps (topic, partition index) to the error code of each partition that was processed. All of them are partitions of the request.
    - otherwise: a function that takes a topic and returns the error code for the topic's partitions that are not in `results`.
    - unknown_topics: the topics of the request that do not exist; they are listed even without partitions.
    - repeats: whether a processed partition that the request repeats is listed each time, as in Kafka's group coordinator in Java (default from 4.0
      on); otherwise it is listed once, and the processed partitions are in the order of `results`.

    The order: topics that do not exist, or that have a partition outside `results`, come before the other topics. In each topic, the partitions
    outside `results` come first. There is one exception: with `repeats`, if all topics exist and all partitions are in `results`, the order is that
    of the request.
    """
    if repeats and not unknown_topics and all((key, index) in results for key, indexes in topics for index in indexes):
        return [(key, [(index, int(results[(key, index)])) for index in indexes]) for key, indexes in topics if indexes]
    unprocessed_entries: dict[K, list[tuple[int, int]]] = {}
    processed_entries: dict[K, list[tuple[int, int]]] = {}
    for key, indexes in topics:
        if key in unknown_topics:
            unprocessed_entries.setdefault(key, [])
        for index in indexes:
            error = results.get((key, index))
            if error is None:
                unprocessed_entries.setdefault(key, []).append((index, int(otherwise(key))))
            elif repeats:
                processed_entries.setdefault(key, []).append((index, int(error)))
    if not repeats:
        for (key, index), error in results.items():
            processed_entries.setdefault(key, []).append((index, int(error)))
    in_order: list[K] = [*unprocessed_entries, *(key for key in processed_entries if key not in unprocessed_entries)]
    return [(key, [*unprocessed_entries.get(key, ()), *processed_entries.get(key, ())]) for key in in_order]
