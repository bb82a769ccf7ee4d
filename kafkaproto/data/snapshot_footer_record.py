# Generated from schemas/data/SnapshotFooterRecord.json by `python -m kafkaproto.generator`. Do not edit.
"""SnapshotFooterRecord: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Int16
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class SnapshotFooterRecord(Whole):
    """Value of the last control record in a snapshot of a KRaft quorum's log (KIP-630); this data has version 0, which is flexible (KIP-482)."""

    version: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


SNAPSHOT_FOOTER_RECORD_V0 = Message(
    SnapshotFooterRecord,
    "version" / Int16,
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[SnapshotFooterRecord]] = {
    0: SNAPSHOT_FOOTER_RECORD_V0,
}
SnapshotFooterRecord.layouts = LAYOUTS
