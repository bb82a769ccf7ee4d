# Generated from schemas/messages/SaslHandshakeRequest.json and SaslHandshakeResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""SaslHandshakeRequest and SaslHandshakeResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array
from kafkaproto.message import Message
from kafkaproto.primitives import Int16, String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class SaslHandshakeRequest(Whole):
    """Request of API key 17: versions 0 to 1; not flexible (KIP-482)."""

    mechanism: str = ""


@dataclass(slots=True, eq=False, repr=False)
class SaslHandshakeResponse(Whole):
    """Response of API key 17: versions 0 to 1; not flexible (KIP-482)."""

    error_code: int = 0
    mechanisms: list[str] = field(default_factory=list)


SASL_HANDSHAKE_REQUEST_V0 = Message(
    SaslHandshakeRequest,
    "mechanism" / String,
    versions="0-1",
)

SASL_HANDSHAKE_REQUEST_V1 = SASL_HANDSHAKE_REQUEST_V0

REQUESTS: dict[int, Message[SaslHandshakeRequest]] = {
    0: SASL_HANDSHAKE_REQUEST_V0,
    1: SASL_HANDSHAKE_REQUEST_V1,
}
SaslHandshakeRequest.layouts = REQUESTS

SASL_HANDSHAKE_RESPONSE_V0 = Message(
    SaslHandshakeResponse,
    "error_code" / Int16,
    "mechanisms" / Array(String),
    versions="0-1",
)

SASL_HANDSHAKE_RESPONSE_V1 = SASL_HANDSHAKE_RESPONSE_V0

RESPONSES: dict[int, Message[SaslHandshakeResponse]] = {
    0: SASL_HANDSHAKE_RESPONSE_V0,
    1: SASL_HANDSHAKE_RESPONSE_V1,
}
SaslHandshakeResponse.layouts = RESPONSES
