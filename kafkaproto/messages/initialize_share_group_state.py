# Generated from schemas/messages/InitializeShareGroupStateRequest.json and InitializeShareGroupStateResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""InitializeShareGroupStateRequest and InitializeShareGroupStateResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int64, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class PartitionData(Struct):
    """One item of the list ``InitializeStateData.partitions``."""

    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class InitializeStateData(Struct):
    """One item of the list ``InitializeShareGroupStateRequest.topics``."""

    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class InitializeShareGroupStateRequest(Whole):
    """Request of API key 83: version 0; flexible (KIP-482)."""

    group_id: str = ""
    topics: list[InitializeStateData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class PartitionResult(Struct):
    """One item of the list ``InitializeStateResult.partitions``."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class InitializeStateResult(Struct):
    """One item of the list ``InitializeShareGroupStateResponse.results``."""

    topic_id: bytes = bytes(16)
    partitions: list[PartitionResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class InitializeShareGroupStateResponse(Whole):
    """Response of API key 83: version 0; flexible (KIP-482)."""

    results: list[InitializeStateResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


PARTITION_DATA_V0 = Message(
    PartitionData,
    "partition" / Int32,
    "state_epoch" / Int32,
    "start_offset" / Int64,
    Tags(),
    versions="0",
)

INITIALIZE_STATE_DATA_V0 = Message(
    InitializeStateData,
    "topic_id" / Uuid,
    "partitions" / CompactArray(PARTITION_DATA_V0),
    Tags(),
    versions="0",
)

INITIALIZE_SHARE_GROUP_STATE_REQUEST_V0 = Message(
    InitializeShareGroupStateRequest,
    "group_id" / CompactString,
    "topics" / CompactArray(INITIALIZE_STATE_DATA_V0),
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[InitializeShareGroupStateRequest]] = {
    0: INITIALIZE_SHARE_GROUP_STATE_REQUEST_V0,
}
InitializeShareGroupStateRequest.layouts = REQUESTS

PARTITION_RESULT_V0 = Message(
    PartitionResult,
    "partition" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="0",
)

INITIALIZE_STATE_RESULT_V0 = Message(
    InitializeStateResult,
    "topic_id" / Uuid,
    "partitions" / CompactArray(PARTITION_RESULT_V0),
    Tags(),
    versions="0",
)

INITIALIZE_SHARE_GROUP_STATE_RESPONSE_V0 = Message(
    InitializeShareGroupStateResponse,
    "results" / CompactArray(INITIALIZE_STATE_RESULT_V0),
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[InitializeShareGroupStateResponse]] = {
    0: INITIALIZE_SHARE_GROUP_STATE_RESPONSE_V0,
}
InitializeShareGroupStateResponse.layouts = RESPONSES
