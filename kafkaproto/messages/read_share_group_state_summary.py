# Generated from schemas/messages/ReadShareGroupStateSummaryRequest.json and ReadShareGroupStateSummaryResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ReadShareGroupStateSummaryRequest and ReadShareGroupStateSummaryResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int64, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class PartitionData(Struct):
    """One item of the list ``ReadStateSummaryData.partitions``."""

    partition: int = 0
    leader_epoch: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ReadStateSummaryData(Struct):
    """One item of the list ``ReadShareGroupStateSummaryRequest.topics``."""

    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ReadShareGroupStateSummaryRequest(Whole):
    """Request of API key 87: versions 0 to 1; all flexible (KIP-482)."""

    group_id: str = ""
    topics: list[ReadStateSummaryData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class PartitionResult(Struct):
    """One item of the list ``ReadStateSummaryResult.partitions``."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1  # v1+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ReadStateSummaryResult(Struct):
    """One item of the list ``ReadShareGroupStateSummaryResponse.results``."""

    topic_id: bytes = bytes(16)
    partitions: list[PartitionResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ReadShareGroupStateSummaryResponse(Whole):
    """Response of API key 87: versions 0 to 1; all flexible (KIP-482)."""

    results: list[ReadStateSummaryResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


PARTITION_DATA_V0 = Message(
    PartitionData,
    "partition" / Int32,
    "leader_epoch" / Int32,
    Tags(),
    versions="0-1",
)

READ_STATE_SUMMARY_DATA_V0 = Message(
    ReadStateSummaryData,
    "topic_id" / Uuid,
    "partitions" / CompactArray(PARTITION_DATA_V0),
    Tags(),
    versions="0-1",
)

READ_SHARE_GROUP_STATE_SUMMARY_REQUEST_V0 = Message(
    ReadShareGroupStateSummaryRequest,
    "group_id" / CompactString,
    "topics" / CompactArray(READ_STATE_SUMMARY_DATA_V0),
    Tags(),
    versions="0-1",
)

READ_SHARE_GROUP_STATE_SUMMARY_REQUEST_V1 = READ_SHARE_GROUP_STATE_SUMMARY_REQUEST_V0

REQUESTS: dict[int, Message[ReadShareGroupStateSummaryRequest]] = {
    0: READ_SHARE_GROUP_STATE_SUMMARY_REQUEST_V0,
    1: READ_SHARE_GROUP_STATE_SUMMARY_REQUEST_V1,
}
ReadShareGroupStateSummaryRequest.layouts = REQUESTS

PARTITION_RESULT_V0 = Message(
    PartitionResult,
    "partition" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "state_epoch" / Int32,
    "leader_epoch" / Int32,
    "start_offset" / Int64,
    Tags(),
    versions="0",
)

READ_STATE_SUMMARY_RESULT_V0 = Message(
    ReadStateSummaryResult,
    "topic_id" / Uuid,
    "partitions" / CompactArray(PARTITION_RESULT_V0),
    Tags(),
    versions="0",
)

READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE_V0 = Message(
    ReadShareGroupStateSummaryResponse,
    "results" / CompactArray(READ_STATE_SUMMARY_RESULT_V0),
    Tags(),
    versions="0",
)

PARTITION_RESULT_V1 = Message(
    PartitionResult,
    "partition" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "state_epoch" / Int32,
    "leader_epoch" / Int32,
    "start_offset" / Int64,
    "delivery_complete_count" / Int32,
    Tags(),
    versions="1",
)

READ_STATE_SUMMARY_RESULT_V1 = Message(
    ReadStateSummaryResult,
    "topic_id" / Uuid,
    "partitions" / CompactArray(PARTITION_RESULT_V1),
    Tags(),
    versions="1",
)

READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE_V1 = Message(
    ReadShareGroupStateSummaryResponse,
    "results" / CompactArray(READ_STATE_SUMMARY_RESULT_V1),
    Tags(),
    versions="1",
)

RESPONSES: dict[int, Message[ReadShareGroupStateSummaryResponse]] = {
    0: READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE_V0,
    1: READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE_V1,
}
ReadShareGroupStateSummaryResponse.layouts = RESPONSES
