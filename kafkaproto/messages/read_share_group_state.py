# Generated from schemas/messages/ReadShareGroupStateRequest.json and ReadShareGroupStateResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ReadShareGroupStateRequest and ReadShareGroupStateResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int64, Int8, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class PartitionData(Struct):
    """One item of the list ``ReadStateData.partitions``."""

    partition: int = 0
    leader_epoch: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ReadStateData(Struct):
    """One item of the list ``ReadShareGroupStateRequest.topics``."""

    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ReadShareGroupStateRequest(Whole):
    """Request of API key 84: version 0; flexible (KIP-482)."""

    group_id: str = ""
    topics: list[ReadStateData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class StateBatch(Struct):
    """One item of the list ``PartitionResult.state_batches``."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class PartitionResult(Struct):
    """One item of the list ``ReadStateResult.partitions``."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: list[StateBatch] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ReadStateResult(Struct):
    """One item of the list ``ReadShareGroupStateResponse.results``."""

    topic_id: bytes = bytes(16)
    partitions: list[PartitionResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ReadShareGroupStateResponse(Whole):
    """Response of API key 84: version 0; flexible (KIP-482)."""

    results: list[ReadStateResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


PARTITION_DATA_V0 = Message(
    PartitionData,
    "partition" / Int32,
    "leader_epoch" / Int32,
    Tags(),
    versions="0",
)

READ_STATE_DATA_V0 = Message(
    ReadStateData,
    "topic_id" / Uuid,
    "partitions" / CompactArray(PARTITION_DATA_V0),
    Tags(),
    versions="0",
)

READ_SHARE_GROUP_STATE_REQUEST_V0 = Message(
    ReadShareGroupStateRequest,
    "group_id" / CompactString,
    "topics" / CompactArray(READ_STATE_DATA_V0),
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[ReadShareGroupStateRequest]] = {
    0: READ_SHARE_GROUP_STATE_REQUEST_V0,
}
ReadShareGroupStateRequest.layouts = REQUESTS

STATE_BATCH_V0 = Message(
    StateBatch,
    "first_offset" / Int64,
    "last_offset" / Int64,
    "delivery_state" / Int8,
    "delivery_count" / Int16,
    Tags(),
    versions="0",
)

PARTITION_RESULT_V0 = Message(
    PartitionResult,
    "partition" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "state_epoch" / Int32,
    "start_offset" / Int64,
    "state_batches" / CompactArray(STATE_BATCH_V0),
    Tags(),
    versions="0",
)

READ_STATE_RESULT_V0 = Message(
    ReadStateResult,
    "topic_id" / Uuid,
    "partitions" / CompactArray(PARTITION_RESULT_V0),
    Tags(),
    versions="0",
)

READ_SHARE_GROUP_STATE_RESPONSE_V0 = Message(
    ReadShareGroupStateResponse,
    "results" / CompactArray(READ_STATE_RESULT_V0),
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[ReadShareGroupStateResponse]] = {
    0: READ_SHARE_GROUP_STATE_RESPONSE_V0,
}
ReadShareGroupStateResponse.layouts = RESPONSES
