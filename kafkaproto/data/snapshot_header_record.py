# Generated from schemas/data/SnapshotHeaderRecord.json by `python -m kafkaproto.generator`. Do not edit.
"""SnapshotHeaderRecord: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Int16, Int64
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class SnapshotHeaderRecord(Whole):
    """Value of the first control record in a snapshot of a KRaft quorum's log (KIP-630); this data has version 0, which is flexible (KIP-482)."""

    version: int = 0
    last_contained_log_timestamp: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


SNAPSHOT_HEADER_RECORD_V0 = Message(
    SnapshotHeaderRecord,
    "version" / Int16,
    "last_contained_log_timestamp" / Int64,
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[SnapshotHeaderRecord]] = {
    0: SNAPSHOT_HEADER_RECORD_V0,
}
SnapshotHeaderRecord.layouts = LAYOUTS
