# Generated from schemas/messages/ListPartitionReassignmentsRequest.json and ListPartitionReassignmentsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ListPartitionReassignmentsRequest and ListPartitionReassignmentsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray, CompactNullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ListPartitionReassignmentsTopics(Struct):
    """One item of the list ``ListPartitionReassignmentsRequest.topics``."""

    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ListPartitionReassignmentsRequest(Whole):
    """Request of API key 46: version 0; flexible (KIP-482)."""

    timeout_ms: int = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OngoingPartitionReassignment(Struct):
    """One item of the list ``OngoingTopicReassignment.partitions``."""

    partition_index: int = 0
    replicas: list[int] = field(default_factory=list)
    adding_replicas: list[int] = field(default_factory=list)
    removing_replicas: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OngoingTopicReassignment(Struct):
    """One item of the list ``ListPartitionReassignmentsResponse.topics``."""

    name: str = ""
    partitions: list[OngoingPartitionReassignment] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ListPartitionReassignmentsResponse(Whole):
    """Response of API key 46: version 0; flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: list[OngoingTopicReassignment] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


LIST_PARTITION_REASSIGNMENTS_TOPICS_V0 = Message(
    ListPartitionReassignmentsTopics,
    "name" / CompactString,
    "partition_indexes" / CompactArray(Int32),
    Tags(),
    versions="0",
)

LIST_PARTITION_REASSIGNMENTS_REQUEST_V0 = Message(
    ListPartitionReassignmentsRequest,
    "timeout_ms" / Int32,
    "topics" / CompactNullableArray(LIST_PARTITION_REASSIGNMENTS_TOPICS_V0),
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[ListPartitionReassignmentsRequest]] = {
    0: LIST_PARTITION_REASSIGNMENTS_REQUEST_V0,
}
ListPartitionReassignmentsRequest.layouts = REQUESTS

ONGOING_PARTITION_REASSIGNMENT_V0 = Message(
    OngoingPartitionReassignment,
    "partition_index" / Int32,
    "replicas" / CompactArray(Int32),
    "adding_replicas" / CompactArray(Int32),
    "removing_replicas" / CompactArray(Int32),
    Tags(),
    versions="0",
)

ONGOING_TOPIC_REASSIGNMENT_V0 = Message(
    OngoingTopicReassignment,
    "name" / CompactString,
    "partitions" / CompactArray(ONGOING_PARTITION_REASSIGNMENT_V0),
    Tags(),
    versions="0",
)

LIST_PARTITION_REASSIGNMENTS_RESPONSE_V0 = Message(
    ListPartitionReassignmentsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "topics" / CompactArray(ONGOING_TOPIC_REASSIGNMENT_V0),
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[ListPartitionReassignmentsResponse]] = {
    0: LIST_PARTITION_REASSIGNMENTS_RESPONSE_V0,
}
ListPartitionReassignmentsResponse.layouts = RESPONSES
