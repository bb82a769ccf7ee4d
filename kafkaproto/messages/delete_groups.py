# Generated from schemas/messages/DeleteGroupsRequest.json and DeleteGroupsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DeleteGroupsRequest and DeleteGroupsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int16, Int32, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class DeleteGroupsRequest(Whole):
    """Request of API key 42: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    groups_names: list[str] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeletableGroupResult(Struct):
    """One item of the list ``DeleteGroupsResponse.results``."""

    group_id: str = ""
    error_code: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteGroupsResponse(Whole):
    """Response of API key 42: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    throttle_time_ms: int = 0
    results: list[DeletableGroupResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DELETE_GROUPS_REQUEST_V0 = Message(
    DeleteGroupsRequest,
    "groups_names" / Array(String),
    versions="0-1",
)

DELETE_GROUPS_REQUEST_V1 = DELETE_GROUPS_REQUEST_V0

DELETE_GROUPS_REQUEST_V2 = Message(
    DeleteGroupsRequest,
    "groups_names" / CompactArray(CompactString),
    Tags(),
    versions="2",
)

REQUESTS: dict[int, Message[DeleteGroupsRequest]] = {
    0: DELETE_GROUPS_REQUEST_V0,
    1: DELETE_GROUPS_REQUEST_V1,
    2: DELETE_GROUPS_REQUEST_V2,
}
DeleteGroupsRequest.layouts = REQUESTS

DELETABLE_GROUP_RESULT_V0 = Message(
    DeletableGroupResult,
    "group_id" / String,
    "error_code" / Int16,
    versions="0-1",
)

DELETE_GROUPS_RESPONSE_V0 = Message(
    DeleteGroupsResponse,
    "throttle_time_ms" / Int32,
    "results" / Array(DELETABLE_GROUP_RESULT_V0),
    versions="0-1",
)

DELETE_GROUPS_RESPONSE_V1 = DELETE_GROUPS_RESPONSE_V0

DELETABLE_GROUP_RESULT_V2 = Message(
    DeletableGroupResult,
    "group_id" / CompactString,
    "error_code" / Int16,
    Tags(),
    versions="2",
)

DELETE_GROUPS_RESPONSE_V2 = Message(
    DeleteGroupsResponse,
    "throttle_time_ms" / Int32,
    "results" / CompactArray(DELETABLE_GROUP_RESULT_V2),
    Tags(),
    versions="2",
)

RESPONSES: dict[int, Message[DeleteGroupsResponse]] = {
    0: DELETE_GROUPS_RESPONSE_V0,
    1: DELETE_GROUPS_RESPONSE_V1,
    2: DELETE_GROUPS_RESPONSE_V2,
}
DeleteGroupsResponse.layouts = RESPONSES
