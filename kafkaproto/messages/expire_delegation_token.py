# Generated from schemas/messages/ExpireDelegationTokenRequest.json and ExpireDelegationTokenResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ExpireDelegationTokenRequest and ExpireDelegationTokenResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Bytes, CompactBytes, Int16, Int32, Int64
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ExpireDelegationTokenRequest(Whole):
    """Request of API key 40: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    hmac: bytes = b""
    expiry_time_period_ms: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ExpireDelegationTokenResponse(Whole):
    """Response of API key 40: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


EXPIRE_DELEGATION_TOKEN_REQUEST_V0 = Message(
    ExpireDelegationTokenRequest,
    "hmac" / Bytes,
    "expiry_time_period_ms" / Int64,
    versions="0-1",
)

EXPIRE_DELEGATION_TOKEN_REQUEST_V1 = EXPIRE_DELEGATION_TOKEN_REQUEST_V0

EXPIRE_DELEGATION_TOKEN_REQUEST_V2 = Message(
    ExpireDelegationTokenRequest,
    "hmac" / CompactBytes,
    "expiry_time_period_ms" / Int64,
    Tags(),
    versions="2",
)

REQUESTS: dict[int, Message[ExpireDelegationTokenRequest]] = {
    0: EXPIRE_DELEGATION_TOKEN_REQUEST_V0,
    1: EXPIRE_DELEGATION_TOKEN_REQUEST_V1,
    2: EXPIRE_DELEGATION_TOKEN_REQUEST_V2,
}
ExpireDelegationTokenRequest.layouts = REQUESTS

EXPIRE_DELEGATION_TOKEN_RESPONSE_V0 = Message(
    ExpireDelegationTokenResponse,
    "error_code" / Int16,
    "expiry_timestamp_ms" / Int64,
    "throttle_time_ms" / Int32,
    versions="0-1",
)

EXPIRE_DELEGATION_TOKEN_RESPONSE_V1 = EXPIRE_DELEGATION_TOKEN_RESPONSE_V0

EXPIRE_DELEGATION_TOKEN_RESPONSE_V2 = Message(
    ExpireDelegationTokenResponse,
    "error_code" / Int16,
    "expiry_timestamp_ms" / Int64,
    "throttle_time_ms" / Int32,
    Tags(),
    versions="2",
)

RESPONSES: dict[int, Message[ExpireDelegationTokenResponse]] = {
    0: EXPIRE_DELEGATION_TOKEN_RESPONSE_V0,
    1: EXPIRE_DELEGATION_TOKEN_RESPONSE_V1,
    2: EXPIRE_DELEGATION_TOKEN_RESPONSE_V2,
}
ExpireDelegationTokenResponse.layouts = RESPONSES
