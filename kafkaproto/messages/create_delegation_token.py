# Generated from schemas/messages/CreateDelegationTokenRequest.json and CreateDelegationTokenResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""CreateDelegationTokenRequest and CreateDelegationTokenResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bytes, CompactBytes, CompactNullableString, CompactString, Int16, Int32, Int64, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class CreatableRenewers(Struct):
    """One item of the list ``CreateDelegationTokenRequest.renewers``."""

    principal_type: str = ""
    principal_name: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CreateDelegationTokenRequest(Whole):
    """Request of API key 38: versions 0 to 3; flexible from version 2 on (KIP-482)."""

    owner_principal_type: str | None = ""  # v3+
    owner_principal_name: str | None = ""  # v3+
    renewers: list[CreatableRenewers] = field(default_factory=list)
    max_lifetime_ms: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CreateDelegationTokenResponse(Whole):
    """Response of API key 38: versions 0 to 3; flexible from version 2 on (KIP-482)."""

    error_code: int = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""  # v3+
    token_requester_principal_name: str = ""  # v3+
    issue_timestamp_ms: int = 0
    expiry_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


CREATABLE_RENEWERS_V0 = Message(
    CreatableRenewers,
    "principal_type" / String,
    "principal_name" / String,
    versions="0-1",
)

CREATE_DELEGATION_TOKEN_REQUEST_V0 = Message(
    CreateDelegationTokenRequest,
    "renewers" / Array(CREATABLE_RENEWERS_V0),
    "max_lifetime_ms" / Int64,
    versions="0-1",
    absent=("owner_principal_type", "owner_principal_name"),
)

CREATE_DELEGATION_TOKEN_REQUEST_V1 = CREATE_DELEGATION_TOKEN_REQUEST_V0

CREATABLE_RENEWERS_V2 = Message(
    CreatableRenewers,
    "principal_type" / CompactString,
    "principal_name" / CompactString,
    Tags(),
    versions="2-3",
)

CREATE_DELEGATION_TOKEN_REQUEST_V2 = Message(
    CreateDelegationTokenRequest,
    "renewers" / CompactArray(CREATABLE_RENEWERS_V2),
    "max_lifetime_ms" / Int64,
    Tags(),
    versions="2",
    absent=("owner_principal_type", "owner_principal_name"),
)

CREATE_DELEGATION_TOKEN_REQUEST_V3 = Message(
    CreateDelegationTokenRequest,
    "owner_principal_type" / CompactNullableString,
    "owner_principal_name" / CompactNullableString,
    "renewers" / CompactArray(CREATABLE_RENEWERS_V2),
    "max_lifetime_ms" / Int64,
    Tags(),
    versions="3",
)

REQUESTS: dict[int, Message[CreateDelegationTokenRequest]] = {
    0: CREATE_DELEGATION_TOKEN_REQUEST_V0,
    1: CREATE_DELEGATION_TOKEN_REQUEST_V1,
    2: CREATE_DELEGATION_TOKEN_REQUEST_V2,
    3: CREATE_DELEGATION_TOKEN_REQUEST_V3,
}
CreateDelegationTokenRequest.layouts = REQUESTS

CREATE_DELEGATION_TOKEN_RESPONSE_V0 = Message(
    CreateDelegationTokenResponse,
    "error_code" / Int16,
    "principal_type" / String,
    "principal_name" / String,
    "issue_timestamp_ms" / Int64,
    "expiry_timestamp_ms" / Int64,
    "max_timestamp_ms" / Int64,
    "token_id" / String,
    "hmac" / Bytes,
    "throttle_time_ms" / Int32,
    versions="0-1",
    absent=("token_requester_principal_type", "token_requester_principal_name"),
)

CREATE_DELEGATION_TOKEN_RESPONSE_V1 = CREATE_DELEGATION_TOKEN_RESPONSE_V0

CREATE_DELEGATION_TOKEN_RESPONSE_V2 = Message(
    CreateDelegationTokenResponse,
    "error_code" / Int16,
    "principal_type" / CompactString,
    "principal_name" / CompactString,
    "issue_timestamp_ms" / Int64,
    "expiry_timestamp_ms" / Int64,
    "max_timestamp_ms" / Int64,
    "token_id" / CompactString,
    "hmac" / CompactBytes,
    "throttle_time_ms" / Int32,
    Tags(),
    versions="2",
    absent=("token_requester_principal_type", "token_requester_principal_name"),
)

CREATE_DELEGATION_TOKEN_RESPONSE_V3 = Message(
    CreateDelegationTokenResponse,
    "error_code" / Int16,
    "principal_type" / CompactString,
    "principal_name" / CompactString,
    "token_requester_principal_type" / CompactString,
    "token_requester_principal_name" / CompactString,
    "issue_timestamp_ms" / Int64,
    "expiry_timestamp_ms" / Int64,
    "max_timestamp_ms" / Int64,
    "token_id" / CompactString,
    "hmac" / CompactBytes,
    "throttle_time_ms" / Int32,
    Tags(),
    versions="3",
)

RESPONSES: dict[int, Message[CreateDelegationTokenResponse]] = {
    0: CREATE_DELEGATION_TOKEN_RESPONSE_V0,
    1: CREATE_DELEGATION_TOKEN_RESPONSE_V1,
    2: CREATE_DELEGATION_TOKEN_RESPONSE_V2,
    3: CREATE_DELEGATION_TOKEN_RESPONSE_V3,
}
CreateDelegationTokenResponse.layouts = RESPONSES
