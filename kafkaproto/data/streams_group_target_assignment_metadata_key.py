# Generated from schemas/data/StreamsGroupTargetAssignmentMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupTargetAssignmentMetadataKey: classes for all versions, and the layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupTargetAssignmentMetadataKey(Whole):
    """Data of StreamsGroupTargetAssignmentMetadataKey: version 20; not flexible."""

    group_id: str = ""  # v20


STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY_V20 = Message(
    StreamsGroupTargetAssignmentMetadataKey,
    "group_id" / String,
    versions="20",
)

LAYOUTS: dict[int, Message[StreamsGroupTargetAssignmentMetadataKey]] = {
    20: STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY_V20,
}
StreamsGroupTargetAssignmentMetadataKey.layouts = LAYOUTS
