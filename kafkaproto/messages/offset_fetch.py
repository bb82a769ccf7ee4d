# Generated from schemas/messages/OffsetFetchRequest.json and OffsetFetchResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""OffsetFetchRequest and OffsetFetchResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray, CompactNullableArray, NullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import (
    Bool,
    CompactNullableString,
    CompactString,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    Uuid,
)
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class OffsetFetchRequestTopic(Struct):
    """One item of the list ``OffsetFetchRequest.topics``."""

    name: str = ""  # v0-7
    partition_indexes: list[int] = field(default_factory=list)  # v0-7
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetFetchRequestTopics(Struct):
    """One item of the list ``OffsetFetchRequestGroup.topics``."""

    name: str = ""  # v8-9, ignorable
    topic_id: bytes = bytes(16)  # v10+, ignorable
    partition_indexes: list[int] = field(default_factory=list)  # v8+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetFetchRequestGroup(Struct):
    """One item of the list ``OffsetFetchRequest.groups``."""

    group_id: str = ""  # v8+
    member_id: str | None = None  # v9+, ignorable
    member_epoch: int = -1  # v9+, ignorable
    topics: list[OffsetFetchRequestTopics] | None = field(default_factory=list)  # v8+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetFetchRequest(Whole):
    """Request of API key 9: versions 0 to 10; flexible from version 6 on (KIP-482)."""

    group_id: str = ""  # v0-7
    topics: list[OffsetFetchRequestTopic] | None = field(default_factory=list)  # v0-7
    groups: list[OffsetFetchRequestGroup] = field(default_factory=list)  # v8+
    require_stable: bool = False  # v7+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetFetchResponsePartition(Struct):
    """One item of the list ``OffsetFetchResponseTopic.partitions``."""

    partition_index: int = 0  # v0-7
    committed_offset: int = 0  # v0-7
    committed_leader_epoch: int = -1  # v5-7, ignorable
    metadata: str | None = ""  # v0-7
    error_code: int = 0  # v0-7
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetFetchResponseTopic(Struct):
    """One item of the list ``OffsetFetchResponse.topics``."""

    name: str = ""  # v0-7
    partitions: list[OffsetFetchResponsePartition] = field(default_factory=list)  # v0-7
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetFetchResponsePartitions(Struct):
    """One item of the list ``OffsetFetchResponseTopics.partitions``."""

    partition_index: int = 0  # v8+
    committed_offset: int = 0  # v8+
    committed_leader_epoch: int = -1  # v8+, ignorable
    metadata: str | None = ""  # v8+
    error_code: int = 0  # v8+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetFetchResponseTopics(Struct):
    """One item of the list ``OffsetFetchResponseGroup.topics``."""

    name: str = ""  # v8-9, ignorable
    topic_id: bytes = bytes(16)  # v10+, ignorable
    partitions: list[OffsetFetchResponsePartitions] = field(default_factory=list)  # v8+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetFetchResponseGroup(Struct):
    """One item of the list ``OffsetFetchResponse.groups``."""

    group_id: str = ""  # v8+
    topics: list[OffsetFetchResponseTopics] = field(default_factory=list)  # v8+
    error_code: int = 0  # v8+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetFetchResponse(Whole):
    """Response of API key 9: versions 0 to 10; flexible from version 6 on (KIP-482)."""

    throttle_time_ms: int = 0  # v3+, ignorable
    topics: list[OffsetFetchResponseTopic] = field(default_factory=list)  # v0-7
    error_code: int = 0  # v2-7, ignorable
    groups: list[OffsetFetchResponseGroup] = field(default_factory=list)  # v8+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


OFFSET_FETCH_REQUEST_TOPIC_V0 = Message(
    OffsetFetchRequestTopic,
    "name" / String,
    "partition_indexes" / Array(Int32),
    versions="0-5",
)

OFFSET_FETCH_REQUEST_V0 = Message(
    OffsetFetchRequest,
    "group_id" / String,
    "topics" / Array(OFFSET_FETCH_REQUEST_TOPIC_V0),
    versions="0-1",
    absent=("groups", "require_stable"),
)

OFFSET_FETCH_REQUEST_V1 = OFFSET_FETCH_REQUEST_V0

OFFSET_FETCH_REQUEST_V2 = Message(
    OffsetFetchRequest,
    "group_id" / String,
    "topics" / NullableArray(OFFSET_FETCH_REQUEST_TOPIC_V0),
    versions="2-5",
    absent=("groups", "require_stable"),
)

OFFSET_FETCH_REQUEST_V3 = OFFSET_FETCH_REQUEST_V2

OFFSET_FETCH_REQUEST_V4 = OFFSET_FETCH_REQUEST_V2

OFFSET_FETCH_REQUEST_V5 = OFFSET_FETCH_REQUEST_V2

OFFSET_FETCH_REQUEST_TOPIC_V6 = Message(
    OffsetFetchRequestTopic,
    "name" / CompactString,
    "partition_indexes" / CompactArray(Int32),
    Tags(),
    versions="6-7",
)

