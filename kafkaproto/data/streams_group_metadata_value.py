# Generated from schemas/data/StreamsGroupMetadataValue.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupMetadataValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactNullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int32, Int64
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tagged, Tags


@dataclass(slots=True, eq=False, repr=False)
class LastAssignmentConfig(Struct):
    """One item of the list ``StreamsGroupMetadataValue.last_assignment_configs``."""

    key: str = ""
    value: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupMetadataValue(Whole):
    """Value of a record whose key is `StreamsGroupMetadataKey`; this data has version 0, which is flexible (KIP-482)."""

    epoch: int = 0
    metadata_hash: int = 0
    validated_topology_epoch: int = -1  # tag 0
    last_assignment_configs: list[LastAssignmentConfig] | None = field(default_factory=list)  # tag 1
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


LAST_ASSIGNMENT_CONFIG_V0 = Message(
    LastAssignmentConfig,
    "key" / CompactString,
    "value" / CompactString,
    Tags(),
    versions="0",
)

STREAMS_GROUP_METADATA_VALUE_V0 = Message(
    StreamsGroupMetadataValue,
    "epoch" / Int32,
    "metadata_hash" / Int64,
    Tags(
        Tagged(0, "validated_topology_epoch" / Int32),
        Tagged(1, "last_assignment_configs" / CompactNullableArray(LAST_ASSIGNMENT_CONFIG_V0)),
    ),
    versions="0",
)

LAYOUTS: dict[int, Message[StreamsGroupMetadataValue]] = {
    0: STREAMS_GROUP_METADATA_VALUE_V0,
}
StreamsGroupMetadataValue.layouts = LAYOUTS
