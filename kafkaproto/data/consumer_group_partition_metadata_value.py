# Generated from schemas/data/ConsumerGroupPartitionMetadataValue.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupPartitionMetadataValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int32, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class PartitionMetadata(Struct):
    """One item of the list ``TopicMetadata.partition_metadata``."""

    partition: int = 0
    racks: list[str] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TopicMetadata(Struct):
    """One item of the list ``ConsumerGroupPartitionMetadataValue.topics``."""

    topic_id: bytes = bytes(16)
    topic_name: str = ""
    num_partitions: int = 0
    partition_metadata: list[PartitionMetadata] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupPartitionMetadataValue(Whole):
    """Value of a record whose key is `ConsumerGroupPartitionMetadataKey`; this data has version 0, which is flexible (KIP-482)."""

    topics: list[TopicMetadata] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


PARTITION_METADATA_V0 = Message(
    PartitionMetadata,
    "partition" / Int32,
    "racks" / CompactArray(CompactString),
    Tags(),
    versions="0",
)

TOPIC_METADATA_V0 = Message(
    TopicMetadata,
    "topic_id" / Uuid,
    "topic_name" / CompactString,
    "num_partitions" / Int32,
    "partition_metadata" / CompactArray(PARTITION_METADATA_V0),
    Tags(),
    versions="0",
)

CONSUMER_GROUP_PARTITION_METADATA_VALUE_V0 = Message(
    ConsumerGroupPartitionMetadataValue,
    "topics" / CompactArray(TOPIC_METADATA_V0),
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[ConsumerGroupPartitionMetadataValue]] = {
    0: CONSUMER_GROUP_PARTITION_METADATA_VALUE_V0,
}
ConsumerGroupPartitionMetadataValue.layouts = LAYOUTS
