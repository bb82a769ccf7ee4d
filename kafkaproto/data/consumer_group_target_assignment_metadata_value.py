# Generated from schemas/data/ConsumerGroupTargetAssignmentMetadataValue.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupTargetAssignmentMetadataValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Int32
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupTargetAssignmentMetadataValue(Whole):
    """Value of a record whose key is `ConsumerGroupTargetAssignmentMetadataKey`; this data has version 0, which is flexible (KIP-482)."""

    assignment_epoch: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE_V0 = Message(
    ConsumerGroupTargetAssignmentMetadataValue,
    "assignment_epoch" / Int32,
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[ConsumerGroupTargetAssignmentMetadataValue]] = {
    0: CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE_V0,
}
ConsumerGroupTargetAssignmentMetadataValue.layouts = LAYOUTS
