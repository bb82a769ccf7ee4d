# Generated from schemas/messages/RenewDelegationTokenRequest.json and RenewDelegationTokenResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""RenewDelegationTokenRequest and RenewDelegationTokenResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Bytes, CompactBytes, Int16, Int32, Int64
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class RenewDelegationTokenRequest(Whole):
    """Request of API key 39: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    hmac: bytes = b""
    renew_period_ms: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class RenewDelegationTokenResponse(Whole):
    """Response of API key 39: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


RENEW_DELEGATION_TOKEN_REQUEST_V0 = Message(
    RenewDelegationTokenRequest,
    "hmac" / Bytes,
    "renew_period_ms" / Int64,
    versions="0-1",
)

RENEW_DELEGATION_TOKEN_REQUEST_V1 = RENEW_DELEGATION_TOKEN_REQUEST_V0

RENEW_DELEGATION_TOKEN_REQUEST_V2 = Message(
    RenewDelegationTokenRequest,
    "hmac" / CompactBytes,
    "renew_period_ms" / Int64,
    Tags(),
    versions="2",
)

REQUESTS: dict[int, Message[RenewDelegationTokenRequest]] = {
    0: RENEW_DELEGATION_TOKEN_REQUEST_V0,
    1: RENEW_DELEGATION_TOKEN_REQUEST_V1,
    2: RENEW_DELEGATION_TOKEN_REQUEST_V2,
}
RenewDelegationTokenRequest.layouts = REQUESTS

RENEW_DELEGATION_TOKEN_RESPONSE_V0 = Message(
    RenewDelegationTokenResponse,
    "error_code" / Int16,
    "expiry_timestamp_ms" / Int64,
    "throttle_time_ms" / Int32,
    versions="0-1",
)

RENEW_DELEGATION_TOKEN_RESPONSE_V1 = RENEW_DELEGATION_TOKEN_RESPONSE_V0

RENEW_DELEGATION_TOKEN_RESPONSE_V2 = Message(
    RenewDelegationTokenResponse,
    "error_code" / Int16,
    "expiry_timestamp_ms" / Int64,
    "throttle_time_ms" / Int32,
    Tags(),
    versions="2",
)

RESPONSES: dict[int, Message[RenewDelegationTokenResponse]] = {
    0: RENEW_DELEGATION_TOKEN_RESPONSE_V0,
    1: RENEW_DELEGATION_TOKEN_RESPONSE_V1,
    2: RENEW_DELEGATION_TOKEN_RESPONSE_V2,
}
RenewDelegationTokenResponse.layouts = RESPONSES
