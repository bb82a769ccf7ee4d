"""The state of groups and offsets up to the high watermark: requests that only read see this state while later records are not replicated (GC-66).

Kafka's coordinator in Java keeps the states since the high watermark in timeline collections. Here the records of a partition up to the high
watermark are replayed a second time. This happens at the first read while later records are not replicated. Each later read replays only the records
that have followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kafkaproto.broker.group.group import Group
from kafkaproto.broker.group.migration import AnyGroup
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.replay import Loaded
from kafkaproto.broker.group.storage import GroupStorage


@dataclass(slots=True)
class _Replayed:
    """The groups of one partition. end_offset: all records below this offset are replayed, except those that compaction had removed."""

    loaded: Loaded = field(default_factory=lambda: Loaded({}, {}, {}, {}))
    end_offset: int = 0


class CommittedGroups:
    """The groups of the partitions that one broker has loaded, up to their high watermarks. storage: reads the offsets topic.

    A partition is behind while it has records that are not replicated. With Kafka's old group coordinator (3.9), no partition counts as behind,
    because requests see changes that are not replicated yet.
    """

    def __init__(self, storage: GroupStorage) -> None:
        self._storage = storage
        self._partitions: dict[int, _Replayed] = {}

    def add(self, index: int) -> None:
        """Record that this broker has loaded partition `index`."""
        self._partitions[index] = _Replayed()

    def drop(self, index: int) -> None:
        """Forget partition `index`, because this broker no longer coordinates its groups."""
        self._partitions.pop(index, None)

    def is_behind(self, group_id: str) -> bool:
        """Return whether the group's partition has unreplicated records, so that requests that only read must not see the group's newest state."""
        return self._storage.is_new_coordinator and self._is_behind(self._storage.partition_of(group_id))

    def _is_behind(self, index: int) -> bool:
        return index in self._partitions and not self._storage.is_replicated(index)

    def names(self) -> Iterator[str]:
        """Yield the ids of all groups in partitions that have records that are not replicated."""
        for index in self._partitions if self._storage.is_new_coordinator else ():
            if self._is_behind(index):
                loaded = self._replay(index)
                yield from {**loaded.groups, **loaded.consumers, **loaded.offsets, **loaded.pending}

    def get(self, group_id: str, newest: AnyGroup | None) -> AnyGroup | None:
        """Return the replicated state of a group whose partition is behind (`is_behind`); None if no replicated record describes the group.

        newest: the newest state of the group, None if it is deleted. A classic group that still exists is returned in its newest state: in Kafka,
        too, only the existence of a classic group depends on the high watermark.
        """
        loaded = self._replay(self._storage.partition_of(group_id))
        offsets = loaded.offsets.get(group_id, {})
        consumer = loaded.consumers.get(group_id)
        if consumer is not None:
            consumer.offsets = offsets
            consumer.set_target(consumer.targets, consumer.assignment_epoch)
            return consumer
        stored = loaded.groups.get(group_id)
        if stored is None and not offsets and group_id not in loaded.pending:
            return None
        if isinstance(newest, Group):
            return newest
        group = Group(group_id, 0, is_new_coordinator=True)
        group.offsets = offsets
        if stored is not None:
            group.restore(stored, 0)
        return group

    def offsets(self, group_id: str) -> Mapping[PartitionKey, CommittedOffset]:
        """Return the replicated committed offsets of a group whose partition is behind (`is_behind`)."""
        return self._replay(self._storage.partition_of(group_id)).offsets.get(group_id, {})

    def _replay(self, index: int) -> Loaded:
        replayed = self._partitions[index]
        if self._storage.compacted_to(index) > replayed.end_offset > 0:
            replayed = self._partitions[index] = _Replayed()  # tombstones of what is replayed may be gone
        end_offset = self._storage.high_watermark_of(index)
        if end_offset > replayed.end_offset:
            self._storage.replay(replayed.loaded, index, replayed.end_offset, end_offset)
            replayed.end_offset = end_offset
        return replayed.loaded
