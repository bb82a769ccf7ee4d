# Generated from schemas/data/ShareGroupMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareGroupMetadataKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupMetadataKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 11, which is not flexible (KIP-482)."""

    group_id: str = ""  # v11


SHARE_GROUP_METADATA_KEY_V11 = Message(
    ShareGroupMetadataKey,
    "group_id" / String,
    versions="11",
)

LAYOUTS: dict[int, Message[ShareGroupMetadataKey]] = {
    11: SHARE_GROUP_METADATA_KEY_V11,
}
ShareGroupMetadataKey.layouts = LAYOUTS
