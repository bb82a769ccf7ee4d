# Generated from schemas/data/ConsumerGroupTargetAssignmentMemberKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupTargetAssignmentMemberKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupTargetAssignmentMemberKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 7, which is not flexible (KIP-482)."""

    group_id: str = ""  # v7
    member_id: str = ""  # v7


CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY_V7 = Message(
    ConsumerGroupTargetAssignmentMemberKey,
    "group_id" / String,
    "member_id" / String,
    versions="7",
)

LAYOUTS: dict[int, Message[ConsumerGroupTargetAssignmentMemberKey]] = {
    7: CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY_V7,
}
ConsumerGroupTargetAssignmentMemberKey.layouts = LAYOUTS
