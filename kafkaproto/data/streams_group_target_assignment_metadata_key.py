# Generated from schemas/data/StreamsGroupTargetAssignmentMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupTargetAssignmentMetadataKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupTargetAssignmentMetadataKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 20, which is not flexible (KIP-482)."""

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
