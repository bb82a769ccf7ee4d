# Generated from schemas/data/ShareGroupMetadataValue.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareGroupMetadataValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Int32, Int64
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupMetadataValue(Whole):
    """Value of a record whose key is `ShareGroupMetadataKey`; this data has version 0, which is flexible (KIP-482)."""

    epoch: int = 0
    metadata_hash: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


SHARE_GROUP_METADATA_VALUE_V0 = Message(
    ShareGroupMetadataValue,
    "epoch" / Int32,
    "metadata_hash" / Int64,
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[ShareGroupMetadataValue]] = {
    0: SHARE_GROUP_METADATA_VALUE_V0,
}
ShareGroupMetadataValue.layouts = LAYOUTS
