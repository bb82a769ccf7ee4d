# Generated from schemas/messages/CreatePartitionsRequest.json and CreatePartitionsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""CreatePartitionsRequest and CreatePartitionsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray, CompactNullableArray, NullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactNullableString, CompactString, Int16, Int32, NullableString, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class CreatePartitionsAssignment(Struct):
    """One item of the list ``CreatePartitionsTopic.assignments``."""

    broker_ids: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CreatePartitionsTopic(Struct):
    """One item of the list ``CreatePartitionsRequest.topics``."""

    name: str = ""
    count: int = 0
    assignments: list[CreatePartitionsAssignment] | None = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CreatePartitionsRequest(Whole):
    """Request of API key 37: versions 0 to 3; flexible from version 2 on (KIP-482)."""

    topics: list[CreatePartitionsTopic] = field(default_factory=list)
    timeout_ms: int = 0
    validate_only: bool = False
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CreatePartitionsTopicResult(Struct):
    """One item of the list ``CreatePartitionsResponse.results``."""

    name: str = ""
    error_code: int = 0
    error_message: str | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CreatePartitionsResponse(Whole):
    """Response of API key 37: versions 0 to 3; flexible from version 2 on (KIP-482)."""

    throttle_time_ms: int = 0
    results: list[CreatePartitionsTopicResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


CREATE_PARTITIONS_ASSIGNMENT_V0 = Message(
    CreatePartitionsAssignment,
    "broker_ids" / Array(Int32),
    versions="0-1",
)

CREATE_PARTITIONS_TOPIC_V0 = Message(
    CreatePartitionsTopic,
    "name" / String,
    "count" / Int32,
    "assignments" / NullableArray(CREATE_PARTITIONS_ASSIGNMENT_V0),
    versions="0-1",
)

CREATE_PARTITIONS_REQUEST_V0 = Message(
    CreatePartitionsRequest,
    "topics" / Array(CREATE_PARTITIONS_TOPIC_V0),
    "timeout_ms" / Int32,
    "validate_only" / Bool,
    versions="0-1",
)

CREATE_PARTITIONS_REQUEST_V1 = CREATE_PARTITIONS_REQUEST_V0

CREATE_PARTITIONS_ASSIGNMENT_V2 = Message(
    CreatePartitionsAssignment,
    "broker_ids" / CompactArray(Int32),
    Tags(),
    versions="2-3",
)

CREATE_PARTITIONS_TOPIC_V2 = Message(
    CreatePartitionsTopic,
    "name" / CompactString,
    "count" / Int32,
    "assignments" / CompactNullableArray(CREATE_PARTITIONS_ASSIGNMENT_V2),
    Tags(),
    versions="2-3",
)

CREATE_PARTITIONS_REQUEST_V2 = Message(
    CreatePartitionsRequest,
    "topics" / CompactArray(CREATE_PARTITIONS_TOPIC_V2),
    "timeout_ms" / Int32,
    "validate_only" / Bool,
    Tags(),
    versions="2-3",
)

CREATE_PARTITIONS_REQUEST_V3 = CREATE_PARTITIONS_REQUEST_V2

REQUESTS: dict[int, Message[CreatePartitionsRequest]] = {
    0: CREATE_PARTITIONS_REQUEST_V0,
    1: CREATE_PARTITIONS_REQUEST_V1,
    2: CREATE_PARTITIONS_REQUEST_V2,
    3: CREATE_PARTITIONS_REQUEST_V3,
}
CreatePartitionsRequest.layouts = REQUESTS

CREATE_PARTITIONS_TOPIC_RESULT_V0 = Message(
    CreatePartitionsTopicResult,
    "name" / String,
    "error_code" / Int16,
    "error_message" / NullableString,
    versions="0-1",
)

CREATE_PARTITIONS_RESPONSE_V0 = Message(
    CreatePartitionsResponse,
    "throttle_time_ms" / Int32,
    "results" / Array(CREATE_PARTITIONS_TOPIC_RESULT_V0),
    versions="0-1",
)

CREATE_PARTITIONS_RESPONSE_V1 = CREATE_PARTITIONS_RESPONSE_V0

CREATE_PARTITIONS_TOPIC_RESULT_V2 = Message(
    CreatePartitionsTopicResult,
    "name" / CompactString,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="2-3",
)

CREATE_PARTITIONS_RESPONSE_V2 = Message(
    CreatePartitionsResponse,
    "throttle_time_ms" / Int32,
    "results" / CompactArray(CREATE_PARTITIONS_TOPIC_RESULT_V2),
    Tags(),
    versions="2-3",
)

CREATE_PARTITIONS_RESPONSE_V3 = CREATE_PARTITIONS_RESPONSE_V2

RESPONSES: dict[int, Message[CreatePartitionsResponse]] = {
    0: CREATE_PARTITIONS_RESPONSE_V0,
    1: CREATE_PARTITIONS_RESPONSE_V1,
    2: CREATE_PARTITIONS_RESPONSE_V2,
    3: CREATE_PARTITIONS_RESPONSE_V3,
}
CreatePartitionsResponse.layouts = RESPONSES
