# Generated from schemas/messages/DescribeShareGroupOffsetsRequest.json and DescribeShareGroupOffsetsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DescribeShareGroupOffsetsRequest and DescribeShareGroupOffsetsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray, CompactNullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int64, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class DescribeShareGroupOffsetsRequestTopic(Struct):
    """One item of the list ``DescribeShareGroupOffsetsRequestGroup.topics``."""

    topic_name: str = ""
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeShareGroupOffsetsRequestGroup(Struct):
    """One item of the list ``DescribeShareGroupOffsetsRequest.groups``."""

    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeShareGroupOffsetsRequest(Whole):
    """Request of API key 90: versions 0 to 1; all flexible (KIP-482)."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeShareGroupOffsetsResponsePartition(Struct):
    """One item of the list ``DescribeShareGroupOffsetsResponseTopic.partitions``."""

    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1  # v1+, ignorable
    error_code: int = 0
    error_message: str | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeShareGroupOffsetsResponseTopic(Struct):
    """One item of the list ``DescribeShareGroupOffsetsResponseGroup.topics``."""

    topic_name: str = ""
    topic_id: bytes = bytes(16)
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeShareGroupOffsetsResponseGroup(Struct):
    """One item of the list ``DescribeShareGroupOffsetsResponse.groups``."""

    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field(default_factory=list)
    error_code: int = 0
    error_message: str | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeShareGroupOffsetsResponse(Whole):
    """Response of API key 90: versions 0 to 1; all flexible (KIP-482)."""

    throttle_time_ms: int = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_TOPIC_V0 = Message(
    DescribeShareGroupOffsetsRequestTopic,
    "topic_name" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="0-1",
)

DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_GROUP_V0 = Message(
    DescribeShareGroupOffsetsRequestGroup,
    "group_id" / CompactString,
    "topics" / CompactNullableArray(DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_TOPIC_V0),
    Tags(),
    versions="0-1",
)

DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_V0 = Message(
    DescribeShareGroupOffsetsRequest,
    "groups" / CompactArray(DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_GROUP_V0),
    Tags(),
    versions="0-1",
)

DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_V1 = DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_V0

REQUESTS: dict[int, Message[DescribeShareGroupOffsetsRequest]] = {
    0: DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_V0,
    1: DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_V1,
}
DescribeShareGroupOffsetsRequest.layouts = REQUESTS

DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_PARTITION_V0 = Message(
    DescribeShareGroupOffsetsResponsePartition,
    "partition_index" / Int32,
    "start_offset" / Int64,
    "leader_epoch" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="0",
)

DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC_V0 = Message(
    DescribeShareGroupOffsetsResponseTopic,
    "topic_name" / CompactString,
    "topic_id" / Uuid,
    "partitions" / CompactArray(DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_PARTITION_V0),
    Tags(),
    versions="0",
)

DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_GROUP_V0 = Message(
    DescribeShareGroupOffsetsResponseGroup,
    "group_id" / CompactString,
    "topics" / CompactArray(DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC_V0),
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="0",
)

DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_V0 = Message(
    DescribeShareGroupOffsetsResponse,
    "throttle_time_ms" / Int32,
    "groups" / CompactArray(DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_GROUP_V0),
    Tags(),
    versions="0",
)

DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_PARTITION_V1 = Message(
    DescribeShareGroupOffsetsResponsePartition,
    "partition_index" / Int32,
    "start_offset" / Int64,
    "leader_epoch" / Int32,
    "lag" / Int64,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="1",
)

DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC_V1 = Message(
    DescribeShareGroupOffsetsResponseTopic,
    "topic_name" / CompactString,
    "topic_id" / Uuid,
    "partitions" / CompactArray(DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_PARTITION_V1),
    Tags(),
    versions="1",
)

DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_GROUP_V1 = Message(
    DescribeShareGroupOffsetsResponseGroup,
    "group_id" / CompactString,
    "topics" / CompactArray(DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC_V1),
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="1",
)

DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_V1 = Message(
    DescribeShareGroupOffsetsResponse,
    "throttle_time_ms" / Int32,
    "groups" / CompactArray(DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_GROUP_V1),
    Tags(),
    versions="1",
)

RESPONSES: dict[int, Message[DescribeShareGroupOffsetsResponse]] = {
    0: DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_V0,
    1: DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_V1,
}
DescribeShareGroupOffsetsResponse.layouts = RESPONSES
