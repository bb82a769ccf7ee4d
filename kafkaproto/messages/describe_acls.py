# Generated from schemas/messages/DescribeAclsRequest.json and DescribeAclsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DescribeAclsRequest and DescribeAclsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int8, NullableString, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class DescribeAclsRequest(Whole):
    """Request of API key 29: versions 0 to 3; flexible from version 2 on (KIP-482)."""

    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3  # v1+
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AclDescription(Struct):
    """One item of the list ``DescribeAclsResource.acls``."""

    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeAclsResource(Struct):
    """One item of the list ``DescribeAclsResponse.resources``."""

    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3  # v1+
    acls: list[AclDescription] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeAclsResponse(Whole):
    """Response of API key 29: versions 0 to 3; flexible from version 2 on (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResource] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DESCRIBE_ACLS_REQUEST_V0 = Message(
    DescribeAclsRequest,
    "resource_type_filter" / Int8,
    "resource_name_filter" / NullableString,
    "principal_filter" / NullableString,
    "host_filter" / NullableString,
    "operation" / Int8,
    "permission_type" / Int8,
    versions="0",
    absent=("pattern_type_filter",),
)

DESCRIBE_ACLS_REQUEST_V1 = Message(
    DescribeAclsRequest,
    "resource_type_filter" / Int8,
    "resource_name_filter" / NullableString,
    "pattern_type_filter" / Int8,
    "principal_filter" / NullableString,
    "host_filter" / NullableString,
    "operation" / Int8,
    "permission_type" / Int8,
    versions="1",
)

DESCRIBE_ACLS_REQUEST_V2 = Message(
    DescribeAclsRequest,
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

DESCRIBE_ACLS_REQUEST_V3 = DESCRIBE_ACLS_REQUEST_V2

REQUESTS: dict[int, Message[DescribeAclsRequest]] = {
    0: DESCRIBE_ACLS_REQUEST_V0,
    1: DESCRIBE_ACLS_REQUEST_V1,
    2: DESCRIBE_ACLS_REQUEST_V2,
    3: DESCRIBE_ACLS_REQUEST_V3,
}
DescribeAclsRequest.layouts = REQUESTS

ACL_DESCRIPTION_V0 = Message(
    AclDescription,
    "principal" / String,
    "host" / String,
    "operation" / Int8,
    "permission_type" / Int8,
    versions="0-1",
)

DESCRIBE_ACLS_RESOURCE_V0 = Message(
    DescribeAclsResource,
    "resource_type" / Int8,
    "resource_name" / String,
    "acls" / Array(ACL_DESCRIPTION_V0),
    versions="0",
    absent=("pattern_type",),
)

DESCRIBE_ACLS_RESPONSE_V0 = Message(
    DescribeAclsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / NullableString,
    "resources" / Array(DESCRIBE_ACLS_RESOURCE_V0),
    versions="0",
)

DESCRIBE_ACLS_RESOURCE_V1 = Message(
    DescribeAclsResource,
    "resource_type" / Int8,
    "resource_name" / String,
    "pattern_type" / Int8,
    "acls" / Array(ACL_DESCRIPTION_V0),
    versions="1",
)

DESCRIBE_ACLS_RESPONSE_V1 = Message(
    DescribeAclsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / NullableString,
    "resources" / Array(DESCRIBE_ACLS_RESOURCE_V1),
    versions="1",
)

ACL_DESCRIPTION_V2 = Message(
    AclDescription,
    "principal" / CompactString,
    "host" / CompactString,
    "operation" / Int8,
    "permission_type" / Int8,
    Tags(),
    versions="2-3",
)

DESCRIBE_ACLS_RESOURCE_V2 = Message(
    DescribeAclsResource,
    "resource_type" / Int8,
    "resource_name" / CompactString,
    "pattern_type" / Int8,
    "acls" / CompactArray(ACL_DESCRIPTION_V2),
    Tags(),
    versions="2-3",
)

DESCRIBE_ACLS_RESPONSE_V2 = Message(
    DescribeAclsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "resources" / CompactArray(DESCRIBE_ACLS_RESOURCE_V2),
    Tags(),
    versions="2-3",
)

DESCRIBE_ACLS_RESPONSE_V3 = DESCRIBE_ACLS_RESPONSE_V2

RESPONSES: dict[int, Message[DescribeAclsResponse]] = {
    0: DESCRIBE_ACLS_RESPONSE_V0,
    1: DESCRIBE_ACLS_RESPONSE_V1,
    2: DESCRIBE_ACLS_RESPONSE_V2,
    3: DESCRIBE_ACLS_RESPONSE_V3,
}
DescribeAclsResponse.layouts = RESPONSES
