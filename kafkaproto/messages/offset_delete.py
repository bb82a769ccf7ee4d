# Generated from schemas/messages/OffsetDeleteRequest.json and OffsetDeleteResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""OffsetDeleteRequest and OffsetDeleteResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array
from kafkaproto.message import Message
from kafkaproto.primitives import Int16, Int32, String
from kafkaproto.structs import Struct, Whole


@dataclass(slots=True, eq=False, repr=False)
class OffsetDeleteRequestPartition(Struct):
    """One item of the list ``OffsetDeleteRequestTopic.partitions``."""

    partition_index: int = 0


@dataclass(slots=True, eq=False, repr=False)
class OffsetDeleteRequestTopic(Struct):
    """One item of the list ``OffsetDeleteRequest.topics``."""

    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class OffsetDeleteRequest(Whole):
    """Request of API key 47: version 0; not flexible (KIP-482)."""

    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class OffsetDeleteResponsePartition(Struct):
    """One item of the list ``OffsetDeleteResponseTopic.partitions``."""

    partition_index: int = 0
    error_code: int = 0


@dataclass(slots=True, eq=False, repr=False)
class OffsetDeleteResponseTopic(Struct):
    """One item of the list ``OffsetDeleteResponse.topics``."""

    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class OffsetDeleteResponse(Whole):
    """Response of API key 47: version 0; not flexible (KIP-482)."""

    error_code: int = 0
    throttle_time_ms: int = 0  # ignorable
    topics: list[OffsetDeleteResponseTopic] = field(default_factory=list)


OFFSET_DELETE_REQUEST_PARTITION_V0 = Message(
    OffsetDeleteRequestPartition,
    "partition_index" / Int32,
    versions="0",
)

OFFSET_DELETE_REQUEST_TOPIC_V0 = Message(
    OffsetDeleteRequestTopic,
    "name" / String,
    "partitions" / Array(OFFSET_DELETE_REQUEST_PARTITION_V0),
    versions="0",
)

OFFSET_DELETE_REQUEST_V0 = Message(
    OffsetDeleteRequest,
    "group_id" / String,
    "topics" / Array(OFFSET_DELETE_REQUEST_TOPIC_V0),
    versions="0",
)

REQUESTS: dict[int, Message[OffsetDeleteRequest]] = {
    0: OFFSET_DELETE_REQUEST_V0,
}
OffsetDeleteRequest.layouts = REQUESTS

OFFSET_DELETE_RESPONSE_PARTITION_V0 = Message(
    OffsetDeleteResponsePartition,
    "partition_index" / Int32,
    "error_code" / Int16,
    versions="0",
)

OFFSET_DELETE_RESPONSE_TOPIC_V0 = Message(
    OffsetDeleteResponseTopic,
    "name" / String,
    "partitions" / Array(OFFSET_DELETE_RESPONSE_PARTITION_V0),
    versions="0",
)

OFFSET_DELETE_RESPONSE_V0 = Message(
    OffsetDeleteResponse,
    "error_code" / Int16,
    "throttle_time_ms" / Int32,
    "topics" / Array(OFFSET_DELETE_RESPONSE_TOPIC_V0),
    versions="0",
)

RESPONSES: dict[int, Message[OffsetDeleteResponse]] = {
    0: OFFSET_DELETE_RESPONSE_V0,
}
OffsetDeleteResponse.layouts = RESPONSES
