# Generated from schemas/messages/AlterPartitionReassignmentsRequest.json and AlterPartitionReassignmentsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""AlterPartitionReassignmentsRequest and AlterPartitionReassignmentsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray, CompactNullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactNullableString, CompactString, Int16, Int32
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ReassignablePartition(Struct):
    """One item of the list ``ReassignableTopic.partitions``."""

    partition_index: int = 0
    replicas: list[int] | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ReassignableTopic(Struct):
    """One item of the list ``AlterPartitionReassignmentsRequest.topics``."""

    name: str = ""
    partitions: list[ReassignablePartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterPartitionReassignmentsRequest(Whole):
    """Request of API key 45: versions 0 to 1; all flexible (KIP-482)."""

    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True  # v1+
    topics: list[ReassignableTopic] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ReassignablePartitionResponse(Struct):
    """One item of the list ``ReassignableTopicResponse.partitions``."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ReassignableTopicResponse(Struct):
    """One item of the list ``AlterPartitionReassignmentsResponse.responses``."""

    name: str = ""
    partitions: list[ReassignablePartitionResponse] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterPartitionReassignmentsResponse(Whole):
    """Response of API key 45: versions 0 to 1; all flexible (KIP-482)."""

    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True  # v1+, ignorable
    error_code: int = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


REASSIGNABLE_PARTITION_V0 = Message(
    ReassignablePartition,
    "partition_index" / Int32,
    "replicas" / CompactNullableArray(Int32),
    Tags(),
    versions="0-1",
)

REASSIGNABLE_TOPIC_V0 = Message(
    ReassignableTopic,
    "name" / CompactString,
    "partitions" / CompactArray(REASSIGNABLE_PARTITION_V0),
    Tags(),
    versions="0-1",
)

ALTER_PARTITION_REASSIGNMENTS_REQUEST_V0 = Message(
    AlterPartitionReassignmentsRequest,
    "timeout_ms" / Int32,
    "topics" / CompactArray(REASSIGNABLE_TOPIC_V0),
    Tags(),
    versions="0",
    absent=("allow_replication_factor_change",),
)

ALTER_PARTITION_REASSIGNMENTS_REQUEST_V1 = Message(
    AlterPartitionReassignmentsRequest,
    "timeout_ms" / Int32,
    "allow_replication_factor_change" / Bool,
    "topics" / CompactArray(REASSIGNABLE_TOPIC_V0),
    Tags(),
    versions="1",
)

REQUESTS: dict[int, Message[AlterPartitionReassignmentsRequest]] = {
    0: ALTER_PARTITION_REASSIGNMENTS_REQUEST_V0,
    1: ALTER_PARTITION_REASSIGNMENTS_REQUEST_V1,
}
AlterPartitionReassignmentsRequest.layouts = REQUESTS

REASSIGNABLE_PARTITION_RESPONSE_V0 = Message(
    ReassignablePartitionResponse,
    "partition_index" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="0-1",
)

REASSIGNABLE_TOPIC_RESPONSE_V0 = Message(
    ReassignableTopicResponse,
    "name" / CompactString,
    "partitions" / CompactArray(REASSIGNABLE_PARTITION_RESPONSE_V0),
    Tags(),
    versions="0-1",
)

ALTER_PARTITION_REASSIGNMENTS_RESPONSE_V0 = Message(
    AlterPartitionReassignmentsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "responses" / CompactArray(REASSIGNABLE_TOPIC_RESPONSE_V0),
    Tags(),
    versions="0",
)

ALTER_PARTITION_REASSIGNMENTS_RESPONSE_V1 = Message(
    AlterPartitionReassignmentsResponse,
    "throttle_time_ms" / Int32,
    "allow_replication_factor_change" / Bool,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "responses" / CompactArray(REASSIGNABLE_TOPIC_RESPONSE_V0),
    Tags(),
    versions="1",
)

RESPONSES: dict[int, Message[AlterPartitionReassignmentsResponse]] = {
    0: ALTER_PARTITION_REASSIGNMENTS_RESPONSE_V0,
    1: ALTER_PARTITION_REASSIGNMENTS_RESPONSE_V1,
}
AlterPartitionReassignmentsResponse.layouts = RESPONSES
