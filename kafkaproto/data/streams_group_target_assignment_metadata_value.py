# Generated from schemas/data/StreamsGroupTargetAssignmentMetadataValue.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupTargetAssignmentMetadataValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Int32
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupTargetAssignmentMetadataValue(Whole):
    """Value of a record whose key is `StreamsGroupTargetAssignmentMetadataKey`; this data has version 0, which is flexible (KIP-482)."""

    assignment_epoch: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE_V0 = Message(
    StreamsGroupTargetAssignmentMetadataValue,
    "assignment_epoch" / Int32,
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[StreamsGroupTargetAssignmentMetadataValue]] = {
    0: STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE_V0,
}
StreamsGroupTargetAssignmentMetadataValue.layouts = LAYOUTS
