# Generated from schemas/data/ShareGroupTargetAssignmentMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareGroupTargetAssignmentMetadataKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupTargetAssignmentMetadataKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 12, which is not flexible (KIP-482)."""

    group_id: str = ""  # v12


SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY_V12 = Message(
    ShareGroupTargetAssignmentMetadataKey,
    "group_id" / String,
    versions="12",
)

LAYOUTS: dict[int, Message[ShareGroupTargetAssignmentMetadataKey]] = {
    12: SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY_V12,
}
ShareGroupTargetAssignmentMetadataKey.layouts = LAYOUTS
