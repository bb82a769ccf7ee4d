# Generated from schemas/data/StreamsGroupTargetAssignmentMemberKey.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupTargetAssignmentMemberKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupTargetAssignmentMemberKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 21, which is not flexible (KIP-482)."""

    group_id: str = ""  # v21
    member_id: str = ""  # v21


STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY_V21 = Message(
    StreamsGroupTargetAssignmentMemberKey,
    "group_id" / String,
    "member_id" / String,
    versions="21",
)

LAYOUTS: dict[int, Message[StreamsGroupTargetAssignmentMemberKey]] = {
    21: STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY_V21,
}
StreamsGroupTargetAssignmentMemberKey.layouts = LAYOUTS
