"""Views of consumer groups for tests: state, coordinator, members, epochs, assignments, committed offsets and lag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.assignment import Assignment
from kafkaproto.broker.group.causes import CLASSIC, CONSUMER
from kafkaproto.broker.group.consumer_group import ConsumerGroup, ConsumerMember
from kafkaproto.broker.group.group import Group, GroupState, Member
from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.broker.group.results import UNKNOWN_GROUP
from kafkaproto.broker.group.subscription import CONSUMER_PROTOCOL, subscribed_topics
from kafkaproto.broker.testing.arguments import check_text, unknown
from kafkaproto.broker.testing.leaders import check_loaded, missing_coordinator
from kafkaproto.broker.testing.records import leader_of
from kafkaproto.broker.testing.tracebacks import is_hidden
from kafkaproto.data import consumer_protocol_assignment
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError

if TYPE_CHECKING:
    from kafkaproto.broker.group.coordinator import GroupCoordinator
    from kafkaproto.broker.group.migration import AnyGroup
    from kafkaproto.broker.runtime.ownership import Ownership

__tracebackhide__ = is_hidden

PartitionKey = tuple[str, int]
"""Identifies a partition: (topic, partition)."""

_VERSION_BYTES = 2


class MemberSeen(NamedTuple):
    """A member of a group.

    assignment: the partitions that the member may read. For a classic group, it is empty unless the group is Stable and its protocol type is
    "consumer".
    """

    member_id: str
    """The id of the member. The coordinator generates it; from version 1 of ConsumerGroupHeartbeat on, the client does."""
    group_instance_id: str | None
    """The `group.instance.id` of a static member; None for a dynamic one."""
    client_id: str
    """The client id in the header of the member's JoinGroup or ConsumerGroupHeartbeat request."""
    client_host: str
    """The address of the client, with a slash in front, as Kafka shows it: "/127.0.0.1"."""
    assignment: tuple[PartitionKey, ...]
    topics: tuple[str, ...] = ()
    """The names of the topics that the member subscribes to, also those that its regular expression matches, sorted.

    Empty if the protocol type is not "consumer".
    """
    member_epoch: int | None = None
    """The member epoch (KIP-848): -2 for a static member that has left temporarily. None in a classic group."""
    target: tuple[PartitionKey, ...] = ()
    """The partitions of the member's target assignment (KIP-848). In a classic group, the same partitions as in `assignment`."""
    pending_revocation: tuple[PartitionKey, ...] = ()
    """The partitions that the member must revoke and has not revoked yet (KIP-848); empty in a classic group."""


class GroupSeen(NamedTuple):
    """The state of a consumer group at the time of the call that returned this object.

    state: in a classic group "Empty", "PreparingRebalance", "CompletingRebalance", "Stable" or "Dead"; in a group of the new protocol
    (KIP-848) "Empty", "Assigning", "Reconciling", "Stable" or "Dead". protocol: the name of the assignor, such as "range"; a classic group
    has one only while it is Stable.
    """

    group_id: str
    """The name of the group."""
    state: str
    protocol_type: str
    """The protocol type of the group: "consumer" for Kafka's consumers, "" before the first member."""
    protocol: str
    members: tuple[MemberSeen, ...]
    """The members, in the order in which they joined, or in which the coordinator loaded them from `__consumer_offsets`."""
    group_type: str = CLASSIC
    """The type of the group: "classic", or "consumer" for a group of the new protocol (KIP-848)."""
    epoch: int = 0
    """The generation of a classic group, or the group epoch (KIP-848). It grows with each rebalance."""
    assignment_epoch: int = 0
    """The epoch of the target assignment (KIP-848); the generation in a classic group."""
    coordinator: int | None = None
    """The id of the broker that coordinates the group; None if the group does not exist."""
    committed: Mapping[PartitionKey, int] = {}
    """The committed offset of each (topic, partition)."""
    lag: Mapping[PartitionKey, int] = {}
    """The lag of each (topic, partition) behind the high watermark, in offsets. Partitions without a leader and negative offsets are left out."""


