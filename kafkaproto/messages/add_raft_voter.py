# Generated from schemas/messages/AddRaftVoterRequest.json and AddRaftVoterResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""AddRaftVoterRequest and AddRaftVoterResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactNullableString, CompactString, Int16, Int32, Uint16, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class Listener(Struct):
    """One item of the list ``AddRaftVoterRequest.listeners``."""

    name: str = ""
    host: str = ""
    port: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AddRaftVoterRequest(Whole):
    """Request of API key 80: versions 0 to 1; all flexible (KIP-482)."""

    cluster_id: str | None = ""
    timeout_ms: int = 0
    voter_id: int = 0
    voter_directory_id: bytes = bytes(16)
    listeners: list[Listener] = field(default_factory=list)
    ack_when_committed: bool = True  # v1+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AddRaftVoterResponse(Whole):
    """Response of API key 80: versions 0 to 1; all flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""  # ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


LISTENER_V0 = Message(
    Listener,
    "name" / CompactString,
    "host" / CompactString,
    "port" / Uint16,
    Tags(),
    versions="0-1",
)

ADD_RAFT_VOTER_REQUEST_V0 = Message(
    AddRaftVoterRequest,
    "cluster_id" / CompactNullableString,
    "timeout_ms" / Int32,
    "voter_id" / Int32,
    "voter_directory_id" / Uuid,
    "listeners" / CompactArray(LISTENER_V0),
    Tags(),
    versions="0",
    absent=("ack_when_committed",),
)

ADD_RAFT_VOTER_REQUEST_V1 = Message(
    AddRaftVoterRequest,
    "cluster_id" / CompactNullableString,
    "timeout_ms" / Int32,
    "voter_id" / Int32,
    "voter_directory_id" / Uuid,
    "listeners" / CompactArray(LISTENER_V0),
    "ack_when_committed" / Bool,
    Tags(),
    versions="1",
)

REQUESTS: dict[int, Message[AddRaftVoterRequest]] = {
    0: ADD_RAFT_VOTER_REQUEST_V0,
    1: ADD_RAFT_VOTER_REQUEST_V1,
}
AddRaftVoterRequest.layouts = REQUESTS

ADD_RAFT_VOTER_RESPONSE_V0 = Message(
    AddRaftVoterResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="0-1",
)

ADD_RAFT_VOTER_RESPONSE_V1 = ADD_RAFT_VOTER_RESPONSE_V0

RESPONSES: dict[int, Message[AddRaftVoterResponse]] = {
    0: ADD_RAFT_VOTER_RESPONSE_V0,
    1: ADD_RAFT_VOTER_RESPONSE_V1,
}
AddRaftVoterResponse.layouts = RESPONSES