OFFSET_FETCH_REQUEST_V6 = Message(
    OffsetFetchRequest,
    "group_id" / CompactString,
    "topics" / CompactNullableArray(OFFSET_FETCH_REQUEST_TOPIC_V6),
    Tags(),
    versions="6",
    absent=("groups", "require_stable"),
)

OFFSET_FETCH_REQUEST_V7 = Message(
    OffsetFetchRequest,
    "group_id" / CompactString,
    "topics" / CompactNullableArray(OFFSET_FETCH_REQUEST_TOPIC_V6),
    "require_stable" / Bool,
    Tags(),
    versions="7",
    absent=("groups",),
)

OFFSET_FETCH_REQUEST_TOPICS_V8 = Message(
    OffsetFetchRequestTopics,
    "name" / CompactString,
    "partition_indexes" / CompactArray(Int32),
    Tags(),
    versions="8-9",
)

OFFSET_FETCH_REQUEST_GROUP_V8 = Message(
    OffsetFetchRequestGroup,
    "group_id" / CompactString,
    "topics" / CompactNullableArray(OFFSET_FETCH_REQUEST_TOPICS_V8),
    Tags(),
    versions="8",
)

OFFSET_FETCH_REQUEST_V8 = Message(
    OffsetFetchRequest,
    "groups" / CompactArray(OFFSET_FETCH_REQUEST_GROUP_V8),
    "require_stable" / Bool,
    Tags(),
    versions="8",
    absent=("group_id", "topics"),
)

OFFSET_FETCH_REQUEST_GROUP_V9 = Message(
    OffsetFetchRequestGroup,
    "group_id" / CompactString,
    "member_id" / CompactNullableString,
    "member_epoch" / Int32,
    "topics" / CompactNullableArray(OFFSET_FETCH_REQUEST_TOPICS_V8),
    Tags(),
    versions="9",
)

OFFSET_FETCH_REQUEST_V9 = Message(
    OffsetFetchRequest,
    "groups" / CompactArray(OFFSET_FETCH_REQUEST_GROUP_V9),
    "require_stable" / Bool,
    Tags(),
    versions="9",
    absent=("group_id", "topics"),
)

OFFSET_FETCH_REQUEST_TOPICS_V10 = Message(
    OffsetFetchRequestTopics,
    "topic_id" / Uuid,
    "partition_indexes" / CompactArray(Int32),
    Tags(),
    versions="10",
)

OFFSET_FETCH_REQUEST_GROUP_V10 = Message(
    OffsetFetchRequestGroup,
    "group_id" / CompactString,
    "member_id" / CompactNullableString,
    "member_epoch" / Int32,
    "topics" / CompactNullableArray(OFFSET_FETCH_REQUEST_TOPICS_V10),
    Tags(),
    versions="10",
)

OFFSET_FETCH_REQUEST_V10 = Message(
    OffsetFetchRequest,
    "groups" / CompactArray(OFFSET_FETCH_REQUEST_GROUP_V10),
    "require_stable" / Bool,
    Tags(),
    versions="10",
    absent=("group_id", "topics"),
)

REQUESTS: dict[int, Message[OffsetFetchRequest]] = {
    0: OFFSET_FETCH_REQUEST_V0,
    1: OFFSET_FETCH_REQUEST_V1,
    2: OFFSET_FETCH_REQUEST_V2,
    3: OFFSET_FETCH_REQUEST_V3,
    4: OFFSET_FETCH_REQUEST_V4,
    5: OFFSET_FETCH_REQUEST_V5,
    6: OFFSET_FETCH_REQUEST_V6,
    7: OFFSET_FETCH_REQUEST_V7,
    8: OFFSET_FETCH_REQUEST_V8,
    9: OFFSET_FETCH_REQUEST_V9,
    10: OFFSET_FETCH_REQUEST_V10,
}
OffsetFetchRequest.layouts = REQUESTS

OFFSET_FETCH_RESPONSE_PARTITION_V0 = Message(
    OffsetFetchResponsePartition,
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "metadata" / NullableString,
    "error_code" / Int16,
    versions="0-4",
)

OFFSET_FETCH_RESPONSE_TOPIC_V0 = Message(
    OffsetFetchResponseTopic,
    "name" / String,
    "partitions" / Array(OFFSET_FETCH_RESPONSE_PARTITION_V0),
    versions="0-4",
)

OFFSET_FETCH_RESPONSE_V0 = Message(
    OffsetFetchResponse,
    "topics" / Array(OFFSET_FETCH_RESPONSE_TOPIC_V0),
    versions="0-1",
    absent=("groups",),
)

OFFSET_FETCH_RESPONSE_V1 = OFFSET_FETCH_RESPONSE_V0

OFFSET_FETCH_RESPONSE_V2 = Message(
    OffsetFetchResponse,
    "topics" / Array(OFFSET_FETCH_RESPONSE_TOPIC_V0),
    "error_code" / Int16,
    versions="2",
    absent=("groups",),
)

OFFSET_FETCH_RESPONSE_V3 = Message(
    OffsetFetchResponse,
    "throttle_time_ms" / Int32,
    "topics" / Array(OFFSET_FETCH_RESPONSE_TOPIC_V0),
    "error_code" / Int16,
    versions="3-4",
    absent=("groups",),
)

