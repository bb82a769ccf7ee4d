# Generated from schemas/data/ConsumerGroupMetadataValue.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupMetadataValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Int32, Int64
from kafkaproto.structs import Whole
from kafkaproto.tags import Tagged, Tags


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupMetadataValue(Whole):
    """Value of a record whose key is `ConsumerGroupMetadataKey`; this data has version 0, which is flexible (KIP-482)."""

    epoch: int = 0
    metadata_hash: int = 0  # tag 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


CONSUMER_GROUP_METADATA_VALUE_V0 = Message(
    ConsumerGroupMetadataValue,
    "epoch" / Int32,
    Tags(
        Tagged(0, "metadata_hash" / Int64),
    ),
    versions="0",
)

LAYOUTS: dict[int, Message[ConsumerGroupMetadataValue]] = {
    0: CONSUMER_GROUP_METADATA_VALUE_V0,
}
ConsumerGroupMetadataValue.layouts = LAYOUTS
