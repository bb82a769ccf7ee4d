"""The state of groups and offsets up to the high watermark: requests that only read see this state while later records are not replicated (GC-66).

Kafka's coordinator in Java can read every state of its groups since the high watermark, because it stores the groups in timeline collections. This
broker stores two states of its groups instead. A change is applied to the newest state at once. It is also decoded and put into a queue until it is
replicated, and then applied to the second state. A request that only reads uses the second state, and therefore reads no records of the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from kafkaproto.broker.group.group import Group
from kafkaproto.broker.group.migration import AnyGroup
from kafkaproto.broker.group.offsets import CommittedOffset
from kafkaproto.broker.group.partition_table import PartitionTable
from kafkaproto.broker.group.replay import Change, Loaded, apply, empty, end_transaction
from kafkaproto.broker.group.storage import GroupStorage

MAX_QUEUED = 32
"""How many changes a queue holds before its replicated changes are applied. Each partition of `__consumer_offsets` has such a queue.

A queue may become longer while many of its changes are not replicated yet.
"""


@dataclass(slots=True)
class _Followed:
    """The replicated state of the groups of one partition of `__consumer_offsets`.

    replicated: their state up to the last change that was applied. queued: all later changes, in order. limit: the length of the queue at which the
    replicated changes are applied, even if no request reads the state. The other changes stay in the queue. The limit then becomes twice their
    number, but at least MAX_QUEUED, so that the time for adding a change does not grow with the length of the queue.
    """

    replicated: Loaded = field(default_factory=partial(empty, is_new_coordinator=True))
    queued: deque[Change] = field(default_factory=deque)
    limit: int = MAX_QUEUED


class CommittedGroups:
    """The state of one broker's groups up to the high watermarks of the partitions of `__consumer_offsets` that the broker has loaded.

    storage: reads and writes `__consumer_offsets`. A partition is behind while it has records that are not replicated. With Kafka's group
    coordinator in Scala (3.9), no partition counts as behind, because requests see changes that are not replicated yet.
    """

    def __init__(self, storage: GroupStorage) -> None:
        self._storage = storage
        self._partitions: dict[int, _Followed] = {}
        storage.written = self._add

    @property
    def partitions(self) -> Iterable[int]:
        """Return the loaded partitions of `__consumer_offsets`, in the order in which they were loaded; empty for the coordinator in Scala."""
        return self._partitions

    def load(self, index: int) -> Iterator[Change]:
        """Yield all changes in partition `index` of `__consumer_offsets`, whose groups this broker starts to coordinate.

        From now on, this object also keeps the state of these groups up to the high watermark, unless the broker emulates Kafka's group
        coordinator in Scala.
        """
        if not self._storage.is_new_coordinator:
            yield from self._storage.read(index)
            return
        self._partitions[index] = _Followed()
        for change in self._storage.read(index):
            self._add(index, change)
            yield change

    def drop(self, index: int) -> None:
        """Drop the groups of partition `index` of `__consumer_offsets`, because this broker no longer coordinates them."""
        self._partitions.pop(index, None)

    def end_transaction(self, group_id: str, producer_id: int, *, committed: bool) -> None:
        """End a producer's transaction in a group, after the transaction's marker has been replicated (TX-43).

        committed: whether the transaction was committed.
        """
        index = self._storage.partition_of(group_id)
        if index in self._partitions:
            end_transaction(self._replicated(index), [group_id], producer_id, committed=committed)

    def _add(self, index: int, change: Change) -> None:
        """Queue a change that was just loaded or written. index: the partition of `__consumer_offsets` that contains the change.

        Changes of partitions that are not loaded are ignored: if such a partition is loaded later, its changes are read then.
        """
        followed = self._partitions.get(index)
        if followed is None:
            return
        followed.queued.append(change)
        if len(followed.queued) >= followed.limit:
            self._replicated(index)
            followed.limit = max(MAX_QUEUED, 2 * len(followed.queued))

    def is_behind(self, group_id: str) -> bool:
        """Return whether a group's partition has unreplicated records, so that requests that only read must not see the group's newest state."""
        return bool(self._partitions) and self._is_behind(self._storage.partition_of(group_id))

    def _is_behind(self, index: int) -> bool:
        return index in self._partitions and not self._storage.is_replicated(index)

    def names(self) -> Iterator[str]:
        """Yield the ids of the groups in each partition that has unreplicated records.

        These are the groups that exist in the replicated state of the partition.
        """
        for index in self._partitions:
            if self._is_behind(index):
                loaded = self._replicated(index)
                yield from {**loaded.groups, **loaded.consumers, **loaded.offsets, **loaded.pending}

    def get(self, group_id: str, newest: AnyGroup | None) -> AnyGroup | None:
        """Return the replicated state of a group whose partition is behind (`is_behind`); None if no replicated record describes the group.

        newest: the newest state of the group, None if the group is deleted. As in Kafka, there is an exception for classic groups: if the group
        exists in the replicated state and in the newest state, `newest` is returned.
        """
        loaded = self._replicated(self._storage.partition_of(group_id))
        offsets = loaded.offsets.get(group_id) or PartitionTable()
        consumer = loaded.consumers.get(group_id)
        if consumer is not None:
            consumer.offsets = offsets
            consumer.set_target(consumer.targets, consumer.assignment_epoch)
            return consumer
        stored_group = loaded.groups.get(group_id)
        if stored_group is None and not offsets and group_id not in loaded.pending:
            return None
        if isinstance(newest, Group):
            return newest
        group = Group(group_id, 0, is_new_coordinator=True)
        group.offsets = offsets
        if stored_group is not None:
            group.restore(stored_group, 0)
        return group

    def offsets(self, group_id: str) -> PartitionTable[CommittedOffset]:
        """Return the replicated committed offsets of a group whose partition is behind (`is_behind`)."""
        return self._replicated(self._storage.partition_of(group_id)).offsets.get(group_id) or PartitionTable()

    def _replicated(self, index: int) -> Loaded:
        """Apply the queued changes of a partition that are replicated now, and return the replicated state of its groups."""
        followed = self._partitions[index]
        queued, high_watermark = followed.queued, self._storage.high_watermark_of(index)
        while queued and queued[0].end_offset <= high_watermark:
            apply(followed.replicated, queued.popleft())
        return followed.replicated
