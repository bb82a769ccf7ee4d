"""The tombstones of groups and offsets that are deleted together, in the batches in which Kafka's group coordinators write them (GO-9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

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
        self._batches: dict[int | str, list[tuple[str, list[Entry]]]] = {}
        """Maps the partition of `__consumer_offsets`, or the group id with the coordinator in Scala, to (group id, records) of each call of `add`."""

    def add(self, group: AnyGroup, keys: Iterable[PartitionKey], *, group_too: bool) -> None:
        """Add the tombstones of the offsets that a group committed for the partitions `keys`. group_too: whether to add those of the group."""
        group_id = group.group_id
        entries = self._storage.tombstones_of(group, keys, group_too=group_too)
        batch_id = self._storage.partition_of(group_id) if self._storage.is_new_coordinator else group_id
        self._batches.setdefault(batch_id, []).append((group_id, entries))

    def write(self, now_ms: int, *, may_split: bool = False) -> dict[str, list[int]]:
        """Append all tombstones, without waiting for replicas. Returns a list of error codes by group id: one for each tombstone of the group.

        The codes are always 0 if the broker emulates Kafka's group coordinator in Scala, which deletes offsets and groups even if their tombstones
        cannot be written. may_split: whether the coordinator in Java splits a batch that is too large for the log; only a tombstone that is too large
        by itself is rejected then. Otherwise the batch is rejected as a whole.
        """
        is_java = self._storage.is_new_coordinator
        codes: dict[str, list[int]] = {}
        for parts in self._batches.values():
            entries = [entry for _, own_entries in parts for entry in own_entries]
            batch_codes = iter(self._append(parts[0][0], entries, now_ms, may_split=may_split and is_java))
            for group_id, own_entries in parts:
                own_codes = list(islice(batch_codes, len(own_entries)))
                codes.setdefault(group_id, []).extend(own_codes if is_java else [0] * len(own_codes))
        return codes

    def _append(self, group_id: str, entries: Sequence[Entry], now_ms: int, *, may_split: bool) -> list[int]:
        """Append the tombstones as one batch, or split them, and return the error code of each."""
        error = self._storage.append_only(group_id, entries, now_ms)
        if error != ErrorCode.UNKNOWN_SERVER_ERROR or not may_split or len(entries) < 2:
            return [error] * len(entries)
        middle = len(entries) // 2
        halves = entries[:middle], entries[middle:]
        return [code for half in halves for code in self._append(group_id, half, now_ms, may_split=True)]
