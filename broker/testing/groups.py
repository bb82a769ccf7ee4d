"""Consumer groups for tests: states, members, committed offsets and lag, and the conditions that a test can wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.consumer_group import ConsumerGroupState
from kafkaproto.broker.group.group import GroupState
from kafkaproto.broker.group.results import DescribedMember, GroupDescription
from kafkaproto.broker.testing import records
from kafkaproto.broker.testing.arguments import check_choice, check_int, check_text, counted
from kafkaproto.broker.testing.base import Base
from kafkaproto.broker.testing.records import StoredRecord, leader_of
from kafkaproto.broker.testing.tracebacks import is_hidden
from kafkaproto.data import consumer_protocol_assignment
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError

__tracebackhide__ = is_hidden

PartitionKey = tuple[str, int]
"""(topic, partition)"""

_VERSION_BYTES = 2
_CONSUMER = "consumer"
_STATES = tuple(dict.fromkeys(state.value for states in (GroupState, ConsumerGroupState) for state in states))
_WITHOUT_MEMBERS = (GroupState.EMPTY.value, GroupState.DEAD.value)
_WITH_MEMBERS = (GroupState.COMPLETING_REBALANCE.value, GroupState.STABLE.value)


class MemberSeen(NamedTuple):
    """A member of a group. assignment: its partitions while the group is Stable; empty for other protocol types than "consumer"."""

    member_id: str
    """The id that the coordinator gave to the member."""
    group_instance_id: str | None
    """The `group.instance.id` of a static member; None for a dynamic one."""
    client_id: str
    """The client id of its JoinGroup request."""
    client_host: str
    """The address of the client, with a slash in front, as Kafka shows it: "/127.0.0.1"."""
    assignment: tuple[PartitionKey, ...]


class GroupSeen(NamedTuple):
    """A consumer group. state: Kafka's name: "Empty", "PreparingRebalance", "CompletingRebalance", "Stable" or "Dead"."""

    group_id: str
    """The name of the group."""
    state: str
    protocol_type: str
    """The kind of group: "consumer" for Kafka's consumers, "" before the first member."""
    protocol: str
    """The assignor that the members agreed on, such as "range"; "" unless the group is Stable."""
    members: tuple[MemberSeen, ...]
    """The members, in the order in which they joined."""


class GroupMethods(Base):
    """The methods of a test cluster that read consumer groups."""

    def groups(self) -> dict[str, GroupSeen]:
        """Return all groups by id, including groups that have only committed offsets."""
        return self._run(
            lambda: {seen.group_id: group_seen(self.state, seen.group_id) for seen in _overview(self.state)}
        )

    def committed(self, group_id: str) -> dict[PartitionKey, int]:
        """Return the committed offsets of a group by (topic, partition), empty for an unknown group."""
        check_text("group_id", group_id, "readers")
        return self._run(lambda: committed(self.state, group_id))

    def lag(self, group_id: str) -> dict[PartitionKey, int]:
        """Return how far the committed offset of each (topic, partition) is behind the high watermark, in offsets.

        Partitions without a committed offset are left out. Raises KafkaError GROUP_ID_NOT_FOUND (69) if the group has no committed offsets.
        """
        check_text("group_id", group_id, "readers")

        def find() -> dict[PartitionKey, int]:
            offsets = committed(self.state, group_id)
            if not offsets:
                known = ", ".join(sorted(seen.group_id for seen in _overview(self.state))) or "none"
                text = f"Group {group_id} has no committed offsets. Existing groups: {known}."
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
            return {key: max(0, leader_of(self.state, *key).log.high_watermark - at) for key, at in offsets.items()}

        return self._run(find)


def _overview(cluster: Cluster) -> list[GroupDescription]:
    return [cluster.groups.describe(listed.group_id) for listed in cluster.groups.list_groups()]


def group_seen(cluster: Cluster, group_id: str) -> GroupSeen:
    """Return a group. A group that does not exist has the state Dead, as in Kafka."""
    group = cluster.groups.describe(group_id)
    members = tuple(_member(group, member) for member in group.members)
    return GroupSeen(group_id, group.state, group.protocol_type, group.protocol_name, members)