def group_ids(cluster: Cluster) -> list[str]:
    """Return the ids of all groups, including groups whose creation is not replicated yet.

    The groups of one coordinator follow each other; coordinators are in the order of broker ids.
    """
    return [group.group_id for node in cluster.nodes if node.has_groups for group in node.groups.groups]


def check_coordinator(cluster: Cluster, group_id: str) -> None:
    """Check that a running broker coordinates a group and has loaded it, so that a group that is not found does not exist.

    Raises KafkaError COORDINATOR_LOAD_IN_PROGRESS (14) while a broker is loading the group, and COORDINATOR_NOT_AVAILABLE (15) if no running broker
    coordinates it.
    """
    check_loaded(
        f"group {group_id!r}",
        OFFSETS_TOPIC,
        _loading_broker(cluster, group_id),
        _missing_coordinator(cluster, group_id),
        f"wait_for_group({group_id!r})",
    )


def missing_group(cluster: Cluster, group_id: str) -> str | None:
    """Return why no running broker has loaded a group, as the end of a sentence about the group; None if it is loaded or does not exist."""
    if _find(cluster, group_id) is not None:
        return None
    broker_id, reason = _loading_broker(cluster, group_id), _missing_coordinator(cluster, group_id)
    if broker_id is not None:
        return f"is still being loaded by broker {broker_id}"
    return None if reason is None else f"has no coordinator, because {reason}"


def _ownerships(cluster: Cluster) -> dict[int, Ownership]:
    return {node.broker_id: node.groups.ownership for node in cluster.nodes if node.running and node.has_groups}


def _loading_broker(cluster: Cluster, group_id: str) -> int | None:
    """Return the broker that is loading the partition of `__consumer_offsets` to which a group belongs; None if no broker does."""
    for broker_id, ownership in _ownerships(cluster).items():
        if ownership.refusal(group_id) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return broker_id
    return None


def _missing_coordinator(cluster: Cluster, group_id: str) -> str | None:
    """Return why no running broker coordinates a group; None if one does, or if `__consumer_offsets` does not exist."""
    counts = {ownership.partition_count for ownership in _ownerships(cluster).values()}
    return missing_coordinator(cluster, OFFSETS_TOPIC, group_id, counts)


def check_group(cluster: Cluster, group_id: str) -> GroupCoordinator:
    """Return the group coordinator that has the group.

    Raises TypeError unless `group_id` is a str, ValueError, which names the existing groups, if there is no such group, and KafkaError as
    `check_coordinator` does.
    """
    check_text("group_id", group_id, "readers")
    location = _find(cluster, group_id)
    if location is None:
        check_coordinator(cluster, group_id)
        raise unknown("group_id", group_id, "the id of an existing group", group_ids(cluster))
    return location[1]


def check_member(cluster: Cluster, group_id: str, member_id: str) -> GroupCoordinator:
    """Check that a group exists and has a member, and return the group's coordinator.

    Raises TypeError unless both ids are str, ValueError, which names the existing groups or members, if there is no such group or member, and
    KafkaError as `check_coordinator` does.
    """
    coordinator = check_group(cluster, group_id)
    check_text("member_id", member_id, "consumer-1-a0b1c2")
    group = coordinator.groups.get_any(group_id)
    members = [] if group is None else list(group.members)
    if member_id not in members:
        raise unknown("member_id", member_id, f"the id of a member of group {group_id!r}", members)
    return coordinator


def group_seen(cluster: Cluster, group_id: str) -> GroupSeen:
    """Return the present state of a group as a `GroupSeen`. A group that does not exist has the state Dead, as in Kafka."""
    location = _find(cluster, group_id)
    if location is None:
        return GroupSeen(group_id, UNKNOWN_GROUP, "", "", ())
    broker_id, coordinator, group = location
    offsets = committed(cluster, group_id)
    lags = {key: lag for key, offset in offsets.items() if (lag := lag_of(cluster, key, offset)) is not None}
    if isinstance(group, ConsumerGroup):
        description = coordinator.consumers.describe(group_id, committed=False)
        names = cluster.controller.image.topic_names
        return GroupSeen(
            group_id,
            description.state,
            CONSUMER_PROTOCOL,
            description.assignor,
            tuple(_consumer(group, member, names) for member in group.members.values()),
            CONSUMER,
            description.epoch,
            description.assignment_epoch,
            broker_id,
            offsets,
            lags,
        )
    return GroupSeen(
        group_id,
        group.state.value,
        group.protocol_type or "",
        (group.protocol_name or "") if group.is_in(GroupState.STABLE) else "",
        tuple(_member(group, member) for member in group.members.values()),
        CLASSIC,
        group.generation_id,
        group.generation_id,
        broker_id,
        offsets,
        lags,
    )


