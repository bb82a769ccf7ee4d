# Generated from schemas/messages/LeaveGroupRequest.json and LeaveGroupResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""LeaveGroupRequest and LeaveGroupResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, NullableString, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class MemberIdentity(Struct):
    """One item of the list ``LeaveGroupRequest.members``."""

    member_id: str = ""  # v3+
    group_instance_id: str | None = None  # v3+
    reason: str | None = None  # v5+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class LeaveGroupRequest(Whole):
    """Request of API key 13: versions 0 to 5; flexible from version 4 on (KIP-482)."""

    group_id: str = ""
    member_id: str = ""  # v0-2
    members: list[MemberIdentity] = field(default_factory=list)  # v3+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class MemberResponse(Struct):
    """One item of the list ``LeaveGroupResponse.members``."""

    member_id: str = ""  # v3+
    group_instance_id: str | None = ""  # v3+
    error_code: int = 0  # v3+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class LeaveGroupResponse(Whole):
    """Response of API key 13: versions 0 to 5; flexible from version 4 on (KIP-482)."""

    throttle_time_ms: int = 0  # v1+, ignorable
    error_code: int = 0
    members: list[MemberResponse] = field(default_factory=list)  # v3+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


LEAVE_GROUP_REQUEST_V0 = Message(
    LeaveGroupRequest,
    "group_id" / String,
    "member_id" / String,
    versions="0-2",
    absent=("members",),
)

LEAVE_GROUP_REQUEST_V1 = LEAVE_GROUP_REQUEST_V0

LEAVE_GROUP_REQUEST_V2 = LEAVE_GROUP_REQUEST_V0

MEMBER_IDENTITY_V3 = Message(
    MemberIdentity,
    "member_id" / String,
    "group_instance_id" / NullableString,
    versions="3",
)

LEAVE_GROUP_REQUEST_V3 = Message(
    LeaveGroupRequest,
    "group_id" / String,
    "members" / Array(MEMBER_IDENTITY_V3),
    versions="3",
    absent=("member_id",),
)

MEMBER_IDENTITY_V4 = Message(
    MemberIdentity,
    "member_id" / CompactString,
    "group_instance_id" / CompactNullableString,
    Tags(),
    versions="4",
)

LEAVE_GROUP_REQUEST_V4 = Message(
    LeaveGroupRequest,
    "group_id" / CompactString,
    "members" / CompactArray(MEMBER_IDENTITY_V4),
    Tags(),
    versions="4",
    absent=("member_id",),
)

MEMBER_IDENTITY_V5 = Message(
    MemberIdentity,
    "member_id" / CompactString,
    "group_instance_id" / CompactNullableString,
    "reason" / CompactNullableString,
    Tags(),
    versions="5",
)

LEAVE_GROUP_REQUEST_V5 = Message(
    LeaveGroupRequest,
    "group_id" / CompactString,
    "members" / CompactArray(MEMBER_IDENTITY_V5),
    Tags(),
    versions="5",
    absent=("member_id",),
)

REQUESTS: dict[int, Message[LeaveGroupRequest]] = {
    0: LEAVE_GROUP_REQUEST_V0,
    1: LEAVE_GROUP_REQUEST_V1,
    2: LEAVE_GROUP_REQUEST_V2,
    3: LEAVE_GROUP_REQUEST_V3,
    4: LEAVE_GROUP_REQUEST_V4,
    5: LEAVE_GROUP_REQUEST_V5,
}
LeaveGroupRequest.layouts = REQUESTS

LEAVE_GROUP_RESPONSE_V0 = Message(
    LeaveGroupResponse,
    "error_code" / Int16,
    versions="0",
    absent=("members",),
)

LEAVE_GROUP_RESPONSE_V1 = Message(
    LeaveGroupResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    versions="1-2",
    absent=("members",),
)

LEAVE_GROUP_RESPONSE_V2 = LEAVE_GROUP_RESPONSE_V1

MEMBER_RESPONSE_V3 = Message(
    MemberResponse,
    "member_id" / String,
    "group_instance_id" / NullableString,
    "error_code" / Int16,
    versions="3",
)

LEAVE_GROUP_RESPONSE_V3 = Message(
    LeaveGroupResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "members" / Array(MEMBER_RESPONSE_V3),
    versions="3",
)

MEMBER_RESPONSE_V4 = Message(
    MemberResponse,
    "member_id" / CompactString,
    "group_instance_id" / CompactNullableString,
    "error_code" / Int16,
    Tags(),
    versions="4-5",
)

LEAVE_GROUP_RESPONSE_V4 = Message(
    LeaveGroupResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "members" / CompactArray(MEMBER_RESPONSE_V4),
    Tags(),
    versions="4-5",
)

LEAVE_GROUP_RESPONSE_V5 = LEAVE_GROUP_RESPONSE_V4

RESPONSES: dict[int, Message[LeaveGroupResponse]] = {
    0: LEAVE_GROUP_RESPONSE_V0,
    1: LEAVE_GROUP_RESPONSE_V1,
    2: LEAVE_GROUP_RESPONSE_V2,
    3: LEAVE_GROUP_RESPONSE_V3,
    4: LEAVE_GROUP_RESPONSE_V4,
    5: LEAVE_GROUP_RESPONSE_V5,
}
LeaveGroupResponse.layouts = RESPONSES
