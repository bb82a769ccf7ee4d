# Generated from schemas/messages/UnregisterBrokerRequest.json and UnregisterBrokerResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""UnregisterBrokerRequest and UnregisterBrokerResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, Int16, Int32
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class UnregisterBrokerRequest(Whole):
    """Request of API key 64: version 0; flexible (KIP-482)."""

    broker_id: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class UnregisterBrokerResponse(Whole):
    """Response of API key 64: version 0; flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


UNREGISTER_BROKER_REQUEST_V0 = Message(
    UnregisterBrokerRequest,
    "broker_id" / Int32,
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[UnregisterBrokerRequest]] = {
    0: UNREGISTER_BROKER_REQUEST_V0,
}
UnregisterBrokerRequest.layouts = REQUESTS

UNREGISTER_BROKER_RESPONSE_V0 = Message(
    UnregisterBrokerResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[UnregisterBrokerResponse]] = {
    0: UNREGISTER_BROKER_RESPONSE_V0,
}
UnregisterBrokerResponse.layouts = RESPONSES
