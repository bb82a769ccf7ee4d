# Generated from schemas/data/ShareGroupCurrentMemberAssignmentKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareGroupCurrentMemberAssignmentKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupCurrentMemberAssignmentKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 14, which is not flexible (KIP-482)."""

    group_id: str = ""  # v14
    member_id: str = ""  # v14


SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY_V14 = Message(
    ShareGroupCurrentMemberAssignmentKey,
    "group_id" / String,
    "member_id" / String,
    versions="14",
)

LAYOUTS: dict[int, Message[ShareGroupCurrentMemberAssignmentKey]] = {
    14: SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY_V14,
}
ShareGroupCurrentMemberAssignmentKey.layouts = LAYOUTS
