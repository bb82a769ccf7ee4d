# Generated from schemas/messages/ListGroupsRequest.json and ListGroupsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ListGroupsRequest and ListGroupsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int16, Int32, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ListGroupsRequest(Whole):
    """Request of API key 16: versions 0 to 5; flexible from version 3 on (KIP-482)."""

    states_filter: list[str] = field(default_factory=list)  # v4+
    types_filter: list[str] = field(default_factory=list)  # v5+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ListedGroup(Struct):
    """One item of the list ``ListGroupsResponse.groups``."""

    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""  # v4+, ignorable
    group_type: str = ""  # v5+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ListGroupsResponse(Whole):
    """Response of API key 16: versions 0 to 5; flexible from version 3 on (KIP-482)."""

    throttle_time_ms: int = 0  # v1+, ignorable
    error_code: int = 0
    groups: list[ListedGroup] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


LIST_GROUPS_REQUEST_V0 = Message(
    ListGroupsRequest,
    versions="0-2",
    absent=("states_filter", "types_filter"),
)

LIST_GROUPS_REQUEST_V1 = LIST_GROUPS_REQUEST_V0

LIST_GROUPS_REQUEST_V2 = LIST_GROUPS_REQUEST_V0

LIST_GROUPS_REQUEST_V3 = Message(
    ListGroupsRequest,
    Tags(),
    versions="3",
    absent=("states_filter", "types_filter"),
)

LIST_GROUPS_REQUEST_V4 = Message(
    ListGroupsRequest,
    "states_filter" / CompactArray(CompactString),
    Tags(),
    versions="4",
    absent=("types_filter",),
)

LIST_GROUPS_REQUEST_V5 = Message(
    ListGroupsRequest,
    "states_filter" / CompactArray(CompactString),
    "types_filter" / CompactArray(CompactString),
    Tags(),
    versions="5",
)

REQUESTS: dict[int, Message[ListGroupsRequest]] = {
    0: LIST_GROUPS_REQUEST_V0,
    1: LIST_GROUPS_REQUEST_V1,
    2: LIST_GROUPS_REQUEST_V2,
    3: LIST_GROUPS_REQUEST_V3,
    4: LIST_GROUPS_REQUEST_V4,
    5: LIST_GROUPS_REQUEST_V5,
}
ListGroupsRequest.layouts = REQUESTS

LISTED_GROUP_V0 = Message(
    ListedGroup,
    "group_id" / String,
    "protocol_type" / String,
    versions="0-2",
)

LIST_GROUPS_RESPONSE_V0 = Message(
    ListGroupsResponse,
    "error_code" / Int16,
    "groups" / Array(LISTED_GROUP_V0),
    versions="0",
)

LIST_GROUPS_RESPONSE_V1 = Message(
    ListGroupsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "groups" / Array(LISTED_GROUP_V0),
    versions="1-2",
)

LIST_GROUPS_RESPONSE_V2 = LIST_GROUPS_RESPONSE_V1

LISTED_GROUP_V3 = Message(
    ListedGroup,
    "group_id" / CompactString,
    "protocol_type" / CompactString,
    Tags(),
    versions="3",
)

LIST_GROUPS_RESPONSE_V3 = Message(
    ListGroupsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "groups" / CompactArray(LISTED_GROUP_V3),
    Tags(),
    versions="3",
)

LISTED_GROUP_V4 = Message(
    ListedGroup,
    "group_id" / CompactString,
    "protocol_type" / CompactString,
    "group_state" / CompactString,
    Tags(),
    versions="4",
)

LIST_GROUPS_RESPONSE_V4 = Message(
    ListGroupsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "groups" / CompactArray(LISTED_GROUP_V4),
    Tags(),
    versions="4",
)

LISTED_GROUP_V5 = Message(
    ListedGroup,
    "group_id" / CompactString,
    "protocol_type" / CompactString,
    "group_state" / CompactString,
    "group_type" / CompactString,
    Tags(),
    versions="5",
)

LIST_GROUPS_RESPONSE_V5 = Message(
    ListGroupsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "groups" / CompactArray(LISTED_GROUP_V5),
    Tags(),
    versions="5",
)

RESPONSES: dict[int, Message[ListGroupsResponse]] = {
    0: LIST_GROUPS_RESPONSE_V0,
    1: LIST_GROUPS_RESPONSE_V1,
    2: LIST_GROUPS_RESPONSE_V2,
    3: LIST_GROUPS_RESPONSE_V3,
    4: LIST_GROUPS_RESPONSE_V4,
    5: LIST_GROUPS_RESPONSE_V5,
}
ListGroupsResponse.layouts = RESPONSES
