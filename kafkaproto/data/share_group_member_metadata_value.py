# Generated from schemas/data/ShareGroupMemberMetadataValue.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareGroupMemberMetadataValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupMemberMetadataValue(Whole):
    """Value of a record whose key is `ShareGroupMemberMetadataKey`; this data has version 0, which is flexible (KIP-482)."""

    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


SHARE_GROUP_MEMBER_METADATA_VALUE_V0 = Message(
    ShareGroupMemberMetadataValue,
    "rack_id" / CompactNullableString,
    "client_id" / CompactString,
    "client_host" / CompactString,
    "subscribed_topic_names" / CompactArray(CompactString),
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[ShareGroupMemberMetadataValue]] = {
    0: SHARE_GROUP_MEMBER_METADATA_VALUE_V0,
}
ShareGroupMemberMetadataValue.layouts = LAYOUTS
