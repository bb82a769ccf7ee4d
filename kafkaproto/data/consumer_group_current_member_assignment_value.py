# Generated from schemas/data/ConsumerGroupCurrentMemberAssignmentValue.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupCurrentMemberAssignmentValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Int32, Int8, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class TopicPartitions(Struct):
    """One item of the list ``ConsumerGroupCurrentMemberAssignmentValue.assigned_partitions`` or ``ConsumerGroupCurrentMemberAssignmentValue.partitions_pending_revocation``."""

    topic_id: bytes = bytes(16)
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupCurrentMemberAssignmentValue(Whole):
    """Value of a record whose key is `ConsumerGroupCurrentMemberAssignmentKey`; this data has version 0, which is flexible (KIP-482)."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[TopicPartitions] = field(default_factory=list)
    partitions_pending_revocation: list[TopicPartitions] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


TOPIC_PARTITIONS_V0 = Message(
    TopicPartitions,
    "topic_id" / Uuid,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="0",
)

CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_V0 = Message(
    ConsumerGroupCurrentMemberAssignmentValue,
    "member_epoch" / Int32,
    "previous_member_epoch" / Int32,
    "state" / Int8,
    "assigned_partitions" / CompactArray(TOPIC_PARTITIONS_V0),
    "partitions_pending_revocation" / CompactArray(TOPIC_PARTITIONS_V0),
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[ConsumerGroupCurrentMemberAssignmentValue]] = {
    0: CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_V0,
}
ConsumerGroupCurrentMemberAssignmentValue.layouts = LAYOUTS
