# Generated from schemas/messages/DeleteAclsRequest.json and DeleteAclsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DeleteAclsRequest and DeleteAclsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int8, NullableString, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class DeleteAclsFilter(Struct):
    """One item of the list ``DeleteAclsRequest.filters``."""

    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3  # v1+
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteAclsRequest(Whole):
    """Request of API key 31: versions 0 to 3; flexible from version 2 on (KIP-482)."""

    filters: list[DeleteAclsFilter] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteAclsMatchingAcl(Struct):
    """One item of the list ``DeleteAclsFilterResult.matching_acls``."""

    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3  # v1+
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteAclsFilterResult(Struct):
    """One item of the list ``DeleteAclsResponse.filter_results``."""

    error_code: int = 0
    error_message: str | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteAclsResponse(Whole):
    """Response of API key 31: versions 0 to 3; flexible from version 2 on (KIP-482)."""

    throttle_time_ms: int = 0
    filter_results: list[DeleteAclsFilterResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DELETE_ACLS_FILTER_V0 = Message(
    DeleteAclsFilter,
    "resource_type_filter" / Int8,
    "resource_name_filter" / NullableString,
    "principal_filter" / NullableString,
    "host_filter" / NullableString,
    "operation" / Int8,
    "permission_type" / Int8,
    versions="0",
    absent=("pattern_type_filter",),
)

DELETE_ACLS_REQUEST_V0 = Message(
    DeleteAclsRequest,
    "filters" / Array(DELETE_ACLS_FILTER_V0),
    versions="0",
)

DELETE_ACLS_FILTER_V1 = Message(
    DeleteAclsFilter,
    "resource_type_filter" / Int8,
    "resource_name_filter" / NullableString,
    "pattern_type_filter" / Int8,
    "principal_filter" / NullableString,
    "host_filter" / NullableString,
    "operation" / Int8,
    "permission_type" / Int8,
    versions="1",
)

DELETE_ACLS_REQUEST_V1 = Message(
    DeleteAclsRequest,
    "filters" / Array(DELETE_ACLS_FILTER_V1),
    versions="1",
)

DELETE_ACLS_FILTER_V2 = Message(
    DeleteAclsFilter,
    "resource_type_filter" / Int8,
    "resource_name_filter" / CompactNullableString,
    "pattern_type_filter" / Int8,
    "principal_filter" / CompactNullableString,
    "host_filter" / CompactNullableString,
    "operation" / Int8,
    "permission_type" / Int8,
    Tags(),
    versions="2-3",
)

DELETE_ACLS_REQUEST_V2 = Message(
    DeleteAclsRequest,
    "filters" / CompactArray(DELETE_ACLS_FILTER_V2),
    Tags(),
    versions="2-3",
)

DELETE_ACLS_REQUEST_V3 = DELETE_ACLS_REQUEST_V2

REQUESTS: dict[int, Message[DeleteAclsRequest]] = {
    0: DELETE_ACLS_REQUEST_V0,
    1: DELETE_ACLS_REQUEST_V1,
    2: DELETE_ACLS_REQUEST_V2,
    3: DELETE_ACLS_REQUEST_V3,
}
DeleteAclsRequest.layouts = REQUESTS

DELETE_ACLS_MATCHING_ACL_V0 = Message(
    DeleteAclsMatchingAcl,
    "error_code" / Int16,
    "error_message" / NullableString,
    "resource_type" / Int8,
    "resource_name" / String,
    "principal" / String,
    "host" / String,
    "operation" / Int8,
    "permission_type" / Int8,
    versions="0",
    absent=("pattern_type",),
)

DELETE_ACLS_FILTER_RESULT_V0 = Message(
    DeleteAclsFilterResult,
    "error_code" / Int16,
    "error_message" / NullableString,
    "matching_acls" / Array(DELETE_ACLS_MATCHING_ACL_V0),
    versions="0",
)

DELETE_ACLS_RESPONSE_V0 = Message(
    DeleteAclsResponse,
    "throttle_time_ms" / Int32,
    "filter_results" / Array(DELETE_ACLS_FILTER_RESULT_V0),
    versions="0",
)

DELETE_ACLS_MATCHING_ACL_V1 = Message(
    DeleteAclsMatchingAcl,
    "error_code" / Int16,
    "error_message" / NullableString,
    "resource_type" / Int8,
    "resource_name" / String,
    "pattern_type" / Int8,
    "principal" / String,
    "host" / String,
    "operation" / Int8,
    "permission_type" / Int8,
    versions="1",
)

DELETE_ACLS_FILTER_RESULT_V1 = Message(
    DeleteAclsFilterResult,
    "error_code" / Int16,
    "error_message" / NullableString,
    "matching_acls" / Array(DELETE_ACLS_MATCHING_ACL_V1),
    versions="1",
)

DELETE_ACLS_RESPONSE_V1 = Message(
    DeleteAclsResponse,
    "throttle_time_ms" / Int32,
    "filter_results" / Array(DELETE_ACLS_FILTER_RESULT_V1),
    versions="1",
)

DELETE_ACLS_MATCHING_ACL_V2 = Message(
    DeleteAclsMatchingAcl,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "resource_type" / Int8,
    "resource_name" / CompactString,
    "pattern_type" / Int8,
    "principal" / CompactString,
    "host" / CompactString,
    "operation" / Int8,
    "permission_type" / Int8,
    Tags(),
    versions="2-3",
)

DELETE_ACLS_FILTER_RESULT_V2 = Message(
    DeleteAclsFilterResult,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "matching_acls" / CompactArray(DELETE_ACLS_MATCHING_ACL_V2),
    Tags(),
    versions="2-3",
)

DELETE_ACLS_RESPONSE_V2 = Message(
    DeleteAclsResponse,
    "throttle_time_ms" / Int32,
    "filter_results" / CompactArray(DELETE_ACLS_FILTER_RESULT_V2),
    Tags(),
    versions="2-3",
)

DELETE_ACLS_RESPONSE_V3 = DELETE_ACLS_RESPONSE_V2

RESPONSES: dict[int, Message[DeleteAclsResponse]] = {
    0: DELETE_ACLS_RESPONSE_V0,
    1: DELETE_ACLS_RESPONSE_V1,
    2: DELETE_ACLS_RESPONSE_V2,
    3: DELETE_ACLS_RESPONSE_V3,
}
DeleteAclsResponse.layouts = RESPONSES
