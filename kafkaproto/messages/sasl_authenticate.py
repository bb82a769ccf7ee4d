# Generated from schemas/messages/SaslAuthenticateRequest.json and SaslAuthenticateResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""SaslAuthenticateRequest and SaslAuthenticateResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Bytes, CompactBytes, CompactNullableString, Int16, Int64, NullableString
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class SaslAuthenticateRequest(Whole):
    """Request of API key 36: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    auth_bytes: bytes = b""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class SaslAuthenticateResponse(Whole):
    """Response of API key 36: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0  # v1+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


SASL_AUTHENTICATE_REQUEST_V0 = Message(
    SaslAuthenticateRequest,
    "auth_bytes" / Bytes,
    versions="0-1",
)

SASL_AUTHENTICATE_REQUEST_V1 = SASL_AUTHENTICATE_REQUEST_V0

SASL_AUTHENTICATE_REQUEST_V2 = Message(
    SaslAuthenticateRequest,
    "auth_bytes" / CompactBytes,
    Tags(),
    versions="2",
)

REQUESTS: dict[int, Message[SaslAuthenticateRequest]] = {
    0: SASL_AUTHENTICATE_REQUEST_V0,
    1: SASL_AUTHENTICATE_REQUEST_V1,
    2: SASL_AUTHENTICATE_REQUEST_V2,
}
SaslAuthenticateRequest.layouts = REQUESTS

SASL_AUTHENTICATE_RESPONSE_V0 = Message(
    SaslAuthenticateResponse,
    "error_code" / Int16,
    "error_message" / NullableString,
    "auth_bytes" / Bytes,
    versions="0",
)

SASL_AUTHENTICATE_RESPONSE_V1 = Message(
    SaslAuthenticateResponse,
    "error_code" / Int16,
    "error_message" / NullableString,
    "auth_bytes" / Bytes,
    "session_lifetime_ms" / Int64,
    versions="1",
)

SASL_AUTHENTICATE_RESPONSE_V2 = Message(
    SaslAuthenticateResponse,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "auth_bytes" / CompactBytes,
    "session_lifetime_ms" / Int64,
    Tags(),
    versions="2",
)

RESPONSES: dict[int, Message[SaslAuthenticateResponse]] = {
    0: SASL_AUTHENTICATE_RESPONSE_V0,
    1: SASL_AUTHENTICATE_RESPONSE_V1,
    2: SASL_AUTHENTICATE_RESPONSE_V2,
}
SaslAuthenticateResponse.layouts = RESPONSES
