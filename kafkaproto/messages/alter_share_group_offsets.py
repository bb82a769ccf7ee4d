# Generated from schemas/messages/AlterShareGroupOffsetsRequest.json and AlterShareGroupOffsetsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""AlterShareGroupOffsetsRequest and AlterShareGroupOffsetsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int64, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class AlterShareGroupOffsetsRequestPartition(Struct):
    """One item of the list ``AlterShareGroupOffsetsRequestTopic.partitions``."""

    partition_index: int = 0
    start_offset: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterShareGroupOffsetsRequestTopic(Struct):
    """One item of the list ``AlterShareGroupOffsetsRequest.topics``."""

    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterShareGroupOffsetsRequest(Whole):
    """Request of API key 91: version 0; flexible (KIP-482)."""

    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterShareGroupOffsetsResponsePartition(Struct):
    """One item of the list ``AlterShareGroupOffsetsResponseTopic.partitions``."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterShareGroupOffsetsResponseTopic(Struct):
    """One item of the list ``AlterShareGroupOffsetsResponse.responses``."""

    topic_name: str = ""
    topic_id: bytes = bytes(16)
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterShareGroupOffsetsResponse(Whole):
    """Response of API key 91: version 0; flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


ALTER_SHARE_GROUP_OFFSETS_REQUEST_PARTITION_V0 = Message(
    AlterShareGroupOffsetsRequestPartition,
    "partition_index" / Int32,
    "start_offset" / Int64,
    Tags(),
    versions="0",
)

ALTER_SHARE_GROUP_OFFSETS_REQUEST_TOPIC_V0 = Message(
    AlterShareGroupOffsetsRequestTopic,
    "topic_name" / CompactString,
    "partitions" / CompactArray(ALTER_SHARE_GROUP_OFFSETS_REQUEST_PARTITION_V0),
    Tags(),
    versions="0",
)

ALTER_SHARE_GROUP_OFFSETS_REQUEST_V0 = Message(
    AlterShareGroupOffsetsRequest,
    "group_id" / CompactString,
    "topics" / CompactArray(ALTER_SHARE_GROUP_OFFSETS_REQUEST_TOPIC_V0),
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[AlterShareGroupOffsetsRequest]] = {
    0: ALTER_SHARE_GROUP_OFFSETS_REQUEST_V0,
}
AlterShareGroupOffsetsRequest.layouts = REQUESTS

ALTER_SHARE_GROUP_OFFSETS_RESPONSE_PARTITION_V0 = Message(
    AlterShareGroupOffsetsResponsePartition,
    "partition_index" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="0",
)

ALTER_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC_V0 = Message(
    AlterShareGroupOffsetsResponseTopic,
    "topic_name" / CompactString,
    "topic_id" / Uuid,
    "partitions" / CompactArray(ALTER_SHARE_GROUP_OFFSETS_RESPONSE_PARTITION_V0),
    Tags(),
    versions="0",
)

ALTER_SHARE_GROUP_OFFSETS_RESPONSE_V0 = Message(
    AlterShareGroupOffsetsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "responses" / CompactArray(ALTER_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC_V0),
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[AlterShareGroupOffsetsResponse]] = {
    0: ALTER_SHARE_GROUP_OFFSETS_RESPONSE_V0,
}
AlterShareGroupOffsetsResponse.layouts = RESPONSES
