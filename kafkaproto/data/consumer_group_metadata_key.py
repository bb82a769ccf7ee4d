# Generated from schemas/data/ConsumerGroupMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupMetadataKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupMetadataKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 3, which is not flexible (KIP-482)."""

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
