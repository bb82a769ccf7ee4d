# Generated from schemas/messages/RemoveRaftVoterRequest.json and RemoveRaftVoterResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""RemoveRaftVoterRequest and RemoveRaftVoterResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, Int16, Int32, Uuid
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class RemoveRaftVoterRequest(Whole):
    """Request of API key 81: version 0; flexible (KIP-482)."""

    cluster_id: str | None = ""
    voter_id: int = 0
    voter_directory_id: bytes = bytes(16)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class RemoveRaftVoterResponse(Whole):
    """Response of API key 81: version 0; flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""  # ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


REMOVE_RAFT_VOTER_REQUEST_V0 = Message(
    RemoveRaftVoterRequest,
    "cluster_id" / CompactNullableString,
    "voter_id" / Int32,
    "voter_directory_id" / Uuid,
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[RemoveRaftVoterRequest]] = {
    0: REMOVE_RAFT_VOTER_REQUEST_V0,
}
RemoveRaftVoterRequest.layouts = REQUESTS

REMOVE_RAFT_VOTER_RESPONSE_V0 = Message(
    RemoveRaftVoterResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[RemoveRaftVoterResponse]] = {
    0: REMOVE_RAFT_VOTER_RESPONSE_V0,
}
RemoveRaftVoterResponse.layouts = RESPONSES
