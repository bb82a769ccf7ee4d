# Generated from schemas/data/ConsumerGroupMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupMetadataKey: classes for all versions, and the layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupMetadataKey(Whole):
    """Data of ConsumerGroupMetadataKey: version 3; not flexible."""

    group_id: str = ""  # v3


CONSUMER_GROUP_METADATA_KEY_V3 = Message(
    ConsumerGroupMetadataKey,
    "group_id" / String,
    versions="3",
)

LAYOUTS: dict[int, Message[ConsumerGroupMetadataKey]] = {
    3: CONSUMER_GROUP_METADATA_KEY_V3,
}
ConsumerGroupMetadataKey.layouts = LAYOUTS
