# Generated from schemas/messages/ConsumerGroupHeartbeatRequest.json and ConsumerGroupHeartbeatResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupHeartbeatRequest and ConsumerGroupHeartbeatResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray, CompactNullableArray
from kafkaproto.message import Message, NullableStruct
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupHeartbeatRequestTopicPartitions(Struct):
    """One item of the list ``ConsumerGroupHeartbeatRequest.topic_partitions``."""

    topic_id: bytes = bytes(16)
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupHeartbeatRequest(Whole):
    """Request of API key 68: versions 0 to 1; all flexible (KIP-482)."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None  # v1+
    server_assignor: str | None = None
    topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupHeartbeatResponseTopicPartitions(Struct):
    """One item of the list ``Assignment.topic_partitions``."""

    topic_id: bytes = bytes(16)
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Assignment(Struct):
    """The struct in the field ``ConsumerGroupHeartbeatResponse.assignment``."""

    topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupHeartbeatResponse(Whole):
    """Response of API key 68: versions 0 to 1; all flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


CONSUMER_GROUP_HEARTBEAT_REQUEST_TOPIC_PARTITIONS_V0 = Message(
    ConsumerGroupHeartbeatRequestTopicPartitions,
    "topic_id" / Uuid,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="0-1",
)

CONSUMER_GROUP_HEARTBEAT_REQUEST_V0 = Message(
    ConsumerGroupHeartbeatRequest,
    "group_id" / CompactString,
    "member_id" / CompactString,
    "member_epoch" / Int32,
    "instance_id" / CompactNullableString,
    "rack_id" / CompactNullableString,
    "rebalance_timeout_ms" / Int32,
    "subscribed_topic_names" / CompactNullableArray(CompactString),
    "server_assignor" / CompactNullableString,
    "topic_partitions" / CompactNullableArray(CONSUMER_GROUP_HEARTBEAT_REQUEST_TOPIC_PARTITIONS_V0),
    Tags(),
    versions="0",
    absent=("subscribed_topic_regex",),
)

CONSUMER_GROUP_HEARTBEAT_REQUEST_V1 = Message(
    ConsumerGroupHeartbeatRequest,
    "group_id" / CompactString,
    "member_id" / CompactString,
    "member_epoch" / Int32,
    "instance_id" / CompactNullableString,
    "rack_id" / CompactNullableString,
    "rebalance_timeout_ms" / Int32,
    "subscribed_topic_names" / CompactNullableArray(CompactString),
    "subscribed_topic_regex" / CompactNullableString,
    "server_assignor" / CompactNullableString,
    "topic_partitions" / CompactNullableArray(CONSUMER_GROUP_HEARTBEAT_REQUEST_TOPIC_PARTITIONS_V0),
    Tags(),
    versions="1",
)

REQUESTS: dict[int, Message[ConsumerGroupHeartbeatRequest]] = {
    0: CONSUMER_GROUP_HEARTBEAT_REQUEST_V0,
    1: CONSUMER_GROUP_HEARTBEAT_REQUEST_V1,
}
ConsumerGroupHeartbeatRequest.layouts = REQUESTS

CONSUMER_GROUP_HEARTBEAT_RESPONSE_TOPIC_PARTITIONS_V0 = Message(
    ConsumerGroupHeartbeatResponseTopicPartitions,
    "topic_id" / Uuid,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="0-1",
)

ASSIGNMENT_V0 = Message(
    Assignment,
    "topic_partitions" / CompactArray(CONSUMER_GROUP_HEARTBEAT_RESPONSE_TOPIC_PARTITIONS_V0),
    Tags(),
    versions="0-1",
)

CONSUMER_GROUP_HEARTBEAT_RESPONSE_V0 = Message(
    ConsumerGroupHeartbeatResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "member_id" / CompactNullableString,
    "member_epoch" / Int32,
    "heartbeat_interval_ms" / Int32,
    "assignment" / NullableStruct(ASSIGNMENT_V0),
    Tags(),
    versions="0-1",
)

CONSUMER_GROUP_HEARTBEAT_RESPONSE_V1 = CONSUMER_GROUP_HEARTBEAT_RESPONSE_V0

RESPONSES: dict[int, Message[ConsumerGroupHeartbeatResponse]] = {
    0: CONSUMER_GROUP_HEARTBEAT_RESPONSE_V0,
    1: CONSUMER_GROUP_HEARTBEAT_RESPONSE_V1,
}
ConsumerGroupHeartbeatResponse.layouts = RESPONSES
