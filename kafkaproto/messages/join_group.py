# Generated from schemas/messages/JoinGroupRequest.json and JoinGroupResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""JoinGroupRequest and JoinGroupResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import (
    Bool,
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
class JoinGroupRequestProtocol(Struct):
    """One item of the list ``JoinGroupRequest.protocols``."""

    name: str = ""
    metadata: bytes = b""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class JoinGroupRequest(Whole):
    """Request of API key 11: versions 0 to 9; flexible from version 6 on (KIP-482)."""

    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1  # v1+, ignorable
    member_id: str = ""
    group_instance_id: str | None = None  # v5+
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = field(default_factory=list)
    reason: str | None = None  # v8+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class JoinGroupResponseMember(Struct):
    """One item of the list ``JoinGroupResponse.members``."""

    member_id: str = ""
    group_instance_id: str | None = None  # v5+, ignorable
    metadata: bytes = b""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class JoinGroupResponse(Whole):
    """Response of API key 11: versions 0 to 9; flexible from version 6 on (KIP-482)."""

    throttle_time_ms: int = 0  # v2+, ignorable
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None  # v7+, ignorable
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False  # v9+
    member_id: str = ""
    members: list[JoinGroupResponseMember] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


JOIN_GROUP_REQUEST_PROTOCOL_V0 = Message(
    JoinGroupRequestProtocol,
    "name" / String,
    "metadata" / Bytes,
    versions="0-5",
)

JOIN_GROUP_REQUEST_V0 = Message(
    JoinGroupRequest,
    "group_id" / String,
    "session_timeout_ms" / Int32,
    "member_id" / String,
    "protocol_type" / String,
    "protocols" / Array(JOIN_GROUP_REQUEST_PROTOCOL_V0),
    versions="0",
    absent=("group_instance_id",),
)

JOIN_GROUP_REQUEST_V1 = Message(
    JoinGroupRequest,
    "group_id" / String,
    "session_timeout_ms" / Int32,
    "rebalance_timeout_ms" / Int32,
    "member_id" / String,
    "protocol_type" / String,
    "protocols" / Array(JOIN_GROUP_REQUEST_PROTOCOL_V0),
    versions="1-4",
    absent=("group_instance_id",),
)

JOIN_GROUP_REQUEST_V2 = JOIN_GROUP_REQUEST_V1

JOIN_GROUP_REQUEST_V3 = JOIN_GROUP_REQUEST_V1

JOIN_GROUP_REQUEST_V4 = JOIN_GROUP_REQUEST_V1

JOIN_GROUP_REQUEST_V5 = Message(
    JoinGroupRequest,
    "group_id" / String,
    "session_timeout_ms" / Int32,
    "rebalance_timeout_ms" / Int32,
    "member_id" / String,
    "group_instance_id" / NullableString,
    "protocol_type" / String,
    "protocols" / Array(JOIN_GROUP_REQUEST_PROTOCOL_V0),
    versions="5",
)

JOIN_GROUP_REQUEST_PROTOCOL_V6 = Message(
    JoinGroupRequestProtocol,
    "name" / CompactString,
    "metadata" / CompactBytes,
    Tags(),
    versions="6-9",
)

JOIN_GROUP_REQUEST_V6 = Message(
    JoinGroupRequest,
    "group_id" / CompactString,
    "session_timeout_ms" / Int32,
    "rebalance_timeout_ms" / Int32,
    "member_id" / CompactString,
    "group_instance_id" / CompactNullableString,
    "protocol_type" / CompactString,
    "protocols" / CompactArray(JOIN_GROUP_REQUEST_PROTOCOL_V6),
    Tags(),
    versions="6-7",
)

JOIN_GROUP_REQUEST_V7 = JOIN_GROUP_REQUEST_V6

JOIN_GROUP_REQUEST_V8 = Message(
    JoinGroupRequest,
    "group_id" / CompactString,
    "session_timeout_ms" / Int32,
    "rebalance_timeout_ms" / Int32,
    "member_id" / CompactString,
    "group_instance_id" / CompactNullableString,
    "protocol_type" / CompactString,
    "protocols" / CompactArray(JOIN_GROUP_REQUEST_PROTOCOL_V6),
    "reason" / CompactNullableString,
    Tags(),
    versions="8-9",
)

JOIN_GROUP_REQUEST_V9 = JOIN_GROUP_REQUEST_V8