def _find(cluster: Cluster, group_id: str) -> tuple[int, GroupCoordinator, AnyGroup] | None:
    for node in cluster.nodes:
        group = node.groups.groups.get_any(group_id) if node.has_groups else None
        if group is not None:
            return node.broker_id, node.groups, group
    return None


def _member(group: Group, member: Member) -> MemberSeen:
    is_consumer, is_stable = group.protocol_type == CONSUMER_PROTOCOL, group.is_in(GroupState.STABLE)
    assignment = _decoded(member.assignment) if is_consumer and is_stable else ()
    topics = subscribed_topics(data for _, data in member.protocols[:1]) if is_consumer else None
    return MemberSeen(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        assignment,
        tuple(sorted(topics or ())),
        None,
        assignment,
    )


def _consumer(group: ConsumerGroup, member: ConsumerMember, names: Mapping[bytes, str]) -> MemberSeen:
    return MemberSeen(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _named(member.current.assigned, names),
        tuple(sorted(group.topics_of(member))),
        member.current.epoch,
        _named(group.target_of(member.member_id), names),
        _named(member.current.pending, names),
    )


def _named(assignment: Assignment, names: Mapping[bytes, str]) -> tuple[PartitionKey, ...]:
    """Return an assignment as sorted (topic name, partition) pairs. For a deleted topic, the hexadecimal digits of its id replace the name.

    names: maps the ids of the existing topics to their names.
    """
    return tuple(
        sorted((names.get(key) or key.hex(), index) for key, indexes in assignment.items() for index in indexes)
    )


def _decoded(assignment: bytes) -> tuple[PartitionKey, ...]:
    """Return the (topic, partition) pairs of an encoded assignment of the consumer protocol, none if the bytes cannot be decoded."""
    layouts = consumer_protocol_assignment.LAYOUTS
    version = min(int.from_bytes(assignment[:_VERSION_BYTES], "big", signed=True), max(layouts))
    if version not in layouts:
        return ()
    try:
        assignment_message, _ = layouts[version].decode_first(assignment[_VERSION_BYTES:])
    except DecodeError:
        return ()
    return tuple((topic.topic, index) for topic in assignment_message.assigned_partitions for index in topic.partitions)


def committed(cluster: Cluster, group_id: str) -> dict[PartitionKey, int]:
    """Return the committed offsets of a group by (topic, partition), as OffsetFetch returns them: without commits that are not replicated yet."""
    for node in cluster.nodes:
        offsets = node.groups.groups.visible.offsets(group_id) if node.has_groups else {}
        if offsets:
            return {key: commit.offset for key, commit in sorted(offsets.items())}
    return {}


def known_committed(cluster: Cluster, group_id: str) -> dict[PartitionKey, int]:
    """Return the committed offset of each (topic, partition). Raises KafkaError as `check_coordinator` does if no broker has the group."""
    offsets = committed(cluster, group_id)
    if not offsets and _find(cluster, group_id) is None:
        check_coordinator(cluster, group_id)
    return offsets


def lag_of(cluster: Cluster, key: PartitionKey, offset: int) -> int | None:
    """Return how far a committed offset is behind the high watermark of a partition, in offsets; None if the partition has no leader.

    The result is also None for a negative offset, which clients treat as no committed offset.
    """
    if offset < 0:
        return None
    try:
        return max(0, leader_of(cluster, *key).log.high_watermark - offset)
    except KafkaError:
        return None
