"""Empty consumer groups that a rejected JoinGroup removes from the coordinator's memory, as in Kafka (GN-63).

Kafka removes such a group before it notices that the request is to be rejected, so that no record of the removal is written. Corresponds to
`GroupMetadataManager.maybeDeleteEmptyConsumerGroup`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.storage import GroupStorage


class ForgottenGroups:
    """The empty consumer groups that rejected JoinGroup requests removed from a coordinator's memory without a record.

    Their committed offsets return when a group with the same id is created again. storage: stores the groups. Its end offsets and high watermarks
    show whether later records are replicated.
    """

    def __init__(self, storage: GroupStorage) -> None:
        self._storage = storage
        self._groups: dict[str, ConsumerGroup] = {}
        """Maps group ids to removed groups that have offsets, as long as no new group has the same id."""
        self._visible: dict[str, tuple[ConsumerGroup, int]] = {}
        """Maps the ids of removed groups that read requests may still see to (group, end offset of its partition when it was removed)."""

    def __iter__(self) -> Iterator[ConsumerGroup]:
        """Iterate over a copy of the groups that were removed without a record and have offsets."""
        return iter([*self._groups.values()])

    def add(self, group: ConsumerGroup) -> None:
        """Store a group that the coordinator has just removed.

        Its offsets are kept for a new group with the same id. Read requests, such as ListGroups, see the group until a later record is replicated.
        """
        for group_id in [*self._visible]:
            if self.get_visible(group_id) is not None:
                break
        if group.offsets or group.writing:
            self._groups[group.group_id] = group
        self._visible[group.group_id] = group, self._storage.end_offset(group.group_id)

    def get(self, group_id: str) -> ConsumerGroup | None:
        """Return a group that has offsets and was removed without a record; None if there is none with this id."""
        return self._groups.get(group_id)

    def take(self, group_id: str) -> ConsumerGroup | None:
        """Remove a group from this object because its id is used again, and return it; None if no group with offsets has this id."""
        return self._groups.pop(group_id, None)

    def visible(self) -> list[ConsumerGroup]:
        """Return the groups that were removed without a record and that ListGroups, ConsumerGroupDescribe and OffsetFetch still show.

        These requests read the state up to the high watermark. They see a removed group until the next record in the group's partition is replicated.
        """
        return [group for group_id in [*self._visible] if (group := self.get_visible(group_id)) is not None]

    def get_visible(self, group_id: str) -> ConsumerGroup | None:
        """Return the group that was removed without a record if read requests, such as ListGroups, still see it; otherwise None."""
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
