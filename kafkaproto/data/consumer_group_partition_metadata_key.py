# Generated from schemas/data/ConsumerGroupPartitionMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupPartitionMetadataKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupPartitionMetadataKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 4, which is not flexible (KIP-482)."""

    group_id: str = ""  # v4


CONSUMER_GROUP_PARTITION_METADATA_KEY_V4 = Message(
    ConsumerGroupPartitionMetadataKey,
    "group_id" / String,
    versions="4",
)

LAYOUTS: dict[int, Message[ConsumerGroupPartitionMetadataKey]] = {
    4: CONSUMER_GROUP_PARTITION_METADATA_KEY_V4,
}
ConsumerGroupPartitionMetadataKey.layouts = LAYOUTS