REQUESTS: dict[int, Message[JoinGroupRequest]] = {
    0: JOIN_GROUP_REQUEST_V0,
    1: JOIN_GROUP_REQUEST_V1,
    2: JOIN_GROUP_REQUEST_V2,
    3: JOIN_GROUP_REQUEST_V3,
    4: JOIN_GROUP_REQUEST_V4,
    5: JOIN_GROUP_REQUEST_V5,
    6: JOIN_GROUP_REQUEST_V6,
    7: JOIN_GROUP_REQUEST_V7,
    8: JOIN_GROUP_REQUEST_V8,
    9: JOIN_GROUP_REQUEST_V9,
}
JoinGroupRequest.layouts = REQUESTS

JOIN_GROUP_RESPONSE_MEMBER_V0 = Message(
    JoinGroupResponseMember,
    "member_id" / String,
    "metadata" / Bytes,
    versions="0-4",
)

JOIN_GROUP_RESPONSE_V0 = Message(
    JoinGroupResponse,
    "error_code" / Int16,
    "generation_id" / Int32,
    "protocol_name" / String,
    "leader" / String,
    "member_id" / String,
    "members" / Array(JOIN_GROUP_RESPONSE_MEMBER_V0),
    versions="0-1",
    absent=("skip_assignment",),
)

JOIN_GROUP_RESPONSE_V1 = JOIN_GROUP_RESPONSE_V0

JOIN_GROUP_RESPONSE_V2 = Message(
    JoinGroupResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "generation_id" / Int32,
    "protocol_name" / String,
    "leader" / String,
    "member_id" / String,
    "members" / Array(JOIN_GROUP_RESPONSE_MEMBER_V0),
    versions="2-4",
    absent=("skip_assignment",),
)

JOIN_GROUP_RESPONSE_V3 = JOIN_GROUP_RESPONSE_V2

JOIN_GROUP_RESPONSE_V4 = JOIN_GROUP_RESPONSE_V2

JOIN_GROUP_RESPONSE_MEMBER_V5 = Message(
    JoinGroupResponseMember,
    "member_id" / String,
    "group_instance_id" / NullableString,
    "metadata" / Bytes,
    versions="5",
)

JOIN_GROUP_RESPONSE_V5 = Message(
    JoinGroupResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "generation_id" / Int32,
    "protocol_name" / String,
    "leader" / String,
    "member_id" / String,
    "members" / Array(JOIN_GROUP_RESPONSE_MEMBER_V5),
    versions="5",
    absent=("skip_assignment",),
)

JOIN_GROUP_RESPONSE_MEMBER_V6 = Message(
    JoinGroupResponseMember,
    "member_id" / CompactString,
    "group_instance_id" / CompactNullableString,
    "metadata" / CompactBytes,
    Tags(),
    versions="6-9",
)

JOIN_GROUP_RESPONSE_V6 = Message(
    JoinGroupResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "generation_id" / Int32,
    "protocol_name" / CompactString,
    "leader" / CompactString,
    "member_id" / CompactString,
    "members" / CompactArray(JOIN_GROUP_RESPONSE_MEMBER_V6),
    Tags(),
    versions="6",
    absent=("skip_assignment",),
)

JOIN_GROUP_RESPONSE_V7 = Message(
    JoinGroupResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "generation_id" / Int32,
    "protocol_type" / CompactNullableString,
    "protocol_name" / CompactNullableString,
    "leader" / CompactString,
    "member_id" / CompactString,
    "members" / CompactArray(JOIN_GROUP_RESPONSE_MEMBER_V6),
    Tags(),
    versions="7-8",
    absent=("skip_assignment",),
)

JOIN_GROUP_RESPONSE_V8 = JOIN_GROUP_RESPONSE_V7

JOIN_GROUP_RESPONSE_V9 = Message(
    JoinGroupResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "generation_id" / Int32,
    "protocol_type" / CompactNullableString,
    "protocol_name" / CompactNullableString,
    "leader" / CompactString,
    "skip_assignment" / Bool,
    "member_id" / CompactString,
    "members" / CompactArray(JOIN_GROUP_RESPONSE_MEMBER_V6),
    Tags(),
    versions="9",
)

RESPONSES: dict[int, Message[JoinGroupResponse]] = {
    0: JOIN_GROUP_RESPONSE_V0,
    1: JOIN_GROUP_RESPONSE_V1,
    2: JOIN_GROUP_RESPONSE_V2,
    3: JOIN_GROUP_RESPONSE_V3,
    4: JOIN_GROUP_RESPONSE_V4,
    5: JOIN_GROUP_RESPONSE_V5,
    6: JOIN_GROUP_RESPONSE_V6,
    7: JOIN_GROUP_RESPONSE_V7,
    8: JOIN_GROUP_RESPONSE_V8,
    9: JOIN_GROUP_RESPONSE_V9,
}
JoinGroupResponse.layouts = RESPONSES
