"""The records of `__consumer_offsets` for committed offsets and classic groups: encoding and decoding of keys and values (GO-5 to GO-7).

Keys begin with the record's type, values with their version. Corresponds to `GroupCoordinatorRecordSerde` and
`GroupMetadataManager.offsetCommitValue`.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.coordinator_records import read_record, write_key, write_value
from kafkaproto.data.group_metadata_key import GroupMetadataKey
from kafkaproto.data.group_metadata_value import GroupMetadataValue, MemberMetadata
from kafkaproto.data.offset_commit_key import OffsetCommitKey
from kafkaproto.data.offset_commit_value import OffsetCommitValue
from kafkaproto.errors import UnsupportedVersion
from kafkaproto.structs import Whole

_OFFSET_KEY, _GROUP_KEY = 1, 2
CONSUMER_KEYS = frozenset({*range(3, 9), 16})
"""The record types of consumer groups of the new protocol (KIP-848). A record's key begins with its type."""
_OWN_EXPIRY = 1
"""The version of a stored `OffsetCommitValue` in which the offset has its own expiry time. OffsetCommit v2 to v4 can request such a time."""
_NO_EXPIRY = -1

Entry = tuple[bytes, bytes | None]
"""A record as (key, value). The value of a tombstone is None."""


class RecordVersions(NamedTuple):
    """The versions in which brokers of a release write the values of offset records (`offset`) and of group records (`group`).

    Brokers can read records of all versions.
    """

    offset: int
    group: int


KAFKA_3_9 = RecordVersions(offset=3, group=3)
KAFKA_4_1 = RecordVersions(offset=4, group=3)


class StoredMember(NamedTuple):
    """A member in the stored generation of a classic group.

    subscription: the member's metadata for the chosen protocol. assignment: its encoded assignment.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class StoredGroup(NamedTuple):
    """A generation of a classic group, as it is stored in `__consumer_offsets`.

    protocol_name, leader_id: the chosen protocol, and the member id of the leader; None if the group has no members. state_since_ms: when the group
    entered its state; -1 if unknown.
    """

    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader_id: str | None
    state_since_ms: int
    members: tuple[StoredMember, ...] = ()


class OffsetRecord(NamedTuple):
    """A decoded record of a committed offset. key: the partition. committed: the offset; None for a tombstone, which deletes the offset."""

    group_id: str
    key: PartitionKey
    committed: CommittedOffset | None


class ConsumerRecord(NamedTuple):
    """A record of a consumer group of the new protocol (KIP-848). key, value: the decoded key and value; the value of a tombstone is None."""

    group_id: str
    key: Whole
    value: Whole | None


class GroupRecord(NamedTuple):
    """A decoded record of a classic group. group: the stored generation; None for a tombstone, which deletes the group."""

    group_id: str
    group: StoredGroup | None


def offset_entry(
    group_id: str, key: PartitionKey, committed: CommittedOffset | None, versions: RecordVersions
) -> Entry:
    """Return the record of a committed offset, or a tombstone for the offset if `committed` is None.

    versions: the versions in which the emulated Kafka release writes its records.
    """
    encoded = write_key(OffsetCommitKey(group_id, *key), _OFFSET_KEY)
    if committed is None:
        return encoded, None
    value = OffsetCommitValue(
        committed.offset,
        committed.leader_epoch,
        committed.metadata,
        committed.committed_ms,
        topic_id=committed.topic_id,  # only version 4 has it
    )
    if committed.expire_ms is None:
        return encoded, write_value(value, versions.offset)
    value.expire_timestamp = committed.expire_ms
    return encoded, write_value(value, _OWN_EXPIRY)


def group_entry(group_id: str, group: StoredGroup | None, versions: RecordVersions) -> Entry:
    """Return the record of a classic group's generation, or a tombstone for the group if `group` is None.

    versions: the versions in which the emulated Kafka release writes its records.
    """
    key = write_key(GroupMetadataKey(group_id), _GROUP_KEY)
    if group is None:
        return key, None
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_since_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in group.members
        ],
    )
    return key, write_value(value, versions.group)


def parse(key: bytes, value: bytes | None) -> OffsetRecord | GroupRecord | ConsumerRecord | None:
    """Return the decoded record. Returns None for a record of another type or of a newer version: brokers skip such records.

    Raises DecodeError for damaged bytes.
    """
    try:
        decoded_key, decoded_value = read_record(OFFSETS_TOPIC, key, value)
    except UnsupportedVersion:
        return None
    if isinstance(decoded_key, OffsetCommitKey):
        place = decoded_key.topic, decoded_key.partition
        committed = _committed(decoded_value) if isinstance(decoded_value, OffsetCommitValue) else None
        return OffsetRecord(decoded_key.group, place, committed)
    if isinstance(decoded_key, GroupMetadataKey):
        group = _group(decoded_value) if isinstance(decoded_value, GroupMetadataValue) else None
        return GroupRecord(decoded_key.group, group)
    if int.from_bytes(key[:2], "big") in CONSUMER_KEYS:
        return ConsumerRecord(decoded_key.group_id, decoded_key, decoded_value)  # type: ignore[attr-defined]
    return None


def _committed(value: OffsetCommitValue) -> CommittedOffset:
    expire_ms = None if value.expire_timestamp == _NO_EXPIRY else value.expire_timestamp
    return CommittedOffset(
        value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, expire_ms, value.topic_id
    )


def _group(value: GroupMetadataValue) -> StoredGroup:
    members = tuple(
        StoredMember(
            m.member_id,
            m.group_instance_id,
            m.client_id,
            m.client_host,
            # Version 0 has no rebalance timeout: the session timeout counts.
            m.session_timeout if m.rebalance_timeout < 0 else m.rebalance_timeout,
            m.session_timeout,
            m.subscription,
            m.assignment,
        )
        for m in value.members
    )
    return StoredGroup(
        value.protocol_type, value.generation, value.protocol, value.leader, value.current_state_timestamp, members
    )
