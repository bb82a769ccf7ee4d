# Generated from schemas/messages/GetTelemetrySubscriptionsRequest.json and GetTelemetrySubscriptionsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""GetTelemetrySubscriptionsRequest and GetTelemetrySubscriptionsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactString, Int16, Int32, Int8, Uuid
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class GetTelemetrySubscriptionsRequest(Whole):
    """Request of API key 71: version 0; flexible (KIP-482)."""

    client_instance_id: bytes = bytes(16)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class GetTelemetrySubscriptionsResponse(Whole):
    """Response of API key 71: version 0; flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: bytes = bytes(16)
    subscription_id: int = 0
    accepted_compression_types: list[int] = field(default_factory=list)
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


GET_TELEMETRY_SUBSCRIPTIONS_REQUEST_V0 = Message(
    GetTelemetrySubscriptionsRequest,
    "client_instance_id" / Uuid,
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[GetTelemetrySubscriptionsRequest]] = {
    0: GET_TELEMETRY_SUBSCRIPTIONS_REQUEST_V0,
}
GetTelemetrySubscriptionsRequest.layouts = REQUESTS

GET_TELEMETRY_SUBSCRIPTIONS_RESPONSE_V0 = Message(
    GetTelemetrySubscriptionsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "client_instance_id" / Uuid,
    "subscription_id" / Int32,
    "accepted_compression_types" / CompactArray(Int8),
    "push_interval_ms" / Int32,
    "telemetry_max_bytes" / Int32,
    "delta_temporality" / Bool,
    "requested_metrics" / CompactArray(CompactString),
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[GetTelemetrySubscriptionsResponse]] = {
    0: GET_TELEMETRY_SUBSCRIPTIONS_RESPONSE_V0,
}
GetTelemetrySubscriptionsResponse.layouts = RESPONSES