def _member(group: GroupDescription, member: DescribedMember) -> MemberSeen:
    assignment = _partitions(member.assignment) if group.protocol_type == _CONSUMER else ()
    return MemberSeen(member.member_id, member.group_instance_id, member.client_id, member.client_host, assignment)


def _partitions(assignment: bytes) -> tuple[PartitionKey, ...]:
    """Return the partitions of an assignment of the consumer protocol, none if the leader sent bytes that cannot be decoded."""
    layouts = consumer_protocol_assignment.LAYOUTS
    version = min(int.from_bytes(assignment[:_VERSION_BYTES], "big", signed=True), max(layouts))
    if version not in layouts:
        return ()
    try:
        decoded, _ = layouts[version].decode_first(assignment[_VERSION_BYTES:])
    except DecodeError:
        return ()
    return tuple((topic.topic, index) for topic in decoded.assigned_partitions for index in topic.partitions)


def committed(cluster: Cluster, group_id: str) -> dict[PartitionKey, int]:
    """Return the committed offsets of a group by (topic, partition)."""
    for group, _, offsets in cluster.groups.offsets():
        if group == group_id:
            return {key: commit.offset for key, commit in sorted(offsets.items())}
    return {}


class Wait(NamedTuple):
    """A condition to wait for. reached: returns the result, or None while the condition does not hold.

    describe: returns the current state as text, for the error.
    """

    reached: Callable[[Cluster], object]
    describe: Callable[[Cluster], str]


def for_group(group_id: str, members: int | None, state: str | None) -> Wait:
    """Return the condition that a group has `members` members and the state `state`; None stands for any.

    Raises TypeError or ValueError for arguments of a wrong type, an unknown state, and a number of members that the state cannot have.
    """
    check_text("group_id", group_id, "readers")
    if members is not None:
        check_int("members", members, 0, example=2)
    if state is not None:
        check_choice("state", state, _STATES, "Stable")
    if members and state in _WITHOUT_MEMBERS:
        raise ValueError(f"members must be 0 for a group that is {state} (got {members}); leave members or state out")
    if members == 0 and state in _WITH_MEMBERS:
        raise ValueError(f"members must be at least 1 for a group that is {state} (got 0); leave members or state out")

    def reached(cluster: Cluster) -> GroupSeen | None:
        seen = group_seen(cluster, group_id)
        fits = members in (None, len(seen.members)) and state in (None, seen.state)
        exists = seen.state != "Dead" or state == "Dead"
        return seen if fits and exists else None

    def describe(cluster: Cluster) -> str:
        seen = group_seen(cluster, group_id)
        goal = " and ".join(
            text
            for text in (
                None if members is None else counted(members, "member"),
                None if state is None else f"state {state}",
            )
            if text
        )
        return f"group {group_id} is {seen.state} with {counted(len(seen.members), 'member')}, and did not reach {goal or 'any state'}"

    return Wait(reached, describe)


def _offsets_in(cluster: Cluster, topic: str, partition: int | None) -> int:
    """Return the number of offsets between log start and log end of a topic or one partition, which is the most records it can have."""
    count = len(cluster.controller.image.topics[topic].partitions)
    indexes = range(count) if partition is None else [partition]
    logs = [leader_of(cluster, topic, index).log for index in indexes]
    return sum(log.log_end_offset - log.log_start_offset for log in logs)


def for_records(topic: str, count: int, partition: int | None) -> Wait:
    """Return the condition that a topic, or one partition, has at least `count` records. Raises TypeError or ValueError for wrong arguments."""
    check_text("topic", topic, "orders")
    check_int("count", count, 0, example=3)
    if partition is not None:
        check_int("partition", partition, 0, example=0)

    def records_of(cluster: Cluster) -> list[StoredRecord]:
        exists = topic in cluster.controller.image.topics
        return records.stored(cluster, topic, partition) if exists else []

    def reached(cluster: Cluster) -> list[StoredRecord] | None:
        if topic not in cluster.controller.image.topics or _offsets_in(cluster, topic, partition) < count:
            return None
        stored = records_of(cluster)
        return stored if len(stored) >= count else None

    def describe(cluster: Cluster) -> str:
        place = topic if partition is None else f"{topic}-{partition}"
        return f"{place} has {counted(len(records_of(cluster)), 'record')}, and did not reach {count}"

    return Wait(reached, describe)
