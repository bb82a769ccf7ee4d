# Generated from schemas/data/ShareGroupTargetAssignmentMemberKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareGroupTargetAssignmentMemberKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupTargetAssignmentMemberKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 13, which is not flexible (KIP-482)."""

    group_id: str = ""  # v13
    member_id: str = ""  # v13


SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY_V13 = Message(
    ShareGroupTargetAssignmentMemberKey,
    "group_id" / String,
    "member_id" / String,
    versions="13",
)

LAYOUTS: dict[int, Message[ShareGroupTargetAssignmentMemberKey]] = {
    13: SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY_V13,
}
ShareGroupTargetAssignmentMemberKey.layouts = LAYOUTS