OFFSET_FETCH_RESPONSE_V4 = OFFSET_FETCH_RESPONSE_V3

OFFSET_FETCH_RESPONSE_PARTITION_V5 = Message(
    OffsetFetchResponsePartition,
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "committed_leader_epoch" / Int32,
    "metadata" / NullableString,
    "error_code" / Int16,
    versions="5",
)

OFFSET_FETCH_RESPONSE_TOPIC_V5 = Message(
    OffsetFetchResponseTopic,
    "name" / String,
    "partitions" / Array(OFFSET_FETCH_RESPONSE_PARTITION_V5),
    versions="5",
)

OFFSET_FETCH_RESPONSE_V5 = Message(
    OffsetFetchResponse,
    "throttle_time_ms" / Int32,
    "topics" / Array(OFFSET_FETCH_RESPONSE_TOPIC_V5),
    "error_code" / Int16,
    versions="5",
    absent=("groups",),
)

OFFSET_FETCH_RESPONSE_PARTITION_V6 = Message(
    OffsetFetchResponsePartition,
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "committed_leader_epoch" / Int32,
    "metadata" / CompactNullableString,
    "error_code" / Int16,
    Tags(),
    versions="6-7",
)

OFFSET_FETCH_RESPONSE_TOPIC_V6 = Message(
    OffsetFetchResponseTopic,
    "name" / CompactString,
    "partitions" / CompactArray(OFFSET_FETCH_RESPONSE_PARTITION_V6),
    Tags(),
    versions="6-7",
)

OFFSET_FETCH_RESPONSE_V6 = Message(
    OffsetFetchResponse,
    "throttle_time_ms" / Int32,
    "topics" / CompactArray(OFFSET_FETCH_RESPONSE_TOPIC_V6),
    "error_code" / Int16,
    Tags(),
    versions="6-7",
    absent=("groups",),
)

OFFSET_FETCH_RESPONSE_V7 = OFFSET_FETCH_RESPONSE_V6

OFFSET_FETCH_RESPONSE_PARTITIONS_V8 = Message(
    OffsetFetchResponsePartitions,
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "committed_leader_epoch" / Int32,
    "metadata" / CompactNullableString,
    "error_code" / Int16,
    Tags(),
    versions="8-10",
)

OFFSET_FETCH_RESPONSE_TOPICS_V8 = Message(
    OffsetFetchResponseTopics,
    "name" / CompactString,
    "partitions" / CompactArray(OFFSET_FETCH_RESPONSE_PARTITIONS_V8),
    Tags(),
    versions="8-9",
)

OFFSET_FETCH_RESPONSE_GROUP_V8 = Message(
    OffsetFetchResponseGroup,
    "group_id" / CompactString,
    "topics" / CompactArray(OFFSET_FETCH_RESPONSE_TOPICS_V8),
    "error_code" / Int16,
    Tags(),
    versions="8-9",
)

OFFSET_FETCH_RESPONSE_V8 = Message(
    OffsetFetchResponse,
    "throttle_time_ms" / Int32,
    "groups" / CompactArray(OFFSET_FETCH_RESPONSE_GROUP_V8),
    Tags(),
    versions="8-9",
    absent=("topics",),
)

OFFSET_FETCH_RESPONSE_V9 = OFFSET_FETCH_RESPONSE_V8

OFFSET_FETCH_RESPONSE_TOPICS_V10 = Message(
    OffsetFetchResponseTopics,
    "topic_id" / Uuid,
    "partitions" / CompactArray(OFFSET_FETCH_RESPONSE_PARTITIONS_V8),
    Tags(),
    versions="10",
)

OFFSET_FETCH_RESPONSE_GROUP_V10 = Message(
    OffsetFetchResponseGroup,
    "group_id" / CompactString,
    "topics" / CompactArray(OFFSET_FETCH_RESPONSE_TOPICS_V10),
    "error_code" / Int16,
    Tags(),
    versions="10",
)

OFFSET_FETCH_RESPONSE_V10 = Message(
    OffsetFetchResponse,
    "throttle_time_ms" / Int32,
    "groups" / CompactArray(OFFSET_FETCH_RESPONSE_GROUP_V10),
    Tags(),
    versions="10",
    absent=("topics",),
)

RESPONSES: dict[int, Message[OffsetFetchResponse]] = {
    0: OFFSET_FETCH_RESPONSE_V0,
    1: OFFSET_FETCH_RESPONSE_V1,
    2: OFFSET_FETCH_RESPONSE_V2,
    3: OFFSET_FETCH_RESPONSE_V3,
    4: OFFSET_FETCH_RESPONSE_V4,
    5: OFFSET_FETCH_RESPONSE_V5,
    6: OFFSET_FETCH_RESPONSE_V6,
    7: OFFSET_FETCH_RESPONSE_V7,
    8: OFFSET_FETCH_RESPONSE_V8,
    9: OFFSET_FETCH_RESPONSE_V9,
    10: OFFSET_FETCH_RESPONSE_V10,
}
OffsetFetchResponse.layouts = RESPONSES
