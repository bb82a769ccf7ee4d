"""The tombstones of groups and offsets that are deleted together, in the batches in which Kafka's group coordinators write them (GO-9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafkaproto.broker.group.migration import AnyGroup
from kafkaproto.broker.group.offsets import PartitionKey
from kafkaproto.broker.group.records import Entry
from kafkaproto.broker.group.storage import GroupStorage
from kafkaproto.error_codes import ErrorCode


class Tombstones:
    """Tombstones of groups and their offsets, which `write` appends to `__consumer_offsets`.

    Kafka's group coordinator in Java (default from 4.0 on) writes one batch for each partition of `__consumer_offsets`, with the tombstones of all
    groups of the partition. The one in Scala writes one batch for each group. In a batch, the tombstones have the order in which they were added.
    """

    def __init__(self, storage: GroupStorage) -> None:
        self._storage = storage
        self._batches: dict[int | str, list[_Tombstone]] = {}
        """Maps the partition of `__consumer_offsets`, or the group id with the coordinator in Scala, to the tombstones of a batch."""
        self._group_ids: dict[str, None] = {}

    def add(self, group: AnyGroup, keys: Iterable[PartitionKey], *, group_too: bool) -> None:
        """Add the tombstones of the offsets that a group committed for the partitions `keys`. group_too: whether to add those of the group."""
        group_id, storage = group.group_id, self._storage
        batch = self._batches.setdefault(storage.partition_of(group_id) if storage.is_new_coordinator else group_id, [])
        batch += [_Tombstone(group_id, entry) for entry in storage.tombstones_of(group, keys)]
        if group_too:
            batch += [_Tombstone(group_id, entry, is_own=True) for entry in storage.tombstones(group)]
        self._group_ids[group_id] = None

    def write(self, now_ms: int, *, may_split: bool = False, collects: bool = True) -> dict[str, list[int]]:
        """Append all tombstones, without waiting for replicas. Returns a list of error codes by group id: one for each tombstone of the group.

        The codes are always 0 if the broker emulates Kafka's group coordinator in Scala, which deletes offsets and groups even if their tombstones
        cannot be written. may_split: whether the coordinator in Java splits a batch that is too large for the log; only a tombstone that is too large
        by itself is rejected then, and with it those of its group itself. Otherwise the batch is rejected as a whole. collects: whether the records
        may first be collected, for `group.coordinator.append.linger.ms`.
        """
        is_java = self._storage.is_new_coordinator
        codes: dict[str, list[int]] = {group_id: [] for group_id in self._group_ids}
        for batch in self._batches.values():
            batch_codes = self._append(batch, now_ms, may_split=may_split and is_java, collects=collects)
            for tombstone, code in zip(batch, batch_codes, strict=True):
                codes[tombstone.group_id].append(code if is_java else 0)
        return codes

    def _append(self, batch: Sequence[_Tombstone], now_ms: int, *, may_split: bool, collects: bool) -> list[int]:
        """Append tombstones as one batch, or split them. Returns the error code of each."""
        if not batch:
            return []
        entries = [tombstone.entry for tombstone in batch]
        error = self._storage.append_only(batch[0].group_id, entries, now_ms, collects=collects)
        if error != ErrorCode.UNKNOWN_SERVER_ERROR or not may_split or len(batch) < 2:
            return [error] * len(batch)
        middle = len(batch) // 2
        first = self._append(batch[:middle], now_ms, may_split=True, collects=collects)
        failed_ids = {tombstone.group_id for tombstone, code in zip(batch, first, strict=False) if code}
        are_kept = [tombstone.is_own and tombstone.group_id in failed_ids for tombstone in batch[middle:]]
        others = [tombstone for tombstone, is_kept in zip(batch[middle:], are_kept, strict=True) if not is_kept]
        second = iter(self._append(others, now_ms, may_split=True, collects=collects))
        return [*first, *(error if is_kept else next(second) for is_kept in are_kept)]


class _Tombstone(NamedTuple):
    """A tombstone, as (key, None). is_own: whether it deletes the group itself, and not one of its offsets."""

    group_id: str
    entry: Entry
    is_own: bool = False
