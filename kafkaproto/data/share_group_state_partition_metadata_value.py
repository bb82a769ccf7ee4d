# Generated from schemas/data/ShareGroupStatePartitionMetadataValue.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareGroupStatePartitionMetadataValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int32, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class TopicPartitionsInfo(Struct):
    """One item of the list ``ShareGroupStatePartitionMetadataValue.initializing_topics`` or ``ShareGroupStatePartitionMetadataValue.initialized_topics``."""

    topic_id: bytes = bytes(16)
    topic_name: str = ""
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TopicInfo(Struct):
    """One item of the list ``ShareGroupStatePartitionMetadataValue.deleting_topics``."""

    topic_id: bytes = bytes(16)
    topic_name: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupStatePartitionMetadataValue(Whole):
    """Value of a record whose key is `ShareGroupStatePartitionMetadataKey`; this data has version 0, which is flexible (KIP-482)."""

    initializing_topics: list[TopicPartitionsInfo] = field(default_factory=list)
    initialized_topics: list[TopicPartitionsInfo] = field(default_factory=list)
    deleting_topics: list[TopicInfo] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


TOPIC_PARTITIONS_INFO_V0 = Message(
    TopicPartitionsInfo,
    "topic_id" / Uuid,
    "topic_name" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="0",
)

TOPIC_INFO_V0 = Message(
    TopicInfo,
    "topic_id" / Uuid,
    "topic_name" / CompactString,
    Tags(),
    versions="0",
)

SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_V0 = Message(
    ShareGroupStatePartitionMetadataValue,
    "initializing_topics" / CompactArray(TOPIC_PARTITIONS_INFO_V0),
    "initialized_topics" / CompactArray(TOPIC_PARTITIONS_INFO_V0),
    "deleting_topics" / CompactArray(TOPIC_INFO_V0),
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[ShareGroupStatePartitionMetadataValue]] = {
    0: SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_V0,
}
ShareGroupStatePartitionMetadataValue.layouts = LAYOUTS
