# Generated from schemas/messages/SyncGroupRequest.json and SyncGroupResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""SyncGroupRequest and SyncGroupResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import (
    Bytes,
    CompactBytes,
    CompactNullableString,
    CompactString,
    Int16,
    Int32,
    NullableString,
    String,
)
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class SyncGroupRequestAssignment(Struct):
    """One item of the list ``SyncGroupRequest.assignments``."""

    member_id: str = ""
    assignment: bytes = b""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class SyncGroupRequest(Whole):
    """Request of API key 14: versions 0 to 5; flexible from version 4 on (KIP-482)."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None  # v3+
    protocol_type: str | None = None  # v5+, ignorable
    protocol_name: str | None = None  # v5+, ignorable
    assignments: list[SyncGroupRequestAssignment] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class SyncGroupResponse(Whole):
    """Response of API key 14: versions 0 to 5; flexible from version 4 on (KIP-482)."""

    throttle_time_ms: int = 0  # v1+, ignorable
    error_code: int = 0
    protocol_type: str | None = None  # v5+, ignorable
    protocol_name: str | None = None  # v5+, ignorable
    assignment: bytes = b""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


SYNC_GROUP_REQUEST_ASSIGNMENT_V0 = Message(
    SyncGroupRequestAssignment,
    "member_id" / String,
    "assignment" / Bytes,
    versions="0-3",
)

SYNC_GROUP_REQUEST_V0 = Message(
    SyncGroupRequest,
    "group_id" / String,
    "generation_id" / Int32,
    "member_id" / String,
    "assignments" / Array(SYNC_GROUP_REQUEST_ASSIGNMENT_V0),
    versions="0-2",
    absent=("group_instance_id",),
)

SYNC_GROUP_REQUEST_V1 = SYNC_GROUP_REQUEST_V0

SYNC_GROUP_REQUEST_V2 = SYNC_GROUP_REQUEST_V0

SYNC_GROUP_REQUEST_V3 = Message(
    SyncGroupRequest,
    "group_id" / String,
    "generation_id" / Int32,
    "member_id" / String,
    "group_instance_id" / NullableString,
    "assignments" / Array(SYNC_GROUP_REQUEST_ASSIGNMENT_V0),
    versions="3",
)

SYNC_GROUP_REQUEST_ASSIGNMENT_V4 = Message(
    SyncGroupRequestAssignment,
    "member_id" / CompactString,
    "assignment" / CompactBytes,
    Tags(),
    versions="4-5",
)

SYNC_GROUP_REQUEST_V4 = Message(
    SyncGroupRequest,
    "group_id" / CompactString,
    "generation_id" / Int32,
    "member_id" / CompactString,
    "group_instance_id" / CompactNullableString,
    "assignments" / CompactArray(SYNC_GROUP_REQUEST_ASSIGNMENT_V4),
    Tags(),
    versions="4",
)

SYNC_GROUP_REQUEST_V5 = Message(
    SyncGroupRequest,
    "group_id" / CompactString,
    "generation_id" / Int32,
    "member_id" / CompactString,
    "group_instance_id" / CompactNullableString,
    "protocol_type" / CompactNullableString,
    "protocol_name" / CompactNullableString,
    "assignments" / CompactArray(SYNC_GROUP_REQUEST_ASSIGNMENT_V4),
    Tags(),
    versions="5",
)

REQUESTS: dict[int, Message[SyncGroupRequest]] = {
    0: SYNC_GROUP_REQUEST_V0,
    1: SYNC_GROUP_REQUEST_V1,
    2: SYNC_GROUP_REQUEST_V2,
    3: SYNC_GROUP_REQUEST_V3,
    4: SYNC_GROUP_REQUEST_V4,
    5: SYNC_GROUP_REQUEST_V5,
}
SyncGroupRequest.layouts = REQUESTS

SYNC_GROUP_RESPONSE_V0 = Message(
    SyncGroupResponse,
    "error_code" / Int16,
    "assignment" / Bytes,
    versions="0",
)

SYNC_GROUP_RESPONSE_V1 = Message(
    SyncGroupResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "assignment" / Bytes,
    versions="1-3",
)

SYNC_GROUP_RESPONSE_V2 = SYNC_GROUP_RESPONSE_V1

SYNC_GROUP_RESPONSE_V3 = SYNC_GROUP_RESPONSE_V1

SYNC_GROUP_RESPONSE_V4 = Message(
    SyncGroupResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "assignment" / CompactBytes,
    Tags(),
    versions="4",
)

SYNC_GROUP_RESPONSE_V5 = Message(
    SyncGroupResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "protocol_type" / CompactNullableString,
    "protocol_name" / CompactNullableString,
    "assignment" / CompactBytes,
    Tags(),
    versions="5",
)

RESPONSES: dict[int, Message[SyncGroupResponse]] = {
    0: SYNC_GROUP_RESPONSE_V0,
    1: SYNC_GROUP_RESPONSE_V1,
    2: SYNC_GROUP_RESPONSE_V2,
    3: SYNC_GROUP_RESPONSE_V3,
    4: SYNC_GROUP_RESPONSE_V4,
    5: SYNC_GROUP_RESPONSE_V5,
}
SyncGroupResponse.layouts = RESPONSES
