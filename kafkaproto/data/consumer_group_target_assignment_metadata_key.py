# Generated from schemas/data/ConsumerGroupTargetAssignmentMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupTargetAssignmentMetadataKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupTargetAssignmentMetadataKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 6, which is not flexible (KIP-482)."""

    group_id: str = ""  # v6


CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY_V6 = Message(
    ConsumerGroupTargetAssignmentMetadataKey,
    "group_id" / String,
    versions="6",
)

LAYOUTS: dict[int, Message[ConsumerGroupTargetAssignmentMetadataKey]] = {
    6: CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY_V6,
}
ConsumerGroupTargetAssignmentMetadataKey.layouts = LAYOUTS
