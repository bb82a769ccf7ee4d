# Generated from schemas/messages/HeartbeatRequest.json and HeartbeatResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""HeartbeatRequest and HeartbeatResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, NullableString, String
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class HeartbeatRequest(Whole):
    """Request of API key 12: versions 0 to 4; flexible from version 4 on (KIP-482)."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None  # v3+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class HeartbeatResponse(Whole):
    """Response of API key 12: versions 0 to 4; flexible from version 4 on (KIP-482)."""

    throttle_time_ms: int = 0  # v1+, ignorable
    error_code: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


HEARTBEAT_REQUEST_V0 = Message(
    HeartbeatRequest,
    "group_id" / String,
    "generation_id" / Int32,
    "member_id" / String,
    versions="0-2",
    absent=("group_instance_id",),
)

HEARTBEAT_REQUEST_V1 = HEARTBEAT_REQUEST_V0

HEARTBEAT_REQUEST_V2 = HEARTBEAT_REQUEST_V0

HEARTBEAT_REQUEST_V3 = Message(
    HeartbeatRequest,
    "group_id" / String,
    "generation_id" / Int32,
    "member_id" / String,
    "group_instance_id" / NullableString,
    versions="3",
)

HEARTBEAT_REQUEST_V4 = Message(
    HeartbeatRequest,
    "group_id" / CompactString,
    "generation_id" / Int32,
    "member_id" / CompactString,
    "group_instance_id" / CompactNullableString,
    Tags(),
    versions="4",
)

REQUESTS: dict[int, Message[HeartbeatRequest]] = {
    0: HEARTBEAT_REQUEST_V0,
    1: HEARTBEAT_REQUEST_V1,
    2: HEARTBEAT_REQUEST_V2,
    3: HEARTBEAT_REQUEST_V3,
    4: HEARTBEAT_REQUEST_V4,
}
HeartbeatRequest.layouts = REQUESTS

HEARTBEAT_RESPONSE_V0 = Message(
    HeartbeatResponse,
    "error_code" / Int16,
    versions="0",
)

HEARTBEAT_RESPONSE_V1 = Message(
    HeartbeatResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    versions="1-3",
)

HEARTBEAT_RESPONSE_V2 = HEARTBEAT_RESPONSE_V1

HEARTBEAT_RESPONSE_V3 = HEARTBEAT_RESPONSE_V1

HEARTBEAT_RESPONSE_V4 = Message(
    HeartbeatResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    Tags(),
    versions="4",
)

RESPONSES: dict[int, Message[HeartbeatResponse]] = {
    0: HEARTBEAT_RESPONSE_V0,
    1: HEARTBEAT_RESPONSE_V1,
    2: HEARTBEAT_RESPONSE_V2,
    3: HEARTBEAT_RESPONSE_V3,
    4: HEARTBEAT_RESPONSE_V4,
}
HeartbeatResponse.layouts = RESPONSES
