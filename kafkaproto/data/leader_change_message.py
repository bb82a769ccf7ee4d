# Generated from schemas/data/LeaderChangeMessage.json by `python -m kafkaproto.generator`. Do not edit.
"""LeaderChangeMessage: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Int16, Int32, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class Voter(Struct):
    """One item of the list ``LeaderChangeMessage.voters`` or ``LeaderChangeMessage.granting_voters``."""

    voter_id: int = 0
    voter_directory_id: bytes = bytes(16)  # v1+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class LeaderChangeMessage(Whole):
    """Value of the control record of a new leader of a KRaft quorum (KIP-595); this data has versions 0 to 1, all of which are flexible (KIP-482)."""

    version: int = 0
    leader_id: int = 0
    voters: list[Voter] = field(default_factory=list)
    granting_voters: list[Voter] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


VOTER_V0 = Message(
    Voter,
    "voter_id" / Int32,
    Tags(),
    versions="0",
    absent=("voter_directory_id",),
)

LEADER_CHANGE_MESSAGE_V0 = Message(
    LeaderChangeMessage,
    "version" / Int16,
    "leader_id" / Int32,
    "voters" / CompactArray(VOTER_V0),
    "granting_voters" / CompactArray(VOTER_V0),
    Tags(),
    versions="0",
)

VOTER_V1 = Message(
    Voter,
    "voter_id" / Int32,
    "voter_directory_id" / Uuid,
    Tags(),
    versions="1",
)

LEADER_CHANGE_MESSAGE_V1 = Message(
    LeaderChangeMessage,
    "version" / Int16,
    "leader_id" / Int32,
    "voters" / CompactArray(VOTER_V1),
    "granting_voters" / CompactArray(VOTER_V1),
    Tags(),
    versions="1",
)

LAYOUTS: dict[int, Message[LeaderChangeMessage]] = {
    0: LEADER_CHANGE_MESSAGE_V0,
    1: LEADER_CHANGE_MESSAGE_V1,
}
LeaderChangeMessage.layouts = LAYOUTS
