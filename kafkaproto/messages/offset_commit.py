# Generated from schemas/messages/OffsetCommitRequest.json and OffsetCommitResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""OffsetCommitRequest and OffsetCommitResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import (
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
class OffsetCommitRequestPartition(Struct):
    """One item of the list ``OffsetCommitRequestTopic.partitions``."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1  # v6+, ignorable
    commit_timestamp: int = -1  # v1
    committed_metadata: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetCommitRequestTopic(Struct):
    """One item of the list ``OffsetCommitRequest.topics``."""

    name: str = ""  # v0-9, ignorable
    topic_id: bytes = bytes(16)  # v10+, ignorable
    partitions: list[OffsetCommitRequestPartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetCommitRequest(Whole):
    """Request of API key 8: versions 0 to 10; flexible from version 8 on (KIP-482)."""

    group_id: str = ""
    generation_id_or_member_epoch: int = -1  # v1+, ignorable
    member_id: str = ""  # v1+, ignorable
    group_instance_id: str | None = None  # v7+
    retention_time_ms: int = -1  # v2-4, ignorable
    topics: list[OffsetCommitRequestTopic] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetCommitResponsePartition(Struct):
    """One item of the list ``OffsetCommitResponseTopic.partitions``."""

    partition_index: int = 0
    error_code: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetCommitResponseTopic(Struct):
    """One item of the list ``OffsetCommitResponse.topics``."""

    name: str = ""  # v0-9, ignorable
    topic_id: bytes = bytes(16)  # v10+, ignorable
    partitions: list[OffsetCommitResponsePartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetCommitResponse(Whole):
    """Response of API key 8: versions 0 to 10; flexible from version 8 on (KIP-482)."""

    throttle_time_ms: int = 0  # v3+, ignorable
    topics: list[OffsetCommitResponseTopic] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


OFFSET_COMMIT_REQUEST_PARTITION_V0 = Message(
    OffsetCommitRequestPartition,
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "committed_metadata" / NullableString,
    versions="0, 2-5",
    absent=("commit_timestamp",),
)

OFFSET_COMMIT_REQUEST_TOPIC_V0 = Message(
    OffsetCommitRequestTopic,
    "name" / String,
    "partitions" / Array(OFFSET_COMMIT_REQUEST_PARTITION_V0),
    versions="0, 2-5",
)

OFFSET_COMMIT_REQUEST_V0 = Message(
    OffsetCommitRequest,
    "group_id" / String,
    "topics" / Array(OFFSET_COMMIT_REQUEST_TOPIC_V0),
    versions="0",
    absent=("group_instance_id",),
)

OFFSET_COMMIT_REQUEST_PARTITION_V1 = Message(
    OffsetCommitRequestPartition,
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "commit_timestamp" / Int64,
    "committed_metadata" / NullableString,
    versions="1",
)

OFFSET_COMMIT_REQUEST_TOPIC_V1 = Message(
    OffsetCommitRequestTopic,
    "name" / String,
    "partitions" / Array(OFFSET_COMMIT_REQUEST_PARTITION_V1),
    versions="1",
)

OFFSET_COMMIT_REQUEST_V1 = Message(
    OffsetCommitRequest,
    "group_id" / String,
    "generation_id_or_member_epoch" / Int32,
    "member_id" / String,
    "topics" / Array(OFFSET_COMMIT_REQUEST_TOPIC_V1),
    versions="1",
    absent=("group_instance_id",),
)

OFFSET_COMMIT_REQUEST_V2 = Message(
    OffsetCommitRequest,
    "group_id" / String,
    "generation_id_or_member_epoch" / Int32,
    "member_id" / String,
    "retention_time_ms" / Int64,
    "topics" / Array(OFFSET_COMMIT_REQUEST_TOPIC_V0),
    versions="2-4",
    absent=("group_instance_id",),
)

OFFSET_COMMIT_REQUEST_V3 = OFFSET_COMMIT_REQUEST_V2

OFFSET_COMMIT_REQUEST_V4 = OFFSET_COMMIT_REQUEST_V2

OFFSET_COMMIT_REQUEST_V5 = Message(
    OffsetCommitRequest,
    "group_id" / String,
    "generation_id_or_member_epoch" / Int32,
    "member_id" / String,
    "topics" / Array(OFFSET_COMMIT_REQUEST_TOPIC_V0),
    versions="5",
    absent=("group_instance_id",),
)

OFFSET_COMMIT_REQUEST_PARTITION_V6 = Message(
    OffsetCommitRequestPartition,
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "committed_leader_epoch" / Int32,
    "committed_metadata" / NullableString,
    versions="6-7",
    absent=("commit_timestamp",),
)

OFFSET_COMMIT_REQUEST_TOPIC_V6 = Message(
    OffsetCommitRequestTopic,
    "name" / String,
    "partitions" / Array(OFFSET_COMMIT_REQUEST_PARTITION_V6),
    versions="6-7",
)

OFFSET_COMMIT_REQUEST_V6 = Message(
    OffsetCommitRequest,
    "group_id" / String,
    "generation_id_or_member_epoch" / Int32,
    "member_id" / String,
    "topics" / Array(OFFSET_COMMIT_REQUEST_TOPIC_V6),
    versions="6",
    absent=("group_instance_id",),
)

OFFSET_COMMIT_REQUEST_V7 = Message(
    OffsetCommitRequest,
    "group_id" / String,
    "generation_id_or_member_epoch" / Int32,
    "member_id" / String,
    "group_instance_id" / NullableString,
    "topics" / Array(OFFSET_COMMIT_REQUEST_TOPIC_V6),
    versions="7",
)

OFFSET_COMMIT_REQUEST_PARTITION_V8 = Message(
    OffsetCommitRequestPartition,
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "committed_leader_epoch" / Int32,
    "committed_metadata" / CompactNullableString,
    Tags(),
    versions="8-10",
    absent=("commit_timestamp",),
)

OFFSET_COMMIT_REQUEST_TOPIC_V8 = Message(
    OffsetCommitRequestTopic,
    "name" / CompactString,
    "partitions" / CompactArray(OFFSET_COMMIT_REQUEST_PARTITION_V8),
    Tags(),
    versions="8-9",
)

OFFSET_COMMIT_REQUEST_V8 = Message(
    OffsetCommitRequest,
    "group_id" / CompactString,
    "generation_id_or_member_epoch" / Int32,
    "member_id" / CompactString,
    "group_instance_id" / CompactNullableString,
    "topics" / CompactArray(OFFSET_COMMIT_REQUEST_TOPIC_V8),
    Tags(),
    versions="8-9",
)

OFFSET_COMMIT_REQUEST_V9 = OFFSET_COMMIT_REQUEST_V8

OFFSET_COMMIT_REQUEST_TOPIC_V10 = Message(
    OffsetCommitRequestTopic,
    "topic_id" / Uuid,
    "partitions" / CompactArray(OFFSET_COMMIT_REQUEST_PARTITION_V8),
    Tags(),
    versions="10",
)

OFFSET_COMMIT_REQUEST_V10 = Message(
    OffsetCommitRequest,
    "group_id" / CompactString,
    "generation_id_or_member_epoch" / Int32,
    "member_id" / CompactString,
    "group_instance_id" / CompactNullableString,
    "topics" / CompactArray(OFFSET_COMMIT_REQUEST_TOPIC_V10),
    Tags(),
    versions="10",
)

REQUESTS: dict[int, Message[OffsetCommitRequest]] = {
    0: OFFSET_COMMIT_REQUEST_V0,
    1: OFFSET_COMMIT_REQUEST_V1,
    2: OFFSET_COMMIT_REQUEST_V2,
    3: OFFSET_COMMIT_REQUEST_V3,
    4: OFFSET_COMMIT_REQUEST_V4,
    5: OFFSET_COMMIT_REQUEST_V5,
    6: OFFSET_COMMIT_REQUEST_V6,
    7: OFFSET_COMMIT_REQUEST_V7,
    8: OFFSET_COMMIT_REQUEST_V8,
    9: OFFSET_COMMIT_REQUEST_V9,
    10: OFFSET_COMMIT_REQUEST_V10,
}
OffsetCommitRequest.layouts = REQUESTS

OFFSET_COMMIT_RESPONSE_PARTITION_V0 = Message(
    OffsetCommitResponsePartition,
    "partition_index" / Int32,
    "error_code" / Int16,
    versions="0-7",
)

OFFSET_COMMIT_RESPONSE_TOPIC_V0 = Message(
    OffsetCommitResponseTopic,
    "name" / String,
    "partitions" / Array(OFFSET_COMMIT_RESPONSE_PARTITION_V0),
    versions="0-7",
)

OFFSET_COMMIT_RESPONSE_V0 = Message(
    OffsetCommitResponse,
    "topics" / Array(OFFSET_COMMIT_RESPONSE_TOPIC_V0),
    versions="0-2",
)

OFFSET_COMMIT_RESPONSE_V1 = OFFSET_COMMIT_RESPONSE_V0

OFFSET_COMMIT_RESPONSE_V2 = OFFSET_COMMIT_RESPONSE_V0

OFFSET_COMMIT_RESPONSE_V3 = Message(
    OffsetCommitResponse,
    "throttle_time_ms" / Int32,
    "topics" / Array(OFFSET_COMMIT_RESPONSE_TOPIC_V0),
    versions="3-7",
)

OFFSET_COMMIT_RESPONSE_V4 = OFFSET_COMMIT_RESPONSE_V3

OFFSET_COMMIT_RESPONSE_V5 = OFFSET_COMMIT_RESPONSE_V3

OFFSET_COMMIT_RESPONSE_V6 = OFFSET_COMMIT_RESPONSE_V3

OFFSET_COMMIT_RESPONSE_V7 = OFFSET_COMMIT_RESPONSE_V3

OFFSET_COMMIT_RESPONSE_PARTITION_V8 = Message(
    OffsetCommitResponsePartition,
    "partition_index" / Int32,
    "error_code" / Int16,
    Tags(),
    versions="8-10",
)

OFFSET_COMMIT_RESPONSE_TOPIC_V8 = Message(
    OffsetCommitResponseTopic,
    "name" / CompactString,
    "partitions" / CompactArray(OFFSET_COMMIT_RESPONSE_PARTITION_V8),
    Tags(),
    versions="8-9",
)

OFFSET_COMMIT_RESPONSE_V8 = Message(
    OffsetCommitResponse,
    "throttle_time_ms" / Int32,
    "topics" / CompactArray(OFFSET_COMMIT_RESPONSE_TOPIC_V8),
    Tags(),
    versions="8-9",
)

OFFSET_COMMIT_RESPONSE_V9 = OFFSET_COMMIT_RESPONSE_V8

OFFSET_COMMIT_RESPONSE_TOPIC_V10 = Message(
    OffsetCommitResponseTopic,
    "topic_id" / Uuid,
    "partitions" / CompactArray(OFFSET_COMMIT_RESPONSE_PARTITION_V8),
    Tags(),
    versions="10",
)

OFFSET_COMMIT_RESPONSE_V10 = Message(
    OffsetCommitResponse,
    "throttle_time_ms" / Int32,
    "topics" / CompactArray(OFFSET_COMMIT_RESPONSE_TOPIC_V10),
    Tags(),
    versions="10",
)

RESPONSES: dict[int, Message[OffsetCommitResponse]] = {
    0: OFFSET_COMMIT_RESPONSE_V0,
    1: OFFSET_COMMIT_RESPONSE_V1,
    2: OFFSET_COMMIT_RESPONSE_V2,
    3: OFFSET_COMMIT_RESPONSE_V3,
    4: OFFSET_COMMIT_RESPONSE_V4,
    5: OFFSET_COMMIT_RESPONSE_V5,
    6: OFFSET_COMMIT_RESPONSE_V6,
    7: OFFSET_COMMIT_RESPONSE_V7,
    8: OFFSET_COMMIT_RESPONSE_V8,
    9: OFFSET_COMMIT_RESPONSE_V9,
    10: OFFSET_COMMIT_RESPONSE_V10,
}
OffsetCommitResponse.layouts = RESPONSES
