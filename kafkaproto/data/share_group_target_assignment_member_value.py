# Generated from schemas/data/ShareGroupTargetAssignmentMemberValue.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareGroupTargetAssignmentMemberValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Int32, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class TopicPartition(Struct):
    """One item of the list ``ShareGroupTargetAssignmentMemberValue.topic_partitions``."""

    topic_id: bytes = bytes(16)
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupTargetAssignmentMemberValue(Whole):
    """Value of a record whose key is `ShareGroupTargetAssignmentMemberKey`; this data has version 0, which is flexible (KIP-482)."""

    topic_partitions: list[TopicPartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


TOPIC_PARTITION_V0 = Message(
    TopicPartition,
    "topic_id" / Uuid,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="0",
)

SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_V0 = Message(
    ShareGroupTargetAssignmentMemberValue,
    "topic_partitions" / CompactArray(TOPIC_PARTITION_V0),
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[ShareGroupTargetAssignmentMemberValue]] = {
    0: SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_V0,
}
ShareGroupTargetAssignmentMemberValue.layouts = LAYOUTS
