# Generated from schemas/messages/PushTelemetryRequest.json and PushTelemetryResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""PushTelemetryRequest and PushTelemetryResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactBytes, Int16, Int32, Int8, Uuid
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class PushTelemetryRequest(Whole):
    """Request of API key 72: version 0; flexible (KIP-482)."""

    client_instance_id: bytes = bytes(16)
    subscription_id: int = 0
    terminating: bool = False
    compression_type: int = 0
    metrics: bytes = b""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class PushTelemetryResponse(Whole):
    """Response of API key 72: version 0; flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


PUSH_TELEMETRY_REQUEST_V0 = Message(
    PushTelemetryRequest,
    "client_instance_id" / Uuid,
    "subscription_id" / Int32,
    "terminating" / Bool,
    "compression_type" / Int8,
    "metrics" / CompactBytes,
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[PushTelemetryRequest]] = {
    0: PUSH_TELEMETRY_REQUEST_V0,
}
PushTelemetryRequest.layouts = REQUESTS

PUSH_TELEMETRY_RESPONSE_V0 = Message(
    PushTelemetryResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[PushTelemetryResponse]] = {
    0: PUSH_TELEMETRY_RESPONSE_V0,
}
PushTelemetryResponse.layouts = RESPONSES
