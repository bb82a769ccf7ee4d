# Generated from schemas/data/ConsumerProtocolAssignment.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerProtocolAssignment: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array
from kafkaproto.message import Message
from kafkaproto.primitives import Int32, NullableBytes, String
from kafkaproto.structs import Struct, Whole


@dataclass(slots=True, eq=False, repr=False)
class TopicPartition(Struct):
    """One item of the list ``ConsumerProtocolAssignment.assigned_partitions``."""

    topic: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class ConsumerProtocolAssignment(Whole):
    """Partitions that a classic group's leader assigns to a member in SyncGroup; this data has versions 0 to 3, none of which is flexible (KIP-482)."""

    assigned_partitions: list[TopicPartition] = field(default_factory=list)
    user_data: bytes | None = None


TOPIC_PARTITION_V0 = Message(
    TopicPartition,
    "topic" / String,
    "partitions" / Array(Int32),
    versions="0-3",
)

CONSUMER_PROTOCOL_ASSIGNMENT_V0 = Message(
    ConsumerProtocolAssignment,
    "assigned_partitions" / Array(TOPIC_PARTITION_V0),
    "user_data" / NullableBytes,
    versions="0-3",
)

CONSUMER_PROTOCOL_ASSIGNMENT_V1 = CONSUMER_PROTOCOL_ASSIGNMENT_V0

CONSUMER_PROTOCOL_ASSIGNMENT_V2 = CONSUMER_PROTOCOL_ASSIGNMENT_V0

CONSUMER_PROTOCOL_ASSIGNMENT_V3 = CONSUMER_PROTOCOL_ASSIGNMENT_V0

LAYOUTS: dict[int, Message[ConsumerProtocolAssignment]] = {
    0: CONSUMER_PROTOCOL_ASSIGNMENT_V0,
    1: CONSUMER_PROTOCOL_ASSIGNMENT_V1,
    2: CONSUMER_PROTOCOL_ASSIGNMENT_V2,
    3: CONSUMER_PROTOCOL_ASSIGNMENT_V3,
}
ConsumerProtocolAssignment.layouts = LAYOUTS
