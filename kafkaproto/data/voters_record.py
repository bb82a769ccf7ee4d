# Generated from schemas/data/VotersRecord.json by `python -m kafkaproto.generator`. Do not edit.
"""VotersRecord: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int16, Int32, Uint16, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class Endpoint(Struct):
    """One item of the list ``Voter.endpoints``."""

    name: str = ""
    host: str = ""
    port: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class KRaftVersionFeature(Struct):
    """The struct in the field ``Voter.k_raft_version_feature``."""

    min_supported_version: int = 0
    max_supported_version: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Voter(Struct):
    """One item of the list ``VotersRecord.voters``."""

    voter_id: int = 0
    voter_directory_id: bytes = bytes(16)
    endpoints: list[Endpoint] = field(default_factory=list)
    k_raft_version_feature: KRaftVersionFeature = field(default_factory=KRaftVersionFeature)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class VotersRecord(Whole):
    """Value of the control record that lists the voters of a KRaft quorum (KIP-853); this data has version 0, which is flexible (KIP-482)."""

    version: int = 0
    voters: list[Voter] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


ENDPOINT_V0 = Message(
    Endpoint,
    "name" / CompactString,
    "host" / CompactString,
    "port" / Uint16,
    Tags(),
    versions="0",
)

K_RAFT_VERSION_FEATURE_V0 = Message(
    KRaftVersionFeature,
    "min_supported_version" / Int16,
    "max_supported_version" / Int16,
    Tags(),
    versions="0",
)

VOTER_V0 = Message(
    Voter,
    "voter_id" / Int32,
    "voter_directory_id" / Uuid,
    "endpoints" / CompactArray(ENDPOINT_V0),
    "k_raft_version_feature" / K_RAFT_VERSION_FEATURE_V0,
    Tags(),
    versions="0",
)

VOTERS_RECORD_V0 = Message(
    VotersRecord,
    "version" / Int16,
    "voters" / CompactArray(VOTER_V0),
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[VotersRecord]] = {
    0: VOTERS_RECORD_V0,
}
VotersRecord.layouts = LAYOUTS
