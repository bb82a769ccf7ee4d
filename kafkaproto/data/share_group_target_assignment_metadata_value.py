# Generated from schemas/data/ShareGroupTargetAssignmentMetadataValue.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareGroupTargetAssignmentMetadataValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Int32
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupTargetAssignmentMetadataValue(Whole):
    """Value of a record whose key is `ShareGroupTargetAssignmentMetadataKey`; this data has version 0, which is flexible (KIP-482)."""

    assignment_epoch: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE_V0 = Message(
    ShareGroupTargetAssignmentMetadataValue,
    "assignment_epoch" / Int32,
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[ShareGroupTargetAssignmentMetadataValue]] = {
    0: SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE_V0,
}
ShareGroupTargetAssignmentMetadataValue.layouts = LAYOUTS
