# Generated from schemas/data/ConsumerGroupMemberMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupMemberMetadataKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupMemberMetadataKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 5, which is not flexible (KIP-482)."""

    group_id: str = ""  # v5
    member_id: str = ""  # v5


CONSUMER_GROUP_MEMBER_METADATA_KEY_V5 = Message(
    ConsumerGroupMemberMetadataKey,
    "group_id" / String,
    "member_id" / String,
    versions="5",
)

LAYOUTS: dict[int, Message[ConsumerGroupMemberMetadataKey]] = {
    5: CONSUMER_GROUP_MEMBER_METADATA_KEY_V5,
}
ConsumerGroupMemberMetadataKey.layouts = LAYOUTS
