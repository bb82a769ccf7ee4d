"""Conversion of groups that have members between the classic and the new protocol (KIP-848).

Corresponds to `ConsumerGroup.fromClassicGroup` and `ClassicGroup.fromConsumerGroup`. The functions do not change the group that they convert.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping, Sequence

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group import consumer_records as stored_as
from kafkaproto.broker.group.assignment import Assignment, from_record
from kafkaproto.broker.group.consumer_group import ClassicProtocol, ConsumerGroup, ConsumerMember
from kafkaproto.broker.group.group import Group, Member, in_table_order
from kafkaproto.broker.group.reconciliation import Current, difference, intersects
from kafkaproto.broker.group.records import Entry
from kafkaproto.broker.group.settings import ConsumerGroupSettings
from kafkaproto.broker.group.subscribed_topics import Topic
from kafkaproto.broker.group.subscription import CONSUMER_PROTOCOL
from kafkaproto.coordinator_records import write_value
from kafkaproto.data.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kafkaproto.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError
from kafkaproto.hash_order import timeline_order
from kafkaproto.partitioner import java_hash_bits
from kafkaproto.structs import Whole

AnyGroup = Group | ConsumerGroup

_VERSION = struct.Struct(">h")


def to_consumer_group(classic: Group, topics: Mapping[str, Topic], *, is_release_4: bool) -> ConsumerGroup:
    """Return a group of the new protocol (KIP-848) with the members, the assignments and the offsets of a classic group (GN-55).

    The epochs of the result equal the generation of the classic group. topics: the topics of the cluster by name. is_release_4: whether the rules of
    Kafka 4.0 and later apply. With them, a member without an assignment is allowed, and an assignment with user data is an error. Before 4.0, a
    member without an assignment is an error, and user data is dropped. Raises KafkaError GROUP_ID_NOT_FOUND (69) for these errors, and if the
    subscription or the assignment of a member is malformed.
    """
    group_id = classic.group_id
    group = ConsumerGroup(
        classic.group_id,
        epoch=classic.generation_id,
        assignment_epoch=classic.generation_id,
        offsets=classic.offsets,
        pending_offsets=classic.pending_offsets,
    )
    protocol = classic.protocol_name or (classic.choose_protocol() if classic.members else None) or ""
    for member in in_table_order(classic):
        try:
            subscription = decode_subscription(member.metadata(protocol))
            assigned = _assigned(member.assignment, topics, group_id, is_release_4=is_release_4)
        except DecodeError:
            article = "" if is_release_4 else "the "
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot upgrade {article}classic group {group_id} to consumer group because the embedded consumer protocol is malformed.",
            ) from None
        for target in group.targets.values():  # an assignor may have given a partition to two members
            if intersects(assigned, target):
                assigned = from_record(difference(assigned, target).items())
        epoch = classic.generation_id
        group.put(
            ConsumerMember(
                member.member_id,
                member.group_instance_id,
                subscription.rack_id or None,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                frozenset(subscription.topics),
                current=Current(epoch, epoch, assigned=assigned),
                classic=ClassicProtocol(member.session_timeout_ms, member.protocols),
            )
        )
        group.targets[member.member_id] = assigned
    group.set_target(group.targets, group.assignment_epoch)
    return group


def check_upgrade(classic: Group, settings: ConsumerGroupSettings) -> None:
    """Check that a classic group with members may be converted to the new protocol (KIP-848; GN-54, GN-55).

    settings: the migration policy and the maximum size of a group. Raises KafkaError GROUP_ID_NOT_FOUND (69) if the conversion is not allowed.
    """
    if not settings.may_upgrade:
        reason = "because online upgrade is disabled."
    elif classic.protocol_type != CONSUMER_PROTOCOL:
        reason = "because the group does not use the consumer embedded protocol."
    elif len(classic.members) > settings.max_size:
        reason = "because the group size exceeds the consumer group maximum size."
    else:
        return
    if not settings.is_release_4:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {classic.group_id} is not a consumer group.")
    raise _not_convertible(classic.group_id, reason)


def entries_of(group: ConsumerGroup) -> list[Entry]:
    """Return the records of a group that was converted from the classic to the new protocol (KIP-848), in Kafka's order (GN-55).

    The members have the order of a new `TimelineHashMap`, to which they are added in the order of `group.members`.
    """
    members = [group.members[member_id] for member_id in timeline_order(group.members, java_hash_bits)]
    return [
        *(stored_as.member_entry(group.group_id, member) for member in members),
        stored_as.group_entry(group.group_id, group.epoch, group.metadata_hash),
        *(stored_as.target_entry(group.group_id, m.member_id, group.target_of(m.member_id)) for m in members),
        stored_as.assignment_epoch_entry(group.group_id, group.assignment_epoch),
        *(stored_as.current_entry(group.group_id, member.member_id, member.current) for member in members),
    ]


def sort_as_stored(group: ConsumerGroup, classic: Group) -> None:
    """Sort the members of an upgraded group in the order of their records, from which Kafka creates the group again.

    group: the group after the request that upgraded it. classic: the group before the upgrade.
    """
    stored_ids = timeline_order((member.member_id for member in in_table_order(classic)), java_hash_bits)
    in_order = [member_id for member_id in dict.fromkeys((*stored_ids, *group.members)) if member_id in group.members]
    group.members = {member_id: group.members[member_id] for member_id in in_order}


def to_classic_group(group: ConsumerGroup, leaving: Collection[str], topics: Mapping[str, Topic], now_ms: int) -> Group:
    """Return a stable classic group with the members that use the classic protocol (GN-61).

    Each member gets its target assignment as its assignment. The generation equals the epoch of the group. leaving: the ids of members that the
    result does not contain, because they leave. topics: the topics of the cluster by name.
    """
    classic = Group(
        group.group_id,
        now_ms,
        offsets=group.offsets,
        pending_offsets=group.pending_offsets,
    )
    members = group.in_table_order()  # the first member becomes the leader
    if group.replaced is not None:  # Kafka adds the new member last
        last = group.members[group.replaced.successor_id]
        members = [*(member for member in members if member is not last), last]
    for member in members:
        if member.member_id not in leaving and member.classic is not None:
            classic.add(
                Member(
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    member.classic.session_timeout_ms,
                    member.rebalance_timeout_ms,
                    member.classic.protocols,
                    is_new=False,
                ),
                CONSUMER_PROTOCOL,
            )
    names = {topic.topic_id: name for name, topic in topics.items()}
    classic.become_stable(group.epoch)
    for converted in classic.members.values():
        subscription = converted.metadata(classic.protocol_name or "")
        converted.assignment = encode_assignment(group.target_of(converted.member_id), names, subscription)
    return classic


def decode_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """Return a consumer's decoded subscription. Raises DecodeError if it is malformed.

    If the version is newer than all versions that this broker knows, the subscription is decoded like the newest known version. metadata: a member's
    metadata for one protocol in JoinGroup.
    """
    subscription = _decode(ConsumerProtocolSubscription, metadata)
    assert isinstance(subscription, ConsumerProtocolSubscription)
    return subscription


def encode_assignment(assignment: Assignment, names: Mapping[bytes, str], subscription: bytes = b"") -> bytes:
    """Return an assignment encoded as a ConsumerProtocolAssignment, which consumers of the classic protocol decode.

    subscription: the member's encoded subscription, from which the version of the assignment is taken; version 0 is used if `subscription` is empty.
    names: maps topic ids to names; topics without a name are left out.
    """
    newest = max(ConsumerProtocolAssignment.layouts)
    version = _VERSION.unpack_from(subscription)[0] if len(subscription) >= _VERSION.size else 0
    topic_partitions = [
        TopicPartition(names[topic_id], list(indexes)) for topic_id, indexes in assignment.items() if topic_id in names
    ]
    return write_value(ConsumerProtocolAssignment(topic_partitions), max(0, min(version, newest)))


def partitions_by_id(listed: Iterable[tuple[str, Sequence[int]]], topics: Mapping[str, Topic]) -> Assignment:
    """Return partitions as an assignment in the order of Kafka's hash tables. Partitions that do not exist are left out.

    listed: (topic name, partition indexes) pairs. topics: the topics of the cluster by name.
    """
    partitions: dict[bytes, dict[int, None]] = {}
    for name, indexes in listed:
        if name in topics:
            existing = range(len(topics[name].partitions))
            partitions.setdefault(topics[name].topic_id, {}).update((i, None) for i in indexes if i in existing)
    return from_record(partitions.items())


def _assigned(assignment: bytes, topics: Mapping[str, Topic], group_id: str, *, is_release_4: bool) -> Assignment:
    """Return the partitions in a member's encoded assignment, by topic id.

    assignment: the encoded assignment from SyncGroup. topics: the topics of the cluster by name. group_id: for the error message. is_release_4:
    whether the rules of Kafka 4.0 and later apply. With them, empty bytes stand for no partitions, and user data raises KafkaError GROUP_ID_NOT_FOUND
    (69). Raises DecodeError if the assignment is malformed. Before 4.0, empty bytes count as malformed.
    """
    if not assignment and is_release_4:  # the member has joined and was never assigned partitions
        return {}
    decoded_assignment = _decode(ConsumerProtocolAssignment, assignment)
    assert isinstance(decoded_assignment, ConsumerProtocolAssignment)
    if decoded_assignment.user_data and is_release_4:
        raise KafkaError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Cannot upgrade classic group {group_id} to consumer group because an unsupported custom assignor is in use. "
            "Please refer to the documentation or switch to a default assignor before re-attempting the upgrade.",
        )
    return partitions_by_id(((p.topic, p.partitions) for p in decoded_assignment.assigned_partitions), topics)


def _decode(kind: type[Whole], data: bytes) -> Whole:
    if len(data) < _VERSION.size:
        raise DecodeError(
            f"{kind.__name__}.version",
            0,
            f"a subscription or assignment must have at least {_VERSION.size} bytes, for its version (got {len(data)} bytes)",
        )
    version = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise DecodeError(f"{kind.__name__}.version", 0, f"the version must be 0 or higher (got {version})")
    layout = kind.layout(min(version, max(kind.layouts)))
    message: Whole = layout.decode_flat(memoryview(data), _VERSION.size, len(data))[0]
    return message


def _not_convertible(group_id: str, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot upgrade classic group {group_id} to consumer group {reason}"
    )
