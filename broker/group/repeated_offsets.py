"""Offset commits that name a partition more than once: the records that are written, and the result of each entry (GO-4, GO-15)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey, is_too_long
from kafkaproto.error_codes import ErrorCode


class Result(Protocol):
    """Interface of the entry for one partition in the response to an offset commit, with its error code."""

    error_code: int


class OffsetsToStore(dict[PartitionKey, CommittedOffset]):
    """A dict with the offset to store for each partition of an offset commit. The commit may name a partition more than once.

    If a request repeats a partition, Kafka's group coordinator in Scala stores the partition's last offset. The one in Java (default from 4.0 on)
    stores the last offset whose metadata is not too long, or the last offset if the metadata of each is too long. too_long: maps each repeated
    partition to one boolean for each of its offsets, in the order of the request: True if the metadata of the offset is too long. parts: all offsets
    of the request whose metadata is not too long, in the order of the request, split into dicts so that no dict needs a partition twice. Kafka's
    coordinator in Java writes a record for each of these offsets. `too_long` and `parts` are empty if the request names no partition twice, or if
    the broker emulates the coordinator in Scala.
    """

    too_long: Mapping[PartitionKey, Sequence[bool]] = MappingProxyType({})
    parts: Sequence[dict[PartitionKey, CommittedOffset]] = ()

    def __init__(
        self, offsets: Sequence[tuple[PartitionKey, CommittedOffset]], max_metadata_bytes: int, *, checks_each: bool
    ) -> None:
        """Choose the offset to store for each partition.

        offsets: the partitions and offsets in the order of the request. max_metadata_bytes: `offset.metadata.max.bytes`. checks_each: whether to
        check the metadata of each offset of a repeated partition, as Kafka's group coordinator in Java does.
        """
        super().__init__(offsets)
        if checks_each and len(self) < len(offsets):
            self._check_each(offsets, max_metadata_bytes)

    def _check_each(self, offsets: Sequence[tuple[PartitionKey, CommittedOffset]], max_metadata_bytes: int) -> None:
        offsets_of: dict[PartitionKey, list[CommittedOffset]] = {}
        for key, offset in offsets:
            offsets_of.setdefault(key, []).append(offset)
        flags_of: dict[PartitionKey, list[bool]] = {}
        for key, commits in offsets_of.items():
            if len(commits) == 1:
                continue
            flags_of[key] = [is_too_long(offset.metadata, max_metadata_bytes) for offset in commits]
            storable = [offset for offset, too_long in zip(commits, flags_of[key], strict=True) if not too_long]
            self[key] = (storable or commits)[-1]
        self.too_long = flags_of
        part: dict[PartitionKey, CommittedOffset] = {}
        parts: list[dict[PartitionKey, CommittedOffset]] = []
        for key, offset in offsets:
            if is_too_long(offset.metadata, max_metadata_bytes):
                continue
            if not parts or key in part:
                part = {}
                parts.append(part)
            part[key] = offset
        self.parts = parts

    def set_errors(self, results: Iterable[tuple[PartitionKey, Result]]) -> None:
        """Set OFFSET_METADATA_TOO_LARGE (12) in each result of a repeated partition if the offset's metadata is too long and there is no other error.

        results: the partitions and results in the order of the request.
        """
        if not self.too_long:
            return
        remaining = {key: iter(flags) for key, flags in self.too_long.items()}
        for key, result in results:
            if next(remaining.get(key, iter(())), False) and not result.error_code:
                result.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE


def parts_to_write(
    offsets: Mapping[PartitionKey, CommittedOffset], accepted: Mapping[PartitionKey, CommittedOffset]
) -> Sequence[Mapping[PartitionKey, CommittedOffset]]:
    """Return the offsets of a commit that get a record, in the order of the records (GO-4). Each dict has a partition at most once.

    offsets: the offsets of the request. accepted: those that are not rejected. The result has only the dict `accepted`, unless the request names a
    partition more than once and the broker emulates Kafka's group coordinator in Java (default from 4.0 on).
    """
    return (isinstance(offsets, OffsetsToStore) and offsets.parts) or (accepted,)
