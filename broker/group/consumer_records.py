"""The records that Kafka stores for a consumer group of the new protocol (KIP-848) in `__consumer_offsets` (GO-5, GO-8, GO-9).

Corresponds to `GroupCoordinatorRecordHelpers`. An entry is (key, value); a value of None is a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkaproto.broker.group.assignment import Assignment, from_record
from kafkaproto.broker.group.consumer_group import ClassicProtocol, ConsumerGroup, ConsumerMember, ResolvedRegex
from kafkaproto.broker.group.reconciliation import Current, MemberState
from kafkaproto.broker.group.records import Entry
from kafkaproto.broker.group.subscribed_topics import SubscribedTopic
from kafkaproto.coordinator_records import write_key, write_value
from kafkaproto.data import consumer_group_current_member_assignment_value as current_value
from kafkaproto.data import consumer_group_target_assignment_member_value as target_value
from kafkaproto.data.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey
from kafkaproto.data.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kafkaproto.data.consumer_group_member_metadata_value import ClassicMemberMetadata, ConsumerGroupMemberMetadataValue
from kafkaproto.data.consumer_group_member_metadata_value import ClassicProtocol as StoredProtocol
from kafkaproto.data.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kafkaproto.data.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kafkaproto.data.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kafkaproto.data.consumer_group_partition_metadata_value import (
    ConsumerGroupPartitionMetadataValue,
    PartitionMetadata,
    TopicMetadata,
)
from kafkaproto.data.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kafkaproto.data.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from kafkaproto.data.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from kafkaproto.data.consumer_group_target_assignment_metadata_key import ConsumerGroupTargetAssignmentMetadataKey
from kafkaproto.data.consumer_group_target_assignment_metadata_value import ConsumerGroupTargetAssignmentMetadataValue
from kafkaproto.hash_order import hash_order, timeline_order
from kafkaproto.partitioner import java_hash_bits
from kafkaproto.structs import Whole

_GROUP, _TOPICS, _MEMBER, _ASSIGNMENT_EPOCH, _TARGET, _CURRENT, _REGEX = 3, 4, 5, 6, 7, 8, 16
_VALUE_VERSION = 0


def group_entry(group_id: str, epoch: int | None, metadata_hash: int = 0) -> Entry:
    """Return the record of a group's epoch, or the tombstone of this record if `epoch` is None.

    metadata_hash: the hash of the group's topics, which Kafka 4.1 and later store; 0 in earlier releases.
    """
    value = None if epoch is None else ConsumerGroupMetadataValue(epoch, metadata_hash)
    return _entry(ConsumerGroupMetadataKey(group_id), _GROUP, value)


def topics_entry(group_id: str, topics: Mapping[str, SubscribedTopic] | None) -> Entry:
    """Return the record of a group's subscribed topics, which brokers before 4.1 store; return its tombstone if `topics` is None.

    Brokers before 4.0 also store the racks of the partitions. topics: maps topic names to topics, in the order in which the record lists them.
    """
    value = None
    if topics is not None:
        topic_metadata = [
            TopicMetadata(
                topic.topic_id,
                name,
                topic.partition_count,
                [PartitionMetadata(index, hash_order(racks)) for index, racks in enumerate(topic.racks) if racks],
            )
            for name, topic in topics.items()
        ]
        value = ConsumerGroupPartitionMetadataValue(topic_metadata)
    return _entry(ConsumerGroupPartitionMetadataKey(group_id), _TOPICS, value)


def member_entry(group_id: str, member: ConsumerMember) -> Entry:
    """Return the record of a member's subscription."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=_classic_metadata(member.classic),
    )
    return _entry(ConsumerGroupMemberMetadataKey(group_id, member.member_id), _MEMBER, value)


def assignment_epoch_entry(group_id: str, epoch: int | None) -> Entry:
    """Return the record of the epoch of a group's target assignment, or the tombstone of this record if `epoch` is None."""
    value = None if epoch is None else ConsumerGroupTargetAssignmentMetadataValue(epoch)
    return _entry(ConsumerGroupTargetAssignmentMetadataKey(group_id), _ASSIGNMENT_EPOCH, value)


def target_entry(group_id: str, member_id: str, target: Assignment) -> Entry:
    """Return the record of a member's target assignment."""
    topics = [target_value.TopicPartition(topic_id, list(indexes)) for topic_id, indexes in target.items()]
    value = target_value.ConsumerGroupTargetAssignmentMemberValue(topics)
    return _entry(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), _TARGET, value)


def current_entry(group_id: str, member_id: str, current: Current) -> Entry:
    """Return the record of a member's current state: its epochs, the partitions that it has, and those that it must still revoke."""
    value = current_value.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=int(current.state),
        assigned_partitions=_listed(current.assigned),
        partitions_pending_revocation=_listed(current.pending),
    )
    return _entry(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), _CURRENT, value)


def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
    """Return the tombstones of all records of a member that leaves, with the types of records in Kafka's order (GO-9)."""
    return [
        _entry(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), _CURRENT, None),
        _entry(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), _TARGET, None),
        _entry(ConsumerGroupMemberMetadataKey(group_id, member_id), _MEMBER, None),
    ]


def regex_entry(group_id: str, regex: str, resolved: ResolvedRegex | None) -> Entry:
    """Return the record of a regular expression and the topics that it matches, or its tombstone if `resolved` is None (GN-51)."""
    value = None
    if resolved is not None:
        value = ConsumerGroupRegularExpressionValue(sorted(resolved.topics), 0, resolved.resolved_ms)
    return _entry(ConsumerGroupRegularExpressionKey(group_id, regex), _REGEX, value)


