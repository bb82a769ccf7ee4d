# Generated from schemas/data/ShareGroupMemberMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareGroupMemberMetadataKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupMemberMetadataKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 10, which is not flexible (KIP-482)."""

    group_id: str = ""  # v10
    member_id: str = ""  # v10


SHARE_GROUP_MEMBER_METADATA_KEY_V10 = Message(
    ShareGroupMemberMetadataKey,
    "group_id" / String,
    "member_id" / String,
    versions="10",
)

LAYOUTS: dict[int, Message[ShareGroupMemberMetadataKey]] = {
    10: SHARE_GROUP_MEMBER_METADATA_KEY_V10,
}
ShareGroupMemberMetadataKey.layouts = LAYOUTS
