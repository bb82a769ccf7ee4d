# Generated from schemas/messages/CreateAclsRequest.json and CreateAclsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""CreateAclsRequest and CreateAclsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int8, NullableString, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class AclCreation(Struct):
    """One item of the list ``CreateAclsRequest.creations``."""

    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3  # v1+
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CreateAclsRequest(Whole):
    """Request of API key 30: versions 0 to 3; flexible from version 2 on (KIP-482)."""

    creations: list[AclCreation] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AclCreationResult(Struct):
    """One item of the list ``CreateAclsResponse.results``."""

    error_code: int = 0
    error_message: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CreateAclsResponse(Whole):
    """Response of API key 30: versions 0 to 3; flexible from version 2 on (KIP-482)."""

    throttle_time_ms: int = 0
    results: list[AclCreationResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


ACL_CREATION_V0 = Message(
    AclCreation,
    "resource_type" / Int8,
    "resource_name" / String,
    "principal" / String,
    "host" / String,
    "operation" / Int8,
    "permission_type" / Int8,
    versions="0",
    absent=("resource_pattern_type",),
)

CREATE_ACLS_REQUEST_V0 = Message(
    CreateAclsRequest,
    "creations" / Array(ACL_CREATION_V0),
    versions="0",
)

ACL_CREATION_V1 = Message(
    AclCreation,
    "resource_type" / Int8,
    "resource_name" / String,
    "resource_pattern_type" / Int8,
    "principal" / String,
    "host" / String,
    "operation" / Int8,
    "permission_type" / Int8,
    versions="1",
)

CREATE_ACLS_REQUEST_V1 = Message(
    CreateAclsRequest,
    "creations" / Array(ACL_CREATION_V1),
    versions="1",
)

ACL_CREATION_V2 = Message(
    AclCreation,
    "resource_type" / Int8,
    "resource_name" / CompactString,
    "resource_pattern_type" / Int8,
    "principal" / CompactString,
    "host" / CompactString,
    "operation" / Int8,
    "permission_type" / Int8,
    Tags(),
    versions="2-3",
)

CREATE_ACLS_REQUEST_V2 = Message(
    CreateAclsRequest,
    "creations" / CompactArray(ACL_CREATION_V2),
    Tags(),
    versions="2-3",
)

CREATE_ACLS_REQUEST_V3 = CREATE_ACLS_REQUEST_V2

REQUESTS: dict[int, Message[CreateAclsRequest]] = {
    0: CREATE_ACLS_REQUEST_V0,
    1: CREATE_ACLS_REQUEST_V1,
    2: CREATE_ACLS_REQUEST_V2,
    3: CREATE_ACLS_REQUEST_V3,
}
CreateAclsRequest.layouts = REQUESTS

ACL_CREATION_RESULT_V0 = Message(
    AclCreationResult,
    "error_code" / Int16,
    "error_message" / NullableString,
    versions="0-1",
)

CREATE_ACLS_RESPONSE_V0 = Message(
    CreateAclsResponse,
    "throttle_time_ms" / Int32,
    "results" / Array(ACL_CREATION_RESULT_V0),
    versions="0-1",
)

CREATE_ACLS_RESPONSE_V1 = CREATE_ACLS_RESPONSE_V0

ACL_CREATION_RESULT_V2 = Message(
    AclCreationResult,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="2-3",
)

CREATE_ACLS_RESPONSE_V2 = Message(
    CreateAclsResponse,
    "throttle_time_ms" / Int32,
    "results" / CompactArray(ACL_CREATION_RESULT_V2),
    Tags(),
    versions="2-3",
)

CREATE_ACLS_RESPONSE_V3 = CREATE_ACLS_RESPONSE_V2

RESPONSES: dict[int, Message[CreateAclsResponse]] = {
    0: CREATE_ACLS_RESPONSE_V0,
    1: CREATE_ACLS_RESPONSE_V1,
    2: CREATE_ACLS_RESPONSE_V2,
    3: CREATE_ACLS_RESPONSE_V3,
}
CreateAclsResponse.layouts = RESPONSES