def group_tombstones(group: ConsumerGroup) -> list[Entry]:
    """Return the tombstones of all records of a group and its members, in the order in which Kafka writes them (GO-9, GN-61)."""
    group_id, members = group.group_id, [member.member_id for member in group.in_table_order()]
    return [
        *(_entry(ConsumerGroupCurrentMemberAssignmentKey(group_id, member), _CURRENT, None) for member in members),
        *(_entry(ConsumerGroupTargetAssignmentMemberKey(group_id, member), _TARGET, None) for member in members),
        assignment_epoch_entry(group_id, None),
        *(_entry(ConsumerGroupMemberMetadataKey(group_id, member), _MEMBER, None) for member in members),
        *(regex_entry(group_id, regex, None) for regex in timeline_order(group.regexes, java_hash_bits)),
        # Releases from 4.1 do not store the topics, but write their tombstone, because an older broker may have stored them.
        topics_entry(group_id, None),
        group_entry(group_id, None),
    ]


def apply(group: ConsumerGroup, key: Whole, value: Any) -> bool:
    """Apply a stored record to `group`, which is being loaded (GO-11). Returns False if the record deletes the whole group, otherwise True.

    key, value: the decoded key and value of the record; the value is None for a tombstone.
    """
    if isinstance(key, ConsumerGroupMetadataKey):
        if value is None:
            return False
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
    elif isinstance(key, ConsumerGroupPartitionMetadataKey):
        group.has_topics_record = value is not None
        group.topics = {topic.topic_name: _topic(topic) for topic in (() if value is None else value.topics)}
    elif isinstance(key, ConsumerGroupMemberMetadataKey):
        _apply_member(group, key.member_id, value)
    elif isinstance(key, ConsumerGroupTargetAssignmentMetadataKey):
        group.assignment_epoch = 0 if value is None else value.assignment_epoch
    elif isinstance(key, ConsumerGroupTargetAssignmentMemberKey):
        if value is None:
            group.targets.pop(key.member_id, None)
        else:
            group.targets[key.member_id] = _assignment(value.topic_partitions)
    elif isinstance(key, ConsumerGroupRegularExpressionKey):
        _apply_regex(group, key.regular_expression, value)
    elif isinstance(key, ConsumerGroupCurrentMemberAssignmentKey) and value is not None:
        # A compacted log may have it before the member's subscription, which is then filled in.
        if key.member_id not in group.members:
            group.put(ConsumerMember(key.member_id, None, None, "", "", -1))
        group.move(group.members[key.member_id], _current(value))
    return True


def _topic(stored: TopicMetadata) -> SubscribedTopic:
    if not stored.partition_metadata:
        return SubscribedTopic(stored.topic_id, stored.num_partitions)
    racks = {partition.partition: tuple(sorted(partition.racks)) for partition in stored.partition_metadata}
    racks_by_index = tuple(racks.get(index, ()) for index in range(stored.num_partitions))
    return SubscribedTopic(stored.topic_id, stored.num_partitions, racks_by_index)


def _apply_regex(group: ConsumerGroup, regex: str, value: ConsumerGroupRegularExpressionValue | None) -> None:
    if value is None:
        group.regexes.pop(regex, None)
        return
    group.regexes[regex] = ResolvedRegex(frozenset(value.topics), value.timestamp)
    group.regexes_resolved_ms = max(group.regexes_resolved_ms or 0, value.timestamp)


def _apply_member(group: ConsumerGroup, member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> None:
    member_before = group.members.get(member_id)
    if value is None:
        if member_before is not None:
            group.remove(member_id)
        return
    group.put(
        ConsumerMember(
            member_id,
            value.instance_id,
            value.rack_id,
            value.client_id,
            value.client_host,
            value.rebalance_timeout_ms,
            frozenset(value.subscribed_topic_names),
            value.subscribed_topic_regex or "",
            value.server_assignor,
            Current() if member_before is None else member_before.current,
            _classic_protocol(value.classic_member_metadata),
        )
    )


def _classic_metadata(classic: ClassicProtocol | None) -> ClassicMemberMetadata | None:
    if classic is None:
        return None
    stored_protocols = [StoredProtocol(name, metadata) for name, metadata in classic.protocols]
    return ClassicMemberMetadata(classic.session_timeout_ms, stored_protocols)


def _classic_protocol(stored: ClassicMemberMetadata | None) -> ClassicProtocol | None:
    if stored is None:
        return None
    protocols = tuple((p.name, bytes(p.metadata)) for p in stored.supported_protocols)
    return ClassicProtocol(stored.session_timeout_ms, protocols or (("", b""),))


def _current(value: current_value.ConsumerGroupCurrentMemberAssignmentValue) -> Current:
    states = {int(state): state for state in MemberState}
    return Current(
        value.member_epoch,
        value.previous_member_epoch,
        states.get(value.state, MemberState.UNKNOWN),
        _assignment(value.assigned_partitions),
        _assignment(value.partitions_pending_revocation),
    )


def _listed(assignment: Assignment) -> list[current_value.TopicPartitions]:
    return [current_value.TopicPartitions(topic_id, list(indexes)) for topic_id, indexes in assignment.items()]


def _assignment(listed: Iterable[Any]) -> Assignment:
    return from_record((topic.topic_id, topic.partitions) for topic in listed)


def _entry(key: Whole, kind: int, value: Whole | None) -> Entry:
    return write_key(key, kind), None if value is None else write_value(value, _VALUE_VERSION)
