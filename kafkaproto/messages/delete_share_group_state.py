# Generated from schemas/messages/DeleteShareGroupStateRequest.json and DeleteShareGroupStateResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DeleteShareGroupStateRequest and DeleteShareGroupStateResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class PartitionData(Struct):
    """One item of the list ``DeleteStateData.partitions``."""

    partition: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteStateData(Struct):
    """One item of the list ``DeleteShareGroupStateRequest.topics``."""

    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteShareGroupStateRequest(Whole):
    """Request of API key 86: version 0; flexible (KIP-482)."""

    group_id: str = ""
    topics: list[DeleteStateData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class PartitionResult(Struct):
    """One item of the list ``DeleteStateResult.partitions``."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteStateResult(Struct):
    """One item of the list ``DeleteShareGroupStateResponse.results``."""

    topic_id: bytes = bytes(16)
    partitions: list[PartitionResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteShareGroupStateResponse(Whole):
    """Response of API key 86: version 0; flexible (KIP-482)."""

    results: list[DeleteStateResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


PARTITION_DATA_V0 = Message(
    PartitionData,
    "partition" / Int32,
    Tags(),
    versions="0",
)

DELETE_STATE_DATA_V0 = Message(
    DeleteStateData,
    "topic_id" / Uuid,
    "partitions" / CompactArray(PARTITION_DATA_V0),
    Tags(),
    versions="0",
)

DELETE_SHARE_GROUP_STATE_REQUEST_V0 = Message(
    DeleteShareGroupStateRequest,
    "group_id" / CompactString,
    "topics" / CompactArray(DELETE_STATE_DATA_V0),
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[DeleteShareGroupStateRequest]] = {
    0: DELETE_SHARE_GROUP_STATE_REQUEST_V0,
}
DeleteShareGroupStateRequest.layouts = REQUESTS

PARTITION_RESULT_V0 = Message(
    PartitionResult,
    "partition" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="0",
)

DELETE_STATE_RESULT_V0 = Message(
    DeleteStateResult,
    "topic_id" / Uuid,
    "partitions" / CompactArray(PARTITION_RESULT_V0),
    Tags(),
    versions="0",
)

DELETE_SHARE_GROUP_STATE_RESPONSE_V0 = Message(
    DeleteShareGroupStateResponse,
    "results" / CompactArray(DELETE_STATE_RESULT_V0),
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[DeleteShareGroupStateResponse]] = {
    0: DELETE_SHARE_GROUP_STATE_RESPONSE_V0,
}
DeleteShareGroupStateResponse.layouts = RESPONSES
