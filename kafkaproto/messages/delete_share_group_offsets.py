# Generated from schemas/messages/DeleteShareGroupOffsetsRequest.json and DeleteShareGroupOffsetsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DeleteShareGroupOffsetsRequest and DeleteShareGroupOffsetsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class DeleteShareGroupOffsetsRequestTopic(Struct):
    """One item of the list ``DeleteShareGroupOffsetsRequest.topics``."""

    topic_name: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteShareGroupOffsetsRequest(Whole):
    """Request of API key 92: version 0; flexible (KIP-482)."""

    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteShareGroupOffsetsResponseTopic(Struct):
    """One item of the list ``DeleteShareGroupOffsetsResponse.responses``."""

    topic_name: str = ""
    topic_id: bytes = bytes(16)
    error_code: int = 0
    error_message: str | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteShareGroupOffsetsResponse(Whole):
    """Response of API key 92: version 0; flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DELETE_SHARE_GROUP_OFFSETS_REQUEST_TOPIC_V0 = Message(
    DeleteShareGroupOffsetsRequestTopic,
    "topic_name" / CompactString,
    Tags(),
    versions="0",
)

DELETE_SHARE_GROUP_OFFSETS_REQUEST_V0 = Message(
    DeleteShareGroupOffsetsRequest,
    "group_id" / CompactString,
    "topics" / CompactArray(DELETE_SHARE_GROUP_OFFSETS_REQUEST_TOPIC_V0),
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[DeleteShareGroupOffsetsRequest]] = {
    0: DELETE_SHARE_GROUP_OFFSETS_REQUEST_V0,
}
DeleteShareGroupOffsetsRequest.layouts = REQUESTS

DELETE_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC_V0 = Message(
    DeleteShareGroupOffsetsResponseTopic,
    "topic_name" / CompactString,
    "topic_id" / Uuid,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="0",
)

DELETE_SHARE_GROUP_OFFSETS_RESPONSE_V0 = Message(
    DeleteShareGroupOffsetsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "responses" / CompactArray(DELETE_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC_V0),
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[DeleteShareGroupOffsetsResponse]] = {
    0: DELETE_SHARE_GROUP_OFFSETS_RESPONSE_V0,
}
DeleteShareGroupOffsetsResponse.layouts = RESPONSES
