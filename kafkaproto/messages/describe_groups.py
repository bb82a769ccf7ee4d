# Generated from schemas/messages/DescribeGroupsRequest.json and DescribeGroupsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DescribeGroupsRequest and DescribeGroupsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

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
class DescribeGroupsRequest(Whole):
    """Request of API key 15: versions 0 to 6; flexible from version 5 on (KIP-482)."""

    groups: list[str] = field(default_factory=list)
    include_authorized_operations: bool = False  # v3+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribedGroupMember(Struct):
    """One item of the list ``DescribedGroup.members``."""

    member_id: str = ""
    group_instance_id: str | None = None  # v4+, ignorable
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribedGroup(Struct):
    """One item of the list ``DescribeGroupsResponse.groups``."""

    error_code: int = 0
    error_message: str | None = None  # v6+
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = field(default_factory=list)
    authorized_operations: int = -2147483648  # v3+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeGroupsResponse(Whole):
    """Response of API key 15: versions 0 to 6; flexible from version 5 on (KIP-482)."""

    throttle_time_ms: int = 0  # v1+, ignorable
    groups: list[DescribedGroup] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DESCRIBE_GROUPS_REQUEST_V0 = Message(
    DescribeGroupsRequest,
    "groups" / Array(String),
    versions="0-2",
    absent=("include_authorized_operations",),
)

DESCRIBE_GROUPS_REQUEST_V1 = DESCRIBE_GROUPS_REQUEST_V0

DESCRIBE_GROUPS_REQUEST_V2 = DESCRIBE_GROUPS_REQUEST_V0

DESCRIBE_GROUPS_REQUEST_V3 = Message(
    DescribeGroupsRequest,
    "groups" / Array(String),
    "include_authorized_operations" / Bool,
    versions="3-4",
)

DESCRIBE_GROUPS_REQUEST_V4 = DESCRIBE_GROUPS_REQUEST_V3

DESCRIBE_GROUPS_REQUEST_V5 = Message(
    DescribeGroupsRequest,
    "groups" / CompactArray(CompactString),
    "include_authorized_operations" / Bool,
    Tags(),
    versions="5-6",
)

DESCRIBE_GROUPS_REQUEST_V6 = DESCRIBE_GROUPS_REQUEST_V5

REQUESTS: dict[int, Message[DescribeGroupsRequest]] = {
    0: DESCRIBE_GROUPS_REQUEST_V0,
    1: DESCRIBE_GROUPS_REQUEST_V1,
    2: DESCRIBE_GROUPS_REQUEST_V2,
    3: DESCRIBE_GROUPS_REQUEST_V3,
    4: DESCRIBE_GROUPS_REQUEST_V4,
    5: DESCRIBE_GROUPS_REQUEST_V5,
    6: DESCRIBE_GROUPS_REQUEST_V6,
}
DescribeGroupsRequest.layouts = REQUESTS

DESCRIBED_GROUP_MEMBER_V0 = Message(
    DescribedGroupMember,
    "member_id" / String,
    "client_id" / String,
    "client_host" / String,
    "member_metadata" / Bytes,
    "member_assignment" / Bytes,
    versions="0-3",
)

DESCRIBED_GROUP_V0 = Message(
    DescribedGroup,
    "error_code" / Int16,
    "group_id" / String,
    "group_state" / String,
    "protocol_type" / String,
    "protocol_data" / String,
    "members" / Array(DESCRIBED_GROUP_MEMBER_V0),
    versions="0-2",
    absent=("error_message", "authorized_operations"),
)

DESCRIBE_GROUPS_RESPONSE_V0 = Message(
    DescribeGroupsResponse,
    "groups" / Array(DESCRIBED_GROUP_V0),
    versions="0",
)

DESCRIBE_GROUPS_RESPONSE_V1 = Message(
    DescribeGroupsResponse,
    "throttle_time_ms" / Int32,
    "groups" / Array(DESCRIBED_GROUP_V0),
    versions="1-2",
)

