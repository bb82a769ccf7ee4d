"""Empty consumer groups that a rejected JoinGroup removes from the coordinator's memory, as in Kafka (GN-63).

Kafka first removes such a group from memory, then rejects the request, and therefore writes no record of the removal. Corresponds to
`GroupMetadataManager.maybeDeleteEmptyConsumerGroup`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.storage import GroupStorage


class ForgottenGroups:
    """Removed groups: empty consumer groups that one coordinator removed from memory without writing tombstones for them.

    A rejected JoinGroup removes a group in this way. If a new group with the same id is created, the new group gets the removed group's committed
    offsets. storage: returns the end offset and the high watermark of a group's partition of `__consumer_offsets`.
    """

    def __init__(self, storage: GroupStorage) -> None:
        self._storage = storage
        self._groups: dict[str, ConsumerGroup] = {}
        """Maps group ids to removed groups whose offsets are kept for a new group with the same id."""
        self._visible: dict[str, tuple[ConsumerGroup, int]] = {}
        """Maps group ids to (removed group, end offset), for the removed groups that ListGroups and similar requests may still show.

        The end offset is the log end offset of the group's partition of `__consumer_offsets` at the time when the group was removed. These requests
        show the group until the high watermark of this partition is above the offset.
        """

    def __iter__(self) -> Iterator[ConsumerGroup]:
        """Iterate over the removed groups that have offsets, committed or still being committed.

        The iteration uses a copy, so that groups may be added and removed during it.
        """
        return iter([*self._groups.values()])

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups or self.get_visible(group_id) is not None

    def add(self, group: ConsumerGroup) -> None:
        """Store a group that the coordinator has just removed.

        Its offsets are kept for a new group with the same id. The group is visible to requests that only read, such as ListGroups, until the next
        record in its partition of `__consumer_offsets` is replicated.
        """
        for group_id in [*self._visible]:
            if self.get_visible(group_id) is not None:
                break
        if group.offsets or group.pending_offsets:
            self._groups[group.group_id] = group
        self._visible[group.group_id] = group, self._storage.end_offset(group.group_id)

    def get(self, group_id: str) -> ConsumerGroup | None:
        """Return the removed group with this id if it has offsets, committed or still being committed; otherwise None."""
        return self._groups.get(group_id)

    def take(self, group_id: str) -> ConsumerGroup | None:
        """Remove a group from this object because a new group has the same id. Return the group; None if no group with offsets has this id."""
        return self._groups.pop(group_id, None)

    def visible(self) -> list[ConsumerGroup]:
        """Return the removed groups that ListGroups, ConsumerGroupDescribe and OffsetFetch still show.

        These requests read the state up to the high watermark. They see a removed group until the next record in the group's partition of
        `__consumer_offsets` is replicated.
        """
        return [group for group_id in [*self._visible] if (group := self.get_visible(group_id)) is not None]

    def get_visible(self, group_id: str) -> ConsumerGroup | None:
        """Return the removed group with this id if it is still visible to requests that only read, such as ListGroups; otherwise None."""
        group, end = self._visible.get(group_id, (None, 0))
        if group is not None and self._storage.high_watermark(group_id) > end:
            del self._visible[group_id]
            return None
        return group

    def drop(self, is_gone: Callable[[str], bool]) -> None:
        """Drop the groups that this broker no longer coordinates.

        is_gone: a function that returns whether this broker no longer coordinates the group with a given id.
        """
        for group_id in [group_id for group_id in {**self._groups, **self._visible} if is_gone(group_id)]:
            self._groups.pop(group_id, None)
            self._visible.pop(group_id, None)
