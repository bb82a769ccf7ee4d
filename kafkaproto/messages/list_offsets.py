# Generated from schemas/messages/ListOffsetsRequest.json and ListOffsetsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ListOffsetsRequest and ListOffsetsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int16, Int32, Int64, Int8, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ListOffsetsPartition(Struct):
    """One item of the list ``ListOffsetsTopic.partitions``."""

    partition_index: int = 0
    current_leader_epoch: int = -1  # v4+, ignorable
    timestamp: int = 0
    max_num_offsets: int = 1  # v0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ListOffsetsTopic(Struct):
    """One item of the list ``ListOffsetsRequest.topics``."""

    name: str = ""
    partitions: list[ListOffsetsPartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ListOffsetsRequest(Whole):
    """Request of API key 2: versions 0 to 11; flexible from version 6 on (KIP-482)."""

    replica_id: int = 0
    isolation_level: int = 0  # v2+
    topics: list[ListOffsetsTopic] = field(default_factory=list)
    timeout_ms: int = 0  # v10+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ListOffsetsPartitionResponse(Struct):
    """One item of the list ``ListOffsetsTopicResponse.partitions``."""

    partition_index: int = 0
    error_code: int = 0
    old_style_offsets: list[int] = field(default_factory=list)  # v0
    timestamp: int = -1  # v1+
    offset: int = -1  # v1+
    leader_epoch: int = -1  # v4+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ListOffsetsTopicResponse(Struct):
    """One item of the list ``ListOffsetsResponse.topics``."""

    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ListOffsetsResponse(Whole):
    """Response of API key 2: versions 0 to 11; flexible from version 6 on (KIP-482)."""

    throttle_time_ms: int = 0  # v2+, ignorable
    topics: list[ListOffsetsTopicResponse] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


LIST_OFFSETS_PARTITION_V0 = Message(
    ListOffsetsPartition,
    "partition_index" / Int32,
    "timestamp" / Int64,
    "max_num_offsets" / Int32,
    versions="0",
)

LIST_OFFSETS_TOPIC_V0 = Message(
    ListOffsetsTopic,
    "name" / String,
    "partitions" / Array(LIST_OFFSETS_PARTITION_V0),
    versions="0",
)

LIST_OFFSETS_REQUEST_V0 = Message(
    ListOffsetsRequest,
    "replica_id" / Int32,
    "topics" / Array(LIST_OFFSETS_TOPIC_V0),
    versions="0",
    absent=("isolation_level",),
)

LIST_OFFSETS_PARTITION_V1 = Message(
    ListOffsetsPartition,
    "partition_index" / Int32,
    "timestamp" / Int64,
    versions="1-3",
    absent=("max_num_offsets",),
)

LIST_OFFSETS_TOPIC_V1 = Message(
    ListOffsetsTopic,
    "name" / String,
    "partitions" / Array(LIST_OFFSETS_PARTITION_V1),
    versions="1-3",
)

LIST_OFFSETS_REQUEST_V1 = Message(
    ListOffsetsRequest,
    "replica_id" / Int32,
    "topics" / Array(LIST_OFFSETS_TOPIC_V1),
    versions="1",
    absent=("isolation_level",),
)

LIST_OFFSETS_REQUEST_V2 = Message(
    ListOffsetsRequest,
    "replica_id" / Int32,
    "isolation_level" / Int8,
    "topics" / Array(LIST_OFFSETS_TOPIC_V1),
    versions="2-3",
)

LIST_OFFSETS_REQUEST_V3 = LIST_OFFSETS_REQUEST_V2

LIST_OFFSETS_PARTITION_V4 = Message(
    ListOffsetsPartition,
    "partition_index" / Int32,
    "current_leader_epoch" / Int32,
    "timestamp" / Int64,
    versions="4-5",
    absent=("max_num_offsets",),
)

LIST_OFFSETS_TOPIC_V4 = Message(
    ListOffsetsTopic,
    "name" / String,
    "partitions" / Array(LIST_OFFSETS_PARTITION_V4),
    versions="4-5",
)

LIST_OFFSETS_REQUEST_V4 = Message(
    ListOffsetsRequest,
    "replica_id" / Int32,
    "isolation_level" / Int8,
    "topics" / Array(LIST_OFFSETS_TOPIC_V4),
    versions="4-5",
)

LIST_OFFSETS_REQUEST_V5 = LIST_OFFSETS_REQUEST_V4

LIST_OFFSETS_PARTITION_V6 = Message(
    ListOffsetsPartition,
    "partition_index" / Int32,
    "current_leader_epoch" / Int32,
    "timestamp" / Int64,
    Tags(),
    versions="6-11",
    absent=("max_num_offsets",),
)

LIST_OFFSETS_TOPIC_V6 = Message(
    ListOffsetsTopic,
    "name" / CompactString,
    "partitions" / CompactArray(LIST_OFFSETS_PARTITION_V6),
    Tags(),
    versions="6-11",
)

LIST_OFFSETS_REQUEST_V6 = Message(
    ListOffsetsRequest,
    "replica_id" / Int32,
    "isolation_level" / Int8,
    "topics" / CompactArray(LIST_OFFSETS_TOPIC_V6),
    Tags(),
    versions="6-9",
)

LIST_OFFSETS_REQUEST_V7 = LIST_OFFSETS_REQUEST_V6

LIST_OFFSETS_REQUEST_V8 = LIST_OFFSETS_REQUEST_V6

LIST_OFFSETS_REQUEST_V9 = LIST_OFFSETS_REQUEST_V6

LIST_OFFSETS_REQUEST_V10 = Message(
    ListOffsetsRequest,
    "replica_id" / Int32,
    "isolation_level" / Int8,
    "topics" / CompactArray(LIST_OFFSETS_TOPIC_V6),
    "timeout_ms" / Int32,
    Tags(),
    versions="10-11",
)

LIST_OFFSETS_REQUEST_V11 = LIST_OFFSETS_REQUEST_V10

REQUESTS: dict[int, Message[ListOffsetsRequest]] = {
    0: LIST_OFFSETS_REQUEST_V0,
    1: LIST_OFFSETS_REQUEST_V1,
    2: LIST_OFFSETS_REQUEST_V2,
    3: LIST_OFFSETS_REQUEST_V3,
    4: LIST_OFFSETS_REQUEST_V4,
    5: LIST_OFFSETS_REQUEST_V5,
    6: LIST_OFFSETS_REQUEST_V6,
    7: LIST_OFFSETS_REQUEST_V7,
    8: LIST_OFFSETS_REQUEST_V8,
    9: LIST_OFFSETS_REQUEST_V9,
    10: LIST_OFFSETS_REQUEST_V10,
    11: LIST_OFFSETS_REQUEST_V11,
}
ListOffsetsRequest.layouts = REQUESTS

LIST_OFFSETS_PARTITION_RESPONSE_V0 = Message(
    ListOffsetsPartitionResponse,
    "partition_index" / Int32,
    "error_code" / Int16,
    "old_style_offsets" / Array(Int64),
    versions="0",
    absent=("timestamp", "offset", "leader_epoch"),
)

LIST_OFFSETS_TOPIC_RESPONSE_V0 = Message(
    ListOffsetsTopicResponse,
    "name" / String,
    "partitions" / Array(LIST_OFFSETS_PARTITION_RESPONSE_V0),
    versions="0",
)

LIST_OFFSETS_RESPONSE_V0 = Message(
    ListOffsetsResponse,
    "topics" / Array(LIST_OFFSETS_TOPIC_RESPONSE_V0),
    versions="0",
)

LIST_OFFSETS_PARTITION_RESPONSE_V1 = Message(
    ListOffsetsPartitionResponse,
    "partition_index" / Int32,
    "error_code" / Int16,
    "timestamp" / Int64,
    "offset" / Int64,
    versions="1-3",
    absent=("old_style_offsets", "leader_epoch"),
)

LIST_OFFSETS_TOPIC_RESPONSE_V1 = Message(
    ListOffsetsTopicResponse,
    "name" / String,
    "partitions" / Array(LIST_OFFSETS_PARTITION_RESPONSE_V1),
    versions="1-3",
)

LIST_OFFSETS_RESPONSE_V1 = Message(
    ListOffsetsResponse,
    "topics" / Array(LIST_OFFSETS_TOPIC_RESPONSE_V1),
    versions="1",
)

LIST_OFFSETS_RESPONSE_V2 = Message(
    ListOffsetsResponse,
    "throttle_time_ms" / Int32,
    "topics" / Array(LIST_OFFSETS_TOPIC_RESPONSE_V1),
    versions="2-3",
)

LIST_OFFSETS_RESPONSE_V3 = LIST_OFFSETS_RESPONSE_V2

LIST_OFFSETS_PARTITION_RESPONSE_V4 = Message(
    ListOffsetsPartitionResponse,
    "partition_index" / Int32,
    "error_code" / Int16,
    "timestamp" / Int64,
    "offset" / Int64,
    "leader_epoch" / Int32,
    versions="4-5",
    absent=("old_style_offsets",),
)

LIST_OFFSETS_TOPIC_RESPONSE_V4 = Message(
    ListOffsetsTopicResponse,
    "name" / String,
    "partitions" / Array(LIST_OFFSETS_PARTITION_RESPONSE_V4),
    versions="4-5",
)

LIST_OFFSETS_RESPONSE_V4 = Message(
    ListOffsetsResponse,
    "throttle_time_ms" / Int32,
    "topics" / Array(LIST_OFFSETS_TOPIC_RESPONSE_V4),
    versions="4-5",
)

LIST_OFFSETS_RESPONSE_V5 = LIST_OFFSETS_RESPONSE_V4

LIST_OFFSETS_PARTITION_RESPONSE_V6 = Message(
    ListOffsetsPartitionResponse,
    "partition_index" / Int32,
    "error_code" / Int16,
    "timestamp" / Int64,
    "offset" / Int64,
    "leader_epoch" / Int32,
    Tags(),
    versions="6-11",
    absent=("old_style_offsets",),
)

LIST_OFFSETS_TOPIC_RESPONSE_V6 = Message(
    ListOffsetsTopicResponse,
    "name" / CompactString,
    "partitions" / CompactArray(LIST_OFFSETS_PARTITION_RESPONSE_V6),
    Tags(),
    versions="6-11",
)

LIST_OFFSETS_RESPONSE_V6 = Message(
    ListOffsetsResponse,
    "throttle_time_ms" / Int32,
    "topics" / CompactArray(LIST_OFFSETS_TOPIC_RESPONSE_V6),
    Tags(),
    versions="6-11",
)

LIST_OFFSETS_RESPONSE_V7 = LIST_OFFSETS_RESPONSE_V6

LIST_OFFSETS_RESPONSE_V8 = LIST_OFFSETS_RESPONSE_V6

LIST_OFFSETS_RESPONSE_V9 = LIST_OFFSETS_RESPONSE_V6

LIST_OFFSETS_RESPONSE_V10 = LIST_OFFSETS_RESPONSE_V6

LIST_OFFSETS_RESPONSE_V11 = LIST_OFFSETS_RESPONSE_V6

RESPONSES: dict[int, Message[ListOffsetsResponse]] = {
    0: LIST_OFFSETS_RESPONSE_V0,
    1: LIST_OFFSETS_RESPONSE_V1,
    2: LIST_OFFSETS_RESPONSE_V2,
    3: LIST_OFFSETS_RESPONSE_V3,
    4: LIST_OFFSETS_RESPONSE_V4,
    5: LIST_OFFSETS_RESPONSE_V5,
    6: LIST_OFFSETS_RESPONSE_V6,
    7: LIST_OFFSETS_RESPONSE_V7,
    8: LIST_OFFSETS_RESPONSE_V8,
    9: LIST_OFFSETS_RESPONSE_V9,
    10: LIST_OFFSETS_RESPONSE_V10,
    11: LIST_OFFSETS_RESPONSE_V11,
}
ListOffsetsResponse.layouts = RESPONSES
