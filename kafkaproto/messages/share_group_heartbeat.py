# Generated from schemas/messages/ShareGroupHeartbeatRequest.json and ShareGroupHeartbeatResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareGroupHeartbeatRequest and ShareGroupHeartbeatResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray, CompactNullableArray
from kafkaproto.message import Message, NullableStruct
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupHeartbeatRequest(Whole):
    """Request of API key 76: version 1; flexible (KIP-482)."""

    group_id: str = ""  # v0+
    member_id: str = ""  # v0+
    member_epoch: int = 0  # v0+
    rack_id: str | None = None  # v0+
    subscribed_topic_names: list[str] | None = None  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TopicPartitions(Struct):
    """One item of the list ``Assignment.topic_partitions``."""

    topic_id: bytes = bytes(16)  # v0+
    partitions: list[int] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Assignment(Struct):
    """The struct in the field ``ShareGroupHeartbeatResponse.assignment``."""

    topic_partitions: list[TopicPartitions] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupHeartbeatResponse(Whole):
    """Response of API key 76: version 1; flexible (KIP-482)."""

    throttle_time_ms: int = 0  # v0+
    error_code: int = 0  # v0+
    error_message: str | None = None  # v0+
    member_id: str | None = None  # v0+
    member_epoch: int = 0  # v0+
    heartbeat_interval_ms: int = 0  # v0+
    assignment: Assignment | None = None  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


SHARE_GROUP_HEARTBEAT_REQUEST_V1 = Message(
    ShareGroupHeartbeatRequest,
    "group_id" / CompactString,
    "member_id" / CompactString,
    "member_epoch" / Int32,
    "rack_id" / CompactNullableString,
    "subscribed_topic_names" / CompactNullableArray(CompactString),
    Tags(),
    versions="1",
)

REQUESTS: dict[int, Message[ShareGroupHeartbeatRequest]] = {
    1: SHARE_GROUP_HEARTBEAT_REQUEST_V1,
}
ShareGroupHeartbeatRequest.layouts = REQUESTS

TOPIC_PARTITIONS_V1 = Message(
    TopicPartitions,
    "topic_id" / Uuid,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="1",
)

ASSIGNMENT_V1 = Message(
    Assignment,
    "topic_partitions" / CompactArray(TOPIC_PARTITIONS_V1),
    Tags(),
    versions="1",
)

SHARE_GROUP_HEARTBEAT_RESPONSE_V1 = Message(
    ShareGroupHeartbeatResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "member_id" / CompactNullableString,
    "member_epoch" / Int32,
    "heartbeat_interval_ms" / Int32,
    "assignment" / NullableStruct(ASSIGNMENT_V1),
    Tags(),
    versions="1",
)

RESPONSES: dict[int, Message[ShareGroupHeartbeatResponse]] = {
    1: SHARE_GROUP_HEARTBEAT_RESPONSE_V1,
}
ShareGroupHeartbeatResponse.layouts = RESPONSES