DESCRIBE_GROUPS_RESPONSE_V2 = DESCRIBE_GROUPS_RESPONSE_V1

DESCRIBED_GROUP_V3 = Message(
    DescribedGroup,
    "error_code" / Int16,
    "group_id" / String,
    "group_state" / String,
    "protocol_type" / String,
    "protocol_data" / String,
    "members" / Array(DESCRIBED_GROUP_MEMBER_V0),
    "authorized_operations" / Int32,
    versions="3",
    absent=("error_message",),
)

DESCRIBE_GROUPS_RESPONSE_V3 = Message(
    DescribeGroupsResponse,
    "throttle_time_ms" / Int32,
    "groups" / Array(DESCRIBED_GROUP_V3),
    versions="3",
)

DESCRIBED_GROUP_MEMBER_V4 = Message(
    DescribedGroupMember,
    "member_id" / String,
    "group_instance_id" / NullableString,
    "client_id" / String,
    "client_host" / String,
    "member_metadata" / Bytes,
    "member_assignment" / Bytes,
    versions="4",
)

DESCRIBED_GROUP_V4 = Message(
    DescribedGroup,
    "error_code" / Int16,
    "group_id" / String,
    "group_state" / String,
    "protocol_type" / String,
    "protocol_data" / String,
    "members" / Array(DESCRIBED_GROUP_MEMBER_V4),
    "authorized_operations" / Int32,
    versions="4",
    absent=("error_message",),
)

DESCRIBE_GROUPS_RESPONSE_V4 = Message(
    DescribeGroupsResponse,
    "throttle_time_ms" / Int32,
    "groups" / Array(DESCRIBED_GROUP_V4),
    versions="4",
)

DESCRIBED_GROUP_MEMBER_V5 = Message(
    DescribedGroupMember,
    "member_id" / CompactString,
    "group_instance_id" / CompactNullableString,
    "client_id" / CompactString,
    "client_host" / CompactString,
    "member_metadata" / CompactBytes,
    "member_assignment" / CompactBytes,
    Tags(),
    versions="5-6",
)

DESCRIBED_GROUP_V5 = Message(
    DescribedGroup,
    "error_code" / Int16,
    "group_id" / CompactString,
    "group_state" / CompactString,
    "protocol_type" / CompactString,
    "protocol_data" / CompactString,
    "members" / CompactArray(DESCRIBED_GROUP_MEMBER_V5),
    "authorized_operations" / Int32,
    Tags(),
    versions="5",
    absent=("error_message",),
)

DESCRIBE_GROUPS_RESPONSE_V5 = Message(
    DescribeGroupsResponse,
    "throttle_time_ms" / Int32,
    "groups" / CompactArray(DESCRIBED_GROUP_V5),
    Tags(),
    versions="5",
)

DESCRIBED_GROUP_V6 = Message(
    DescribedGroup,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "group_id" / CompactString,
    "group_state" / CompactString,
    "protocol_type" / CompactString,
    "protocol_data" / CompactString,
    "members" / CompactArray(DESCRIBED_GROUP_MEMBER_V5),
    "authorized_operations" / Int32,
    Tags(),
    versions="6",
)

DESCRIBE_GROUPS_RESPONSE_V6 = Message(
    DescribeGroupsResponse,
    "throttle_time_ms" / Int32,
    "groups" / CompactArray(DESCRIBED_GROUP_V6),
    Tags(),
    versions="6",
)

RESPONSES: dict[int, Message[DescribeGroupsResponse]] = {
    0: DESCRIBE_GROUPS_RESPONSE_V0,
    1: DESCRIBE_GROUPS_RESPONSE_V1,
    2: DESCRIBE_GROUPS_RESPONSE_V2,
    3: DESCRIBE_GROUPS_RESPONSE_V3,
    4: DESCRIBE_GROUPS_RESPONSE_V4,
    5: DESCRIBE_GROUPS_RESPONSE_V5,
    6: DESCRIBE_GROUPS_RESPONSE_V6,
}
DescribeGroupsResponse.layouts = RESPONSES
