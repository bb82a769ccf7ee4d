# Generated from schemas/data/ShareGroupStatePartitionMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareGroupStatePartitionMetadataKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupStatePartitionMetadataKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 15, which is not flexible (KIP-482)."""

    group_id: str = ""  # v15


SHARE_GROUP_STATE_PARTITION_METADATA_KEY_V15 = Message(
    ShareGroupStatePartitionMetadataKey,
    "group_id" / String,
    versions="15",
)

LAYOUTS: dict[int, Message[ShareGroupStatePartitionMetadataKey]] = {
    15: SHARE_GROUP_STATE_PARTITION_METADATA_KEY_V15,
}
ShareGroupStatePartitionMetadataKey.layouts = LAYOUTS
