# Generated from schemas/messages/WriteShareGroupStateRequest.json and WriteShareGroupStateResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""WriteShareGroupStateRequest and WriteShareGroupStateResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int64, Int8, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class StateBatch(Struct):
    """One item of the list ``PartitionData.state_batches``."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class PartitionData(Struct):
    """One item of the list ``WriteStateData.partitions``."""

    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1  # v1+, ignorable
    state_batches: list[StateBatch] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class WriteStateData(Struct):
    """One item of the list ``WriteShareGroupStateRequest.topics``."""

    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class WriteShareGroupStateRequest(Whole):
    """Request of API key 85: versions 0 to 1; all flexible (KIP-482)."""

    group_id: str = ""
    topics: list[WriteStateData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class PartitionResult(Struct):
    """One item of the list ``WriteStateResult.partitions``."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class WriteStateResult(Struct):
    """One item of the list ``WriteShareGroupStateResponse.results``."""

    topic_id: bytes = bytes(16)
    partitions: list[PartitionResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class WriteShareGroupStateResponse(Whole):
    """Response of API key 85: versions 0 to 1; all flexible (KIP-482)."""

    results: list[WriteStateResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


STATE_BATCH_V0 = Message(
    StateBatch,
    "first_offset" / Int64,
    "last_offset" / Int64,
    "delivery_state" / Int8,
    "delivery_count" / Int16,
    Tags(),
    versions="0-1",
)

PARTITION_DATA_V0 = Message(
    PartitionData,
    "partition" / Int32,
    "state_epoch" / Int32,
    "leader_epoch" / Int32,
    "start_offset" / Int64,
    "state_batches" / CompactArray(STATE_BATCH_V0),
    Tags(),
    versions="0",
)

WRITE_STATE_DATA_V0 = Message(
    WriteStateData,
    "topic_id" / Uuid,
    "partitions" / CompactArray(PARTITION_DATA_V0),
    Tags(),
    versions="0",
)

WRITE_SHARE_GROUP_STATE_REQUEST_V0 = Message(
    WriteShareGroupStateRequest,
    "group_id" / CompactString,
    "topics" / CompactArray(WRITE_STATE_DATA_V0),
    Tags(),
    versions="0",
)

PARTITION_DATA_V1 = Message(
    PartitionData,
    "partition" / Int32,
    "state_epoch" / Int32,
    "leader_epoch" / Int32,
    "start_offset" / Int64,
    "delivery_complete_count" / Int32,
    "state_batches" / CompactArray(STATE_BATCH_V0),
    Tags(),
    versions="1",
)

WRITE_STATE_DATA_V1 = Message(
    WriteStateData,
    "topic_id" / Uuid,
    "partitions" / CompactArray(PARTITION_DATA_V1),
    Tags(),
    versions="1",
)

WRITE_SHARE_GROUP_STATE_REQUEST_V1 = Message(
    WriteShareGroupStateRequest,
    "group_id" / CompactString,
    "topics" / CompactArray(WRITE_STATE_DATA_V1),
    Tags(),
    versions="1",
)

REQUESTS: dict[int, Message[WriteShareGroupStateRequest]] = {
    0: WRITE_SHARE_GROUP_STATE_REQUEST_V0,
    1: WRITE_SHARE_GROUP_STATE_REQUEST_V1,
}
WriteShareGroupStateRequest.layouts = REQUESTS

PARTITION_RESULT_V0 = Message(
    PartitionResult,
    "partition" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="0-1",
)

WRITE_STATE_RESULT_V0 = Message(
    WriteStateResult,
    "topic_id" / Uuid,
    "partitions" / CompactArray(PARTITION_RESULT_V0),
    Tags(),
    versions="0-1",
)

WRITE_SHARE_GROUP_STATE_RESPONSE_V0 = Message(
    WriteShareGroupStateResponse,
    "results" / CompactArray(WRITE_STATE_RESULT_V0),
    Tags(),
    versions="0-1",
)

WRITE_SHARE_GROUP_STATE_RESPONSE_V1 = WRITE_SHARE_GROUP_STATE_RESPONSE_V0

RESPONSES: dict[int, Message[WriteShareGroupStateResponse]] = {
    0: WRITE_SHARE_GROUP_STATE_RESPONSE_V0,
    1: WRITE_SHARE_GROUP_STATE_RESPONSE_V1,
}
WriteShareGroupStateResponse.layouts = RESPONSES
