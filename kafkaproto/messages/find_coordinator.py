# Generated from schemas/messages/FindCoordinatorRequest.json and FindCoordinatorResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""FindCoordinatorRequest and FindCoordinatorResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int8, NullableString, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class FindCoordinatorRequest(Whole):
    """Request of API key 10: versions 0 to 6; flexible from version 3 on (KIP-482)."""

    key: str = ""  # v0-3
    key_type: int = 0  # v1+
    coordinator_keys: list[str] = field(default_factory=list)  # v4+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Coordinator(Struct):
    """One item of the list ``FindCoordinatorResponse.coordinators``."""

    key: str = ""  # v4+
    node_id: int = 0  # v4+
    host: str = ""  # v4+
    port: int = 0  # v4+
    error_code: int = 0  # v4+
    error_message: str | None = ""  # v4+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class FindCoordinatorResponse(Whole):
    """Response of API key 10: versions 0 to 6; flexible from version 3 on (KIP-482)."""

    throttle_time_ms: int = 0  # v1+, ignorable
    error_code: int = 0  # v0-3
    error_message: str | None = ""  # v1-3, ignorable
    node_id: int = 0  # v0-3
    host: str = ""  # v0-3
    port: int = 0  # v0-3
    coordinators: list[Coordinator] = field(default_factory=list)  # v4+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


FIND_COORDINATOR_REQUEST_V0 = Message(
    FindCoordinatorRequest,
    "key" / String,
    versions="0",
    absent=("key_type", "coordinator_keys"),
)

FIND_COORDINATOR_REQUEST_V1 = Message(
    FindCoordinatorRequest,
    "key" / String,
    "key_type" / Int8,
    versions="1-2",
    absent=("coordinator_keys",),
)

FIND_COORDINATOR_REQUEST_V2 = FIND_COORDINATOR_REQUEST_V1

FIND_COORDINATOR_REQUEST_V3 = Message(
    FindCoordinatorRequest,
    "key" / CompactString,
    "key_type" / Int8,
    Tags(),
    versions="3",
    absent=("coordinator_keys",),
)

FIND_COORDINATOR_REQUEST_V4 = Message(
    FindCoordinatorRequest,
    "key_type" / Int8,
    "coordinator_keys" / CompactArray(CompactString),
    Tags(),
    versions="4-6",
    absent=("key",),
)

FIND_COORDINATOR_REQUEST_V5 = FIND_COORDINATOR_REQUEST_V4

FIND_COORDINATOR_REQUEST_V6 = FIND_COORDINATOR_REQUEST_V4

REQUESTS: dict[int, Message[FindCoordinatorRequest]] = {
    0: FIND_COORDINATOR_REQUEST_V0,
    1: FIND_COORDINATOR_REQUEST_V1,
    2: FIND_COORDINATOR_REQUEST_V2,
    3: FIND_COORDINATOR_REQUEST_V3,
    4: FIND_COORDINATOR_REQUEST_V4,
    5: FIND_COORDINATOR_REQUEST_V5,
    6: FIND_COORDINATOR_REQUEST_V6,
}
FindCoordinatorRequest.layouts = REQUESTS

FIND_COORDINATOR_RESPONSE_V0 = Message(
    FindCoordinatorResponse,
    "error_code" / Int16,
    "node_id" / Int32,
    "host" / String,
    "port" / Int32,
    versions="0",
    absent=("coordinators",),
)

FIND_COORDINATOR_RESPONSE_V1 = Message(
    FindCoordinatorResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / NullableString,
    "node_id" / Int32,
    "host" / String,
    "port" / Int32,
    versions="1-2",
    absent=("coordinators",),
)

FIND_COORDINATOR_RESPONSE_V2 = FIND_COORDINATOR_RESPONSE_V1

FIND_COORDINATOR_RESPONSE_V3 = Message(
    FindCoordinatorResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "node_id" / Int32,
    "host" / CompactString,
    "port" / Int32,
    Tags(),
    versions="3",
    absent=("coordinators",),
)

COORDINATOR_V4 = Message(
    Coordinator,
    "key" / CompactString,
    "node_id" / Int32,
    "host" / CompactString,
    "port" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="4-6",
)

FIND_COORDINATOR_RESPONSE_V4 = Message(
    FindCoordinatorResponse,
    "throttle_time_ms" / Int32,
    "coordinators" / CompactArray(COORDINATOR_V4),
    Tags(),
    versions="4-6",
    absent=("error_code", "node_id", "host", "port"),
)

FIND_COORDINATOR_RESPONSE_V5 = FIND_COORDINATOR_RESPONSE_V4

FIND_COORDINATOR_RESPONSE_V6 = FIND_COORDINATOR_RESPONSE_V4

RESPONSES: dict[int, Message[FindCoordinatorResponse]] = {
    0: FIND_COORDINATOR_RESPONSE_V0,
    1: FIND_COORDINATOR_RESPONSE_V1,
    2: FIND_COORDINATOR_RESPONSE_V2,
    3: FIND_COORDINATOR_RESPONSE_V3,
    4: FIND_COORDINATOR_RESPONSE_V4,
    5: FIND_COORDINATOR_RESPONSE_V5,
    6: FIND_COORDINATOR_RESPONSE_V6,
}
FindCoordinatorResponse.layouts = RESPONSES
