# Generated from schemas/data/KRaftVersionRecord.json by `python -m kafkaproto.generator`. Do not edit.
"""KRaftVersionRecord: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Int16
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class KRaftVersionRecord(Whole):
    """Value of the control record that sets the KRaft version of a quorum (KIP-853); this data has version 0, which is flexible (KIP-482)."""

    version: int = 0
    k_raft_version: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


K_RAFT_VERSION_RECORD_V0 = Message(
    KRaftVersionRecord,
    "version" / Int16,
    "k_raft_version" / Int16,
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[KRaftVersionRecord]] = {
    0: K_RAFT_VERSION_RECORD_V0,
}
KRaftVersionRecord.layouts = LAYOUTS
