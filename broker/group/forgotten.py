"""Empty consumer groups that a rejected JoinGroup removes from the coordinator's memory, as in Kafka (GN-63).

Kafka removes such a group before it notices that the request is to be rejected, so that no record of the removal is written. Corresponds to
`GroupMetadataManager.maybeDeleteEmptyConsumerGroup`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.storage import GroupStorage


class ForgottenGroups:
    """The forgotten groups of one coordinator. Each is kept, because its committed offsets return when a group with its id is created again.

    storage: stores the groups, and tells whether further records were replicated.
    """

    def __init__(self, storage: GroupStorage) -> None:
        self._storage = storage
        self._groups: dict[str, tuple[ConsumerGroup, int]] = {}
        """Maps group ids to groups and the end offsets that their partitions had when they were forgotten."""

    def __iter__(self) -> Iterator[ConsumerGroup]:
        """Iterate over a copy of all forgotten groups."""
        return iter([group for group, _ in self._groups.values()])

    def add(self, group: ConsumerGroup) -> None:
        """Forget a group."""
        self._groups[group.group_id] = group, self._storage.end_offset(group.group_id)

    def get(self, group_id: str) -> ConsumerGroup | None:
        """Return a forgotten group; None if no group with this id is forgotten."""
        group, _ = self._groups.get(group_id, (None, 0))
        return group

    def take(self, group_id: str) -> ConsumerGroup | None:
        """Remove and return a forgotten group, because a group with its id exists again; None if no group with this id is forgotten."""
        group, _ = self._groups.pop(group_id, (None, 0))
        return group

    def visible(self) -> list[ConsumerGroup]:
        """Return the forgotten groups that ListGroups, ConsumerGroupDescribe and OffsetFetch still show.

        These requests read the state up to the high watermark, and a group is missing only in the states after the next record of its partition.
        """
        return [group for group, end in self._groups.values() if self._storage.high_watermark(group.group_id) <= end]

    def get_visible(self, group_id: str) -> ConsumerGroup | None:
        """Return a forgotten group that requests which only read still show; None if there is none with this id."""
        group, end = self._groups.get(group_id, (None, 0))
        return group if group is not None and self._storage.high_watermark(group_id) <= end else None

    def drop(self, is_gone: Callable[[str], bool]) -> None:
        """Drop the groups whose partitions this broker no longer coordinates. is_gone: returns whether this is so for a group id."""
        for group_id in [group_id for group_id in self._groups if is_gone(group_id)]:
            del self._groups[group_id]
