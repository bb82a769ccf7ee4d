"""Access to the groups of all brokers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from typing import Protocol

from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.results import UNKNOWN_GROUP, GroupDescription, GroupOverview


class Deletions(Protocol):
    """Interface of the object that deletes one broker's groups and offsets, with the methods that `AllGroups` uses."""

    def forget_topics(self, topics: Collection[str], now_ms: int) -> None: ...

    def forget_missing_topics(self, topics: Container[str], now_ms: int) -> None: ...


class Offsets(Protocol):
    """Interface of the object that holds one broker's committed offsets of groups, with the attributes that `AllGroups` uses."""

    @property
    def deletions(self) -> Deletions: ...


class GroupsOfBroker(Protocol):
    """Interface of a broker's group coordinator, with the methods that `AllGroups` uses."""

    @property
    def commits(self) -> Offsets: ...

    def list_groups(self) -> list[GroupOverview]: ...

    def describe_any(self, group_id: str) -> GroupDescription: ...

    def offsets(self) -> Iterator[tuple[str, str | None, Mapping[PartitionKey, CommittedOffset]]]: ...


class AllGroups:
    """The groups of all brokers of a cluster.

    coordinators: a function that returns the existing group coordinators, at most one for each broker.
    """

    def __init__(self, coordinators: Callable[[], Iterable[GroupsOfBroker]]) -> None:
        self._coordinators = coordinators

    def forget_topics(self, topics: Collection[str], now_ms: int) -> None:
        """Delete the committed offsets that all groups have for topics that were deleted together (GO-25).

        topics: the names of the topics, in the order in which Kafka's brokers process their deletion.
        """
        for coordinator in self._coordinators():
            coordinator.commits.deletions.forget_topics(topics, now_ms)

    def forget_missing_topics(self, topics: Container[str], now_ms: int) -> None:
        """Delete the committed offsets that all groups have for topics that do not exist (GO-25). topics: the names of the existing topics."""
        for coordinator in self._coordinators():
            coordinator.commits.deletions.forget_missing_topics(topics, now_ms)

    def list_groups(self) -> list[GroupOverview]:
        """Return an overview of each group of the cluster, ordered by the broker that coordinates the group."""
        return [group for coordinator in self._coordinators() for group in coordinator.list_groups()]

    def describe(self, group_id: str) -> GroupDescription:
        """Return the description of one group, classic or of the new protocol (KIP-848). The state of an unknown group is Dead."""
        for coordinator in self._coordinators():
            description = coordinator.describe_any(group_id)
            if description.state != UNKNOWN_GROUP:
                return description
        return GroupDescription(group_id, UNKNOWN_GROUP)

    def offsets(self) -> Iterator[tuple[str, str | None, Mapping[PartitionKey, CommittedOffset]]]:
        """Yield (group id, protocol type, committed offsets) of every group that has committed offsets.

        The protocol type is None if the group has none. The committed offsets are a dict by (topic, partition index).
        """
        for coordinator in self._coordinators():
            yield from coordinator.offsets()
