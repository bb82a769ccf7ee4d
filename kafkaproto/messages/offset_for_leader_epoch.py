# Generated from schemas/messages/OffsetForLeaderEpochRequest.json and OffsetForLeaderEpochResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""OffsetForLeaderEpochRequest and OffsetForLeaderEpochResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int16, Int32, Int64, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class OffsetForLeaderPartition(Struct):
    """One item of the list ``OffsetForLeaderTopic.partitions``."""

    partition: int = 0
    current_leader_epoch: int = -1  # v2+, ignorable
    leader_epoch: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetForLeaderTopic(Struct):
    """One item of the list ``OffsetForLeaderEpochRequest.topics``."""

    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetForLeaderEpochRequest(Whole):
    """Request of API key 23: versions 0 to 4; flexible from version 4 on (KIP-482)."""

    replica_id: int = -2  # v3+, ignorable
    topics: list[OffsetForLeaderTopic] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class EpochEndOffset(Struct):
    """One item of the list ``OffsetForLeaderTopicResult.partitions``."""

    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1  # v1+, ignorable
    end_offset: int = -1
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetForLeaderTopicResult(Struct):
    """One item of the list ``OffsetForLeaderEpochResponse.topics``."""

    topic: str = ""
    partitions: list[EpochEndOffset] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OffsetForLeaderEpochResponse(Whole):
    """Response of API key 23: versions 0 to 4; flexible from version 4 on (KIP-482)."""

    throttle_time_ms: int = 0  # v2+, ignorable
    topics: list[OffsetForLeaderTopicResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


OFFSET_FOR_LEADER_PARTITION_V0 = Message(
    OffsetForLeaderPartition,
    "partition" / Int32,
    "leader_epoch" / Int32,
    versions="0-1",
)

OFFSET_FOR_LEADER_TOPIC_V0 = Message(
    OffsetForLeaderTopic,
    "topic" / String,
    "partitions" / Array(OFFSET_FOR_LEADER_PARTITION_V0),
    versions="0-1",
)

OFFSET_FOR_LEADER_EPOCH_REQUEST_V0 = Message(
    OffsetForLeaderEpochRequest,
    "topics" / Array(OFFSET_FOR_LEADER_TOPIC_V0),
    versions="0-1",
)

OFFSET_FOR_LEADER_EPOCH_REQUEST_V1 = OFFSET_FOR_LEADER_EPOCH_REQUEST_V0

OFFSET_FOR_LEADER_PARTITION_V2 = Message(
    OffsetForLeaderPartition,
    "partition" / Int32,
    "current_leader_epoch" / Int32,
    "leader_epoch" / Int32,
    versions="2-3",
)

OFFSET_FOR_LEADER_TOPIC_V2 = Message(
    OffsetForLeaderTopic,
    "topic" / String,
    "partitions" / Array(OFFSET_FOR_LEADER_PARTITION_V2),
    versions="2-3",
)

OFFSET_FOR_LEADER_EPOCH_REQUEST_V2 = Message(
    OffsetForLeaderEpochRequest,
    "topics" / Array(OFFSET_FOR_LEADER_TOPIC_V2),
    versions="2",
)

OFFSET_FOR_LEADER_EPOCH_REQUEST_V3 = Message(
    OffsetForLeaderEpochRequest,
    "replica_id" / Int32,
    "topics" / Array(OFFSET_FOR_LEADER_TOPIC_V2),
    versions="3",
)

OFFSET_FOR_LEADER_PARTITION_V4 = Message(
    OffsetForLeaderPartition,
    "partition" / Int32,
    "current_leader_epoch" / Int32,
    "leader_epoch" / Int32,
    Tags(),
    versions="4",
)

OFFSET_FOR_LEADER_TOPIC_V4 = Message(
    OffsetForLeaderTopic,
    "topic" / CompactString,
    "partitions" / CompactArray(OFFSET_FOR_LEADER_PARTITION_V4),
    Tags(),
    versions="4",
)

OFFSET_FOR_LEADER_EPOCH_REQUEST_V4 = Message(
    OffsetForLeaderEpochRequest,
    "replica_id" / Int32,
    "topics" / CompactArray(OFFSET_FOR_LEADER_TOPIC_V4),
    Tags(),
    versions="4",
)

REQUESTS: dict[int, Message[OffsetForLeaderEpochRequest]] = {
    0: OFFSET_FOR_LEADER_EPOCH_REQUEST_V0,
    1: OFFSET_FOR_LEADER_EPOCH_REQUEST_V1,
    2: OFFSET_FOR_LEADER_EPOCH_REQUEST_V2,
    3: OFFSET_FOR_LEADER_EPOCH_REQUEST_V3,
    4: OFFSET_FOR_LEADER_EPOCH_REQUEST_V4,
}
OffsetForLeaderEpochRequest.layouts = REQUESTS

EPOCH_END_OFFSET_V0 = Message(
    EpochEndOffset,
    "error_code" / Int16,
    "partition" / Int32,
    "end_offset" / Int64,
    versions="0",
)

OFFSET_FOR_LEADER_TOPIC_RESULT_V0 = Message(
    OffsetForLeaderTopicResult,
    "topic" / String,
    "partitions" / Array(EPOCH_END_OFFSET_V0),
    versions="0",
)

OFFSET_FOR_LEADER_EPOCH_RESPONSE_V0 = Message(
    OffsetForLeaderEpochResponse,
    "topics" / Array(OFFSET_FOR_LEADER_TOPIC_RESULT_V0),
    versions="0",
)

EPOCH_END_OFFSET_V1 = Message(
    EpochEndOffset,
    "error_code" / Int16,
    "partition" / Int32,
    "leader_epoch" / Int32,
    "end_offset" / Int64,
    versions="1-3",
)

OFFSET_FOR_LEADER_TOPIC_RESULT_V1 = Message(
    OffsetForLeaderTopicResult,
    "topic" / String,
    "partitions" / Array(EPOCH_END_OFFSET_V1),
    versions="1-3",
)

OFFSET_FOR_LEADER_EPOCH_RESPONSE_V1 = Message(
    OffsetForLeaderEpochResponse,
    "topics" / Array(OFFSET_FOR_LEADER_TOPIC_RESULT_V1),
    versions="1",
)

OFFSET_FOR_LEADER_EPOCH_RESPONSE_V2 = Message(
    OffsetForLeaderEpochResponse,
    "throttle_time_ms" / Int32,
    "topics" / Array(OFFSET_FOR_LEADER_TOPIC_RESULT_V1),
    versions="2-3",
)

OFFSET_FOR_LEADER_EPOCH_RESPONSE_V3 = OFFSET_FOR_LEADER_EPOCH_RESPONSE_V2

EPOCH_END_OFFSET_V4 = Message(
    EpochEndOffset,
    "error_code" / Int16,
    "partition" / Int32,
    "leader_epoch" / Int32,
    "end_offset" / Int64,
    Tags(),
    versions="4",
)

OFFSET_FOR_LEADER_TOPIC_RESULT_V4 = Message(
    OffsetForLeaderTopicResult,
    "topic" / CompactString,
    "partitions" / CompactArray(EPOCH_END_OFFSET_V4),
    Tags(),
    versions="4",
)

OFFSET_FOR_LEADER_EPOCH_RESPONSE_V4 = Message(
    OffsetForLeaderEpochResponse,
    "throttle_time_ms" / Int32,
    "topics" / CompactArray(OFFSET_FOR_LEADER_TOPIC_RESULT_V4),
    Tags(),
    versions="4",
)

RESPONSES: dict[int, Message[OffsetForLeaderEpochResponse]] = {
    0: OFFSET_FOR_LEADER_EPOCH_RESPONSE_V0,
    1: OFFSET_FOR_LEADER_EPOCH_RESPONSE_V1,
    2: OFFSET_FOR_LEADER_EPOCH_RESPONSE_V2,
    3: OFFSET_FOR_LEADER_EPOCH_RESPONSE_V3,
    4: OFFSET_FOR_LEADER_EPOCH_RESPONSE_V4,
}
OffsetForLeaderEpochResponse.layouts = RESPONSES
