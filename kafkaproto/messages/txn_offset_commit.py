# Generated from schemas/messages/TxnOffsetCommitRequest.json and TxnOffsetCommitResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""TxnOffsetCommitRequest and TxnOffsetCommitResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int64, NullableString, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class TxnOffsetCommitRequestPartition(Struct):
    """One item of the list ``TxnOffsetCommitRequestTopic.partitions``."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1  # v2+, ignorable
    committed_metadata: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TxnOffsetCommitRequestTopic(Struct):
    """One item of the list ``TxnOffsetCommitRequest.topics``."""

    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TxnOffsetCommitRequest(Whole):
    """Request of API key 28: versions 0 to 5; flexible from version 3 on (KIP-482)."""

    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id: int = -1  # v3+
    member_id: str = ""  # v3+
    group_instance_id: str | None = None  # v3+
    topics: list[TxnOffsetCommitRequestTopic] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TxnOffsetCommitResponsePartition(Struct):
    """One item of the list ``TxnOffsetCommitResponseTopic.partitions``."""

    partition_index: int = 0
    error_code: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TxnOffsetCommitResponseTopic(Struct):
    """One item of the list ``TxnOffsetCommitResponse.topics``."""

    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TxnOffsetCommitResponse(Whole):
    """Response of API key 28: versions 0 to 5; flexible from version 3 on (KIP-482)."""

    throttle_time_ms: int = 0
    topics: list[TxnOffsetCommitResponseTopic] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


TXN_OFFSET_COMMIT_REQUEST_PARTITION_V0 = Message(
    TxnOffsetCommitRequestPartition,
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "committed_metadata" / NullableString,
    versions="0-1",
)

TXN_OFFSET_COMMIT_REQUEST_TOPIC_V0 = Message(
    TxnOffsetCommitRequestTopic,
    "name" / String,
    "partitions" / Array(TXN_OFFSET_COMMIT_REQUEST_PARTITION_V0),
    versions="0-1",
)

TXN_OFFSET_COMMIT_REQUEST_V0 = Message(
    TxnOffsetCommitRequest,
    "transactional_id" / String,
    "group_id" / String,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "topics" / Array(TXN_OFFSET_COMMIT_REQUEST_TOPIC_V0),
    versions="0-1",
    absent=("generation_id", "member_id", "group_instance_id"),
)

TXN_OFFSET_COMMIT_REQUEST_V1 = TXN_OFFSET_COMMIT_REQUEST_V0

TXN_OFFSET_COMMIT_REQUEST_PARTITION_V2 = Message(
    TxnOffsetCommitRequestPartition,
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "committed_leader_epoch" / Int32,
    "committed_metadata" / NullableString,
    versions="2",
)

TXN_OFFSET_COMMIT_REQUEST_TOPIC_V2 = Message(
    TxnOffsetCommitRequestTopic,
    "name" / String,
    "partitions" / Array(TXN_OFFSET_COMMIT_REQUEST_PARTITION_V2),
    versions="2",
)

TXN_OFFSET_COMMIT_REQUEST_V2 = Message(
    TxnOffsetCommitRequest,
    "transactional_id" / String,
    "group_id" / String,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "topics" / Array(TXN_OFFSET_COMMIT_REQUEST_TOPIC_V2),
    versions="2",
    absent=("generation_id", "member_id", "group_instance_id"),
)

TXN_OFFSET_COMMIT_REQUEST_PARTITION_V3 = Message(
    TxnOffsetCommitRequestPartition,
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "committed_leader_epoch" / Int32,
    "committed_metadata" / CompactNullableString,
    Tags(),
    versions="3-5",
)

TXN_OFFSET_COMMIT_REQUEST_TOPIC_V3 = Message(
    TxnOffsetCommitRequestTopic,
    "name" / CompactString,
    "partitions" / CompactArray(TXN_OFFSET_COMMIT_REQUEST_PARTITION_V3),
    Tags(),
    versions="3-5",
)

TXN_OFFSET_COMMIT_REQUEST_V3 = Message(
    TxnOffsetCommitRequest,
    "transactional_id" / CompactString,
    "group_id" / CompactString,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "generation_id" / Int32,
    "member_id" / CompactString,
    "group_instance_id" / CompactNullableString,
    "topics" / CompactArray(TXN_OFFSET_COMMIT_REQUEST_TOPIC_V3),
    Tags(),
    versions="3-5",
)

TXN_OFFSET_COMMIT_REQUEST_V4 = TXN_OFFSET_COMMIT_REQUEST_V3

TXN_OFFSET_COMMIT_REQUEST_V5 = TXN_OFFSET_COMMIT_REQUEST_V3

REQUESTS: dict[int, Message[TxnOffsetCommitRequest]] = {
    0: TXN_OFFSET_COMMIT_REQUEST_V0,
    1: TXN_OFFSET_COMMIT_REQUEST_V1,
    2: TXN_OFFSET_COMMIT_REQUEST_V2,
    3: TXN_OFFSET_COMMIT_REQUEST_V3,
    4: TXN_OFFSET_COMMIT_REQUEST_V4,
    5: TXN_OFFSET_COMMIT_REQUEST_V5,
}
TxnOffsetCommitRequest.layouts = REQUESTS

TXN_OFFSET_COMMIT_RESPONSE_PARTITION_V0 = Message(
    TxnOffsetCommitResponsePartition,
    "partition_index" / Int32,
    "error_code" / Int16,
    versions="0-2",
)

TXN_OFFSET_COMMIT_RESPONSE_TOPIC_V0 = Message(
    TxnOffsetCommitResponseTopic,
    "name" / String,
    "partitions" / Array(TXN_OFFSET_COMMIT_RESPONSE_PARTITION_V0),
    versions="0-2",
)

TXN_OFFSET_COMMIT_RESPONSE_V0 = Message(
    TxnOffsetCommitResponse,
    "throttle_time_ms" / Int32,
    "topics" / Array(TXN_OFFSET_COMMIT_RESPONSE_TOPIC_V0),
    versions="0-2",
)

TXN_OFFSET_COMMIT_RESPONSE_V1 = TXN_OFFSET_COMMIT_RESPONSE_V0

TXN_OFFSET_COMMIT_RESPONSE_V2 = TXN_OFFSET_COMMIT_RESPONSE_V0

TXN_OFFSET_COMMIT_RESPONSE_PARTITION_V3 = Message(
    TxnOffsetCommitResponsePartition,
    "partition_index" / Int32,
    "error_code" / Int16,
    Tags(),
    versions="3-5",
)

TXN_OFFSET_COMMIT_RESPONSE_TOPIC_V3 = Message(
    TxnOffsetCommitResponseTopic,
    "name" / CompactString,
    "partitions" / CompactArray(TXN_OFFSET_COMMIT_RESPONSE_PARTITION_V3),
    Tags(),
    versions="3-5",
)

TXN_OFFSET_COMMIT_RESPONSE_V3 = Message(
    TxnOffsetCommitResponse,
    "throttle_time_ms" / Int32,
    "topics" / CompactArray(TXN_OFFSET_COMMIT_RESPONSE_TOPIC_V3),
    Tags(),
    versions="3-5",
)

TXN_OFFSET_COMMIT_RESPONSE_V4 = TXN_OFFSET_COMMIT_RESPONSE_V3

TXN_OFFSET_COMMIT_RESPONSE_V5 = TXN_OFFSET_COMMIT_RESPONSE_V3

RESPONSES: dict[int, Message[TxnOffsetCommitResponse]] = {
    0: TXN_OFFSET_COMMIT_RESPONSE_V0,
    1: TXN_OFFSET_COMMIT_RESPONSE_V1,
    2: TXN_OFFSET_COMMIT_RESPONSE_V2,
    3: TXN_OFFSET_COMMIT_RESPONSE_V3,
    4: TXN_OFFSET_COMMIT_RESPONSE_V4,
    5: TXN_OFFSET_COMMIT_RESPONSE_V5,
}
TxnOffsetCommitResponse.layouts = RESPONSES
