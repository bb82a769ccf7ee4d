# Generated from schemas/messages/DescribeDelegationTokenRequest.json and DescribeDelegationTokenResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DescribeDelegationTokenRequest and DescribeDelegationTokenResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray, CompactNullableArray, NullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bytes, CompactBytes, CompactString, Int16, Int32, Int64, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class DescribeDelegationTokenOwner(Struct):
    """One item of the list ``DescribeDelegationTokenRequest.owners``."""

    principal_type: str = ""
    principal_name: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeDelegationTokenRequest(Whole):
    """Request of API key 41: versions 0 to 3; flexible from version 2 on (KIP-482)."""

    owners: list[DescribeDelegationTokenOwner] | None = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribedDelegationTokenRenewer(Struct):
    """One item of the list ``DescribedDelegationToken.renewers``."""

    principal_type: str = ""
    principal_name: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribedDelegationToken(Struct):
    """One item of the list ``DescribeDelegationTokenResponse.tokens``."""

    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""  # v3+
    token_requester_principal_name: str = ""  # v3+
    issue_timestamp: int = 0
    expiry_timestamp: int = 0
    max_timestamp: int = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeDelegationTokenResponse(Whole):
    """Response of API key 41: versions 0 to 3; flexible from version 2 on (KIP-482)."""

    error_code: int = 0
    tokens: list[DescribedDelegationToken] = field(default_factory=list)
    throttle_time_ms: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DESCRIBE_DELEGATION_TOKEN_OWNER_V0 = Message(
    DescribeDelegationTokenOwner,
    "principal_type" / String,
    "principal_name" / String,
    versions="0-1",
)

DESCRIBE_DELEGATION_TOKEN_REQUEST_V0 = Message(
    DescribeDelegationTokenRequest,
    "owners" / NullableArray(DESCRIBE_DELEGATION_TOKEN_OWNER_V0),
    versions="0-1",
)

DESCRIBE_DELEGATION_TOKEN_REQUEST_V1 = DESCRIBE_DELEGATION_TOKEN_REQUEST_V0

DESCRIBE_DELEGATION_TOKEN_OWNER_V2 = Message(
    DescribeDelegationTokenOwner,
    "principal_type" / CompactString,
    "principal_name" / CompactString,
    Tags(),
    versions="2-3",
)

DESCRIBE_DELEGATION_TOKEN_REQUEST_V2 = Message(
    DescribeDelegationTokenRequest,
    "owners" / CompactNullableArray(DESCRIBE_DELEGATION_TOKEN_OWNER_V2),
    Tags(),
    versions="2-3",
)

DESCRIBE_DELEGATION_TOKEN_REQUEST_V3 = DESCRIBE_DELEGATION_TOKEN_REQUEST_V2

REQUESTS: dict[int, Message[DescribeDelegationTokenRequest]] = {
    0: DESCRIBE_DELEGATION_TOKEN_REQUEST_V0,
    1: DESCRIBE_DELEGATION_TOKEN_REQUEST_V1,
    2: DESCRIBE_DELEGATION_TOKEN_REQUEST_V2,
    3: DESCRIBE_DELEGATION_TOKEN_REQUEST_V3,
}
DescribeDelegationTokenRequest.layouts = REQUESTS

DESCRIBED_DELEGATION_TOKEN_RENEWER_V0 = Message(
    DescribedDelegationTokenRenewer,
    "principal_type" / String,
    "principal_name" / String,
    versions="0-1",
)

DESCRIBED_DELEGATION_TOKEN_V0 = Message(
    DescribedDelegationToken,
    "principal_type" / String,
    "principal_name" / String,
    "issue_timestamp" / Int64,
    "expiry_timestamp" / Int64,
    "max_timestamp" / Int64,
    "token_id" / String,
    "hmac" / Bytes,
    "renewers" / Array(DESCRIBED_DELEGATION_TOKEN_RENEWER_V0),
    versions="0-1",
    absent=("token_requester_principal_type", "token_requester_principal_name"),
)

DESCRIBE_DELEGATION_TOKEN_RESPONSE_V0 = Message(
    DescribeDelegationTokenResponse,
    "error_code" / Int16,
    "tokens" / Array(DESCRIBED_DELEGATION_TOKEN_V0),
    "throttle_time_ms" / Int32,
    versions="0-1",
)

DESCRIBE_DELEGATION_TOKEN_RESPONSE_V1 = DESCRIBE_DELEGATION_TOKEN_RESPONSE_V0

DESCRIBED_DELEGATION_TOKEN_RENEWER_V2 = Message(
    DescribedDelegationTokenRenewer,
    "principal_type" / CompactString,
    "principal_name" / CompactString,
    Tags(),
    versions="2-3",
)

DESCRIBED_DELEGATION_TOKEN_V2 = Message(
    DescribedDelegationToken,
    "principal_type" / CompactString,
    "principal_name" / CompactString,
    "issue_timestamp" / Int64,
    "expiry_timestamp" / Int64,
    "max_timestamp" / Int64,
    "token_id" / CompactString,
    "hmac" / CompactBytes,
    "renewers" / CompactArray(DESCRIBED_DELEGATION_TOKEN_RENEWER_V2),
    Tags(),
    versions="2",
    absent=("token_requester_principal_type", "token_requester_principal_name"),
)

DESCRIBE_DELEGATION_TOKEN_RESPONSE_V2 = Message(
    DescribeDelegationTokenResponse,
    "error_code" / Int16,
    "tokens" / CompactArray(DESCRIBED_DELEGATION_TOKEN_V2),
    "throttle_time_ms" / Int32,
    Tags(),
    versions="2",
)

DESCRIBED_DELEGATION_TOKEN_V3 = Message(
    DescribedDelegationToken,
    "principal_type" / CompactString,
    "principal_name" / CompactString,
    "token_requester_principal_type" / CompactString,
    "token_requester_principal_name" / CompactString,
    "issue_timestamp" / Int64,
    "expiry_timestamp" / Int64,
    "max_timestamp" / Int64,
    "token_id" / CompactString,
    "hmac" / CompactBytes,
    "renewers" / CompactArray(DESCRIBED_DELEGATION_TOKEN_RENEWER_V2),
    Tags(),
    versions="3",
)

DESCRIBE_DELEGATION_TOKEN_RESPONSE_V3 = Message(
    DescribeDelegationTokenResponse,
    "error_code" / Int16,
    "tokens" / CompactArray(DESCRIBED_DELEGATION_TOKEN_V3),
    "throttle_time_ms" / Int32,
    Tags(),
    versions="3",
)

RESPONSES: dict[int, Message[DescribeDelegationTokenResponse]] = {
    0: DESCRIBE_DELEGATION_TOKEN_RESPONSE_V0,
    1: DESCRIBE_DELEGATION_TOKEN_RESPONSE_V1,
    2: DESCRIBE_DELEGATION_TOKEN_RESPONSE_V2,
    3: DESCRIBE_DELEGATION_TOKEN_RESPONSE_V3,
}
DescribeDelegationTokenResponse.layouts = RESPONSES
