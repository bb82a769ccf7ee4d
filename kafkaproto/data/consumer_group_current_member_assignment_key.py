# Generated from schemas/data/ConsumerGroupCurrentMemberAssignmentKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupCurrentMemberAssignmentKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupCurrentMemberAssignmentKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 8, which is not flexible (KIP-482)."""

    group_id: str = ""  # v8
    member_id: str = ""  # v8


CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY_V8 = Message(
    ConsumerGroupCurrentMemberAssignmentKey,
    "group_id" / String,
    "member_id" / String,
    versions="8",
)

LAYOUTS: dict[int, Message[ConsumerGroupCurrentMemberAssignmentKey]] = {
    8: CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY_V8,
}
ConsumerGroupCurrentMemberAssignmentKey.layouts = LAYOUTS
