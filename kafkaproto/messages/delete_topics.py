# Generated from schemas/messages/DeleteTopicsRequest.json and DeleteTopicsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DeleteTopicsRequest and DeleteTopicsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, String, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class DeleteTopicState(Struct):
    """One item of the list ``DeleteTopicsRequest.topics``."""

    name: str | None = None  # v6+
    topic_id: bytes = bytes(16)  # v6+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteTopicsRequest(Whole):
    """Request of API key 20: versions 0 to 6; flexible from version 4 on (KIP-482)."""

    topics: list[DeleteTopicState] = field(default_factory=list)  # v6+
    topic_names: list[str] = field(default_factory=list)  # v0-5, ignorable
    timeout_ms: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeletableTopicResult(Struct):
    """One item of the list ``DeleteTopicsResponse.responses``."""

    name: str | None = ""
    topic_id: bytes = bytes(16)  # v6+, ignorable
    error_code: int = 0
    error_message: str | None = None  # v5+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteTopicsResponse(Whole):
    """Response of API key 20: versions 0 to 6; flexible from version 4 on (KIP-482)."""

    throttle_time_ms: int = 0  # v1+, ignorable
    responses: list[DeletableTopicResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DELETE_TOPICS_REQUEST_V0 = Message(
    DeleteTopicsRequest,
    "topic_names" / Array(String),
    "timeout_ms" / Int32,
    versions="0-3",
    absent=("topics",),
)

DELETE_TOPICS_REQUEST_V1 = DELETE_TOPICS_REQUEST_V0

DELETE_TOPICS_REQUEST_V2 = DELETE_TOPICS_REQUEST_V0

DELETE_TOPICS_REQUEST_V3 = DELETE_TOPICS_REQUEST_V0

DELETE_TOPICS_REQUEST_V4 = Message(
    DeleteTopicsRequest,
    "topic_names" / CompactArray(CompactString),
    "timeout_ms" / Int32,
    Tags(),
    versions="4-5",
    absent=("topics",),
)

DELETE_TOPICS_REQUEST_V5 = DELETE_TOPICS_REQUEST_V4

DELETE_TOPIC_STATE_V6 = Message(
    DeleteTopicState,
    "name" / CompactNullableString,
    "topic_id" / Uuid,
    Tags(),
    versions="6",
)

DELETE_TOPICS_REQUEST_V6 = Message(
    DeleteTopicsRequest,
    "topics" / CompactArray(DELETE_TOPIC_STATE_V6),
    "timeout_ms" / Int32,
    Tags(),
    versions="6",
)

REQUESTS: dict[int, Message[DeleteTopicsRequest]] = {
    0: DELETE_TOPICS_REQUEST_V0,
    1: DELETE_TOPICS_REQUEST_V1,
    2: DELETE_TOPICS_REQUEST_V2,
    3: DELETE_TOPICS_REQUEST_V3,
    4: DELETE_TOPICS_REQUEST_V4,
    5: DELETE_TOPICS_REQUEST_V5,
    6: DELETE_TOPICS_REQUEST_V6,
}
DeleteTopicsRequest.layouts = REQUESTS

DELETABLE_TOPIC_RESULT_V0 = Message(
    DeletableTopicResult,
    "name" / String,
    "error_code" / Int16,
    versions="0-3",
)

DELETE_TOPICS_RESPONSE_V0 = Message(
    DeleteTopicsResponse,
    "responses" / Array(DELETABLE_TOPIC_RESULT_V0),
    versions="0",
)

DELETE_TOPICS_RESPONSE_V1 = Message(
    DeleteTopicsResponse,
    "throttle_time_ms" / Int32,
    "responses" / Array(DELETABLE_TOPIC_RESULT_V0),
    versions="1-3",
)

DELETE_TOPICS_RESPONSE_V2 = DELETE_TOPICS_RESPONSE_V1

DELETE_TOPICS_RESPONSE_V3 = DELETE_TOPICS_RESPONSE_V1

DELETABLE_TOPIC_RESULT_V4 = Message(
    DeletableTopicResult,
    "name" / CompactString,
    "error_code" / Int16,
    Tags(),
    versions="4",
)

DELETE_TOPICS_RESPONSE_V4 = Message(
    DeleteTopicsResponse,
    "throttle_time_ms" / Int32,
    "responses" / CompactArray(DELETABLE_TOPIC_RESULT_V4),
    Tags(),
    versions="4",
)

DELETABLE_TOPIC_RESULT_V5 = Message(
    DeletableTopicResult,
    "name" / CompactString,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="5",
)

DELETE_TOPICS_RESPONSE_V5 = Message(
    DeleteTopicsResponse,
    "throttle_time_ms" / Int32,
    "responses" / CompactArray(DELETABLE_TOPIC_RESULT_V5),
    Tags(),
    versions="5",
)

DELETABLE_TOPIC_RESULT_V6 = Message(
    DeletableTopicResult,
    "name" / CompactNullableString,
    "topic_id" / Uuid,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="6",
)

DELETE_TOPICS_RESPONSE_V6 = Message(
    DeleteTopicsResponse,
    "throttle_time_ms" / Int32,
    "responses" / CompactArray(DELETABLE_TOPIC_RESULT_V6),
    Tags(),
    versions="6",
)

RESPONSES: dict[int, Message[DeleteTopicsResponse]] = {
    0: DELETE_TOPICS_RESPONSE_V0,
    1: DELETE_TOPICS_RESPONSE_V1,
    2: DELETE_TOPICS_RESPONSE_V2,
    3: DELETE_TOPICS_RESPONSE_V3,
    4: DELETE_TOPICS_RESPONSE_V4,
    5: DELETE_TOPICS_RESPONSE_V5,
    6: DELETE_TOPICS_RESPONSE_V6,
}
DeleteTopicsResponse.layouts = RESPONSES
