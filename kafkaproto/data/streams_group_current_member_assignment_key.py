# Generated from schemas/data/StreamsGroupCurrentMemberAssignmentKey.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupCurrentMemberAssignmentKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupCurrentMemberAssignmentKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 22, which is not flexible (KIP-482)."""

    group_id: str = ""  # v22
    member_id: str = ""  # v22


STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY_V22 = Message(
    StreamsGroupCurrentMemberAssignmentKey,
    "group_id" / String,
    "member_id" / String,
    versions="22",
)

LAYOUTS: dict[int, Message[StreamsGroupCurrentMemberAssignmentKey]] = {
    22: STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY_V22,
}
StreamsGroupCurrentMemberAssignmentKey.layouts = LAYOUTS
